// The report as one file: it opens from disk without a network, draws its
// charts, and its playground computes what the texts say.
//
//     GOODPUT=target/debug/goodput node --test tests/browser/

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { blankCanvases, launch, open, seeAll, sound } from './browser.mjs';

const GOODPUT = process.env.GOODPUT ?? 'target/debug/goodput';
const folder = mkdtempSync(join(tmpdir(), 'goodput-report-'));
const runs = join(folder, 'runs');
const file = (/** @type {string} */ name) => join(folder, name);
const address = (/** @type {string} */ name, hash = '') => pathToFileURL(file(name)).href + hash;

let browser;

/** Runs the program; a busy machine's verdict (4) is no matter here. */
function goodput(...words) {
  const done = spawnSync(GOODPUT, words, { encoding: 'utf8' });
  return { code: done.status, text: done.stdout + done.stderr };
}

function bench(html, ...words) {
  const common = ['--runs-dir', runs, '--disable-tqdm', '--seed', '0', '--html', file(html)];
  return goodput('bench', ...common, ...words);
}

before(async () => {
  const slo = ['--goodput', 'ttft:300', 'tpot:60', '--seed', '1'];
  assert.ok([0, 4].includes(bench('run.html', '-n', '40', '--request-rate', '20', ...slo).code));
  assert.ok([0, 4].includes(bench('second.html', '-n', '30', '--request-rate', '30', ...slo).code));
  browser = await launch();
});

after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

test('a report opens from disk and draws every chart', async () => {
  const opened = await open(browser, address('run.html'));
  const { page } = opened;
  // All are drawn in the end, seen or not.
  await page.waitForFunction(() => document.querySelectorAll('figure.chart canvas').length >= 10);
  const charts = await page.locator('figure.chart').count();
  assert.ok(charts >= 10, `${charts} charts`);
  assert.equal(await page.locator('figure.chart canvas').count(), charts);
  for (const latency of ['ttft_ms', 'tpot_ms', 'icl_ms', 'e2el_ms']) {
    await page.selectOption('#tail-which', latency);
    await seeAll(page);
    assert.deepEqual(await blankCanvases(page), [], latency);
  }
  await page.selectOption('#lanes-which', 'spread');
  await page.click('#lanes-aligned');
  await seeAll(page);
  assert.deepEqual(await blankCanvases(page), []);
  assert.equal(await page.locator('section.part').count(), 11);
  assert.deepEqual(opened.asked, []);
  await sound(opened, 'report');
  await opened.close();
});

test('without scripts the words are there', async () => {
  const opened = await browser.newContext({ javaScriptEnabled: false });
  const page = await opened.newPage();
  await page.goto(address('run.html'));
  const words = await page.innerText('body');
  for (const part of ['scripts inside this file', 'Definitions', 'TTFT', 'Goodput and attainment']) {
    assert.ok(words.includes(part), part);
  }
  await opened.close();
});

test('every number has its definition behind it, by mouse and by key', async () => {
  const opened = await open(browser, address('run.html'));
  const { page } = opened;
  const term = page.locator('#phases .term button', { hasText: /^TTFT$/ }).first();
  await term.focus();
  await page.keyboard.press('Enter');
  const card = page.locator('#phases .card');
  assert.match(await card.innerText(), /intended_at|first token/i);
  await sound(opened, 'an open definition');
  await page.keyboard.press('Escape');
  assert.equal(await card.count(), 0);
  await opened.close();
});

test('the cursor of a chart moves by keys and its neighbours follow', async () => {
  const opened = await open(browser, address('run.html'));
  const { page } = opened;
  await page.locator('#chart-requests .plot').focus();
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowRight');
  const said = await page.locator('#chart-requests .u-legend').innerText();
  assert.match(said, /\d/);
  assert.match(await page.locator('#chart-in-flight .u-legend').innerText(), /in flight:?\s*\d/);
  await opened.close();
});

test('dark, light, Chinese, print and a narrow window', async () => {
  for (const hash of ['#/?theme=dark', '#/?theme=light&lang=zh', '#/?lang=zh&theme=dark']) {
    const opened = await open(browser, address('run.html', hash));
    await seeAll(opened.page);
    await sound(opened, hash);
    const text = await opened.page.locator('main').innerText();
    if (hash.includes('zh')) assert.match(text, /请求数随时间变化/);
    await opened.close();
  }
  for (const hash of ['#/', '#/playground', '#/glossary', '#/playground?lang=zh']) {
    const opened = await open(browser, address('run.html', hash), { width: 390, height: 844 });
    await opened.page.waitForTimeout(200);
    await sound(opened, `${hash} at 390 px`);
    await opened.close();
  }
  const printed = await open(browser, address('run.html'));
  await printed.page.emulateMedia({ media: 'print' });
  await printed.page.evaluate(() => dispatchEvent(new Event('beforeprint')));
  await printed.page.waitForFunction(() => document.querySelectorAll('figure.chart canvas').length >= 10);
  assert.equal(await printed.page.locator('.top').isVisible(), false);
  await printed.close();
});

test('the switches of language and theme stay in the address', async () => {
  const opened = await open(browser, address('run.html'), { colorScheme: 'light' });
  const { page } = opened;
  await page.click('#switch-lang');
  await page.click('#switch-theme');
  assert.match(page.url(), /lang=zh/);
  assert.match(page.url(), /theme=dark/);
  await page.click('text=指标实验场');
  assert.match(page.url(), /playground\?.*lang=zh/);
  assert.equal(await page.evaluate(() => document.documentElement.lang), 'zh-CN');
  await opened.close();
});

test('two runs are drawn over each other', async () => {
  goodput('report', 'latest', '--runs-dir', runs);
  const ids = execFileSync(GOODPUT, ['runs', 'ls', '--runs-dir', runs], { encoding: 'utf8' })
    .match(/[0-9A-HJKMNP-TV-Z]{26}/g);
  assert.equal(goodput('report', ids[0], ids[1], '--runs-dir', runs, '--html', file('two.html')).code, 0);
  const opened = await open(browser, address('two.html'));
  await seeAll(opened.page);
  assert.deepEqual(await blankCanvases(opened.page), []);
  assert.equal(await opened.page.locator('#beside tbody tr').count(), 2);
  await sound(opened, 'two runs');
  await opened.close();
  const refused = goodput('report', ids[0], ids[1], '--runs-dir', runs, '--csv', file('two.csv'));
  assert.equal(refused.code, 2);
  assert.match(refused.text, /--csv/);
});

test('the glossary has four branches and eighteen leaves', async () => {
  const opened = await open(browser, address('run.html', '#/glossary'));
  assert.equal(await opened.page.locator('.tree .branch').count(), 4);
  assert.equal(await opened.page.locator('.tree .leaf').count(), 18);
  await opened.page.locator('.leaf summary').first().click();
  await sound(opened, 'glossary');
  await opened.close();
});

const text = (page, selector) => page.locator(selector).innerText();
const rowTpots = (page) => page.locator('#requests tbody td.tpot').allInnerTexts();
const rowMarks = (page) =>
  page.locator('#requests tbody td.slo').evaluateAll((cells) =>
    cells.map((cell) => (cell.querySelector('.good') ? 'good' : cell.innerText.replace(/[✗\s]/g, ''))));

test('the playground: one request', async () => {
  const opened = await open(browser, address('run.html', '#/playground'));
  const { page } = opened;
  assert.equal(await text(page, '#generation'), '2120 ms');
  assert.equal(await text(page, '#tpot'), '9.68 ms/token');
  assert.match(await text(page, '#one-request'), /2200 − 80 = 2120 ms/);
  assert.match(await text(page, '#one-request'), /2120 ÷ \(220 − 1\) = 9\.68 ms\/token/);
  await page.fill('#tokens-number', '1');
  assert.equal(await text(page, '#tpot'), 'n/a');
  for (const [field, value, fault] of [
    ['#e2el-number', '50', /E2EL 50 ms is less than TTFT 80 ms/],
    ['#ttft-number', '-5', /No time is negative/],
    ['#e2el-number', '99999999', /More than an answer can be/],
    ['#tokens-number', '2.5', /whole number of tokens/],
    ['#ttft-number', '', /must all be numbers/],
  ]) {
    await page.goto(address('run.html', '#/playground'));
    await page.reload();
    await page.fill(field, value);
    assert.match(await text(page, '#one-request .fault'), fault, `${field} ${value}`);
    assert.equal(await page.locator('#tpot').count(), 0, 'nothing is computed of it');
  }
  await opened.close();
});

test('the playground: a table judged jointly', async () => {
  const opened = await open(browser, address('run.html', '#/playground'));
  const { page } = opened;
  assert.deepEqual(await rowTpots(page), ['9.71', '8.61', '9.86', '7.41', '9.68', '8.10']);
  assert.deepEqual(await rowMarks(page), ['good', 'good', 'E2EL', 'good', 'good', 'TTFT']);
  assert.equal(await text(page, '#goodput'), '4/6');
  assert.equal(await text(page, '#attainment'), '67 %');
  await page.fill('[aria-label="R3 e2el"]', '2900');
  assert.equal(await text(page, '#goodput'), '5/6');
  await page.click('[data-preset=preset_joint]');
  assert.equal(await text(page, '#req-s'), '0.6 req/s');
  assert.equal(await text(page, '#good-req-s'), '0.3 req/s');
  assert.deepEqual(await rowMarks(page), ['good', 'good', 'TTFT', 'TPOT', 'good', 'TTFT,TPOT']);
  await page.click('[data-preset=preset_tail]');
  assert.equal(await text(page, '#goodput'), '4/6');
  await page.click('[data-preset=preset_streaming]');
  assert.equal(await text(page, '#goodput'), '5/6');
  await page.click('[data-preset=preset_mixed]');
  assert.equal(await text(page, '#goodput'), '4/6');
  await page.click('#add-request');
  assert.equal(await text(page, '#goodput'), '5/7');
  await page.locator('button.remove').first().click();
  assert.equal(await text(page, '#goodput'), '4/6');
  await sound(opened, 'playground');
  await opened.close();
});

test('the playground: pasted rows, a run, and what is absurd', async () => {
  const opened = await open(browser, address('run.html', '#/playground'));
  const { page } = opened;
  await page.click('summary:has-text("Paste CSV")');
  await page.fill('#csv', 'output_tokens,ttft_ms,e2el_ms\n120,45,1200\n80,120,800\nx,1,2\n10,500,100\n');
  await page.click('#take-csv');
  assert.match(await text(page, '.sources'), /Line 4: three numbers/);
  assert.equal(await page.locator('#requests tbody tr').count(), 3);
  assert.match(await text(page, '[data-request=R3] .fault'), /less than TTFT/);
  assert.equal(await text(page, '#goodput'), '2/2');
  assert.match(await text(page, '#verdict .fault'), /1 row\(s\)/);
  await page.click('[data-run]');
  assert.equal(await page.locator('#requests tbody tr').count(), 40);
  assert.equal(await page.inputValue('#limit-ttft'), '300');
  assert.match(await text(page, '#mean-tpot'), /\d+\.\d\d ms/);
  const before = await text(page, '#outlier-p50');
  await page.fill('#outlier-ttft-number', '60000');
  assert.equal(await text(page, '#outlier-p50'), before);
  assert.match(await text(page, '#outlier-mean'), /1\d{3}|2\d{3}/);
  await opened.close();
});

test('the page and measure agree on every golden vector', async () => {
  const golden = JSON.parse(readFileSync(new URL('../../crates/report/tests/golden/arithmetic.json', import.meta.url), 'utf8'));
  const opened = await open(browser, address('run.html', '#/playground'));
  const differ = await opened.page.evaluate(replay, golden);
  assert.deepEqual(differ.slice(0, 5), []);
  await opened.close();
});

/** Runs in the page: every vector through the page's own modules. */
async function replay(golden) {
  const load = (name) => import(name);
  const sums = await load('goodput/arithmetic');
  const { short, percent, durationMs, count, fixed } = await load('goodput/format');
  const differ = [];
  const same = (name, got, want) => {
    if (got !== want) differ.push(`${name}: ${got}, not ${want}`);
  };
  golden.tables.forEach(({ requests, limits, seconds, want }, at) => {
    requests.forEach((request, row) => {
      const { generation, tpot, tpot_2: two, broken } = want.rows[row];
      const name = `table ${at} row ${row}`;
      const pace = sums.tpot(request);
      same(`${name} fault`, sums.fault(request), null);
      same(`${name} generation`, sums.generation(request), generation);
      same(`${name} tpot`, pace === null ? 'n/a' : short(pace), tpot.shown);
      same(`${name} tpot in two decimals`, pace === null ? 'n/a' : fixed(pace, 2), two);
      same(`${name} broken`, sums.broken(request, limits).join(), broken.join());
    });
    const sum = sums.goodput(requests, limits, seconds);
    const paces = sums.paces(requests);
    const ttft = sums.centre(requests.map((request) => request.ttft));
    const name = `table ${at}`;
    same(`${name} good`, sum.good, want.good);
    same(`${name} of`, sum.of, want.of);
    same(`${name} attainment`, percent(sum.attainment), want.attainment.shown);
    same(`${name} req/s`, short(sum.good_req_s), want.good_req_s.shown);
    same(`${name} tok/s`, short(sum.good_tok_s), want.good_tok_s.shown);
    for (const key of ['by_request', 'by_token', 'over_tokens']) same(`${name} ${key}`, short(paces[key]), want[key].shown);
    for (const key of ['mean', 'p50', 'p99']) same(`${name} ${key}`, short(ttft[key]), want.ttft[key].shown);
  });
  for (const one of golden.numbers) {
    same(`short ${one.value}`, short(one.value), one.short);
    same(`percent ${one.value}`, percent(one.value / 1e4), one.percent);
    same(`duration ${one.value}`, durationMs(one.value), one.duration);
    same(`count ${one.value}`, count(Math.trunc(one.value)), one.count);
  }
  return differ;
}

test('what a server says never becomes markup', async () => {
  const hostile = '</script><img src=x onerror="window.broken=1"><b>bold</b>\u2028';
  const server = createServer((request, response) => {
    response.writeHead(500, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ error: { message: hostile } }));
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const url = `http://127.0.0.1:${server.address().port}`;
  const { spawn } = await import('node:child_process');
  const words = ['bench', url, '--model', hostile, '-n', '6', '--runs-dir', runs, '--disable-tqdm', '--html', file('hostile.html')];
  await new Promise((done) => spawn(GOODPUT, words).on('exit', done));
  server.close();
  const opened = await open(browser, address('hostile.html'));
  assert.match(await text(opened.page, '#failures'), /onerror/);
  assert.equal(await opened.page.evaluate(() => window.broken), undefined);
  assert.equal(await opened.page.locator('main img, main b').count(), 0);
  await sound(opened, 'hostile');
  await opened.close();
});

test('runs with nothing to draw say so', async () => {
  assert.equal(bench('failed.html', 'http://127.0.0.1:9', '--model', 'm', '-n', '3').code, 3);
  assert.ok([0, 4].includes(bench('one.html', '-n', '1', '--osl', '1').code));
  for (const name of ['failed.html', 'one.html']) {
    const opened = await open(browser, address(name));
    await seeAll(opened.page);
    assert.ok((await opened.page.locator('.chart .empty').count()) > 0, name);
    assert.equal(await opened.page.locator('section.part').count(), 11, name);
    assert.deepEqual(await blankCanvases(opened.page), [], name);
    await sound(opened, name);
    await opened.close();
  }
});
