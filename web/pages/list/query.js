// What the list shows, as it stands in the address behind #/?: filters, order and page. The names
// are those of /api/v1/steps, except that a page has a number and rows instead of an offset.

import {clock} from '../when.js';

const TEXTS = ['search', 'state', 'since', 'until', 'user', 'partition', 'node', 'level'];
export const SIZES = [25, 50, 100, 200];
const ROWS = 50;
const MOST_OFFSET = 1e6;  // of the server

export const STATES = ['running', 'completed', 'failed', 'out_of_memory', 'cancelled', 'timeout',
                       'preempted', 'node_fail', 'lost', 'unknown'];
export const SPANS = [['1h', 'last hour'], ['24h', 'last 24 hours'], ['7d', 'last 7 days'],
                      ['30d', 'last 30 days'], ['365d', 'last year']];
// With what comes first.
export const SORTS = [
  ['start', 'start', 'newest', 'oldest'], ['time', 'duration', 'longest', 'shortest'],
  ['use', 'CPU use', 'most', 'least'], ['cpu', 'CPU time', 'most', 'least'],
  ['mem', 'memory', 'most', 'least'], ['nodes', 'nodes', 'most', 'fewest'],
  ['tasks', 'tasks', 'most', 'fewest'], ['state', 'state', 'running', 'lost'],
  ['read', 'bytes read', 'most', 'least'], ['written', 'bytes written', 'most', 'least'],
  ['received', 'bytes received', 'most', 'least'], ['sent', 'bytes sent', 'most', 'least'],
  ['energy', 'energy', 'most', 'least'], ['size', 'size of profile', 'largest', 'smallest'],
];

const isMoment = (text) => /^\d{11,}$/.test(text);
const spanText = (text) => (SPANS.find(([span]) => span === text) || ['', `last ${text}`])[1];

function wholeNumber(text, fallback, most) {
  const number = Number(text);
  return Number.isInteger(number) && number >= 1 && number <= most ? number : fallback;
}

export class ListQuery {
  // `text`: what is behind the question mark.
  constructor(text = '') {
    const given = new URLSearchParams(text);
    this.texts = Object.fromEntries(TEXTS.map((name) => [name, given.get(name) || '']));
    this.tags = [...new Set(given.getAll('tag').filter(Boolean))];
    this.sort = given.get('sort') || 'start';
    this.reverse = given.get('reverse') === 'true';
    this.rows = wholeNumber(given.get('rows'), ROWS, 1000);
    this.page = wholeNumber(given.get('page'), 1, Math.floor(MOST_OFFSET / this.rows) + 1);
  }

  // What is not given to it is as it was, but the page is the first.
  with(changes) {
    const next = new ListQuery();
    Object.assign(next, this, {texts: {...this.texts}, page: 1});
    for (const [name, value] of Object.entries(changes)) {
      if (TEXTS.includes(name)) next.texts[name] = value;
      else next[name] = value;
    }
    return next;
  }
  withTag(tag) { return this.tags.includes(tag) ? this : this.with({tags: [...this.tags, tag]}); }

  filters() {
    const pairs = TEXTS.filter((name) => this.texts[name]).map((name) => [name, this.texts[name]]);
    return [...pairs, ...this.tags.map((tag) => ['tag', tag])];
  }
  order() {
    return [...(this.sort !== 'start' ? [['sort', this.sort]] : []),
            ...(this.reverse ? [['reverse', 'true']] : [])];
  }
  hash() {
    const pairs = [...this.filters(), ...this.order()];
    if (this.rows !== ROWS) pairs.push(['rows', String(this.rows)]);
    if (this.page !== 1) pairs.push(['page', String(this.page)]);
    return pairs.length ? '#/?' + new URLSearchParams(pairs) : '#/';
  }
  forServer() {
    return new URLSearchParams([...this.filters(), ...this.order(), ['limit', String(this.rows)],
                                ['offset', String((this.page - 1) * this.rows)]]);
  }

  // The filters in words, each with the query without it.
  chips() {
    const chips = TEXTS.filter((name) => this.texts[name]).map((name) => {
      const value = this.texts[name];
      const words = isMoment(value) ? clock(value / 1000)
                    : name === 'state' ? value.replaceAll('_', ' ') : value;
      const text = name === 'since' ? (isMoment(value) ? `since ${words}` : spanText(value))
                                    : `${name} ${words}`;
      return {text, without: this.with({[name]: ''})};
    });
    return [...chips, ...this.tags.map((tag) => ({
      text: `tag ${tag}`, without: this.with({tags: this.tags.filter((one) => one !== tag)}),
    }))];
  }
  // The same order and rows without filters.
  cleared() {
    return this.with({...Object.fromEntries(TEXTS.map((name) => [name, ''])), tags: []});
  }
}
