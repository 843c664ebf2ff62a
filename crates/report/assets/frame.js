// What stands around every page: the head with its parts and switches, the
// main part that the address names, the foot.

import { render } from 'preact';
import { html } from 'goodput/html';
import { isDark, lang, link, say, set, useAddress } from 'goodput/settings';

/**
 * A part of the page: where it is, and its name in the catalogue.
 * @typedef {{path: string, name: string}} Place
 */

/**
 * @param {{parts: Place[]}} props
 */
function Head({ parts }) {
  const { path } = useAddress();
  const other = lang() === 'zh' ? 'en' : 'zh';
  return html`<header class="top">
    <a class="brand" href=${link('/')}>goodput</a>
    <nav aria-label=${say('nav')}>
      ${parts.map(
        (part) => html`<a href=${link(part.path)} aria-current=${path === part.path ? 'page' : undefined}>
          ${say(part.name)}</a>`,
      )}
    </nav>
    <span class="switches">
      <button type="button" id="switch-lang" lang=${other === 'zh' ? 'zh-CN' : 'en'}
        onClick=${() => set({ lang: other })}>${other === 'zh' ? '中文' : 'English'}</button>
      <button type="button" id="switch-theme" aria-pressed=${isDark() ? 'true' : 'false'}
        onClick=${() => set({ theme: isDark() ? 'light' : 'dark' })}>${say('switch_theme')}</button>
    </span>
  </header>`;
}

/**
 * @param {{parts: Place[], Body: () => unknown, foot: () => string}} props
 */
function App({ parts, Body, foot }) {
  useAddress();
  return html`<${Head} parts=${parts} />
    <main id="main"><${Body} /></main>
    <footer><p class="soft">${foot()}</p></footer>`;
}

/**
 * Draws the page in place of what stood there without scripts.
 * @param {{parts: Place[], Body: () => unknown, foot: () => string}} page
 */
export function mount(page) {
  const root = document.getElementById('app');
  if (root === null) return;
  root.textContent = '';
  render(html`<${App} ...${page} />`, root);
  performance.mark('goodput-rendered');
}
