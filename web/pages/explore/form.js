// The menus of one query.

import {element} from '../dom.js';
import {Combo} from './combo.js';
import {letter, MOST_QUERIES} from './state.js';

const INTERVALS = [
  ['auto', 'as fine as a plot can show'], ['none', 'every tick'], ['1s', ''], ['2s', ''], ['5s', ''],
  ['10s', ''], ['30s', ''], ['1m', ''], ['5m', ''], ['10m', ''], ['30m', ''], ['1h', ''], ['1d', ''],
  ['1dc', 'days of the calendar, UTC'], ['0all', 'the whole range as one point'],
];
const RATES = [['', 'none'], ['rate', 'per second'], ['counter', 'per second, falls are overflows'],
               ['drop', 'per second, falls left out']];
const FILLS = [['none', 'none'], ['nan', 'NaN'], ['null', 'null'], ['zero', 'zero']];

// `names` are values or [value, words]; a value that is none of them stands as it is.
function select(name, value, names, change) {
  const known = names.map((one) => (Array.isArray(one) ? one : [one, one]));
  if (!known.some(([one]) => one === value)) known.push([value, value]);
  const made = element('select', {'aria-label': name}, ...known.map(([one, words]) =>
      element('option', {value: one, selected: one === value}, words)));
  made.addEventListener('change', () => change(made.value));
  return made;
}

const field = (name, ...content) => element('div', {class: 'field'}, element('span', {class: 'name'}, name), ...content);

export function button(text, label, click, attributes = {}) {
  const made = element('button', {type: 'button', class: 'button', ...(label ? {'aria-label': label} : {}),
                                  ...attributes}, text);
  made.addEventListener('click', () => click(made));
  return made;
}

export class QueryForm {
  // `owner` has jobs(), names, changed() after something was changed, and add, copy, derive and remove
  // for whole queries.
  constructor(owner, query, i, words) {
    this.owner = owner;
    this.query = query;
    this.letter = letter(i);
    this.words = words;  // {aggregators, filters}
    this.about = element('p', {class: 'about'});
    this.groups = element('fieldset', {class: 'groups'});
    this.filters = element('div', {class: 'filters'});
    this.error = element('p', {class: 'query-error', role: 'alert', hidden: true});
    this.notes = element('p', {class: 'query-notes', hidden: true});
    this.keys = new Map();
    this.element = element('section', {class: 'query', 'data-query': this.letter, 'aria-label': `Query ${this.letter}`},
        ...this.build());
    this.showKeys();
    this.showFilters();
    this.showAbout();
    this.loadKeys();
  }

  build() {
    const {query} = this;
    const functions = this.words.aggregators.filter((one) => one !== 'none');
    this.metric = new Combo({label: `Metric of query ${this.letter}`, value: query.metric, className: 'metric',
        placeholder: 'search metrics', suggest: () => this.owner.names.metrics(this.owner.jobs()),
        commit: (value) => this.setMetric(value)});
    this.interval = new Combo({label: `Interval of query ${this.letter}`, value: query.interval || 'none',
        className: 'interval', suggest: () => INTERVALS.map(([value, about]) => ({value, about})),
        commit: (value) => this.change({interval: value === 'none' ? '' : value || 'auto'})});
    this.rate = select(`Rate of query ${this.letter}`, query.rate, RATES, (rate) => {
      this.change({rate});
      this.showOther();
    });
    this.function = select(`Function of query ${this.letter}`, query.function, functions,
                           (value) => this.change({function: value}));
    this.hide = button(query.hidden ? 'Show' : 'Hide', `Hide query ${this.letter}`, () => {
      this.change({hidden: !query.hidden});
      this.showHidden();
    });
    const full = this.owner.count() >= MOST_QUERIES;
    this.other = button('', '', () => this.owner.derive(query), {disabled: full});
    this.showHidden();
    this.showOther();
    return [
      element('div', {class: 'head'}, element('b', {class: 'letter'}, this.letter), this.metric.element,
          element('span', {class: 'buttons'}, this.hide, this.other,
              button('Copy', `Copy query ${this.letter}`, () => this.owner.copy(query), {disabled: full}),
              button('Remove', `Remove query ${this.letter}`, () => this.owner.remove(query)))),
      this.about,
      element('div', {class: 'fields'},
          field('Aggregator', select(`Aggregator of query ${this.letter}`, query.aggregator, this.words.aggregators,
                                     (aggregator) => this.change({aggregator}))),
          field('Rate', this.rate),
          field('Interval', this.interval.element),
          field('Function', this.function),
          field('Fill', select(`Fill of query ${this.letter}`, query.fill, FILLS, (fill) => this.change({fill})))),
      this.groups, this.filters, this.notes, this.error,
    ];
  }

  change(what) {
    Object.assign(this.query, what);
    this.owner.changed();
  }

  // What fits the kind of metric, as the page of a step draws it.
  setMetric(metric) {
    const info = this.owner.names.info(this.owner.jobs(), metric);
    const counts = info && info.type !== 'gauge';
    Object.assign(this.query, {metric, by: [], filters: []},
                  info ? {rate: counts ? 'rate' : '', function: counts ? 'max' : 'avg'} : {});
    this.rate.value = this.query.rate;
    this.function.value = this.query.function;
    this.showOther();
    this.keys = new Map();
    this.showKeys();
    this.showFilters();
    this.showAbout();
    this.loadKeys();
    this.owner.changed();
  }

  showHidden() {
    this.hide.setAttribute('aria-pressed', String(this.query.hidden));
    this.hide.textContent = this.query.hidden ? 'Show' : 'Hide';
    if (this.element) this.element.classList.toggle('off', this.query.hidden);
  }

  // A query of values has its derivative as another one, and the other way round.
  showOther() {
    const {rate} = this.query;
    this.other.textContent = rate ? 'Value' : 'Derivative';
    this.other.setAttribute('aria-label', rate ? `Value of query ${this.letter}, beside it`
                                               : `Derivative of query ${this.letter}, its change per second, beside it`);
  }

  showAbout() {
    const info = this.owner.names.info(this.owner.jobs(), this.query.metric);
    const unit = info && info.unit !== '1' ? `, in ${info.unit}` : '';
    this.about.textContent = info ? `${info.help} A ${info.type}${unit}.` : '';
  }

  // Answers about another metric or about other steps, which come late, are dropped.
  async loadKeys() {
    const asked = this.asked = {};
    this.groups.setAttribute('aria-busy', 'true');
    let keys = null;
    try {
      keys = await this.owner.names.tagsOf(this.owner.jobs(), this.query.metric);
    } catch {
      // The query itself says what is wrong with its names.
    }
    if (asked !== this.asked) return;
    this.groups.removeAttribute('aria-busy');
    if (!keys) return;
    this.keys = keys;
    this.showKeys();
    this.owner.keysCame();
  }

  showKeys() {
    const focused = this.groups.contains(document.activeElement) ? document.activeElement.value : null;
    const all = [...new Set([...this.keys.keys(), ...this.query.by])];
    const boxes = all.map((key) => {
      const box = element('input', {type: 'checkbox', value: key});
      box.checked = this.query.by.includes(key);
      box.addEventListener('change', () => {
        const by = this.query.by.filter((one) => one !== key);
        this.change({by: box.checked ? [...by, key] : by});
      });
      const count = this.keys.get(key)?.length;
      return element('label', {class: 'switch'}, box, key, count ? element('span', {class: 'count'}, ` ${count}`) : '');
    });
    const explicit = element('input', {type: 'checkbox', value: '', class: 'explicit'});
    explicit.checked = this.query.explicit;
    explicit.addEventListener('change', () => this.change({explicit: explicit.checked}));
    this.groups.replaceChildren(element('legend', {}, 'One line for each'), ...boxes,
        boxes.length ? '' : element('span', {class: 'none'}, 'no tags are known'),
        element('label', {class: 'switch', title: 'Only series that have no other tags than those filtered or grouped by'},
                explicit, 'no other tags'));
    const again = focused && [...this.groups.querySelectorAll('input')].find((box) => box.value === focused);
    if (again) again.focus();
  }

  showFilters() {
    const add = button('Add filter', `Add filter to query ${this.letter}`, () => {
      this.query.filters.push({type: 'literal_or', key: '', pattern: ''});
      this.showFilters();
      this.filters.querySelector('.filter:last-of-type input').focus();
    });
    this.filters.replaceChildren(...this.query.filters.map((filter, i) => this.filterRow(filter, i)), add);
  }

  filterRow(filter, i) {
    const named = `of filter ${i + 1} of query ${this.letter}`;
    const pattern = new Combo({label: `Pattern ${named}`, value: filter.pattern, className: 'pattern',
        placeholder: 'value, or a|b', suggest: () => (this.keys.get(filter.key) ?? []).map((value) => ({value})),
        commit: (value) => this.changeFilter(filter, {pattern: value})});
    const key = new Combo({label: `Tag ${named}`, value: filter.key, className: 'key', placeholder: 'tag',
        suggest: () => [...this.keys.keys()].map((value) => ({value})),
        commit: (value) => this.changeFilter(filter, {key: value})});
    const types = Object.entries(this.words.filters).map(([type, {description}]) => [type, description]);
    const type = select(`Kind ${named}`, filter.type, types.map(([one]) => one), (value) => {
      this.changeFilter(filter, {type: value});
      pattern.input.disabled = value === 'not_key';
      type.title = this.words.filters[value]?.description ?? '';
    });
    type.title = this.words.filters[filter.type]?.description ?? '';
    pattern.input.disabled = filter.type === 'not_key';
    const remove = button('\u00d7', `Remove filter ${i + 1} of query ${this.letter}`, () => {
      this.query.filters.splice(this.query.filters.indexOf(filter), 1);
      this.showFilters();
      this.filters.lastChild.focus();
      this.owner.changed();
    });
    return element('div', {class: 'filter'}, key.element, type, pattern.element, remove);
  }

  changeFilter(filter, what) {
    Object.assign(filter, what);
    this.owner.changed();
  }

  tell(error, notes) {
    this.error.textContent = error;
    this.error.hidden = !error;
    this.notes.textContent = notes.join('; ');
    this.notes.hidden = notes.length === 0;
  }
}
