// Numbers for people. The same rules as crates/report/src/number.rs, and held
// to the same results by the golden vectors.

/** A thin gap that no locale reads as a decimal mark. */
const GAP = '\u202f';

/**
 * Three significant digits, thousands apart, no exponent. What is not zero
 * never reads as zero.
 * @param {number | null | undefined} value
 * @returns {string}
 */
export function short(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return 'n/a';
  const size = Math.abs(value);
  if (size === Infinity) return value > 0 ? '∞' : '−∞';
  if (size > 0 && size < 0.00005) return value > 0 ? '<0.0001' : '>-0.0001';
  const digits =
    size === 0 ? 0 : size < 0.01 ? 4 : size < 1 ? 3 : size < 10 ? 2 : size < 100 ? 1 : 0;
  const text = fixed(size, digits);
  const shown = Number(text) < 1e4 ? text : grouped(text);
  return value < 0 ? `-${shown}` : shown;
}

/**
 * A count with thousands apart.
 * @param {number} value
 * @returns {string}
 */
export function count(value) {
  return value < 10000 ? String(value) : grouped(String(value));
}

/**
 * A share as percent. Only a whole reads 100 % and only nothing reads 0 %.
 * @param {number | null | undefined} share
 * @returns {string}
 */
export function percent(share) {
  if (share === null || share === undefined) return 'n/a';
  const value = share * 100;
  if (value >= 99.95 && value < 100) return '>99.9 %';
  if (value > 0 && value < 0.05) return '<0.1 %';
  if (Math.abs(value - Math.round(value)) < 1e-9) return `${fixed(value, 0)} %`;
  return `${fixed(value, 1)} %`;
}

/**
 * Milliseconds with a unit that fits: 850 µs, 12.3 ms, 2.35 s.
 * @param {number | null | undefined} ms
 * @returns {string}
 */
export function durationMs(ms) {
  if (ms === null || ms === undefined || Number.isNaN(ms)) return 'n/a';
  const size = Math.abs(ms);
  if (size >= 1000) return `${short(ms / 1e3)} s`;
  if (ms !== 0 && size < 1) return `${short(ms * 1e3)} µs`;
  return `${short(ms)} ms`;
}

/**
 * As many decimals as asked, halves of the binary value to even: what Rust
 * prints. `toFixed` rounds exact halves away from zero.
 * @param {number} value
 * @param {number} digits
 * @returns {string}
 */
export function fixed(value, digits) {
  const text = value.toFixed(digits);
  const scaled = value * 10 ** digits;
  const isHalf = Number.isInteger(scaled * 2) && !Number.isInteger(scaled);
  // Only where scaling was exact is the value itself a half.
  if (!isHalf || scaled / 10 ** digits !== value || !exactHalf(value, digits)) return text;
  const down = Math.floor(scaled);
  const even = down % 2 === 0 ? down : down + 1;
  return (even / 10 ** digits).toFixed(digits);
}

/**
 * Whether the binary value lies exactly between two decimals: its exact
 * expansion then ends in 5 right behind the last digit shown.
 * @param {number} value
 * @param {number} digits
 * @returns {boolean}
 */
function exactHalf(value, digits) {
  const exact = value.toFixed(Math.min(100, digits + 60));
  const point = exact.indexOf('.');
  const behind = exact.slice(point + 1 + digits);
  return /^50*$/.test(behind);
}

/**
 * Digits with a gap before every third, up to the decimal point.
 * @param {string} digits
 * @returns {string}
 */
function grouped(digits) {
  const [whole, fraction] = digits.split('.');
  const text = whole.replace(/\B(?=(\d{3})+$)/g, GAP);
  return fraction === undefined ? text : `${text}.${fraction}`;
}
