// The page of `goodput ui`: the list of runs, one run, several over each
// other, the playground with requests of any run, the glossary.

import { html } from 'goodput/html';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { mount } from 'goodput/frame';
import { Glossary } from 'goodput/glossary';
import { FaultWords, NotesForm, NotesShown } from 'goodput/notes';
import { Playground } from 'goodput/playground';
import { Report } from 'goodput/report';
import { OVERLAID, Runs, STATES, joined, parted } from 'goodput/runs';
import { fetchRun, fetchRuns, useAnswer } from 'goodput/server';
import { link, page, say, set, useAddress } from 'goodput/settings';

/** @typedef {import('goodput/server').Told} Told */
/** @typedef {import('goodput/server').Notes} Notes */

/** The parts of the page that stand in its head. */
const PARTS = [
  { path: '/', name: 'nav_runs' },
  { path: '/playground', name: 'nav_playground' },
  { path: '/glossary', name: 'nav_glossary' },
];

/**
 * One run, or several over each other.
 * @param {{ids: string[]}} props
 */
function Opened({ ids }) {
  const { value, fault, again } = useAnswer(() => Promise.all(ids.map(fetchRun)), [joined(ids)]);
  // Charts are drawn anew when this list is another one.
  const runs = useMemo(() => (value ?? []).map((told) => told.run), [value]);
  const back = html`<p><a id="back" href=${link('/')}>← ${say('back_to_runs')}</a></p>`;
  if (fault !== null) {
    return html`${back}<${FaultWords} fault=${fault} />
      <p><button type="button" id="again" onClick=${again}>${say('try_again')}</button></p>`;
  }
  if (value === null) return html`${back}<p class="soft" role="status" aria-busy="true">${say('loading')}</p>`;
  return html`${back}
    ${ids.length > 1 ? html`<h1>${say('overlay_title', { n: ids.length })}</h1>` : null}
    ${value.map((told) => html`<${Besides} key=${told.run.id} told=${told} several=${ids.length > 1} />`)}
    <${Report} runs=${runs} />`;
}

/**
 * What is known of a run besides its figures.
 * @param {{told: Told, several: boolean}} props
 */
function Besides({ told, several }) {
  const [notes, setNotes] = useState(/** @type {Notes} */ (told));
  const [open, setOpen] = useState(false);
  const edit = useRef(/** @type {HTMLButtonElement | null} */ (null));
  const { id, name } = told.run;
  const done = (/** @type {Notes | null} */ given) => {
    if (given !== null) setNotes(given);
    setOpen(false);
    edit.current?.focus();
  };
  const state = STATES[told.state];
  return html`<div class="besides" data-run=${id}>
    ${several ? html`<p class="run-name"><a href=${link(`/run/${encodeURIComponent(id)}`)}>${name}</a></p>` : null}
    ${state === undefined ? null : html`<p class="state">${say(state)}</p>`}
    <${NotesShown} notes=${notes} />
    ${several
      ? null
      : html`<p class="buttons">
          <button type="button" ref=${edit} data-do="edit" aria-expanded=${open ? 'true' : 'false'}
            disabled=${notes.notes_fault !== null} onClick=${() => setOpen(!open)}>${say('edit')}</button>
          <a id="to-playground" href=${link('/playground', { run: id })}>${say('to_playground')}</a>
        </p>`}
    ${open ? html`<${NotesForm} id=${id} name=${name} notes=${notes} done=${done} />` : null}
  </div>`;
}

/** The playground, to which the requests of any run can be fetched. */
function WebPlayground() {
  const { params } = useAddress();
  const id = params.get('run') ?? '';
  const list = useAnswer(fetchRuns, []);
  const fetched = useAnswer(() => (id === '' ? Promise.resolve(null) : fetchRun(id)), [id]);
  const choose = (/** @type {Event} */ event) => {
    const { value } = /** @type {HTMLSelectElement} */ (event.currentTarget);
    set({ run: value === '' ? null : value });
  };
  const lines = (list.value?.runs ?? []).filter((line) => line.state !== 'unreadable');
  const known = id === '' || lines.some((line) => line.id === id);
  return html`<div class="tools">
      <label>${say('play_run')}
        <select id="play-run" value=${id} onChange=${choose}>
          <option value="">${say('play_run_none')}</option>
          ${known ? null : html`<option value=${id}>${id}</option>`}
          ${lines.map((line) => html`<option key=${line.id} value=${line.id}>
            ${`${line.model ?? ''} ${line.id} ${line.tags.join(' ')}`.trim()}</option>`)}
        </select>
      </label>
      <span class="soft" role="status">${id === ''
        ? ''
        : fetched.value === null
          ? fetched.fault === null ? say('loading') : ''
          : say('play_run_ready', { run: fetched.value.run.name })}</span>
    </div>
    <${FaultWords} fault=${fetched.fault ?? list.fault} />
    <${Playground} />`;
}

/**
 * The part that a path names, and what the browser's tab then says.
 * @param {string} path
 * @returns {{title: string, part: unknown}}
 */
function partOf(path) {
  const [, kind, rest] = path.split('/');
  const ids = parted(rest ?? '');
  if (path === '/') return { title: say('runs_title'), part: html`<${Runs} />` };
  if (path === '/playground') return { title: say('nav_playground'), part: html`<${WebPlayground} />` };
  if (path === '/glossary') return { title: say('nav_glossary'), part: html`<${Glossary} />` };
  if (kind === 'run' && ids.length === 1) {
    return { title: ids[0], part: html`<${Opened} key=${path} ids=${ids} />` };
  }
  if (kind === 'overlay' && ids.length > 1 && ids.length <= OVERLAID) {
    const title = say('overlay_title', { n: ids.length });
    return { title, part: html`<${Opened} key=${path} ids=${ids} />` };
  }
  const words = kind === 'overlay' ? say('overlay_count', { most: OVERLAID }) : say('path_unknown');
  return { title: words, part: html`<p class="empty">${words}</p>
    <p><a href=${link('/')}>${say('back_to_runs')}</a></p>` };
}

function Body() {
  const { path } = useAddress();
  const { title, part } = partOf(path);
  const first = useRef(true);
  useEffect(() => {
    document.title = `${title} · goodput`;
  }, [title]);
  useEffect(() => {
    const main = document.getElementById('main');
    if (main !== null && !first.current) {
      // The link that was followed is gone: the keyboard starts at the top.
      main.tabIndex = -1;
      main.focus({ preventScroll: true });
      scrollTo(0, 0);
    }
    first.current = false;
  }, [path]);
  return part;
}

mount({ parts: PARTS, Body, foot: () => say('web_footer', { version: page.version }) });
