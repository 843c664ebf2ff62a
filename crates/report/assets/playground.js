// The playground: what the metrics do when the numbers of a request change.

import { html } from 'goodput/html';
import { useRef, useState } from 'preact/hooks';
import * as sums from 'goodput/arithmetic';
import { durationMs, fixed, percent, short } from 'goodput/format';
import { numbers } from 'goodput/columns';
import { Term } from 'goodput/glossary';
import { ONE, PRESETS, RANGES } from 'goodput/presets';
import { page, say, set, useAddress } from 'goodput/settings';

/** @typedef {import('goodput/arithmetic').Request} Request */
/** @typedef {import('goodput/arithmetic').Limits} Limits */

/** Rows that are shown; more would take a second to draw at every key. */
const ROWS_SHOWN = 100;

/** The whole playground. */
export function Playground() {
  const [requests, setRequests] = useState(PRESETS[0].requests);
  const [limits, setLimits] = useState(PRESETS[0].limits);
  const [seconds, setSeconds] = useState(/** @type {number | null} */ (PRESETS[0].seconds));
  const load = (/** @type {import('goodput/presets').Preset} */ preset) => {
    setRequests(preset.requests);
    setLimits(preset.limits);
    setSeconds(preset.seconds);
  };
  const sound = requests.filter((request) => sums.fault(request) === null);
  return html`<section class="playground" id="playground">
    <h2>${say('play_title')}</h2>
    <p class="soft">${say('play_lead')}</p>
    <${OneRequest} />
    <${Table}
      requests=${requests}
      setRequests=${setRequests}
      limits=${limits}
      setLimits=${setLimits}
      seconds=${seconds}
      setSeconds=${setSeconds}
      load=${load}
    />
    <${Means} requests=${sound} />
    <${Outlier} requests=${sound} />
  </section>`;
}

/**
 * A number that a person sets by a slider or by typing. What is typed stays
 * as it is, right or wrong, and is judged where it is used.
 * @param {{id: string, label: unknown, value: number, range: number[], unit: string,
 *   change: (value: number) => void}} props
 */
function Slider({ id, label, value, range, unit, change }) {
  const read = (/** @type {Event} */ event) => {
    const { value: text } = /** @type {HTMLInputElement} */ (event.currentTarget);
    change(text.trim() === '' ? NaN : Number(text));
  };
  return html`<div class="slider">
    <label for=${`${id}-number`}>${label}</label>
    <input
      type="range"
      id=${id}
      aria-label=${`${id} ${unit}`}
      min=${range[0]}
      max=${range[1]}
      step="1"
      value=${Number.isFinite(value) ? value : range[0]}
      onInput=${read}
    />
    <span class="number">
      <input
        type="number"
        id=${`${id}-number`}
        step="any"
        value=${Number.isNaN(value) ? '' : value}
        onInput=${read}
      />
      ${unit}
    </span>
  </div>`;
}

/**
 * A number of the address, or its default.
 * @param {URLSearchParams} params
 * @param {string} name
 * @param {number} otherwise
 */
function numberOf(params, name, otherwise) {
  const text = params.get(name);
  return text === null ? otherwise : text === '' ? NaN : Number(text);
}

/** (a) One request: its times, and where the formula takes them. */
function OneRequest() {
  const { params } = useAddress();
  const request = {
    ttft: numberOf(params, 'ttft', ONE.ttft),
    e2el: numberOf(params, 'e2el', ONE.e2el),
    tokens: numberOf(params, 'tokens', ONE.tokens),
  };
  const change = (/** @type {keyof typeof ONE} */ name) => (/** @type {number} */ value) =>
    set({ [name]: Number.isNaN(value) ? '' : value === ONE[name] ? null : String(value) });
  const fault = sums.fault(request);
  return html`<div class="one panel" id="one-request">
    <h3>${say('one_title')}</h3>
    <div class="sliders">
      <${Slider} id="ttft" unit="ms" value=${request.ttft} range=${RANGES.ttft}
        label=${html`<${Term} about="ttft_ms">TTFT<//>`} change=${change('ttft')} />
      <${Slider} id="e2el" unit="ms" value=${request.e2el} range=${RANGES.e2el}
        label=${html`<${Term} about="e2el_ms">E2EL<//>`} change=${change('e2el')} />
      <${Slider} id="tokens" unit=${say('unit_tokens')} value=${request.tokens}
        range=${RANGES.tokens} label=${html`<${Term} about="output_tokens">${say('output_tokens')}<//>`}
        change=${change('tokens')} />
    </div>
    ${fault === null
      ? html`<${Worked} request=${request} />`
      : html`<p class="fault" role="alert">${say(fault, faultGaps(request))}</p>`}
  </div>`;
}

/**
 * @param {Request} request
 */
function faultGaps(request) {
  const shown = (/** @type {number} */ value) => (Number.isFinite(value) ? String(value) : '?');
  return {
    ttft: shown(request.ttft),
    e2el: shown(request.e2el),
    tokens: shown(request.tokens),
    most_ms: String(sums.MOST_MS),
    most_tokens: String(sums.MOST_TOKENS),
  };
}

/**
 * The two results with their formulas, and the request on its time line.
 * @param {{request: Request}} props
 */
function Worked({ request }) {
  const time = sums.generation(request);
  const pace = sums.tpot(request);
  const { ttft, e2el, tokens } = request;
  return html`<div class="results" aria-live="polite">
      <div class="result">
        <span><${Term} about="generation_ms">${say('generation_time')}<//></span>
        <output id="generation">${exact(time)} ms</output>
      </div>
      <div class="result">
        <span><${Term} about="tpot_ms">TPOT<//></span>
        <output id="tpot">${pace === null ? 'n/a' : `${fixed(pace, 2)} ms/token`}</output>
      </div>
      <div class="result">
        <span>${say('speed')}</span>
        <output id="speed">${pace === null || pace === 0 ? 'n/a' : `${short(1000 / pace)} tok/s`}</output>
      </div>
    </div>
    <p class="formula">
      ${say('generation_time')} = E2EL − TTFT = ${exact(e2el)} − ${exact(ttft)} = ${exact(time)} ms
    </p>
    <p class="formula">
      ${pace === null
        ? say('tpot_of_one')
        : html`TPOT = ${say('generation_time')} ÷ (N − 1) = ${exact(time)} ÷ (${tokens} − 1) =
          ${' '}${fixed(pace, 2)} ms/token`}
    </p>
    <${TimeLine} request=${request} />
    <${Reading} pace=${pace} />`;
}

/**
 * A typed number as it was typed, without binary noise.
 * @param {number} value
 */
function exact(value) {
  return String(Number(value.toFixed(6)));
}

/**
 * Three digits without zeros at the end: what is typed here is round.
 * @param {number} value
 */
function plain(value) {
  const text = short(value);
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

/** Marks that are drawn one by one; beyond, every so many. */
const MARKS = 40;

/**
 * The request on the line t0 … tN. A client cannot see where queueing ends and
 * prefill begins, so the border between them is drawn as unknown.
 * @param {{request: Request}} props
 */
function TimeLine({ request }) {
  const { ttft, e2el, tokens } = request;
  const wide = 640;
  const span = Math.max(e2el, 1e-9);
  const x = (/** @type {number} */ ms) => 12 + (ms / span) * (wide - 24);
  const stride = Math.max(1, Math.ceil((tokens - 1) / MARKS));
  const pace = sums.tpot(request) ?? 0;
  const marks = [];
  for (let token = 0; token < tokens; token += stride) marks.push(ttft + token * pace);
  if (tokens > 1 && (tokens - 1) % stride !== 0) marks.push(e2el);
  const middle = x(ttft / 2);
  return html`<figure class="timeline">
    <svg viewBox="0 0 ${wide} 132" role="img" aria-label=${say('timeline_title')}>
      <rect x=${x(0)} y="34" width=${Math.max(x(ttft) - x(0), 0.5)} height="20" class="wait" />
      <line x1=${middle} y1="34" x2=${middle} y2="54" class="unknown" />
      <rect x=${x(ttft)} y="34" width=${Math.max(x(e2el) - x(ttft), 0.5)} height="20" class="stream" />
      ${marks.map(
        (ms, index) => html`<line x1=${x(ms)} x2=${x(ms)} y1=${index === 0 ? 26 : 34} y2=${index === 0 ? 62 : 54}
          class=${index === 0 ? 'first' : 'token'} />`,
      )}
      <${Bracket} from=${x(0)} to=${x(ttft)} y=${76} label=${`TTFT ${durationMs(ttft)}`}
        note=${say('timeline_ttft')} />
      <${Bracket} from=${x(ttft)} to=${x(e2el)} y=${76}
        label=${tokens > 1 ? `${tokens - 1} × ITL, ⌀ ${short(pace)} ms` : ''} />
      <${Bracket} from=${x(0)} to=${x(e2el)} y=${108} label=${`E2EL ${durationMs(e2el)}`} />
      <text x=${x(0)} y="20">t0</text>
      <text x=${Math.max(x(ttft), x(0) + 22)} y="20">t2</text>
      ${tokens > 1 && x(ttft) < wide - 130
        ? html`<text x=${Math.max(x(ttft), x(0) + 22) + 30} y="20" class="soft">ITL₁ ITL₂ …</text>`
        : null}
      <text x=${x(e2el)} y="20" class="end">tN</text>
    </svg>
    <figcaption>${say('timeline_caption', { stride: String(stride) })}</figcaption>
  </figure>`;
}

/**
 * A span with its name below; the note is added where there is room.
 * @param {{from: number, to: number, y: number, label: string, note?: string}} props
 */
function Bracket({ from, to, y, label, note }) {
  const middle = Math.min(Math.max((from + to) / 2, 50), 590);
  const shown = note !== undefined && to - from > 230 ? `${label}: ${note}` : label;
  return html`<path d=${`M${from} ${y - 5}V${y}H${to}V${y - 5}`} class="bracket" />
    <text x=${middle} y=${y + 15} class="middle">${shown}</text>`;
}

/**
 * The pace of an answer beside that of a reader.
 * @param {{pace: number | null}} props
 */
function Reading({ pace }) {
  const reading = page.reading_tok_s;
  if (pace === null) return null;
  const speed = pace === 0 ? Infinity : 1000 / pace;
  const ratio = speed / reading;
  return html`<p class="reading">
    ${say(ratio >= 1 ? 'reading_faster' : 'reading_slower', {
      reading: short(reading),
      ratio: short(ratio >= 1 ? ratio : 1 / ratio),
    })}
  </p>`;
}

/**
 * A limit that may be empty.
 * @param {{name: 'ttft' | 'tpot' | 'e2el', limits: Limits, setLimits: (limits: Limits) => void}} props
 */
function Limit({ name, limits, setLimits }) {
  const read = (/** @type {Event} */ event) => {
    const { value } = /** @type {HTMLInputElement} */ (event.currentTarget);
    const number = Number(value);
    setLimits({ ...limits, [name]: value.trim() === '' || !(number >= 0) ? null : number });
  };
  return html`<label class="limit">
    ${name.toUpperCase()} ≤
    <input type="number" min="0" step="any" id=${`limit-${name}`} value=${limits[name] ?? ''}
      placeholder="–" onInput=${read} />
    ms
  </label>`;
}

/**
 * (b) The table of requests, judged by all limits together.
 * @param {{
 *   requests: Request[], setRequests: (requests: Request[]) => void,
 *   limits: Limits, setLimits: (limits: Limits) => void,
 *   seconds: number | null, setSeconds: (seconds: number | null) => void,
 *   load: (preset: import('goodput/presets').Preset) => void,
 * }} props
 */
function Table({ requests, setRequests, limits, setLimits, seconds, setSeconds, load }) {
  const faults = requests.map(sums.fault);
  const sound = requests.filter((_, index) => faults[index] === null);
  const change = (/** @type {number} */ index, /** @type {Partial<Request>} */ part) =>
    setRequests(requests.map((one, at) => (at === index ? { ...one, ...part } : one)));
  return html`<div class="requests panel" id="requests">
    <h3>${say('table_title')}</h3>
    <${Sources} load=${load} setRequests=${setRequests} setLimits=${setLimits}
      setSeconds=${setSeconds} />
    <div class="limits">
      <${Limit} name="ttft" limits=${limits} setLimits=${setLimits} />
      <${Limit} name="tpot" limits=${limits} setLimits=${setLimits} />
      <${Limit} name="e2el" limits=${limits} setLimits=${setLimits} />
      <${Seconds} seconds=${seconds} setSeconds=${setSeconds} />
    </div>
    <div class="scroll" tabindex="0" role="region" aria-label=${say('table_title')}>
      <table>
        <thead>
          <tr>
            <th scope="col">${say('request')}</th>
            <th scope="col"><${Term} about="ttft_ms">TTFT<//> (ms)</th>
            <th scope="col"><${Term} about="e2el_ms">E2EL<//> (ms)</th>
            <th scope="col">${say('output_tokens')}</th>
            <th scope="col"><${Term} about="tpot_ms">TPOT<//> (ms/token)</th>
            <th scope="col">SLO</th>
            <th scope="col"><span class="hidden">${say('remove')}</span></th>
          </tr>
        </thead>
        <tbody>
          ${requests.slice(0, ROWS_SHOWN).map(
            (request, index) => html`<${Row} key=${index} index=${index} request=${request}
              fault=${faults[index]} limits=${limits}
              change=${(/** @type {Partial<Request>} */ part) => change(index, part)}
              remove=${() => setRequests(requests.filter((_, at) => at !== index))} />`,
          )}
        </tbody>
      </table>
    </div>
    ${requests.length > ROWS_SHOWN
      ? html`<p class="soft">${say('rows_hidden', { shown: ROWS_SHOWN, of: requests.length })}</p>`
      : null}
    <p>
      <button type="button" id="add-request"
        onClick=${() => setRequests([...requests, { ...ONE }])}>${say('add_request')}</button>
    </p>
    <${Verdict} requests=${sound} limits=${limits} seconds=${seconds}
      faulty=${requests.length - sound.length} />
  </div>`;
}

/**
 * The duration that rates are over.
 * @param {{seconds: number | null, setSeconds: (seconds: number | null) => void}} props
 */
function Seconds({ seconds, setSeconds }) {
  const read = (/** @type {Event} */ event) => {
    const number = Number(/** @type {HTMLInputElement} */ (event.currentTarget).value);
    setSeconds(number > 0 ? number : null);
  };
  return html`<label class="limit">
    ${say('duration')}
    <input type="number" min="0" step="any" id="duration" value=${seconds ?? ''} onInput=${read} />
    s
  </label>`;
}

/**
 * Where rows come from: an example, a run, or what is pasted.
 * @param {{
 *   load: (preset: import('goodput/presets').Preset) => void,
 *   setRequests: (requests: Request[]) => void,
 *   setLimits: (limits: Limits) => void,
 *   setSeconds: (seconds: number | null) => void,
 * }} props
 */
function Sources({ load, setRequests, setLimits, setSeconds }) {
  const text = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const [said, setSaid] = useState(/** @type {string[]} */ ([]));
  const paste = () => {
    const { requests, faults } = sums.parseCsv(text.current?.value ?? '');
    const lines = faults.slice(0, 5).map(({ line, key }) => say(key, { line: String(line) }));
    if (requests.length > 0) setRequests(requests);
    else if (faults.length === 0) lines.push(say('csv_empty'));
    setSaid(lines);
  };
  const fromRun = (/** @type {import('goodput/page').Run} */ run) => {
    const { requests, limits } = ofRun(run);
    setRequests(requests);
    setLimits(limits);
    if (run.window_s !== null) setSeconds(run.window_s);
    const { of } = run.picture.requests;
    setSaid([
      ...(requests.length < of ? [say('run_sampled', { kept: requests.length, of })] : []),
      ...(run.slo_beyond.length > 0
        ? [say('run_beyond', { terms: run.slo_beyond.join('; ') })]
        : []),
    ]);
  };
  return html`<div class="sources">
    <div class="buttons" role="group" aria-label=${say('presets')}>
      ${PRESETS.map(
        (preset) => html`<button type="button" data-preset=${preset.key}
          onClick=${() => load(preset)}>${say(preset.key)}</button>`,
      )}
      ${page.runs.map(
        (run) => html`<button type="button" data-run=${run.id}
          onClick=${() => fromRun(run)}>${say('load_run', { run: run.name })}</button>`,
      )}
    </div>
    <details>
      <summary>${say('paste_csv')}</summary>
      <label class="hidden" for="csv">${say('paste_csv')}</label>
      <textarea id="csv" ref=${text} rows="5" placeholder="ttft,e2el,tokens${'\n'}45,1200,120"></textarea>
      <button type="button" id="take-csv" onClick=${paste}>${say('take_csv')}</button>
    </details>
    ${said.map((line) => html`<p class="fault" role="status">${line}</p>`)}
  </div>`;
}

/**
 * A run's requests and the limits that it was judged by.
 * @param {import('goodput/page').Run} run
 * @returns {{requests: Request[], limits: Limits}}
 */
function ofRun(run) {
  const { ttft_ms, e2el_ms, tokens } = run.picture.requests;
  const [ttft, e2el, counts] = [numbers(ttft_ms), numbers(e2el_ms), numbers(tokens)];
  const requests = Array.from(ttft, (value, index) => ({
    ttft: Number(value.toFixed(3)),
    e2el: Number(e2el[index].toFixed(3)),
    tokens: counts[index],
  }));
  const limit = (/** @type {string} */ key) =>
    run.slo.find((term) => term.key === key && term.label === null)?.limit_ms ?? null;
  return {
    requests,
    limits: { ttft: limit('ttft_ms'), tpot: limit('tpot_ms'), e2el: limit('e2el_ms') },
  };
}

/**
 * @param {{index: number, request: Request, fault: string | null, limits: Limits,
 *   change: (part: Partial<Request>) => void, remove: () => void}} props
 */
function Row({ index, request, fault, limits, change, remove }) {
  const name = `R${index + 1}`;
  const broken = fault === null ? sums.broken(request, limits) : [];
  const pace = fault === null ? sums.tpot(request) : null;
  const cell = (/** @type {'ttft' | 'e2el' | 'tokens'} */ part) => {
    const read = (/** @type {Event} */ event) => {
      const { value } = /** @type {HTMLInputElement} */ (event.currentTarget);
      change({ [part]: value.trim() === '' ? NaN : Number(value) });
    };
    const bad = part !== 'tokens' && broken.includes(part);
    return html`<td class=${bad ? 'bad' : ''}>
      <input type="number" step="any" aria-label=${`${name} ${part}`}
        value=${Number.isNaN(request[part]) ? '' : request[part]} onInput=${read} />
    </td>`;
  };
  return html`<tr data-request=${name}>
    <th scope="row">${name}</th>
    ${cell('ttft')}${cell('e2el')}${cell('tokens')}
    <td class=${broken.includes('tpot') ? 'bad tpot' : 'tpot'}>${pace === null ? 'n/a' : fixed(pace, 2)}</td>
    <td class="slo">
      ${fault !== null
        ? html`<span class="fault">${say(fault, faultGaps(request))}</span>`
        : broken.length === 0
          ? html`<span class="good"><span aria-hidden="true">✓</span><span class="hidden">${say('met')}</span></span>`
          : html`<span class="bad"><span aria-hidden="true">✗</span> ${broken
              .map((name) => name.toUpperCase())
              .join(', ')}</span>`}
    </td>
    <td>
      <button type="button" class="remove" aria-label=${say('remove_request', { name })}
        onClick=${remove}>×</button>
    </td>
  </tr>`;
}

/**
 * What the table comes to.
 * @param {{requests: Request[], limits: Limits, seconds: number | null, faulty: number}} props
 */
function Verdict({ requests, limits, seconds, faulty }) {
  const sum = sums.goodput(requests, limits, seconds);
  const rate = (/** @type {number | null} */ value, /** @type {string} */ unit) =>
    value === null ? 'n/a' : `${plain(value)} ${unit}`;
  const per = /** @type {const} */ (['ttft', 'tpot', 'e2el'])
    .filter((name) => sum.met[name] !== null)
    .map((name) => `${name.toUpperCase()} ${sum.met[name]}/${sum.of}`);
  return html`<div class="results" id="verdict" aria-live="polite">
    <div class="result">
      <span><${Term} about="goodput_req_s">${say('goodput')}<//></span>
      <output id="goodput">${sum.good}/${sum.of}</output>
    </div>
    <div class="result">
      <span><${Term} about="attainment">${say('attainment')}<//></span>
      <output id="attainment">${sum.attainment === null ? 'n/a' : `${Math.round(sum.attainment * 100)} %`}</output>
      ${per.length > 0 ? html`<small>${per.join(' · ')}</small>` : null}
    </div>
    <div class="result">
      <span><${Term} about="req_s">${say('throughput')}<//></span>
      <output id="req-s">${rate(sum.req_s, 'req/s')}</output>
      <small>${rate(sum.tok_s, 'tok/s')}</small>
    </div>
    <div class="result">
      <span>${say('goodput_rates')}</span>
      <output id="good-req-s">${rate(sum.good_req_s, 'req/s')}</output>
      <small id="good-tok-s">${rate(sum.good_tok_s, 'tok/s')}</small>
    </div>
    ${faulty > 0 ? html`<p class="fault">${say('rows_left_out', { count: faulty })}</p>` : null}
  </div>`;
}

/**
 * (c) Why the mean of TPOT is not the mean of ITL.
 * @param {{requests: Request[]}} props
 */
function Means({ requests }) {
  const paces = sums.paces(requests);
  const shown = (/** @type {number | null} */ value) =>
    value === null ? 'n/a' : `${fixed(value, 2)} ms`;
  const most = sums.largest(requests.map((one) => one.tokens), 1);
  return html`<div class="means panel" id="means">
    <h3>${say('means_title')}</h3>
    <p>${say('means_lead')}</p>
    <div class="results">
      <div class="result"><span>${say('mean_by_request')}</span><output id="mean-tpot">${shown(paces.by_request)}</output></div>
      <div class="result"><span>${say('mean_by_token')}</span><output id="mean-itl">${shown(paces.by_token)}</output></div>
      <div class="result"><span>${say('mean_over_tokens')}</span><output id="mean-over-n">${shown(paces.over_tokens)}</output></div>
    </div>
    <ul class="weights" aria-label=${say('weights_title')}>
      ${requests.slice(0, 12).map(
        (request, index) => html`<li>
          <span>R${index + 1}</span>
          <span class="bar"><i style=${{ width: `${(request.tokens / most) * 100}%` }}></i></span>
          <span>${request.tokens > 1 ? `${request.tokens - 1} × ${fixed(sums.tpot(request) ?? 0, 2)} ms` : 'n/a'}</span>
        </li>`,
      )}
    </ul>
    <p class="soft">${say('means_which')}</p>
  </div>`;
}

/**
 * (d) What one outlier does to mean, median and P99.
 * @param {{requests: Request[]}} props
 */
function Outlier({ requests }) {
  const [extra, setExtra] = useState(/** @type {number | null} */ (null));
  const samples = requests.map((request) => request.ttft);
  const slowest = sums.largest(samples, 0);
  const place = samples.indexOf(slowest);
  const moved = samples.map((value, at) => (at === place && extra !== null ? extra : value));
  const before = sums.centre(samples);
  const after = sums.centre(moved);
  const most = Math.max(10_000, slowest * 2);
  const row = (/** @type {string} */ name, /** @type {string} */ label,
    /** @type {number | null} */ from, /** @type {number | null} */ to) => html`<div class="result">
      <span>${label}</span>
      <output id=${`outlier-${name}`}>${to === null ? 'n/a' : `${short(to)} ms`}</output>
      <small>${from === null || to === null || from === 0 ? '' : say('was', { value: short(from), ratio: short(to / from) })}</small>
    </div>`;
  return html`<div class="outlier panel" id="outlier">
    <h3>${say('outlier_title')}</h3>
    <p>${say('outlier_lead')}</p>
    <${Slider} id="outlier-ttft" unit="ms" value=${extra ?? slowest} range=${[0, most]}
      label=${place < 0 ? 'TTFT' : `TTFT R${place + 1}`}
      change=${(/** @type {number} */ value) => setExtra(Number.isFinite(value) && value >= 0 ? Math.min(value, sums.MOST_MS) : null)} />
    <div class="results" aria-live="polite">
      ${row('mean', say('mean'), before.mean, after.mean)}
      ${row('p50', say('median'), before.p50, after.p50)}
      ${row('p99', 'P99', before.p99, after.p99)}
    </div>
    <p class="soft">${say('outlier_note', { n: samples.length, percent: percent(0.99) })}</p>
  </div>`;
}
