// A browser without a network, and what every page is held to.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { chromium } from 'playwright-core';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Chromium as Debian installs it; CHROMIUM names another. */
export function launch() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--no-first-run',
    ],
  });
}

/**
 * A page that notes whatever goes wrong in it and what it asks the network for.
 * @param {import('playwright-core').Browser} browser
 * @param {object} [options]
 */
export async function open(browser, address, options = {}) {
  const { width = 1200, height = 900, offline = true, ...rest } = options;
  const context = await browser.newContext({ viewport: { width, height }, ...rest });
  await context.setOffline(offline);
  const page = await context.newPage();
  const faults = [];
  const asked = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) faults.push(message.text());
  });
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith('data:') && !url.startsWith('file:')) asked.push(url);
  });
  await page.goto(address);
  await page.waitForSelector('.top');
  return { page, faults, asked, close: () => context.close() };
}

/**
 * Serious and critical faults by axe-core. The script is evaluated and not
 * added to the page, whose policy would refuse it.
 * @param {import('playwright-core').Page} page
 */
export async function seriousFaults(page) {
  await page.evaluate(AXE);
  const result = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
  return result.violations
    .filter((one) => ['serious', 'critical'].includes(one.impact))
    .map((one) => `${one.id}: ${one.help}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(' | ')}`);
}

/**
 * Brings every chart near the window once, so that it is drawn.
 * @param {import('playwright-core').Page} page
 */
export async function seeAll(page) {
  for (const chart of await page.locator('figure.chart').all()) {
    await chart.scrollIntoViewIfNeeded();
    await page.waitForTimeout(30);
  }
  await page.evaluate(() => scrollTo(0, 0));
}

/**
 * The canvases of a page that hold nothing but one colour.
 * @param {import('playwright-core').Page} page
 */
export function blankCanvases(page) {
  return page.evaluate(() =>
    [...document.querySelectorAll('canvas')]
      .filter((canvas) => {
        if (canvas.width === 0 || canvas.height === 0) return true;
        // Read from a copy: reading a canvas often turns its acceleration off.
        const copy = new OffscreenCanvas(canvas.width, canvas.height);
        const pen = copy.getContext('2d', { willReadFrequently: true });
        pen.drawImage(canvas, 0, 0);
        const { data } = pen.getImageData(0, 0, canvas.width, canvas.height);
        const first = data.slice(0, 4).join();
        for (let at = 4; at < data.length; at += 4) {
          if (data.slice(at, at + 4).join() !== first) return false;
        }
        return true;
      })
      .map((canvas) => canvas.closest('figure')?.id ?? '?'),
  );
}

/**
 * Pixels by which a page is wider than its window.
 * @param {import('playwright-core').Page} page
 */
export function overhang(page) {
  return page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
}

/**
 * Holds a page to what every page is held to.
 * @param {Awaited<ReturnType<typeof open>>} opened
 * @param {string} name
 */
export async function sound(opened, name) {
  assert.deepEqual(opened.faults, [], `${name}: the console`);
  assert.deepEqual(await seriousFaults(opened.page), [], `${name}: axe-core`);
  assert.ok((await overhang(opened.page)) <= 0, `${name}: wider than its window`);
}
