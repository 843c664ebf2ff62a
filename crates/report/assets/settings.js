// What the page is about and how it is shown: the data that lies in it, its
// language and its theme. The state is in the address, so that a link shows
// what its sender saw.

import { useEffect, useState } from 'preact/hooks';

/** @typedef {'en' | 'zh'} Lang */
/** @typedef {{en: string, zh: string}} Text */

/**
 * The data of the page; see crates/report/src/html.rs.
 * @type {import('goodput/page').Page}
 */
export const page = JSON.parse(document.getElementById('page')?.textContent ?? '{}');

/** @type {Set<() => void>} */
const listeners = new Set();

/**
 * The state in the address: a path and parameters behind the hash.
 * @returns {{path: string, params: URLSearchParams}}
 */
export function address() {
  const [path, query] = location.hash.replace(/^#/, '').split('?');
  return { path: path === '' ? '/' : path, params: new URLSearchParams(query ?? '') };
}

/**
 * The address of a path that keeps language and theme.
 * @param {string} path
 * @param {Record<string, string>} [more]
 */
export function link(path, more = {}) {
  const kept = new URLSearchParams();
  const { params } = address();
  for (const name of ['lang', 'theme']) {
    const value = params.get(name);
    if (value !== null) kept.set(name, value);
  }
  for (const [name, value] of Object.entries(more)) kept.set(name, value);
  const query = kept.toString();
  return `#${path}${query === '' ? '' : `?${query}`}`;
}

/**
 * Sets parameters of the address; null takes one out. The history keeps one
 * entry, because a slider passes a hundred values.
 * @param {Record<string, string | null>} changes
 */
export function set(changes) {
  const { path, params } = address();
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) params.delete(name);
    else params.set(name, value);
  }
  const query = params.toString();
  const hash = `#${path}${query === '' ? '' : `?${query}`}`;
  if (hash === location.hash) return;
  history.replaceState(null, '', hash);
  tell();
}

function tell() {
  const root = document.documentElement;
  root.lang = lang() === 'zh' ? 'zh-CN' : 'en';
  const theme = chosenTheme();
  if (theme !== null) root.dataset.theme = theme;
  else delete root.dataset.theme;
  listeners.forEach((listener) => listener());
}

addEventListener('hashchange', tell);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', tell);
tell();

/** @returns {Lang} */
export function lang() {
  const asked = address().params.get('lang');
  if (asked === 'zh' || asked === 'en') return asked;
  return page.lang ?? 'en';
}

/** The theme that the address asks for; null where it leaves it to the system. */
function chosenTheme() {
  const theme = address().params.get('theme');
  return theme === 'dark' || theme === 'light' ? theme : null;
}

/** Whether the page is dark now. */
export function isDark() {
  const theme = chosenTheme();
  if (theme !== null) return theme === 'dark';
  return matchMedia('(prefers-color-scheme: dark)').matches;
}

/**
 * Draws a component anew whenever the address or the theme changes; gives the
 * parameters.
 */
export function useAddress() {
  const [, turn] = useState(0);
  useEffect(() => {
    const listener = () => turn((count) => count + 1);
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
    };
  }, []);
  return address();
}

/** The theme in force, for what is drawn and not styled. */
export function useTheme() {
  useAddress();
  return isDark() ? 'dark' : 'light';
}

/**
 * The words of one text in the page's language.
 * @param {Text} text
 */
export function pick(text) {
  return text[lang()];
}

/**
 * A sentence of the catalogue with its gaps filled.
 * @param {string} key
 * @param {Record<string, string | number>} [gaps]
 */
export function say(key, gaps = {}) {
  const text = page.words[key];
  // A key that is missing is a bug that a test looks for; readers get the key.
  const words = text === undefined ? key : pick(text);
  return words.replace(/\{(\w+)\}/g, (gap, name) => String(gaps[name] ?? gap));
}
