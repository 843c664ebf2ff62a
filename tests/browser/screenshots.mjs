// Takes the pictures of docs/screenshots; see scripts/screenshots.

import { mkdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { launch, open } from './browser.mjs';

const [from, to] = process.argv.slice(2);
mkdirSync(to, { recursive: true });
const report = pathToFileURL(resolve(from, 'report.html')).href;
const browser = await launch();

/** Takes what is in the window. */
async function take(name, hash, height, prepare = async () => {}) {
  const { page, close } = await open(browser, report + hash, { width: 1120, height });
  await page.waitForTimeout(600);
  await prepare(page);
  await page.screenshot({ path: join(to, `${name}.png`) });
  await close();
}

const toSection = (id) => async (page) => {
  await page.evaluate((id) => document.getElementById(id).scrollIntoView(), id);
  await page.waitForTimeout(500);
};
await take('report-light', '#/?theme=light', 1000, toSection('offered'));
await take('report-dark', '#/?theme=dark', 1250, toSection('tail'));
await take('playground', '#/playground?theme=light', 1250);

// The terminal's text in a terminal's colours.
const text = readFileSync(join(from, 'terminal.txt'), 'utf8').split('\n').slice(0, 62).join('\n');
const context = await browser.newContext({ viewport: { width: 1040, height: 1150 } });
const page = await context.newPage();
await page.setContent('<pre></pre>');
await page.addStyleTag({
  content: 'body{margin:0;background:#16191d}pre{margin:0;padding:16px;color:#dde3ea;font:14px/1.3 "DejaVu Sans Mono",monospace}',
});
await page.evaluate((words) => {
  document.querySelector('pre').textContent = words;
}, text);
await page.screenshot({ path: join(to, 'terminal.png') });
await browser.close();
