// The page: its head, and the part of it that the address names.

import { render } from 'preact';
import { html } from 'goodput/html';
import { Glossary } from 'goodput/glossary';
import { Playground } from 'goodput/playground';
import { Report } from 'goodput/report';
import { isDark, lang, link, page, say, set, useAddress } from 'goodput/settings';

/** The parts of a page that holds its runs. */
const PARTS = [
  { path: '/', name: 'nav_report' },
  { path: '/playground', name: 'nav_playground' },
  { path: '/glossary', name: 'nav_glossary' },
];

function Head() {
  const { path } = useAddress();
  const other = lang() === 'zh' ? 'en' : 'zh';
  return html`<header class="top">
    <a class="brand" href=${link('/')}>goodput</a>
    <nav aria-label=${say('nav')}>
      ${PARTS.map(
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

function Body() {
  const { path } = useAddress();
  if (path === '/playground') return html`<${Playground} />`;
  if (path === '/glossary') return html`<${Glossary} />`;
  return html`<${Report} runs=${page.runs} />`;
}

function App() {
  return html`<${Head} />
    <main id="main"><${Body} /></main>
    <footer><p class="soft">${say('footer', { version: page.version })}</p></footer>`;
}

const root = document.getElementById('app');
if (root !== null) {
  root.textContent = '';
  render(html`<${App} />`, root);
  performance.mark('goodput-rendered');
}
