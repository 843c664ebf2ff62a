// The list of runs: found by words, chosen for an overlay, annotated, moved to
// the trash.

import { html } from 'goodput/html';
import { useEffect, useRef, useState } from 'preact/hooks';
import { count, durationMs, percent, short } from 'goodput/format';
import { FaultWords, NotesForm, NotesShown } from 'goodput/notes';
import { fetchRuns, inWords, moveToTrash, useAnswer } from 'goodput/server';
import { link, say, set, useAddress } from 'goodput/settings';

/** @typedef {import('goodput/server').Fault} Fault */
/** @typedef {import('goodput/server').Line} Line */
/** @typedef {import('goodput/server').Notes} Notes */

/** Runs over each other at most: there are so many colours. */
export const OVERLAID = 6;

/** What is told of a run that has no figures yet, or none that can be read. */
export const STATES = /** @type {Record<string, string>} */ ({
  writing: 'state_writing',
  cut_off: 'state_cut_off',
  unreadable: 'state_unreadable',
});

/**
 * Ids as one text in an address; a comma inside an id is escaped.
 * @param {string[]} ids
 */
export const joined = (ids) => ids.map(encodeURIComponent).join(',');

/**
 * The ids of such a text. What is no escape is taken as it stands.
 * @param {string} text
 */
export function parted(text) {
  const ids = text.split(',').filter((id) => id !== '').map((id) => {
    try {
      return decodeURIComponent(id);
    } catch {
      return id;
    }
  });
  return [...new Set(ids)];
}

/**
 * An instant on the reader's clock, sortable as text.
 * @param {number} ms
 */
function when(ms) {
  const date = new Date(ms);
  const two = (/** @type {number} */ value) => String(value).padStart(2, '0');
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} `
    + `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/**
 * What a run is called in a sentence.
 * @param {Line} line
 */
const nameOf = (line) => `${line.model ?? ''} ${line.id.slice(-6)}`.trim();

/**
 * Whether every word of the filter stands somewhere in what is known of a run.
 * @param {Line} line
 * @param {string} filter
 */
function fits(line, filter) {
  const text = [line.id, line.model, line.target, line.load, line.verdict, line.note, ...line.tags]
    .join('\n').toLowerCase();
  return filter.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

/** The list with its tools. */
export function Runs() {
  const { params } = useAddress();
  const { value, fault, again } = useAnswer(fetchRuns, []);
  const [changed, setChanged] = useState(/** @type {Record<string, Notes | null>} */ ({}));
  useEffect(() => setChanged({}), [value]);
  const filter = params.get('q') ?? '';
  const oldest = params.get('order') === 'old';
  // What was changed here is shown at once, without reading every run again.
  const lines = (value?.runs ?? []).filter((line) => changed[line.id] !== null)
    .map((line) => ({ ...line, ...(changed[line.id] ?? {}) }));
  const shown = lines.filter((line) => fits(line, filter));
  if (oldest) shown.reverse();
  const chosen = parted(params.get('selected') ?? '')
    .filter((id) => lines.some((line) => line.id === id));
  const choose = (/** @type {string} */ id, /** @type {boolean} */ on) => {
    const ids = on ? [...chosen, id] : chosen.filter((one) => one !== id);
    set({ selected: ids.length === 0 ? null : joined(ids) });
  };
  return html`<section id="runs" aria-busy=${value === null && fault === null ? 'true' : 'false'}>
    <h1>${say('runs_title')}</h1>
    <${Tools} filter=${filter} oldest=${oldest} chosen=${chosen} again=${again} />
    <${FaultWords} fault=${fault} />
    <p class="soft" role="status">${value === null
      ? fault === null ? say('loading') : ''
      : lines.length === 0
        ? say('runs_none')
        : say('runs_shown', { shown: shown.length, of: lines.length })}
      ${value !== null && value.of > value.runs.length
        ? ` ${say('runs_more', { shown: value.runs.length, of: value.of })}`
        : ''}</p>
    <ol class="runs">
      ${shown.map((line) => html`<${Entry} key=${line.id} line=${line}
        chosen=${chosen.includes(line.id)} full=${chosen.length >= OVERLAID}
        choose=${(/** @type {boolean} */ on) => choose(line.id, on)}
        change=${(/** @type {Notes | null} */ notes) => setChanged({ ...changed, [line.id]: notes })} />`)}
    </ol>
  </section>`;
}

/**
 * Filter, order, and what can be done with the chosen runs.
 * @param {{filter: string, oldest: boolean, chosen: string[], again: () => void}} props
 */
function Tools({ filter, oldest, chosen, again }) {
  const read = (/** @type {Event} */ event) => {
    const { value } = /** @type {HTMLInputElement} */ (event.currentTarget);
    set({ q: value === '' ? null : value });
  };
  return html`<div class="tools">
    <label class="filter">${say('runs_filter')}
      <input type="search" id="filter" value=${filter} onInput=${read} autocomplete="off" spellcheck=${false} />
    </label>
    <button type="button" id="order" onClick=${() => set({ order: oldest ? null : 'old' })}>
      ${oldest ? say('runs_oldest') : say('runs_newest')}</button>
    <button type="button" id="reload" onClick=${again}>${say('runs_reload')}</button>
    ${chosen.length > 1
      ? html`<a class="go" id="overlay" href=${link(`/overlay/${joined(chosen)}`)}>
          ${say('runs_overlay', { n: chosen.length })}</a>`
      : html`<span class="soft">${say('runs_overlay_hint', { most: OVERLAID })}</span>`}
    ${chosen.length > 0
      ? html`<button type="button" id="choose-none" onClick=${() => set({ selected: null })}>
          ${say('runs_clear')}</button>`
      : null}
  </div>`;
}

/**
 * One run.
 * @param {{line: Line, chosen: boolean, full: boolean, choose: (on: boolean) => void,
 *   change: (notes: Notes | null) => void}} props
 */
function Entry({ line, chosen, full, choose, change }) {
  const [doing, setDoing] = useState(/** @type {'' | 'edit' | 'trash'} */ (''));
  const name = nameOf(line);
  const edit = useRef(/** @type {HTMLButtonElement | null} */ (null));
  const trash = useRef(/** @type {HTMLButtonElement | null} */ (null));
  // The keyboard goes on where it was when a form closes.
  const close = (/** @type {typeof edit} */ opener) => {
    setDoing('');
    opener.current?.focus();
  };
  return html`<li class="run" data-run=${line.id}>
    <input type="checkbox" checked=${chosen} disabled=${line.state === 'unreadable' || (full && !chosen)}
      aria-label=${say('runs_pick', { run: name })}
      onChange=${(/** @type {Event} */ event) => choose(/** @type {HTMLInputElement} */ (event.currentTarget).checked)} />
    <div class="about">
      <p><a href=${link(`/run/${encodeURIComponent(line.id)}`)}>${when(line.made_ms)} · ${line.model ?? say('model_unknown')}</a>
        ${line.simulated ? html` <span class="simulated">${say('simulated_short')}</span>` : null}</p>
      <p class="soft">${[line.target, line.load, `${short(line.size_bytes / 1024)} KiB`]
        .filter((part) => part !== undefined).join(' · ')}</p>
      <p class="soft id">${line.id}</p>
      <${NotesShown} notes=${line} />
    </div>
    <${Figures} line=${line} />
    <div class="buttons">
      <button type="button" ref=${edit} data-do="edit" aria-expanded=${doing === 'edit' ? 'true' : 'false'}
        aria-label=${say('edit_of', { run: name })} disabled=${line.notes_fault !== null}
        onClick=${() => setDoing(doing === 'edit' ? '' : 'edit')}>${say('edit')}</button>
      <button type="button" ref=${trash} data-do="trash" aria-expanded=${doing === 'trash' ? 'true' : 'false'}
        aria-label=${say('trash_of', { run: name })} disabled=${line.state === 'writing'}
        onClick=${() => setDoing(doing === 'trash' ? '' : 'trash')}>${say('trash')}</button>
    </div>
    ${doing === 'edit'
      ? html`<${NotesForm} id=${line.id} name=${name} notes=${line}
          done=${(/** @type {Notes | null} */ notes) => {
            if (notes !== null) change(notes);
            close(edit);
          }} />`
      : null}
    ${doing === 'trash'
      ? html`<${Sure} line=${line} name=${name} keep=${() => close(trash)} gone=${() => {
          choose(false);
          change(null);
          // Its own button went with the run.
          document.getElementById('filter')?.focus();
        }} />`
      : null}
  </li>`;
}

/**
 * The main figures, or why there are none.
 * @param {{line: Line}} props
 */
function Figures({ line }) {
  if (line.state !== 'done') {
    return html`<p class=${line.state === 'unreadable' ? 'state fault' : 'state'}>
      ${say(STATES[line.state] ?? line.state)} ${line.reason ?? ''}</p>`;
  }
  const all = (line.ok ?? 0) + (line.failed ?? 0);
  /** @type {Array<[string, string]>} */
  const figures = [
    ['TTFT P50', durationMs(line.ttft_p50_ms)],
    ['TTFT P99', durationMs(line.ttft_p99_ms)],
    ['TPOT P50', durationMs(line.tpot_p50_ms)],
    [say('line_tokens'), short(line.output_tok_s)],
    [say('axis_requests'), `${count(line.ok ?? 0)}/${count(all)}`],
    [say('attainment'), percent(line.attainment)],
  ];
  return html`<dl class="figures">
    <div><dt>${say('verdict')}</dt><dd class=${`verdict ${line.verdict ?? ''}`}>${line.verdict ?? 'n/a'}</dd></div>
    ${figures.map(([label, text]) => html`<div><dt>${label}</dt><dd>${text}</dd></div>`)}
  </dl>`;
}

/**
 * Asks before a run is moved.
 * @param {{line: Line, name: string, keep: () => void, gone: () => void}} props
 */
function Sure({ line, name, keep, gone }) {
  const [fault, setFault] = useState(/** @type {Fault | null} */ (null));
  const no = useRef(/** @type {HTMLButtonElement | null} */ (null));
  // The answer that changes nothing is the one that a key in haste gives.
  useEffect(() => no.current?.focus(), []);
  const move = async () => {
    try {
      await moveToTrash(line.id);
      gone();
    } catch (refused) {
      setFault(inWords(refused));
    }
  };
  return html`<div class="sure" role="group" aria-label=${say('trash_of', { run: name })}>
    <p>${say('trash_sure', { run: name })}</p>
    <${FaultWords} fault=${fault} />
    <p class="buttons">
      <button type="button" data-do="keep" ref=${no} onClick=${keep}>${say('trash_no')}</button>
      <button type="button" data-do="move" onClick=${move}>${say('trash_yes')}</button>
    </p>
  </div>`;
}
