// `goodput ui` in a browser: what a person sees and does, in English and
// Chinese, light and dark, wide and narrow, and that the page asks nobody but
// its own server.
//
//     cd tests/browser && npm install
//     GOODPUT=../../target/debug/goodput node --test ui.test.mjs
//
// CHROMIUM names the browser (/usr/bin/chromium).

import assert from 'node:assert/strict';
import { spawn, execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { chromium } from 'playwright-core';

const goodput = resolve(process.env.GOODPUT ?? '../../target/debug/goodput');
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const runs = mkdtempSync(join(tmpdir(), 'goodput-ui-'));

/** Faults of the page: anything on its console, any request elsewhere. */
const faults = [];
let server;
let url;
let browser;
let ids;

before(async () => {
  for (let run = 0; run < 2; run += 1) {
    // A busy machine makes a run INVALID, which is no matter here.
    execFileSync(goodput, ['bench', '-n', '20', '--seed', '0', '--request-rate', '20', '--goodput', 'ttft:300',
      'tpot:60', '--runs-dir', runs, '--disable-tqdm', '--allow-invalid'], { stdio: 'ignore' });
  }
  ids = readdirSync(runs).sort();
  server = spawn(goodput, ['ui', '--port', '0', '--runs-dir', runs, '--lang', 'en']);
  url = await new Promise((found, failed) => {
    let told = '';
    server.stderr.on('data', (bytes) => {
      told += bytes;
      const address = /http:\/\/\S+\//.exec(told);
      if (address !== null) found(address[0]);
    });
    server.on('exit', () => failed(new Error(`goodput ui ended: ${told}`)));
  });
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking'],
  });
});

after(async () => {
  await browser?.close();
  server?.removeAllListeners('exit');
  const ended = new Promise((done) => server?.on('exit', (code) => done(code)));
  server?.kill('SIGINT');
  const code = await ended;
  rmSync(runs, { recursive: true, force: true });
  assert.equal(code, 0, 'Ctrl-C is an orderly end');
});

/** A page that writes down what it does wrong. */
async function opened(hash = '', options = {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, ...options });
  const page = await context.newPage();
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) faults.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => faults.push(`script: ${error}`));
  page.on('request', (request) => {
    const to = request.url();
    if (!to.startsWith(url) && !to.startsWith('data:')) faults.push(`asked elsewhere: ${to}`);
  });
  await page.goto(url + hash);
  return page;
}

/** Every canvas of the page that has nothing on it. */
async function emptyCanvases(page) {
  return page.$$eval('canvas', (all) => all.filter((canvas) => {
    const { width, height } = canvas;
    if (width === 0 || height === 0) return true;
    const pixels = canvas.getContext('2d').getImageData(0, 0, width, height).data;
    return pixels.every((value) => value === 0);
  }).map((canvas) => canvas.closest('figure')?.id ?? canvas.outerHTML));
}

const one = () => `#/run/${ids[0]}`;
const both = () => `#/overlay/${ids[0]},${ids[1]}`;

/** Every page, and what is there when it is drawn. */
const PAGES = [
  ['list', () => '#/', '.run'],
  ['run', one, '#chart-tokens canvas'],
  ['overlay', both, '#chart-tokens canvas'],
  ['playground', () => `#/playground?run=${ids[0]}`, '[data-run]'],
  ['glossary', () => '#/glossary', '.leaf'],
];

test('the list shows the runs, the filter finds them, and the address keeps it', async () => {
  const page = await opened();
  await page.waitForSelector('.run');
  assert.equal(await page.locator('.run').count(), 2);
  await page.fill('#filter', ids[1].slice(-6).toLowerCase());
  assert.equal(await page.locator('.run').count(), 1);
  assert.equal(await page.locator('.run').getAttribute('data-run'), ids[1]);
  assert.match(page.url(), /q=/);
  await page.reload();
  await page.waitForSelector('.run');
  assert.equal(await page.locator('.run').count(), 1);
  await page.fill('#filter', 'nothing has this');
  assert.equal(await page.locator('.run').count(), 0);
  await page.fill('#filter', '');
  const order = () => page.$$eval('.run', (all) => all.map((run) => run.dataset.run));
  assert.deepEqual(await order(), [ids[1], ids[0]]);
  await page.click('#order');
  assert.deepEqual(await order(), ids);
  await page.context().close();
});

test('tags and a note are written, stay text, and are there after a reload', async () => {
  const page = await opened();
  const run = page.locator(`.run[data-run="${ids[0]}"]`);
  await run.locator('[data-do=edit]').click();
  const note = '<img src=x onerror=alert(1)> 冷启动\nsecond line';
  await run.locator('input[name=tags]').fill('baseline, two words,baseline');
  await run.locator('textarea').fill(note);
  await run.getByRole('button', { name: 'Save' }).click();
  for (const turn of ['at once', 'after a reload']) {
    await run.locator('.tags li').first().waitFor();
    assert.deepEqual(await run.locator('.tags li').allTextContents(), ['baseline', 'two words'], turn);
    assert.equal(await run.locator('.note').textContent(), note, turn);
    assert.equal(await page.locator('img').count(), 0, turn);
    await page.reload();
  }
  await page.fill('#filter', 'two words');
  await page.waitForFunction(() => document.querySelectorAll('.run').length === 1);
  // What breaks a limit is told where it was typed.
  await run.locator('[data-do=edit]').click();
  await run.locator('input[name=tags]').fill('x'.repeat(41));
  const refused = faults.length;
  await run.getByRole('button', { name: 'Save' }).click();
  assert.match(await run.locator('[role=alert]').textContent(), /1 to 40 characters/);
  // The browser itself logs the refusal, and nothing else was wrong.
  const told = faults.splice(refused);
  assert.ok(told.every((fault) => fault.includes('422')), told.join('\n'));
  await page.context().close();
});

test('a run is its report, and every chart has something on it', async () => {
  const page = await opened();
  await page.locator(`.run[data-run="${ids[0]}"] .about a`).first().click();
  await page.waitForSelector('#chart-tokens canvas');
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'main');
  assert.ok((await page.locator('canvas').count()) >= 6);
  assert.deepEqual(await emptyCanvases(page), []);
  assert.match(await page.title(), new RegExp(ids[0]));
  await page.click('#to-playground');
  await page.locator(`button[data-run="${ids[0]}"]`).click();
  assert.equal(await page.locator('tr[data-request]').count(), 20);
  await page.context().close();
});

test('two runs are chosen by keyboard and shown over each other', async () => {
  const page = await opened();
  await page.waitForSelector('.run');
  for (const id of ids) {
    await page.locator(`.run[data-run="${id}"] input[type=checkbox]`).focus();
    await page.keyboard.press('Space');
  }
  assert.match(page.url(), /selected=/);
  await page.locator('#overlay').focus();
  await page.keyboard.press('Enter');
  await page.waitForSelector('#beside');
  await page.waitForSelector('#chart-tokens canvas');
  assert.equal(await page.locator('#beside tbody tr').count(), 2);
  assert.deepEqual(await emptyCanvases(page), []);
  await page.goBack();
  await page.waitForSelector('.run');
  assert.equal(await page.locator('.run input:checked').count(), 2);
  await page.context().close();
});

test('the glossary is a tree of 4 branches and 18 leaves', async () => {
  const page = await opened('#/glossary');
  await page.waitForSelector('.leaf');
  assert.equal(await page.locator('.branch').count(), 4);
  assert.equal(await page.locator('.leaf').count(), 18);
  await page.context().close();
});

test('every page speaks Chinese', async () => {
  const page = await opened('#/?lang=zh');
  await page.waitForSelector('.run');
  assert.equal(await page.locator('h1').textContent(), '测试列表');
  assert.equal(await page.evaluate(() => document.documentElement.lang), 'zh-CN');
  await page.getByRole('link', { name: '指标词典' }).click();
  await page.waitForSelector('.leaf');
  assert.match(page.url(), /lang=zh/);
  await page.click('#switch-lang');
  assert.match(await page.locator('h2').first().textContent(), /Metrics/);
  await page.context().close();
});

test('an address that names nothing is told, with the way back', async () => {
  const page = await opened('#/nowhere');
  assert.match(await page.locator('.empty').textContent(), /nothing at this address/);
  const before = faults.length;
  await page.goto(`${url}#/run/..%2Fx`);
  assert.match(await page.locator('[role=alert]').textContent(), /no run of this id/);
  // The browser itself logs the refusal, and nothing else was wrong.
  const told = faults.splice(before);
  assert.ok(told.every((fault) => fault.includes('404')), told.join('\n'));
  await page.click('#back');
  await page.waitForSelector('.run');
  await page.context().close();
});

test('no page scrolls sideways at 390 pixels', async () => {
  const page = await opened('', { viewport: { width: 390, height: 844 } });
  for (const lang of ['en', 'zh']) {
    for (const [name, hash, drawn] of PAGES) {
      await page.goto(`${url}${hash()}${hash().includes('?') ? '&' : '?'}lang=${lang}`);
      await page.locator(drawn).first().waitFor();
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= 390, `${name} ${lang}: ${wide} pixels`);
    }
  }
  await page.locator('.leaf').first().waitFor();
  await page.context().close();
});

test('no page has a serious or critical fault of accessibility, light or dark', async () => {
  const page = await opened();
  for (const theme of ['light', 'dark']) {
    for (const [name, hash, drawn] of PAGES) {
      await page.goto(`${url}${hash()}${hash().includes('?') ? '&' : '?'}theme=${theme}`);
      await page.locator(drawn).first().waitFor();
      if (name === 'list') {
        await page.locator('[data-do=edit]').first().click();
        await page.locator('[data-do=trash]').last().click();
      }
      // The policy allows no script that is added, so its text is evaluated.
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => globalThis.axe.run());
      const grave = violations.filter((one) => ['serious', 'critical'].includes(one.impact));
      const words = grave.map((one) => `${one.id}: ${one.nodes.map((node) => node.html).join('\n  ')}`);
      assert.deepEqual(words, [], `${name}, ${theme}`);
    }
  }
  await page.context().close();
});

test('a run goes to the trash only after a question, and a damaged one says why it is', async () => {
  const page = await opened();
  await page.waitForSelector('.run');
  writeFileSync(join(runs, ids[1], 'run.json'), '{');
  await page.click('#reload');
  const damaged = page.locator(`.run[data-run="${ids[1]}"]`);
  await damaged.locator('.state.fault').waitFor();
  assert.match(await damaged.locator('.state').textContent(), /cannot be read: run.json/);
  await damaged.locator('[data-do=trash]').click();
  await damaged.locator('[data-do=keep]').click();
  assert.equal(await page.locator('.run').count(), 2);
  await damaged.locator('[data-do=trash]').click();
  await damaged.locator('[data-do=move]').click();
  await page.waitForFunction(() => document.querySelectorAll('.run').length === 1);
  assert.deepEqual(readdirSync(join(runs, '.trash')), [ids[1]]);
  await page.context().close();
});

test('nothing was wrong on any console and nothing was asked of others', () => {
  assert.deepEqual(faults, []);
});
