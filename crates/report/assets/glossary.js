// The metric registry as a person meets it: a name that opens its definition
// wherever it stands, and the tree of all of them.

import { html } from 'goodput/html';
import { useEffect, useRef, useState } from 'preact/hooks';
import { page, pick, say, useAddress } from 'goodput/settings';

/** @typedef {import('goodput/page').Metric} Metric */

/**
 * @param {string | null} key
 * @returns {Metric | undefined}
 */
export function metric(key) {
  return key === null ? undefined : page.metrics.find((one) => one.key === key);
}

/**
 * A name with its definition behind it. Without a metric it is just the name.
 * @param {{about: string | null, children: unknown}} props
 */
export function Term({ about, children }) {
  const [open, setOpen] = useState(false);
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    if (!open) return undefined;
    const away = (/** @type {Event} */ event) => {
      const inside = event.target instanceof Node && place.current?.contains(event.target);
      const escaped = event instanceof KeyboardEvent && event.key === 'Escape';
      if (escaped || (event.type === 'pointerdown' && !inside)) setOpen(false);
    };
    addEventListener('keydown', away);
    addEventListener('pointerdown', away);
    return () => {
      removeEventListener('keydown', away);
      removeEventListener('pointerdown', away);
    };
  }, [open]);
  const found = metric(about);
  if (found === undefined) return children;
  return html`<span class="term" ref=${place}>
    <button
      type="button"
      aria-expanded=${open ? 'true' : 'false'}
      onClick=${() => setOpen(!open)}
      title=${pick(found.text)}
    >
      ${children}
    </button>
    ${open ? html`<${Card} metric=${found} />` : null}
  </span>`;
}

/**
 * The fields of a metric, in the order in which they are asked for.
 * @param {Metric} found
 * @returns {Array<[string, string]>}
 */
function fields(found) {
  /** @type {Array<[string, string]>} */
  const rows = [
    [say('field_formula'), found.formula],
    [say('field_unit'), found.unit],
    [say('field_level'), pick(found.level)],
    [say('field_better'), pick(found.better)],
    [say('field_population'), found.population],
    [say('field_undefined_when'), found.undefined_when],
    [say('field_pitfalls'), pick(found.pitfalls)],
    [say('field_peers'), found.peers],
    [say('field_source'), found.source],
  ];
  return rows;
}

/**
 * The definition of a metric.
 * @param {{metric: Metric}} props
 */
export function Card({ metric: found }) {
  return html`<div class="card" role="note" tabindex="0">
    <p><strong>${found.symbol}</strong> — ${pick(found.name)}</p>
    <p>${pick(found.text)}</p>
    <dl>
      ${fields(found).map(
        ([name, text]) => html`<div><dt>${name}</dt><dd>${text}</dd></div>`,
      )}
    </dl>
  </div>`;
}

/** The tree of the metrics: four branches, and the leaves of each. */
export function Glossary() {
  const { params } = useAddress();
  const chosen = params.get('metric');
  return html`<section class="glossary" id="glossary">
    <h2>${say('glossary_title')}</h2>
    <p class="soft">${say('glossary_lead')}</p>
    <ul class="tree">
      ${page.tree.map(
        (branch) => html`<li class="branch" key=${branch.id}>
          <h3>${pick(branch.name)}</h3>
          <ul>
            ${branch.leaves.map(
              (leaf) => html`<li class="leaf" key=${leaf.symbol}>
                <details open=${leaf.keys.includes(chosen ?? '')}>
                  <summary><strong>${leaf.symbol}</strong> <span>${pick(leaf.name)}</span></summary>
                  ${leaf.text === null ? null : html`<div class="card"><p>${pick(leaf.text)}</p></div>`}
                  ${leaf.keys.map((key) => {
                    const found = metric(key);
                    return found === undefined ? null : html`<${Card} metric=${found} />`;
                  })}
                </details>
              </li>`,
            )}
          </ul>
        </li>`,
      )}
    </ul>
  </section>`;
}
