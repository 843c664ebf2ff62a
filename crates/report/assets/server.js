// What the page asks its own server for. It asks nobody else.

import { useEffect, useState } from 'preact/hooks';
import { page, say } from 'goodput/settings';

/** @typedef {import('goodput/page').Run} Run */

/**
 * What went wrong, in words for the reader.
 * @typedef {{error: string, hint: string}} Fault
 */

/**
 * What people wrote about a run; `notes_fault` says why it cannot be read.
 * @typedef {{tags: string[], note: string, notes_fault: string | null}} Notes
 */

/**
 * A run of the list. The figures are there when it is done.
 * @typedef {Notes & {
 *   id: string,
 *   made_ms: number,
 *   size_bytes: number,
 *   state: 'done' | 'writing' | 'cut_off' | 'unreadable',
 *   reason: string | null,
 *   target?: string,
 *   model?: string | null,
 *   simulated?: boolean,
 *   load?: string,
 *   verdict?: string | null,
 *   ok?: number | null,
 *   failed?: number | null,
 *   ttft_p50_ms?: number | null,
 *   ttft_p99_ms?: number | null,
 *   tpot_p50_ms?: number | null,
 *   output_tok_s?: number | null,
 *   attainment?: number | null,
 * }} Line
 */

/**
 * A run with what is known besides its figures.
 * @typedef {Notes & {state: Line['state'], run: Run}} Told
 */

/** Runs that the page holds at most; one of a million requests takes some MB. */
const HELD = 12;

/**
 * Asks the server; throws a fault in words.
 * @param {'GET' | 'PUT' | 'POST'} method
 * @param {string} path
 * @param {unknown} [body]
 * @returns {Promise<any>}
 */
async function ask(method, path, body) {
  let answer;
  try {
    answer = await fetch(path, {
      method,
      cache: 'no-store',
      redirect: 'error',
      ...(body === undefined
        ? {}
        : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    });
  } catch {
    throw { error: say('server_gone'), hint: say('server_gone_hint') };
  }
  const value = await answer.json().catch(() => null);
  if (answer.ok && value !== null) return value;
  throw { error: value?.error ?? `HTTP ${answer.status}`, hint: value?.hint ?? '' };
}

/** @param {string} id */
const at = (id) => `/api/runs/${encodeURIComponent(id)}`;

/** @returns {Promise<{runs: Line[], of: number}>} */
export const fetchRuns = () => ask('GET', '/api/runs');

/**
 * @param {string} id
 * @param {{tags: string[], note: string}} notes
 * @returns {Promise<{tags: string[], note: string}>}
 */
export const putNotes = (id, notes) => ask('PUT', `${at(id)}/notes`, notes);

/** @param {string} id */
export const moveToTrash = (id) => ask('POST', `${at(id)}/trash`);

/**
 * One run. The page then holds it, and the playground finds it there.
 * @param {string} id
 * @returns {Promise<Told>}
 */
export async function fetchRun(id) {
  /** @type {Told} */
  const told = await ask('GET', at(id));
  // A run is known by its directory here: a copy has the id of its original.
  const named = told.run.id !== id;
  const run = { ...told.run, id, name: named ? id : told.run.name };
  const others = page.runs.filter((one) => one.id !== id);
  page.runs.splice(0, page.runs.length, run, ...others.slice(0, HELD - 1));
  return { ...told, run };
}

/**
 * What a promise came to. An answer to an old question is dropped.
 * @template T
 * @param {() => Promise<T>} load
 * @param {unknown[]} about what the question depends on
 * @returns {{value: T | null, fault: Fault | null, again: () => void}}
 */
export function useAnswer(load, about) {
  const [state, setState] = useState(
    /** @type {{value: T | null, fault: Fault | null}} */ ({ value: null, fault: null }),
  );
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    let wanted = true;
    setState((old) => ({ value: turn === 0 ? null : old.value, fault: null }));
    load().then(
      (value) => wanted && setState({ value, fault: null }),
      (fault) => wanted && setState({ value: null, fault: inWords(fault) }),
    );
    return () => {
      wanted = false;
    };
  }, [...about, turn]);
  return { ...state, again: () => setTurn((count) => count + 1) };
}

/**
 * @param {any} fault
 * @returns {Fault}
 */
export function inWords(fault) {
  return { error: String(fault?.error ?? fault), hint: String(fault?.hint ?? '') };
}
