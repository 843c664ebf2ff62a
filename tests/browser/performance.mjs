// How fast a report of many requests paints and answers, beside an empty page,
// in turns. Needs Chromium and Node; see scripts/bench-report.
//
//     node tests/browser/performance.mjs REPORT.html

import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { launch } from './browser.mjs';

const REPEATS = 5;
const file = resolve(process.argv[2]);
const folder = mkdtempSync(join(tmpdir(), 'goodput-performance-'));
const empty = join(folder, 'empty.html');
writeFileSync(empty, '<!doctype html><html lang="en"><title>empty</title><main><p>empty</p></main></html>');

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
const spread = (values) => `${median(values).toFixed(0)} (${Math.min(...values).toFixed(0)}–${Math.max(...values).toFixed(0)})`;

/** First contentful paint, which is the report's text, and when its scripts had run. */
async function paint(address) {
  const browser = await launch();
  const page = await browser.newPage({ viewport: { width: 1200, height: 900 } });
  await page.goto(pathToFileURL(address).href);
  const times = await page.evaluate(() => new Promise((done) => {
    const look = () => {
      const [first] = performance.getEntriesByName('first-contentful-paint');
      const [rendered] = performance.getEntriesByName('goodput-rendered');
      const whole = document.getElementById('page') === null || rendered !== undefined;
      if (first === undefined || !whole) requestAnimationFrame(look);
      else done({ first: first.startTime, live: rendered?.startTime ?? first.startTime });
    };
    look();
  }));
  await browser.close();
  return times;
}

/** Time that scripts take after one action, ms. */
async function scripts(page, act) {
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable');
  const taken = async () => {
    const { metrics } = await session.send('Performance.getMetrics');
    return metrics.find((one) => one.name === 'ScriptDuration').value * 1e3;
  };
  const before = await taken();
  await act();
  await page.waitForTimeout(250);
  return (await taken()) - before;
}

const reports = [];
const empties = [];
for (let repeat = 0; repeat < REPEATS; repeat += 1) {
  empties.push(await paint(empty));
  reports.push(await paint(file));
}
const firsts = reports.map((one) => one.first);
const lives = reports.map((one) => one.live);
const bases = empties.map((one) => one.first);
console.log(`file              ${(statSync(file).size / 1e6).toFixed(2)} MB`);
console.log(`empty page        first paint ${spread(bases)} ms`);
console.log(`report            first paint ${spread(firsts)} ms, scripts ready ${spread(lives)} ms`);
console.log(`ratio             ${(median(firsts) / median(bases)).toFixed(2)} (at most 3)`);

const browser = await launch();
const page = await browser.newPage({ viewport: { width: 1200, height: 900 } });
await page.goto(pathToFileURL(file).href);
await page.waitForFunction(() => document.querySelectorAll('figure.chart canvas').length >= 10);
await page.waitForTimeout(500);
const actions = {
  'another latency': () => page.selectOption('#tail-which', 'icl_ms'),
  'other time lines': () => page.selectOption('#lanes-which', 'spread'),
  'a definition': () => page.locator('#phases .term button').first().click(),
  'cursor on a chart': () => page.locator('#chart-requests .u-over').hover(),
  'dark': () => page.click('#switch-theme'),
  'Chinese': () => page.click('#switch-lang'),
};
for (const [name, act] of Object.entries(actions)) {
  console.log(`${name.padEnd(18)}${(await scripts(page, act)).toFixed(0)} ms of scripts`);
}
await page.goto(`${pathToFileURL(file).href}#/playground`);
await page.reload();
await page.waitForSelector('#tpot');
const play = {
  'a slider': () => page.fill('#ttft-number', '120'),
  'load the run': () => page.locator('[data-run]').first().click(),
  'a cell of 2000 rows': () => page.fill('[aria-label="R3 e2el"]', '2900'),
};
for (const [name, act] of Object.entries(play)) {
  console.log(`${name.padEnd(18)}${(await scripts(page, act)).toFixed(0)} ms of scripts`);
}
await browser.close();
rmSync(folder, { recursive: true, force: true });
