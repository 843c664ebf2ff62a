// What people say about a run: its tags and its note, read and changed where
// they stand.

import { html } from 'goodput/html';
import { useEffect, useRef, useState } from 'preact/hooks';
import { inWords, putNotes } from 'goodput/server';
import { say } from 'goodput/settings';

/** @typedef {import('goodput/server').Fault} Fault */
/** @typedef {import('goodput/server').Notes} Notes */

/**
 * A fault for the reader, read out when it appears.
 * @param {{fault: Fault | null}} props
 */
export function FaultWords({ fault }) {
  if (fault === null) return null;
  return html`<p class="fault" role="alert">${fault.error}
    ${fault.hint === '' ? null : html` <span class="soft">${fault.hint}</span>`}</p>`;
}

/**
 * Tags and note as they are kept.
 * @param {{notes: Notes}} props
 */
export function NotesShown({ notes }) {
  return html`${notes.tags.length === 0
      ? null
      : html`<ul class="tags" aria-label=${say('tags')}>
          ${notes.tags.map((tag) => html`<li key=${tag}>${tag}</li>`)}
        </ul>`}
    ${notes.note === '' ? null : html`<p class="note">${notes.note}</p>`}
    ${notes.notes_fault === null ? null : html`<p class="fault">${notes.notes_fault}</p>`}`;
}

/**
 * The form that changes them.
 * @param {{id: string, name: string, notes: Notes,
 *   done: (notes: Notes | null) => void}} props
 */
export function NotesForm({ id, name, notes, done }) {
  const [fault, setFault] = useState(/** @type {Fault | null} */ (null));
  const [busy, setBusy] = useState(false);
  const tags = useRef(/** @type {HTMLInputElement | null} */ (null));
  const note = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  useEffect(() => tags.current?.focus(), []);
  const save = async (/** @type {Event} */ event) => {
    event.preventDefault();
    setBusy(true);
    const given = {
      tags: (tags.current?.value ?? '').split(/[,，]/).map((tag) => tag.trim()).filter((tag) => tag !== ''),
      note: note.current?.value ?? '',
    };
    try {
      done({ ...(await putNotes(id, given)), notes_fault: null });
    } catch (refused) {
      setFault(inWords(refused));
      setBusy(false);
    }
  };
  const escape = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === 'Escape') done(null);
  };
  return html`<form class="notes-form" aria-label=${say('edit_of', { run: name })}
    onSubmit=${save} onKeyDown=${escape}>
    <label>${say('tags_label')}
      <input type="text" name="tags" ref=${tags} defaultValue=${notes.tags.join(', ')} autocomplete="off" />
    </label>
    <label>${say('note_label')}
      <textarea name="note" rows="4" maxlength="4000" ref=${note} defaultValue=${notes.note}></textarea>
    </label>
    <${FaultWords} fault=${fault} />
    <p class="buttons">
      <button type="submit" disabled=${busy}>${say('save')}</button>
      <button type="button" onClick=${() => done(null)}>${say('cancel')}</button>
    </p>
  </form>`;
}
