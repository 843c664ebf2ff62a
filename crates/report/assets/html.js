// Markup in template literals. Whatever is put in is text or an element, never
// markup, so that nothing a server said can become part of the page.

import { h } from 'preact';
import htm from 'htm';

export const html = htm.bind(h);
