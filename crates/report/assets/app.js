// The page of a report: the part of it that the address names.

import { html } from 'goodput/html';
import { mount } from 'goodput/frame';
import { Glossary } from 'goodput/glossary';
import { Playground } from 'goodput/playground';
import { Report } from 'goodput/report';
import { page, say, useAddress } from 'goodput/settings';

/** The parts of a page that holds its runs. */
const PARTS = [
  { path: '/', name: 'nav_report' },
  { path: '/playground', name: 'nav_playground' },
  { path: '/glossary', name: 'nav_glossary' },
];

function Body() {
  const { path } = useAddress();
  if (path === '/playground') return html`<${Playground} />`;
  if (path === '/glossary') return html`<${Glossary} />`;
  return html`<${Report} runs=${page.runs} />`;
}

mount({ parts: PARTS, Body, foot: () => say('footer', { version: page.version }) });
