// The report of one run, or of several over each other: the sections of the
// document, each followed by the charts that belong to it.

import { html } from 'goodput/html';
import { useMemo, useState } from 'preact/hooks';
import { gapped, numbers } from 'goodput/columns';
import { Lanes, Plot } from 'goodput/charts';
import { Term, metric } from 'goodput/glossary';
import { lang, page, pick, say, useAddress } from 'goodput/settings';

/** @typedef {import('goodput/page').Run} Run */
/** @typedef {import('goodput/page').Section} Section */
/** @typedef {import('goodput/page').Block} Block */
/** @typedef {import('goodput/charts').Chart} Chart */
/** @typedef {import('goodput/charts').Series} Series */

/** Latencies that have a distribution, a curve and a line over time. */
const SHAPES = ['ttft_ms', 'tpot_ms', 'icl_ms', 'e2el_ms'];

/** Which charts stand behind which section. */
const CHARTS = /** @type {Record<string, (props: {runs: Run[]}) => unknown>} */ ({
  offered: Offered,
  phases: Phases,
  tail: Tail,
  throughput: Tokens,
});

/**
 * @param {{runs: Run[]}} props
 */
export function Report({ runs }) {
  useAddress();
  if (runs.length === 0) return html`<p class="empty">${say('no_runs')}</p>`;
  return html`<article class="report" id="report">
    ${runs.map((run) => html`<${Head} key=${run.id} run=${run} several=${runs.length > 1} />`)}
    ${runs.length > 1 ? html`<${Beside} runs=${runs} />` : null}
    <${Contents} run=${runs[0]} />
    ${runs[0].documents[lang()].sections.map(
      (section, place) => html`<${Part} key=${section.id} section=${section} place=${place + 1}
        runs=${runs} />`,
    )}
  </article>`;
}

/**
 * @param {{run: Run, several: boolean}} props
 */
function Head({ run, several }) {
  const document = run.documents[lang()];
  return html`<header class="head">
    ${several ? html`<p class="run-name">${run.name}</p>` : html`<h1>${document.title}</h1>`}
    ${run.simulated && several ? html`<p class="simulated">${say('simulated')}</p>` : null}
    <p class="headline"><span class=${`verdict ${document.verdict}`}>${document.verdict}</span>
      ${' '}${document.headline.replace(document.verdict, '').replace(/^ · /, '')}</p>
    ${document.conditions === '' ? null : html`<p>${document.conditions}</p>`}
    ${document.lines.map((line) => html`<p class="soft">${line}</p>`)}
    ${run.notes.map((note) => html`<p class="fault">${note}</p>`)}
  </header>`;
}

/**
 * The main figures of several runs under each other. Which difference is more
 * than chance is not said here: that needs intervals.
 * @param {{runs: Run[]}} props
 */
function Beside({ runs }) {
  const rows = runs.map((run) => ({ run, shapes: SHAPES.map((key) => shapeOf(run, key)) }));
  return html`<section id="beside">
    <h2>${say('beside_title')}</h2>
    <p class="soft">${say('beside_lead')}</p>
    ${(page.lints?.[lang()] ?? []).map((words) => html`<p>${words}</p>`)}
    <div class="scroll" tabindex="0" role="region" aria-label=${say('beside_title')}>
      <table>
        <thead><tr><th scope="col">${say('run')}</th>
          ${SHAPES.map((key) => html`<th scope="col"><${Term} about=${key}>${metric(key)?.symbol}<//> P50 · P99 (ms)</th>`)}
        </tr></thead>
        <tbody>${rows.map(({ run, shapes }) => html`<tr>
          <th scope="row">${run.name}</th>
          ${shapes.map((shape) => html`<td>${shape === null ? 'n/a' : `${shape.p50} · ${shape.p99}`}</td>`)}
        </tr>`)}</tbody>
      </table>
    </div>
  </section>`;
}

/**
 * P50 and P99 of a latency as its document prints them.
 * @param {Run} run
 * @param {string} key
 */
function shapeOf(run, key) {
  for (const section of run.documents[lang()].sections) {
    for (const block of section.blocks) {
      if (block.kind !== 'table' || section.id !== 'phases') continue;
      const row = block.rows.find((one) => one.about === key);
      const [p50, p99] = [block.columns.indexOf('P50'), block.columns.indexOf('P99')];
      if (row !== undefined && p50 > 0 && p99 > 0) return { p50: row.cells[p50], p99: row.cells[p99] };
    }
  }
  return null;
}

/**
 * @param {{run: Run}} props
 */
function Contents({ run }) {
  const go = (/** @type {string} */ id) => (/** @type {Event} */ event) => {
    event.preventDefault();
    const place = document.getElementById(id);
    place?.scrollIntoView();
    place?.querySelector('h2')?.focus();
  };
  return html`<nav class="contents" aria-label=${say('contents')}>
    <ol>
      ${run.documents[lang()].sections.map(
        (section) => html`<li><a href=${`#${section.id}`} onClick=${go(section.id)}>${section.title}</a></li>`,
      )}
    </ol>
  </nav>`;
}

/**
 * One section: its words for every run, then its charts.
 * @param {{section: Section, place: number, runs: Run[]}} props
 */
function Part({ section, place, runs }) {
  const Charts = CHARTS[section.id];
  return html`<section id=${section.id} class="part">
    <h2 tabindex="-1"><span class="place">${place}</span> ${section.title}</h2>
    ${runs.map((run) => {
      const own = run.documents[lang()].sections.find((one) => one.id === section.id);
      return html`<div class="of-run" key=${run.id}>
        ${runs.length > 1 ? html`<p class="run-name">${run.name}</p>` : null}
        <${Blocks} blocks=${own?.blocks ?? []} name=${section.title} />
      </div>`;
    })}
    ${Charts === undefined ? null : html`<div class="charts"><${Charts} runs=${runs} /></div>`}
  </section>`;
}

/**
 * Pairs that follow each other are one list.
 * @param {{blocks: Block[], name: string}} props
 */
function Blocks({ blocks, name }) {
  /** @type {unknown[]} */
  const parts = [];
  /** @type {Array<Extract<Block, {kind: 'pair'}>>} */
  let pairs = [];
  const flush = () => {
    if (pairs.length > 0) parts.push(html`<${Pairs} pairs=${pairs} />`);
    pairs = [];
  };
  for (const block of blocks) {
    if (block.kind === 'pair') {
      pairs.push(block);
      continue;
    }
    flush();
    if (block.kind === 'sentence') parts.push(html`<p>${block.text}</p>`);
    else if (block.kind === 'command') parts.push(html`<pre><code>${block.text}</code></pre>`);
    else parts.push(html`<${Figures} table=${block} name=${name} />`);
  }
  flush();
  return parts;
}

/**
 * @param {{pairs: Array<Extract<Block, {kind: 'pair'}>>}} props
 */
function Pairs({ pairs }) {
  return html`<dl class="pairs">
    ${pairs.map(
      (pair) => html`<div>
        <dt><${Term} about=${pair.about}>${pair.label}<//></dt>
        <dd class=${pair.mark === null ? '' : `verdict ${pair.mark}`}>${pair.value}</dd>
      </div>`,
    )}
  </dl>`;
}

/**
 * @param {{table: Extract<Block, {kind: 'table'}>, name: string}} props
 */
function Figures({ table, name }) {
  const side = (/** @type {number} */ at) => (table.left.includes(at) ? 'left' : '');
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${name}>
    <table>
      <thead><tr>${table.columns.map((title, at) => at === 0 && title === ''
        ? html`<td></td>`
        : html`<th scope="col" class=${side(at)}><${Heading} title=${title} /></th>`)}</tr></thead>
      <tbody>
        ${table.rows.map(
          (row) => html`<tr>
            ${row.cells.map((cell, at) =>
              at === 0
                ? html`<th scope="row"><${Term} about=${row.about}>${cell}<//></th>`
                : html`<td class=${side(at)}>${cell}</td>`,
            )}
          </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

/**
 * A heading; what a percentile says is behind it.
 * @param {{title: string}} props
 */
function Heading({ title }) {
  const leaf = page.tree.flatMap((branch) => branch.leaves)
    .find((one) => one.symbol === title && one.text !== null);
  return leaf?.text ? html`<abbr title=${pick(leaf.text)}>${title}</abbr>` : title;
}

/**
 * Where bins of time begin, in seconds, and where the last one ends.
 * @param {{from_s: number, step_s: number}} grid
 * @param {number} length
 */
function seconds({ from_s, step_s }, length) {
  return Array.from({ length: length + 1 }, (_, bin) => from_s + bin * step_s);
}

/**
 * A label that names its run where there are several.
 * @param {string} label
 * @param {Run} run
 * @param {Run[]} runs
 */
const named = (label, run, runs) => (runs.length > 1 ? `${label} · ${run.name}` : label);

/**
 * Series of several runs on one time axis: bins of all runs side by side. The
 * last value stands twice, because a step needs an end.
 * @param {Run[]} runs
 * @param {Array<{label: string, of: (run: Run) => import('goodput/columns').Column,
 *   per_s?: boolean, kind?: Series['kind']}>} lines
 * @returns {{x: number[], series: Series[]}}
 */
function overTime(runs, lines) {
  const parts = runs.flatMap((run, at) =>
    lines.map((line, place) => {
      const values = gapped(line.of(run)).map((value) =>
        value === null ? null : line.per_s ? value / run.picture.step_s : value,
      );
      values.push(values.length > 0 ? values[values.length - 1] : null);
      const color = runs.length > 1 ? at * lines.length + place : place;
      return { label: named(line.label, run, runs), kind: line.kind, color,
        x: seconds(run.picture, values.length - 1), values };
    }),
  );
  return joined(parts);
}

/**
 * Series with x values of their own, on one common axis.
 * @param {Array<{label: string, kind?: Series['kind'], color: number, x: number[],
 *   values: Array<number | null>}>} parts
 * @returns {{x: number[], series: Series[]}}
 */
function joined(parts) {
  if (parts.length === 0) return { x: [], series: [] };
  const same = parts.every((part) => part.x.length === parts[0].x.length
    && part.x.every((value, at) => value === parts[0].x[at]));
  if (same) return { x: parts[0].x, series: parts };
  const x = [...new Set(parts.flatMap((part) => part.x))].sort((a, b) => a - b);
  const place = new Map(x.map((value, at) => [value, at]));
  const series = parts.map((part) => {
    /** @type {Array<number | null>} */
    const values = new Array(x.length).fill(null);
    part.x.forEach((value, at) => {
      values[place.get(value) ?? 0] = part.values[at];
    });
    return { ...part, values: carried(values, part) };
  });
  return { x, series };
}

/**
 * Between two of its own points a series keeps what it had: without this a
 * line with other points than its neighbour would be all gaps.
 * @param {Array<number | null>} values
 * @param {{kind?: Series['kind'], x: number[]}} part
 */
function carried(values, part) {
  if (part.kind === 'points' || part.x.length === 0) return values;
  let last = -1;
  values.forEach((value, at) => {
    if (value !== null) last = at;
  });
  let held = /** @type {number | null} */ (null);
  return values.map((value, at) => {
    if (value !== null) held = value;
    return at <= last ? held : null;
  });
}

/**
 * What was asked for and what was done, with linked cursors.
 * @param {{runs: Run[]}} props
 */
function Offered({ runs }) {
  const charts = useMemo(() => {
    /** @type {Array<{id: string, chart: Chart}>} */
    const made = [];
    const add = (/** @type {string} */ id, /** @type {string} */ title,
      /** @type {string} */ yLabel, /** @type {Parameters<typeof overTime>[1]} */ lines) =>
      made.push({ id, chart: { title, xLabel: say('axis_time'), yLabel, linked: 'time', ...overTime(runs, lines) } });
    add('chart-requests', say('chart_requests'), 'req/s', [
      { label: say('line_offered'), of: (run) => run.picture.offered, per_s: true, kind: 'step' },
      { label: say('line_completed'), of: (run) => run.picture.completed, per_s: true, kind: 'step' },
      { label: say('line_failed'), of: (run) => run.picture.failed, per_s: true, kind: 'step' },
    ]);
    add('chart-in-flight', say('chart_in_flight'), say('axis_requests'), [
      { label: say('line_in_flight'), of: (run) => run.picture.in_flight, kind: 'area' },
    ]);
    const lateness = runs.flatMap((run, at) => [
      { label: named(say('line_lateness'), run, runs), points: cloud(run.picture.lateness), color: at * 2 },
      { label: named(say('line_cap_wait'), run, runs), points: cloud(run.picture.cap_wait), color: at * 2 + 1 },
    ].filter(({ points }) => points.x.length > 0)
      .map(({ label, color, points }) => ({ label, color, kind: /** @type {const} */ ('points'), ...points })));
    made.push({
      id: 'chart-lateness',
      chart: { title: say('chart_lateness'), xLabel: say('axis_time'), yLabel: 'ms', ...merged(lateness) },
    });
    return made;
  }, [runs, lang()]);
  return html`${charts.map(({ id, chart }) => html`<${Plot} key=${id} id=${id} chart=${chart} />`)}
    ${runs.map((run) => html`<p class="soft">${lagWords(run)}</p>`)}`;
}

/**
 * @param {Run} run
 */
function lagWords(run) {
  const lag = run.picture.client_lag_us;
  if (lag === null) return say('lag_unknown');
  const [p50, p99, max] = lag.map((us) => String(Math.round(us)));
  return say('lag_known', { p50, p99, max });
}

/**
 * A cloud with its x sorted, as a chart needs it.
 * @param {import('goodput/page').Cloud} cloud
 */
function cloud({ x, y }) {
  const [xs, ys] = [numbers(x), numbers(y)];
  const order = Array.from(xs, (_, at) => at).sort((a, b) => xs[a] - xs[b]);
  return { x: order.map((at) => xs[at]), values: order.map((at) => ys[at]) };
}

/**
 * Where the time of a request goes.
 * @param {{runs: Run[]}} props
 */
function Phases({ runs }) {
  const [aligned, setAligned] = useState(true);
  const [which, setWhich] = useState('slowest');
  const clouds = useMemo(() => {
    const points = runs.map((run, at) => ({
      label: named('TTFT', run, runs), kind: /** @type {const} */ ('points'), color: at,
      ...cloud(run.picture.ttft_by_input),
    }));
    const icl = runs.flatMap((run, at) =>
      /** @type {const} */ (['p50', 'p99']).map((name, place) => {
        const { in_flight, of } = run.picture.over_time;
        const flight = numbers(in_flight);
        const gaps = numbers(of.find((one) => one.key === 'icl_ms')?.[name] ?? []);
        const order = Array.from(flight, (_, bin) => bin)
          .filter((bin) => Number.isFinite(gaps[bin]) && flight[bin] > 0)
          .sort((a, b) => flight[a] - flight[b]);
        return { label: named(place === 0 ? 'ICL P50' : 'ICL P99', run, runs),
          kind: /** @type {const} */ ('points'), color: at * 2 + place,
          x: order.map((bin) => flight[bin]), values: order.map((bin) => gaps[bin]) };
      }),
    );
    return [
      { id: 'chart-ttft-input', chart: { title: say('chart_ttft_input'), xLabel: say('axis_input'),
        yLabel: 'ms', ...merged(points) } },
      { id: 'chart-icl-flight', chart: { title: say('chart_icl_flight'), xLabel: say('axis_flight'),
        yLabel: 'ms', ...merged(icl) } },
    ];
  }, [runs, lang()]);
  const lanes = useMemo(() => runs.flatMap((run) =>
    run.picture.lanes.filter((lane) => (which === 'slowest') === lane.slowest).map((lane) => ({
      index: lane.index,
      label: `#${lane.index}`,
      ok: lane.outcome === 'ok',
      intended: lane.intended_ms,
      sent: lane.sent_ms,
      end: lane.end_ms,
      tokens: numbers(lane.tokens_ms),
    }))), [runs, which]);
  return html`<div class="wide">
      <div class="controls">
        <label>${say('lanes_which')}
          <select id="lanes-which" value=${which}
            onChange=${(/** @type {Event} */ event) => setWhich(/** @type {HTMLSelectElement} */ (event.currentTarget).value)}>
            <option value="slowest">${say('lanes_slowest')}</option>
            <option value="spread">${say('lanes_spread')}</option>
          </select>
        </label>
        <label><input type="checkbox" id="lanes-aligned" checked=${aligned}
          onChange=${() => setAligned(!aligned)} /> ${say('lanes_aligned')}</label>
      </div>
      <${Lanes} lanes=${lanes} aligned=${aligned} title=${say('chart_lanes')} id="chart-lanes" />
    </div>
    ${clouds.map(({ id, chart }) => html`<${Plot} key=${id} id=${id} chart=${chart} />`)}`;
}

/**
 * Point clouds may have several values at one x, which one axis cannot hold:
 * equal ones are moved apart by less than a pixel.
 * @param {Array<{label: string, kind: 'points', color: number, x: number[], values: number[]}>} parts
 */
function merged(parts) {
  return joined(parts.map((part) => {
    let before = -Infinity;
    const x = part.x.map((value) => {
      before = value <= before ? before + Math.max(Math.abs(before), 1) * 1e-9 : value;
      return before;
    });
    return { ...part, x };
  }));
}

/**
 * The distributions: how many, how far the tail, and when.
 * @param {{runs: Run[]}} props
 */
function Tail({ runs }) {
  const [key, setKey] = useState('ttft_ms');
  const charts = useMemo(() => tailCharts(runs, key), [runs, key, lang()]);
  return html`<div class="wide controls">
      <label>${say('tail_which')}
        <select id="tail-which" value=${key}
          onChange=${(/** @type {Event} */ event) => setKey(/** @type {HTMLSelectElement} */ (event.currentTarget).value)}>
          ${SHAPES.map((one) => html`<option value=${one}>${metric(one)?.symbol ?? one}</option>`)}
        </select>
      </label>
    </div>
    ${charts.map(({ id, chart }) => html`<${Plot} key=${`${id}-${key}`} id=${id} chart=${chart} />`)}`;
}

/**
 * @param {Run[]} runs
 * @param {string} key
 * @returns {Array<{id: string, chart: Chart}>}
 */
function tailCharts(runs, key) {
  const found = metric(key);
  const symbol = found?.symbol ?? key;
  const unit = `${symbol} (${found?.unit ?? 'ms'})`;
  const shapes = runs.flatMap((run, at) => {
    const shape = run.picture.shapes.find((one) => one.key === key);
    return shape === undefined || shape.n === 0 ? [] : [{ run, at, shape }];
  });
  const lines = runs[0].slo
    .filter((term) => term.key === key)
    .map(({ limit_ms, label }) =>
      ({ at: limit_ms, label: `SLO ${label === null ? '' : `${label} `}${limit_ms} ms` }));
  const bars = shapes.map(({ run, at, shape }) => ({
    label: named(say('line_count'), run, runs), kind: /** @type {const} */ ('area'),
    color: at, ...histogram(shape),
  }));
  const curves = shapes.map(({ run, at, shape }) => ({
    label: named(say('line_share'), run, runs), color: at, ...curve(shape),
  }));
  const times = joined(runs.flatMap((run, at) =>
    /** @type {const} */ (['p50', 'p90', 'p99']).map((name, place) => {
      const { over_time: grid } = run.picture;
      const values = gapped(grid.of.find((one) => one.key === key)?.[name] ?? []);
      // A percentile is of a whole bin and stands in its middle.
      const x = values.map((_, bin) => grid.from_s + (bin + 0.5) * grid.step_s);
      return { label: named(name.toUpperCase(), run, runs), color: runs.length > 1 ? at * 3 + place : place, x, values };
    })));
  return [
    { id: 'chart-histogram', chart: { title: say('chart_histogram', { symbol }), xLabel: unit,
      yLabel: say('axis_count'), xLog: true, lines, ...joined(bars) } },
    { id: 'chart-cdf', chart: { title: say('chart_cdf', { symbol }), xLabel: unit,
      yLabel: say('axis_share'), xLog: true, yShare: true, lines, ...joined(curves) } },
    { id: 'chart-over-time', chart: { title: say('chart_over_time', { symbol }), xLabel: say('axis_time'),
      yLabel: 'ms', linked: 'time', ...times } },
  ];
}

/**
 * The bars of a shape as steps, down to zero on both sides.
 * @param {import('goodput/page').Shape} shape
 */
function histogram(shape) {
  const edges = Array.from(numbers(shape.edges));
  const ratio = edges.length > 1 ? edges[1] / edges[0] : 1.02;
  return {
    x: [edges[0] / ratio, ...edges, edges[edges.length - 1] * ratio],
    values: [0, ...gapped(shape.counts), 0],
  };
}

/**
 * The cumulative curve of a shape; equal values keep their largest share.
 * @param {import('goodput/page').Shape} shape
 */
function curve(shape) {
  const [values, shares] = [numbers(shape.values), numbers(shape.shares)];
  /** @type {Map<number, number>} */
  const highest = new Map();
  for (let at = 0; at < values.length; at += 1) highest.set(values[at], shares[at]);
  const x = [...highest.keys()].filter((value) => value > 0);
  return { x, values: x.map((value) => highest.get(value) ?? 0) };
}

/**
 * Tokens a second, beside the requests.
 * @param {{runs: Run[]}} props
 */
function Tokens({ runs }) {
  const chart = useMemo(() => ({
    title: say('chart_tokens'), xLabel: say('axis_time'), yLabel: 'tok/s', linked: 'time',
    ...overTime(runs, [{ label: say('line_tokens'), of: (run) => run.picture.output_tokens,
      per_s: true, kind: 'area' }]),
  }), [runs, lang()]);
  return html`<${Plot} id="chart-tokens" chart=${chart} />`;
}
