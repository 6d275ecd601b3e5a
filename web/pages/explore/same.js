// The questions of the page in other languages, each to be copied.

import {element} from '../dom.js';
import {promqlText} from './promql.js';
import {curlText, grafanaText, pythonText} from './texts.js';

const KINDS = [['curl', 'curl'], ['grafana', 'OpenTSDB, for Grafana (m=)'], ['promql', 'PromQL'],
               ['python', 'Python, within the step']];

// Where the page came by plain HTTP from another machine there is no clipboard to write to.
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const focused = document.activeElement;
    const area = element('textarea', {'aria-hidden': 'true', class: 'copied'});
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
    if (focused) focused.focus();
  }
}

export function copyButton(text, label) {
  const words = 'Copy';
  const button = element('button', {type: 'button', class: 'button copy', 'aria-label': label}, words);
  const said = element('span', {class: 'unseen', role: 'status'});
  button.addEventListener('click', async () => {
    await copy(text());
    button.textContent = 'Copied';
    said.textContent = 'Copied';
    setTimeout(() => {
      button.textContent = words;
      said.textContent = '';
    }, 1500);
  });
  return element('span', {}, button, said);
}

export class Same {
  constructor() {
    this.blocks = new Map(KINDS.map(([kind, title]) => [kind, this.block(kind, title)]));
    this.element = element('section', {class: 'same', 'aria-label': 'The same for other programs'},
        element('h2', {}, 'The same for other programs'),
        element('div', {class: 'blocks'}, ...[...this.blocks.values()].map(({box}) => box)));
  }

  block(kind, title) {
    const code = element('code');
    const notes = element('ul', {class: 'words'});
    const box = element('section', {'data-text': kind, 'aria-label': title},
        element('div', {class: 'head'}, element('h3', {}, title), copyButton(() => code.textContent, `Copy: ${title}`)),
        element('pre', {tabindex: '0', 'aria-label': title}, code), notes);
    return {box, code, notes};
  }

  draw(asked, profiles, infoOf, keysOf) {
    this.element.hidden = asked.queries.length === 0;
    if (this.element.hidden) return;
    const texts = {curl: curlText(asked), grafana: grafanaText(asked), promql: promqlText(asked, infoOf, keysOf),
                   python: pythonText(asked, profiles)};
    for (const [kind, {code, notes}] of this.blocks) {
      // What somebody has marked stays marked.
      if (code.textContent !== texts[kind].text) code.textContent = texts[kind].text;
      notes.replaceChildren(...texts[kind].notes.map((note) => element('li', {}, note)));
    }
  }
}
