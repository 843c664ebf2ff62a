// The arithmetic of the page: what `measure` computes from records, from the
// three numbers of a request that a person can type. Golden vectors made by
// `measure` hold it to the same results.

/**
 * One request as typed.
 * @typedef {{ttft: number, e2el: number, tokens: number}} Request
 */

/**
 * Limits in milliseconds; one that is null is not asked for.
 * @typedef {{ttft: number | null, tpot: number | null, e2el: number | null}} Limits
 */

/** The largest time and count that are computed: an hour and a day's novel. */
export const MOST_MS = 3_600_000;
export const MOST_TOKENS = 10_000_000;

/**
 * What is wrong with a request, as the key of a sentence; null when nothing.
 * @param {Request} request
 * @returns {string | null}
 */
export function fault(request) {
  const { ttft, e2el, tokens } = request;
  if (![ttft, e2el, tokens].every(Number.isFinite)) return 'fault_number';
  if (ttft < 0 || e2el < 0) return 'fault_negative';
  if (!Number.isInteger(tokens) || tokens < 1) return 'fault_tokens';
  if (e2el < ttft) return 'fault_order';
  if (e2el > MOST_MS || tokens > MOST_TOKENS) return 'fault_huge';
  return null;
}

/**
 * Time of the tokens behind the first, in ms. It is taken in whole
 * microseconds: a difference of decimals would miss a limit by its rounding.
 * @param {Request} request
 * @returns {number}
 */
export function generation(request) {
  return (Math.round(request.e2el * 1e3) - Math.round(request.ttft * 1e3)) / 1e3;
}

/**
 * Milliseconds a token behind the first; null for one token, which has none.
 * @param {Request} request
 * @returns {number | null}
 */
export function tpot(request) {
  return request.tokens < 2 ? null : generation(request) / (request.tokens - 1);
}

/**
 * Which limits a request breaks. An absent TPOT breaks none.
 * @param {Request} request
 * @param {Limits} limits
 * @returns {Array<'ttft' | 'tpot' | 'e2el'>}
 */
export function broken(request, limits) {
  /** @type {Array<'ttft' | 'tpot' | 'e2el'>} */
  const names = [];
  const pace = tpot(request);
  if (limits.ttft !== null && request.ttft > limits.ttft) names.push('ttft');
  if (limits.tpot !== null && pace !== null && pace > limits.tpot) names.push('tpot');
  if (limits.e2el !== null && request.e2el > limits.e2el) names.push('e2el');
  return names;
}

/**
 * Goodput over sound requests: all of a request's limits hold, or it does not
 * count.
 * @param {Request[]} requests
 * @param {Limits} limits
 * @param {number | null} seconds
 */
export function goodput(requests, limits, seconds) {
  const judged = requests.map((request) => broken(request, limits));
  const good = requests.filter((_, at) => judged[at].length === 0);
  const window = seconds !== null && seconds > 0 ? seconds : null;
  const rate = (/** @type {number} */ sum) => (window === null ? null : sum / window);
  const met = (/** @type {'ttft' | 'tpot' | 'e2el'} */ name) =>
    limits[name] === null
      ? null
      : judged.filter((names) => !names.includes(name)).length;
  const tokens = (/** @type {Request[]} */ of) => of.reduce((sum, one) => sum + one.tokens, 0);
  return {
    good: good.length,
    of: requests.length,
    attainment: requests.length === 0 ? null : good.length / requests.length,
    req_s: rate(requests.length),
    good_req_s: rate(good.length),
    tok_s: rate(tokens(requests)),
    good_tok_s: rate(tokens(good)),
    met: { ttft: met('ttft'), tpot: met('tpot'), e2el: met('e2el') },
  };
}

/**
 * The three means of one thing: every request once, every gap once, and the
 * gaps divided by all output tokens.
 * @param {Request[]} requests
 */
export function paces(requests) {
  const timed = requests.filter((request) => request.tokens >= 2);
  const sum = (/** @type {(request: Request) => number} */ of) =>
    timed.reduce((total, request) => total + of(request), 0);
  const gaps = sum((request) => request.tokens - 1);
  const tokens = sum((request) => request.tokens);
  return {
    by_request: timed.length === 0 ? null : sum((one) => tpot(one) ?? 0) / timed.length,
    by_token: gaps === 0 ? null : sum(generation) / gaps,
    over_tokens: tokens === 0 ? null : sum(generation) / tokens,
  };
}

/**
 * Mean, median and 99th percentile, by linear interpolation on the samples.
 * @param {number[]} samples
 */
export function centre(samples) {
  const sorted = [...samples].sort((a, b) => a - b);
  const mean = sorted.length === 0 ? null : sorted.reduce((a, b) => a + b, 0) / sorted.length;
  return { mean, p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99) };
}

/**
 * The q-quantile of sorted samples, linearly interpolated.
 * @param {number[]} sorted
 * @param {number} q
 * @returns {number | null}
 */
export function quantile(sorted, q) {
  if (sorted.length === 0) return null;
  const rank = q * (sorted.length - 1);
  const below = Math.floor(rank);
  const [low, high] = [sorted[below], sorted[Math.ceil(rank)]];
  if (low === high) return low;
  // Counted from the nearer end, as numpy does: the same to the last bit.
  const fraction = rank - below;
  return fraction >= 0.5
    ? high - (high - low) * (1 - fraction)
    : low + (high - low) * fraction;
}

/**
 * The largest of some numbers, or `least`. A call with a list's members as its
 * arguments fails where a pasted list is long.
 * @param {number[]} values
 * @param {number} least
 */
export function largest(values, least) {
  return values.reduce((most, value) => Math.max(most, value), least);
}

/**
 * Requests from pasted CSV: three columns TTFT, E2EL, output tokens, in any
 * order where a head names them. What cannot be read is said, by line.
 * @param {string} text
 * @returns {{requests: Request[], faults: Array<{line: number, key: string}>}}
 */
export function parseCsv(text) {
  /** @type {Request[]} */
  const requests = [];
  /** @type {Array<{line: number, key: string}>} */
  const faults = [];
  let places = [0, 1, 2];
  let begun = false;
  text.split(/\r\n|\r|\n/).forEach((raw, index) => {
    if (raw.trim() === '') return;
    const cells = raw.split(/[,;\t]|\s*\/\s*/).map((cell) => cell.trim().replace(/^"|"$/g, ''));
    if (!begun) {
      begun = true;
      const head = headPlaces(cells);
      if (head !== null) {
        places = head;
        return;
      }
    }
    const numbers = places.map((place) => (cells[place] ? Number(cells[place]) : NaN));
    const request = { ttft: numbers[0], e2el: numbers[1], tokens: numbers[2] };
    if (numbers.some(Number.isNaN)) faults.push({ line: index + 1, key: 'fault_columns' });
    else requests.push(request);
  });
  return { requests, faults };
}

/**
 * Where a head puts the three columns; null when the cells are no head.
 * @param {string[]} cells
 * @returns {number[] | null}
 */
function headPlaces(cells) {
  const names = cells.map((cell) => cell.toLowerCase());
  const at = (/** @type {RegExp} */ wanted) => names.findIndex((name) => wanted.test(name));
  const places = [at(/ttft/), at(/e2el?|latency/), at(/token|osl|output/)];
  return places.every((place) => place >= 0) ? places : null;
}
