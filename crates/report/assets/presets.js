// The examples of the playground: those of the two texts that the product
// grew from.

/**
 * @typedef {import('goodput/arithmetic').Request} Request
 * @typedef {import('goodput/arithmetic').Limits} Limits
 * @typedef {{key: string, seconds: number, limits: Limits, requests: Request[]}} Preset
 */

/**
 * Rows of TTFT, E2EL and output tokens.
 * @param {Array<[number, number, number]>} rows
 * @returns {Request[]}
 */
const rows = (rows) => rows.map(([ttft, e2el, tokens]) => ({ ttft, e2el, tokens }));

/**
 * Rows of TTFT and TPOT, with answers of 101 tokens.
 * @param {Array<[number, number]>} rows
 * @returns {Request[]}
 */
const paced = (rows) =>
  rows.map(([ttft, tpot]) => ({ ttft, e2el: ttft + tpot * 100, tokens: 101 }));

/** The request that the sliders show first. */
export const ONE = { ttft: 80, e2el: 2200, tokens: 220 };

/** Ends of the sliders. */
export const RANGES = { ttft: [0, 2000], e2el: [0, 10000], tokens: [2, 500] };

/** @type {Preset[]} */
export const PRESETS = [
  {
    key: 'preset_mixed',
    seconds: 10,
    limits: { ttft: 200, tpot: null, e2el: 3000 },
    requests: rows([
      [45, 1200, 120],
      [120, 800, 80],
      [60, 3500, 350],
      [200, 600, 55],
      [80, 2200, 220],
      [350, 1800, 180],
    ]),
  },
  {
    key: 'preset_tail',
    seconds: 10,
    limits: { ttft: 200, tpot: null, e2el: 2000 },
    requests: rows([
      [40, 900, 90],
      [45, 850, 85],
      [38, 920, 92],
      [42, 880, 88],
      [850, 4200, 420],
      [780, 3800, 380],
    ]),
  },
  {
    key: 'preset_streaming',
    seconds: 10,
    limits: { ttft: 100, tpot: null, e2el: 2500 },
    requests: rows([
      [30, 1500, 150],
      [25, 2200, 220],
      [35, 900, 90],
      [28, 1800, 180],
      [40, 1200, 120],
      [32, 2800, 280],
    ]),
  },
  {
    key: 'preset_joint',
    seconds: 10,
    limits: { ttft: 300, tpot: 60, e2el: null },
    requests: paced([
      [180, 35],
      [240, 48],
      [420, 40],
      [250, 72],
      [290, 55],
      [510, 80],
    ]),
  },
];
