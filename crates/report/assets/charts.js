// Charts: one component for those with axes, one for the time lines of
// requests. Colours come from the style sheet, so that a theme is one place;
// no series is told by its colour alone.

import { html } from 'goodput/html';
import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import { short } from 'goodput/format';
import { say, useTheme } from 'goodput/settings';

/**
 * One line, step, row of bars or cloud of a chart.
 * @typedef {{
 *   label: string,
 *   values: Array<number | null>,
 *   color: number,
 *   kind?: 'line' | 'step' | 'bars' | 'points' | 'area',
 *   dash?: number[],
 * }} Series
 */

/**
 * A chart with axes. `lines` are vertical marks, such as the limits of an SLO.
 * @typedef {{
 *   title: string,
 *   x: number[],
 *   xLabel: string,
 *   yLabel: string,
 *   xLog?: boolean,
 *   yLog?: boolean,
 *   yShare?: boolean,
 *   series: Series[],
 *   lines?: Array<{at: number, label: string}>,
 *   linked?: string,
 *   height?: number,
 * }} Chart
 */

/** Dashes that tell series apart without colour. */
const DASHES = [[], [6, 4], [2, 3], [10, 4, 2, 4], [1, 4], [14, 4]];

/**
 * A colour of the style sheet.
 * @param {string} name
 */
function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim() || '#888';
}

/** @param {number} index */
const seriesColor = (index) => color(`--series-${(index % 6) + 1}`);

/**
 * Whether something is to be drawn now: when it comes near the window, when
 * the page is printed, and once when the browser has nothing else to do. A
 * change of theme or language then costs the few charts that are seen.
 * @param {{current: HTMLElement | null}} place
 */
function useWanted(place) {
  const [near, setNear] = useState(false);
  const [idle, setIdle] = useState(false);
  useEffect(() => {
    const host = place.current;
    if (host === null) return undefined;
    const seen = new IntersectionObserver(
      (entries) => setNear(entries[entries.length - 1].isIntersecting),
      { rootMargin: '300px' },
    );
    seen.observe(host);
    const printed = () => setNear(true);
    addEventListener('beforeprint', printed);
    const waiting = whenIdle(() => setIdle(true));
    return () => {
      seen.disconnect();
      removeEventListener('beforeprint', printed);
      waiting();
    };
  }, []);
  return { near, idle };
}

/**
 * Does something when the browser is idle; gives what calls it off.
 * @param {() => void} act
 */
function whenIdle(act) {
  if ('requestIdleCallback' in globalThis) {
    const handle = requestIdleCallback(act, { timeout: 2000 });
    return () => cancelIdleCallback(handle);
  }
  const handle = setTimeout(act, 300);
  return () => clearTimeout(handle);
}

/**
 * Draws when it is wanted and what was drawn is out of date.
 * @param {{current: HTMLElement | null}} place
 * @param {unknown[]} of What the drawing shows.
 * @param {() => (() => void) | undefined} draw Gives what takes it away.
 */
function useDrawing(place, of, draw) {
  const { near, idle } = useWanted(place);
  const drawn = useRef(/** @type {{of: unknown[], remove: (() => void) | undefined} | null} */ (null));
  useEffect(() => {
    const old = drawn.current;
    const current = old !== null && old.of.every((part, at) => part === of[at]);
    if (current || !(near || (idle && old === null))) return;
    old?.remove?.();
    drawn.current = { of, remove: draw() };
  }, [...of, near, idle]);
  useEffect(() => () => drawn.current?.remove?.(), []);
}

/**
 * A chart with axes.
 * @param {{chart: Chart, id: string}} props
 */
export function Plot({ chart, id }) {
  const theme = useTheme();
  const place = useRef(/** @type {HTMLDivElement | null} */ (null));
  useDrawing(place, [chart, theme], () => {
    const host = place.current;
    return host === null || chart.x.length === 0 ? undefined : draw(chart, host);
  });
  if (chart.x.length === 0) {
    return html`<figure class="chart" id=${id}>
      <figcaption>${chart.title}</figcaption>
      <p class="empty">${say('chart_empty')}</p>
    </figure>`;
  }
  return html`<figure class="chart" id=${id}>
    <figcaption>${chart.title}</figcaption>
    <div
      ref=${place}
      class="plot"
      tabindex="0"
      role="application"
      aria-label=${`${chart.title}. ${say('chart_keys')}`}
    ></div>
  </figure>`;
}

/**
 * Draws a chart into its place; gives what takes it away.
 * @param {Chart} chart
 * @param {HTMLDivElement} host
 */
function draw(chart, host) {
  const plot = new uPlot(options(chart, host.clientWidth), data(chart), host);
  const seen = new ResizeObserver(() => {
    const width = host.clientWidth;
    if (width > 0 && width !== plot.width) plot.setSize({ width, height: height(chart, width) });
  });
  seen.observe(host);
  const keys = (/** @type {KeyboardEvent} */ event) => step(plot, chart, event);
  host.addEventListener('keydown', keys);
  return () => {
    seen.disconnect();
    host.removeEventListener('keydown', keys);
    plot.destroy();
  };
}

/**
 * Moves the cursor by keys, so that every value can be read without a mouse.
 * @param {uPlot} plot
 * @param {Chart} chart
 * @param {KeyboardEvent} event
 */
function step(plot, chart, event) {
  const last = chart.x.length - 1;
  const from = plot.cursor.idx ?? -1;
  const strides = /** @type {Record<string, number>} */ ({
    ArrowRight: from + 1,
    ArrowLeft: from - 1,
    PageDown: from + 10,
    PageUp: from - 10,
    Home: 0,
    End: last,
  });
  const wanted = strides[event.key];
  if (wanted === undefined) return;
  event.preventDefault();
  const index = Math.min(Math.max(wanted, 0), last);
  const place = { left: plot.valToPos(chart.x[index], 'x'), top: plot.over.clientHeight / 2 };
  plot.setCursor(place);
  if (chart.linked === undefined) return;
  const { clientWidth: wide, clientHeight: tall } = plot.over;
  uPlot.sync(chart.linked).pub('mousemove', plot, place.left, place.top, wide, tall, index);
}

/**
 * @param {Chart} chart
 * @param {number} width
 */
function height(chart, width) {
  return Math.round(chart.height ?? Math.min(260, Math.max(180, width * 0.45)));
}

/**
 * @param {Chart} chart
 * @returns {uPlot.AlignedData}
 */
function data(chart) {
  return /** @type {uPlot.AlignedData} */ ([chart.x, ...chart.series.map((one) => one.values)]);
}

/**
 * @param {Chart} chart
 * @param {number} width
 * @returns {uPlot.Options}
 */
function options(chart, width) {
  const ink = color('--ink-soft');
  const grid = color('--line');
  const axis = (/** @type {string} */ label, /** @type {number} */ size) => ({
    label,
    stroke: ink,
    grid: { stroke: grid, width: 1 },
    ticks: { stroke: grid, width: 1 },
    font: '12px system-ui, sans-serif',
    labelFont: '12px system-ui, sans-serif',
    labelSize: 18,
    size,
  });
  const tick = (/** @type {number | null} */ value) => (value === null ? '' : short(value));
  const ticks = (/** @type {uPlot} */ _, /** @type {Array<number | null>} */ values) =>
    values.map(tick);
  const share = (/** @type {uPlot} */ _, /** @type {Array<number | null>} */ values) =>
    values.map((value) => (value === null ? '' : `${short(value * 100)} %`));
  return {
    width,
    height: height(chart, width),
    cursor: {
      drag: { x: true, y: false },
      ...(chart.linked === undefined ? {} : { sync: { key: chart.linked } }),
    },
    scales: {
      x: { time: false, distr: chart.xLog ? 3 : 1, range: (_, low, high) => across(chart, low, high) },
      y: {
        distr: chart.yLog ? 3 : 1,
        range: chart.yShare
          ? [0, 1]
          : chart.yLog
            ? undefined
            : (_, low, high) => [Math.min(0, low ?? 0), high > 0 ? high * 1.05 : 1],
      },
    },
    axes: [
      { ...axis(chart.xLabel, 34), values: ticks, ...(chart.xLog ? logMarks(width) : {}) },
      { ...axis(chart.yLabel, 64), values: chart.yShare ? share : ticks },
    ],
    series: [
      { label: chart.xLabel, value: (_, value) => (value === null ? '–' : short(value)) },
      ...chart.series.map((one, index) => lineOf(one, index, chart.yShare === true)),
    ],
    hooks: { draw: [(plot) => marks(plot, chart)] },
  };
}

/**
 * Marks of a log axis: 1, 2, 5, 10 … where there are enough of them, else even
 * steps, which a distribution within one decade needs.
 * @param {number} width
 */
function logMarks(width) {
  const most = Math.max(3, Math.floor(width / 90));
  return {
    splits: (/** @type {uPlot} */ _, /** @type {number} */ __, /** @type {number} */ low,
      /** @type {number} */ high) => {
      const marks = [];
      for (let power = 10 ** Math.floor(Math.log10(low)); power <= high; power *= 10) {
        for (const lead of [1, 2, 5]) {
          if (lead * power >= low && lead * power <= high) marks.push(lead * power);
        }
      }
      if (marks.length >= 3) {
        const decades = marks.filter((mark) => Number.isInteger(Math.log10(mark) + 1e-12));
        return marks.length <= most || decades.length < 3 ? marks : decades;
      }
      const stride = nice((high - low) / most);
      const even = [];
      for (let at = Math.ceil(low / stride) * stride; at <= high; at += stride) even.push(at);
      return even;
    },
    filter: (/** @type {uPlot} */ _, /** @type {number[]} */ marks) => marks,
  };
}

/**
 * What of the x axis is shown: the data, and the marks where they are not far
 * from it. A log axis else runs to whole decades, a single point to nothing.
 * @param {Chart} chart
 * @param {number} low
 * @param {number} high
 * @returns {[number, number]}
 */
function across(chart, low, high) {
  const first = chart.x[0];
  const last = chart.x[chart.x.length - 1];
  // A part was chosen with the mouse.
  if (low > first || high < last) return [low, high];
  const near = (chart.lines ?? []).map((line) => line.at)
    .filter((at) => at > first / 4 && at < last * 4);
  const [from, until] = [Math.min(first, ...near), Math.max(last, ...near)];
  if (chart.xLog) return [from / 1.1, until * 1.1];
  const pad = (until - from) * 0.02 || Math.abs(from) * 0.1 || 1;
  return [from - pad, until + pad];
}

/**
 * @param {Series} one
 * @param {number} index
 * @param {boolean} share
 * @returns {uPlot.Series}
 */
function lineOf(one, index, share) {
  const stroke = seriesColor(one.color);
  const kind = one.kind ?? 'line';
  const paths = uPlot.paths;
  return {
    label: one.label,
    stroke,
    width: kind === 'points' ? 0 : 1.6,
    dash: one.dash ?? DASHES[index % DASHES.length],
    fill: kind === 'bars' || kind === 'area' ? `${stroke}40` : undefined,
    spanGaps: false,
    paths:
      kind === 'points'
        ? () => null
        : kind === 'bars'
          ? paths.bars?.({ size: [1, 100], align: 1 })
          : kind === 'step' || kind === 'area'
            ? paths.stepped?.({ align: 1 })
            : undefined,
    // A line shows its points too: one between two gaps is nothing else.
    points: { show: kind === 'points' || kind === 'line' ? undefined : false,
      ...(kind === 'points' ? { show: true } : {}), size: 4, fill: stroke, stroke },
    value: (_, value) =>
      value === null ? '–' : share ? `${short(value * 100)} %` : short(value),
  };
}

/**
 * Draws the vertical marks with their names.
 * @param {uPlot} plot
 * @param {Chart} chart
 */
function marks(plot, chart) {
  const { ctx, bbox } = plot;
  for (const [index, line] of (chart.lines ?? []).entries()) {
    const x = Math.round(plot.valToPos(line.at, 'x', true));
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.save();
    ctx.strokeStyle = color('--bad');
    ctx.fillStyle = color('--ink');
    ctx.setLineDash([4, 4]);
    ctx.lineWidth = devicePixelRatio;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.textBaseline = 'top';
    const room = bbox.left + bbox.width - x > ctx.measureText(line.label).width + 8;
    ctx.textAlign = room ? 'left' : 'right';
    const aside = (room ? 4 : -4) * devicePixelRatio;
    ctx.fillText(line.label, x + aside, bbox.top + (2 + index * 13) * devicePixelRatio);
    ctx.restore();
  }
}

/**
 * One request on the time axis, in ms from the start of the run.
 * @typedef {{
 *   index: number,
 *   label: string,
 *   ok: boolean,
 *   intended: number,
 *   sent: number | null,
 *   tokens: ArrayLike<number>,
 *   end: number | null,
 * }} Lane
 */

/** Pixels of a lane. */
const LANE = 20;

/**
 * The time lines of single requests: waiting in the client, waiting for the
 * first token, then every token. `aligned` starts all of them at zero.
 * @param {{lanes: Lane[], aligned: boolean, title: string, id: string}} props
 */
export function Lanes({ lanes, aligned, title, id }) {
  const theme = useTheme();
  const canvas = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  useDrawing(canvas, [lanes, aligned, theme], () => {
    const surface = canvas.current;
    if (surface === null) return undefined;
    const again = () => drawLanes(surface, lanes, aligned);
    const seen = new ResizeObserver(again);
    seen.observe(surface.parentElement ?? surface);
    again();
    return () => seen.disconnect();
  });
  if (lanes.length === 0) {
    return html`<figure class="chart" id=${id}>
      <figcaption>${title}</figcaption>
      <p class="empty">${say('chart_empty')}</p>
    </figure>`;
  }
  return html`<figure class="chart" id=${id}>
    <figcaption>${title}</figcaption>
    <canvas ref=${canvas} role="img" aria-label=${title}></canvas>
    <ul class="legend" aria-hidden="true">
      <li><span class="swatch wait"></span>${say('lane_wait')}</li>
      <li><span class="swatch first"></span>${say('lane_first')}</li>
      <li><span class="swatch token"></span>${say('lane_token')}</li>
      <li><span class="swatch bad"></span>${say('lane_failed')}</li>
    </ul>
  </figure>`;
}

/**
 * @param {HTMLCanvasElement} surface
 * @param {Lane[]} lanes
 * @param {boolean} aligned
 */
function drawLanes(surface, lanes, aligned) {
  const ratio = devicePixelRatio || 1;
  const width = Math.max(200, (surface.parentElement ?? surface).clientWidth);
  const tall = lanes.length * LANE + 26;
  surface.width = width * ratio;
  surface.height = tall * ratio;
  surface.style.width = '100%';
  surface.style.height = `${tall}px`;
  const pen = surface.getContext('2d');
  if (pen === null) return;
  pen.scale(ratio, ratio);
  const zero = (/** @type {Lane} */ lane) => (aligned ? lane.intended : 0);
  const ends = lanes.map((lane) => lastOf(lane) - zero(lane));
  const starts = lanes.map((lane) => lane.intended - zero(lane));
  const from = Math.min(...starts);
  const until = Math.max(...ends, from + 1);
  const left = 64;
  const x = (/** @type {number} */ ms) => left + ((ms - from) / (until - from)) * (width - left - 8);
  pen.font = '12px system-ui, sans-serif';
  pen.textBaseline = 'middle';
  lanes.forEach((lane, row) => {
    const y = row * LANE + LANE / 2;
    const at = (/** @type {number} */ ms) => x(ms - zero(lane));
    drawLane(pen, lane, y, at);
  });
  drawTimeAxis(pen, from, until, x, lanes.length * LANE + 6);
}

/**
 * @param {Lane} lane
 */
function lastOf(lane) {
  const last = lane.tokens.length > 0 ? lane.tokens[lane.tokens.length - 1] : lane.intended;
  return Math.max(lane.end ?? lane.intended, last, lane.sent ?? lane.intended);
}

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {Lane} lane
 * @param {number} y
 * @param {(ms: number) => number} at
 */
function drawLane(pen, lane, y, at) {
  pen.fillStyle = color(lane.ok ? '--ink' : '--bad');
  pen.textAlign = 'right';
  pen.fillText(`${lane.ok ? '' : '✗ '}${lane.label}`, 58, y);
  const bar = (/** @type {number} */ a, /** @type {number} */ b, /** @type {string} */ paint) => {
    pen.fillStyle = color(paint);
    pen.fillRect(at(a), y - 5, Math.max(at(b) - at(a), 1), 10);
  };
  const sent = lane.sent ?? lane.intended;
  const end = lane.end ?? sent;
  if (sent > lane.intended) bar(lane.intended, sent, '--lane-client');
  const first = lane.tokens.length > 0 ? lane.tokens[0] : null;
  bar(sent, first ?? end, lane.ok ? '--lane-wait' : '--lane-bad');
  if (first === null) return;
  bar(first, Math.max(end, first), lane.ok ? '--lane-stream' : '--lane-bad');
  pen.fillStyle = color('--series-1');
  let before = -Infinity;
  for (let i = 1; i < lane.tokens.length; i += 1) {
    const place = at(lane.tokens[i]);
    // Marks closer than a pixel cannot be seen apart.
    if (place - before < 1.5) continue;
    pen.fillRect(place, y - 5, 1, 10);
    before = place;
  }
  pen.fillStyle = color('--series-2');
  pen.fillRect(at(first) - 1, y - 8, 3, 16);
}

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {number} from
 * @param {number} until
 * @param {(ms: number) => number} x
 * @param {number} y
 */
function drawTimeAxis(pen, from, until, x, y) {
  pen.fillStyle = color('--ink-soft');
  pen.textAlign = 'center';
  const stride = nice((until - from) / 5);
  for (let ms = Math.ceil(from / stride) * stride; ms <= until; ms += stride) {
    pen.fillRect(x(ms), y - 4, 1, 4);
    pen.fillText(`${short(ms / 1000)} s`, Math.min(x(ms), x(until) - 14), y + 9);
  }
}

/**
 * The next of 1, 2, 5, 10, … above a length.
 * @param {number} length
 */
function nice(length) {
  const power = 10 ** Math.floor(Math.log10(Math.max(length, 1e-9)));
  const lead = length / power;
  return (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10) * power;
}
