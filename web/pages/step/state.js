// What of a step is looked at: the range of time, the scope (all of the step, a node, a rank), and
// what the heatmap and the table show. It stands in the address (#/job/4711.0?range=...&node=n3),
// so that the address leads to the same view again.

const NAMES = {
  host: 'node',
  rank: 'rank',
  metric: 'metric',
  by: 'by',
  shade: 'shade',
  scale: 'scale',
  sort: 'sort'
};

// Of those that have few values; what is none of them is the default.
const KNOWN = {
  shade: ['mean', 'max', 'min'],
  scale: ['zero']
};

const MOST_TIME = 8.64e12;  // s: what a Date holds

const pair = (text, between) => {
  const [from, to] = (text || '').split(between).map(Number);
  return to > from && from >= 0 && to <= MOST_TIME ? [from, to] : null;
};

export class State {
  constructor(hash) {
    const [path, text] = hash.split('?');
    const query = new URLSearchParams(text);
    this.path = path;
    this.range = pair(query.get('range'), '~');  // s since 1970; null: the whole step
    this.rows = pair(query.get('rows'), '~');    // of the heatmap, by index, without the last
    if (!this.rows?.every(Number.isSafeInteger)) this.rows = null;
    for (const [own, name] of Object.entries(NAMES)) {
      const value = query.get(name) || '';
      this[own] = KNOWN[own]?.includes(value) === false ? '' : value;
    }
  }

  address() {
    const query = new URLSearchParams();
    if (this.range) query.set('range', this.range.map((time) => Number(time.toFixed(3))).join('~'));
    if (this.rows) query.set('rows', this.rows.join('~'));
    for (const [own, name] of Object.entries(NAMES))
      if (this[own]) query.set(name, this[own]);
    const text = query.toString().replaceAll('%7E', '~');
    return text ? this.path + '?' + text : this.path;
  }

  // `back`: the browser's Back leads to what was shown before.
  change(values, back = false) {
    Object.assign(this, values);
    const address = this.address();
    if (address === location.hash) return;
    history[back ? 'pushState' : 'replaceState'](null, '', address);
  }

  // Of a question about series.
  times() {
    return this.range ? {start: ms(this.range[0]), end: ms(this.range[1])} : {};
  }
}

// As the endpoints take times.
const ms = (time) => String(Math.round(time * 1000));
