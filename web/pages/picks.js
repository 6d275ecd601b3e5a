// Runs that are ticked in a list, to be compared.

import {element} from './dom.js';

const SINGLE = 8;  // runs that are compared one by one; more by how their numbers spread
const MOST = 100;
const MOST_LETTERS = 6000;  // of names in an address; filters choose more runs

export class Picks {
  constructor() {
    this.names = [];  // in the order in which they were ticked: the first is what others are compared with
  }

  // A box for a run that has ended. `name` is what the comparison is asked for.
  box(name, label, state) {
    if (state === 'running') return '';
    ++this.boxes;
    const focused = this.focused === name;
    const box = element('input', {type: 'checkbox', 'aria-label': `Compare ${label}`});
    box.checked = this.names.includes(name);
    box.dataset.pick = name;
    if (focused) this.toFocus = box;
    box.addEventListener('change', () => {
      this.names = this.names.filter((one) => one !== name);
      if (box.checked) this.names.push(name);
      this.update();
    });
    return box;
  }

  // Before the boxes of a list, which call `update` when they are all there.
  bar() {
    this.boxes = 0;
    this.toFocus = null;
    this.focused = document.activeElement && document.activeElement.dataset.pick;
    this.link = element('a', {class: 'button'}, '');
    this.text = element('span', {});
    this.element = element('div', {class: 'picks', role: 'status'}, this.link, this.text);
    return this.element;
  }

  update() {
    const count = this.names.length;
    this.element.hidden = this.boxes === 0;
    // A list that is read again has new boxes.
    if (this.toFocus) this.toFocus.focus();
    this.toFocus = null;
    const names = this.names.map(encodeURIComponent).join(',');
    const fits = count <= MOST && names.length <= MOST_LETTERS;
    const enough = count >= 2 && fits;
    this.link.textContent = `Compare ${count} runs`;
    this.link.hidden = !enough;
    if (enough) this.link.href = '#/diff?profiles=' + names;
    this.text.textContent = count === 0 ? 'Tick runs to compare them.'
                            : count === 1 ? 'Tick another run to compare it with this one.'
                            : !fits ? 'These are too many to tick: set filters, and compare all steps that pass them.'
                            : count > SINGLE ? 'The comparison shows how the numbers of these runs spread.'
                            : 'The first that was ticked is what the others are compared with.';
  }
}
