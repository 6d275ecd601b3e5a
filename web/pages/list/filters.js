// The controls above the list. `go` is told of a new query, and whether it goes on with the one
// before (a text that is being typed), so that it makes no step of its own for the back button.

import {element} from '../dom.js';
import {SIZES, SORTS, SPANS, STATES} from './query.js';

const TYPED_MS = 250;

function labelled(text, control, kind = '') {
  return element('label', {class: 'field ' + kind}, element('span', {}, text), control);
}

function select(options, attributes = {}) {
  return element('select', attributes,
                 ...options.map(([value, text]) => element('option', {value}, text)));
}

const two = (number) => String(number).padStart(2, '0');

// Of a moment in ms, as an input of type datetime-local writes it.
function inputTime(text) {
  if (!/^\d{11,}$/.test(text)) return '';
  const date = new Date(Number(text));
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}T` +
         `${two(date.getHours())}:${two(date.getMinutes())}`;
}

export class Filters {
  constructor(go) {
    this.go = go;
    this.timer = 0;
    this.typing = null;  // the input whose text is being typed
    this.inputs = {};
    const text = (name, attributes) => {
      const input = element('input', {autocomplete: 'off', spellcheck: 'false', maxlength: '400',
                                      ...attributes});
      this.inputs[name] = input;
      input.addEventListener('input', () => this.typed(name, input));
      input.addEventListener('blur', () => this.settle());
      return input;
    };
    const chosen = (name, options) => {
      const control = select(options);
      this.inputs[name] = control;
      control.addEventListener('change', () => this.change({[name]: control.value}));
      return control;
    };
    const moment = (name) => {
      const input = element('input', {type: 'datetime-local'});
      input.addEventListener('change', () => this.change(
          {[name]: input.value ? String(new Date(input.value).getTime()) : ''}));
      return input;
    };
    const search = text('search', {type: 'search', class: 'search',
                                   placeholder: 'step, name, user, command, node or tag'});
    const state = chosen('state', [['', 'any'], ...STATES.map((one) => [one, one.replaceAll('_', ' ')])]);
    this.span = select([['', 'any time'], ...SPANS, ['custom', 'from \u2013 to \u2026']]);
    this.span.addEventListener('change', () => this.onSpan());
    this.from = moment('since');
    this.to = moment('until');
    this.tag = element('input', {type: 'text', placeholder: 'NAME or NAME=VALUE', autocomplete: 'off',
                                 spellcheck: 'false', maxlength: '321'});
    this.sort = select(SORTS.flatMap(([key, name, first, last]) =>
        [[key, `${name}, ${first} first`], [key + ' reverse', `${name}, ${last} first`]]));
    this.sort.addEventListener('change', () => this.onSort());
    this.rows = select(SIZES.map((size) => [String(size), String(size)]));
    this.rows.addEventListener('change', () => this.change({rows: Number(this.rows.value)}));
    this.more = element('details', {class: 'more-filters'},
        element('summary', {}, 'More filters, order'),
        element('div', {class: 'fields'},
            labelled('User', text('user', {type: 'text'})),
            labelled('Partition', text('partition', {type: 'text'})),
            labelled('Node', text('node', {type: 'text'})),
            labelled('Level', chosen('level', [['', 'any'], ...[1, 2, 3, 4].map((n) => [String(n), String(n)])])),
            labelled('Tag', this.tag), labelled('From', this.from), labelled('To', this.to),
            labelled('Order', this.sort), labelled('Rows', this.rows)));
    this.form = element('form', {role: 'search', 'aria-label': 'Steps', class: 'filters'},
        labelled('Search', search, 'wide-field'), labelled('State', state),
        labelled('Time', this.span), this.more);
    // Enter: at once, and a tag that is written becomes a filter.
    this.form.addEventListener('submit', (event) => {
      event.preventDefault();
      const tag = this.tag.value.trim();
      this.tag.value = '';
      this.settle();
      if (tag) this.go(this.query.withTag(tag), false);
    });
    // A form with several inputs is sent by Enter if it has a button.
    this.form.append(element('button', {type: 'submit', class: 'sr-only', tabindex: '-1'}, 'Apply'));
  }

  show(query) {
    const first = !this.query;
    this.query = query;
    for (const [name, input] of Object.entries(this.inputs)) {
      if (input !== this.typing) input.value = query.texts[name];
    }
    const {since, until} = query.texts;
    this.from.value = inputTime(since);
    this.to.value = inputTime(until);
    const known = SPANS.some(([span]) => span === since) && !until;
    const given = since || until;
    this.span.value = known ? since : given ? 'custom' : '';
    this.sort.value = query.sort + (query.reverse ? ' reverse' : '');
    this.rows.value = String(query.rows);
    const hidden = ['user', 'partition', 'node', 'level'].some((name) => query.texts[name]);
    if (first && (hidden || (given && !known))) this.more.open = true;
  }

  change(changes) {
    this.settle();
    this.go(this.query.with(changes), false);
  }

  typed(name, input) {
    const goes_on = this.typing === input;
    this.typing = input;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.timer = 0;
      this.go(this.query.with({[name]: input.value.trim()}), this.replaces);
      this.replaces = true;
    }, TYPED_MS);
    if (!goes_on) this.replaces = false;
  }
  // What is being typed counts now.
  settle() {
    const input = this.typing;
    this.typing = null;
    if (!this.timer) return;
    clearTimeout(this.timer);
    this.timer = 0;
    const name = Object.keys(this.inputs).find((one) => this.inputs[one] === input);
    this.go(this.query.with({[name]: input.value.trim()}), this.replaces);
  }

  // What is being typed counts no more: the address has another text.
  forget() {
    clearTimeout(this.timer);
    this.timer = 0;
    this.typing = null;
  }

  onSpan() {
    const span = this.span.value;
    if (span !== 'custom') {
      this.change({since: span, until: ''});
      return;
    }
    this.more.open = true;
    this.from.focus();
  }

  onSort() {
    const [sort, reverse] = this.sort.value.split(' ');
    this.change({sort, reverse: reverse !== undefined});
  }
}
