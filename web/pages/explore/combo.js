// A text field with suggestions, by mouse and by keyboard (ARIA's combobox with a listbox).

import {element} from '../dom.js';

const MOST = 60;
let made = 0;

export class Combo {
  // `suggest()` gives or promises [{value, about, html title}]; `commit(value)` is called when the
  // text has changed. What is typed may be none of the suggestions.
  constructor({label, value = '', placeholder = '', className = '', suggest, commit, pick = false}) {
    this.suggest = suggest;
    this.commit = commit;
    this.pick = pick;  // only suggestions can be taken, and the field is empty afterwards
    this.value = value;
    this.active = -1;
    this.shown = [];
    const id = `combo-${++made}`;
    this.input = element('input', {type: 'text', id, role: 'combobox', 'aria-autocomplete': 'list',
        'aria-expanded': 'false', 'aria-controls': `${id}-list`, 'aria-label': label, placeholder,
        autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false', class: className});
    this.input.value = value;
    this.list = element('ul', {id: `${id}-list`, role: 'listbox', 'aria-label': label, hidden: true});
    this.element = element('span', {class: 'combo'}, this.input, this.list);
    this.input.addEventListener('input', () => this.open(this.input.value));
    this.input.addEventListener('click', () => { if (this.list.hidden) this.open(''); });
    this.input.addEventListener('keydown', (event) => this.onKey(event));
    this.input.addEventListener('blur', () => this.leave());
    this.list.addEventListener('mousedown', (event) => {
      event.preventDefault();  // the field keeps the focus
      const option = event.target.closest('[role=option]');
      if (option) this.take(this.shown[Number(option.dataset.at)].value);
    });
  }

  set(value) {
    this.value = value;
    this.input.value = value;
  }

  // All words of the text are in the name or in what it is about; names that begin so come first.
  async open(text) {
    const asked = this.asked = Symbol('asked');
    let all;
    try {
      all = await this.suggest();
    } catch {
      all = [];  // without suggestions it is a text field
    }
    if (asked !== this.asked || document.activeElement !== this.input) return;
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const found = all.filter(({value, about}) =>
        words.every((word) => `${value} ${about ?? ''}`.toLowerCase().includes(word)));
    const rank = ({value}) => (words.length && value.toLowerCase().startsWith(words[0]) ? 0 : 1);
    found.sort((a, b) => rank(a) - rank(b));
    this.shown = found.slice(0, MOST);
    const options = this.shown.map((one, i) => element('li', {
      role: 'option', id: `${this.list.id}-${i}`, 'data-at': String(i), 'aria-selected': 'false',
    }, element('b', {}, one.value), one.about ? element('span', {}, one.about) : null));
    const more = found.length - this.shown.length;
    if (more > 0) options.push(element('li', {class: 'more', 'aria-disabled': 'true'}, `${more} more: type to narrow`));
    if (found.length === 0) options.push(element('li', {class: 'more', 'aria-disabled': 'true'}, 'nothing fits'));
    this.list.replaceChildren(...options);
    this.list.hidden = false;
    this.input.setAttribute('aria-expanded', 'true');
    this.choose(this.pick && this.shown.length && words.length ? 0 : -1);
  }

  close() {
    this.asked = null;
    this.list.hidden = true;
    this.input.setAttribute('aria-expanded', 'false');
    this.choose(-1);
  }

  choose(i) {
    this.active = i;
    [...this.list.children].forEach((option, at) => {
      if (option.getAttribute('role') === 'option') option.setAttribute('aria-selected', String(at === i));
    });
    const option = this.list.children[i];
    if (option) option.scrollIntoView({block: 'nearest'});
    if (option) this.input.setAttribute('aria-activedescendant', option.id);
    else this.input.removeAttribute('aria-activedescendant');
  }

  onKey(event) {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      if (this.list.hidden) return this.open('');
      if (this.shown.length === 0) return undefined;
      const step = event.key === 'ArrowDown' ? 1 : -1;
      const from = this.active < 0 && step < 0 ? 0 : this.active;
      return this.choose((from + step + this.shown.length) % this.shown.length);
    }
    if (event.key === 'Enter') {
      event.preventDefault();
      const option = this.list.hidden ? null : this.shown[this.active];
      if (option || !this.pick) this.take(option ? option.value : this.input.value.trim());
      else this.takeFirst();
    }
    if (event.key === 'Escape' && !this.list.hidden) {
      event.preventDefault();
      this.close();
      this.input.value = this.value;
    }
    return undefined;
  }

  // Of what is typed, also where the suggestions have not come yet.
  async takeFirst() {
    const text = this.input.value.trim();
    if (!text) return;
    await this.open(text);
    if (this.input.value.trim() === text && this.shown.length) this.take(this.shown[0].value);
  }

  leave() {
    this.close();
    if (this.pick) this.input.value = '';
    else this.take(this.input.value.trim());
  }

  take(value) {
    this.close();
    if (this.pick) {
      this.input.value = '';
      this.commit(value);
      return;
    }
    this.input.value = value;
    if (value === this.value) return;
    this.value = value;
    this.commit(value);
  }
}
