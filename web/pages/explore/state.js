// What the explorer shows, as a value and as the parameters of its address (#/explore?...). The
// address has all of it: it can be kept, sent, and gone back to.
//
// `metric` begins a query; `agg`, `rate`, `down`, `by`, `where`, `explicit` and `hide` after it are
// that query's. `where` is TYPE:KEY:PATTERN.

export const MOST_STEPS = 8;
export const MOST_QUERIES = 12;
export const VIEWS = ['lines', 'stacked', 'table'];

export const newQuery = (metric = '') => ({metric, aggregator: 'avg', rate: '', interval: 'auto',
                                           function: 'avg', fill: 'none', by: [], filters: [],
                                           explicit: false, hidden: false});

// range.kind: 'step', the whole of it; 'part', from and to in seconds since its start; 'last', such
// as 5m until now; 'absolute', from and to in seconds since 1970.
export const newState = () => ({jobs: [], range: {kind: 'step'}, view: 'lines', queries: []});

const INTERVAL = /^([^-]*)-([^-]*)(?:-([^-]*))?$/;

function readDownsample(text, query) {
  const parts = text.match(INTERVAL);
  if (!parts) {
    query.interval = text === 'none' ? '' : text;
    return;
  }
  [, query.interval, query.function] = parts;
  query.fill = parts[3] || 'none';
}

function readFilter(text) {
  const [type, key, ...pattern] = text.split(':');
  return {type, key: key ?? '', pattern: pattern.join(':')};
}

const READ = {
  agg: (query, value) => { query.aggregator = value; },
  rate: (query, value) => { query.rate = value; },
  down: (query, value) => readDownsample(value, query),
  by: (query, value) => { if (!query.by.includes(value)) query.by.push(value); },
  where: (query, value) => query.filters.push(readFilter(value)),
  explicit: (query) => { query.explicit = true; },
  hide: (query) => { query.hidden = true; },
};

function readRange(parameters) {
  const number = (name) => {
    const text = parameters.get(name);
    return text === null || text === '' || !Number.isFinite(Number(text)) ? null : Number(text);
  };
  if (parameters.has('last')) return {kind: 'last', last: parameters.get('last')};
  if (number('start') !== null && number('end') !== null) {
    return {kind: 'absolute', from: number('start'), to: number('end')};
  }
  if (number('from') !== null && number('to') !== null) {
    return {kind: 'part', from: number('from'), to: number('to')};
  }
  return {kind: 'step'};
}

export function readState(text) {
  const parameters = new URLSearchParams(text);
  const state = newState();
  state.jobs = [...new Set(parameters.getAll('job'))].filter(Boolean).slice(0, MOST_STEPS);
  state.range = readRange(parameters);
  if (VIEWS.includes(parameters.get('view'))) state.view = parameters.get('view');
  for (const [name, value] of parameters) {
    if (name === 'metric') {
      if (state.queries.length === MOST_QUERIES) break;
      state.queries.push(newQuery(value));
    } else if (Object.hasOwn(READ, name) && state.queries.length) {
      READ[name](state.queries[state.queries.length - 1], value);
    }
  }
  return state;
}

function writeRange(range, out) {
  if (range.kind === 'last') out.append('last', range.last);
  if (range.kind === 'part') {
    out.append('from', range.from);
    out.append('to', range.to);
  }
  if (range.kind === 'absolute') {
    out.append('start', range.from);
    out.append('end', range.to);
  }
}

// "10s-avg-nan", or "" for none.
export function downsampleText(interval, query) {
  if (!interval) return '';
  return `${interval}-${query.function}` + (query.fill === 'none' ? '' : '-' + query.fill);
}

export function writeState(state) {
  const out = new URLSearchParams();
  for (const job of state.jobs) out.append('job', job);
  writeRange(state.range, out);
  if (state.view !== 'lines') out.append('view', state.view);
  for (const query of state.queries) {
    out.append('metric', query.metric);
    out.append('agg', query.aggregator);
    if (query.rate) out.append('rate', query.rate);
    out.append('down', downsampleText(query.interval, query) || 'none');
    for (const key of query.by) out.append('by', key);
    for (const one of query.filters) out.append('where', `${one.type}:${one.key}:${one.pattern}`);
    if (query.explicit) out.append('explicit', '1');
    if (query.hidden) out.append('hide', '1');
  }
  // What may stand in a fragment need not be escaped.
  return out.toString().replaceAll('%3A', ':').replaceAll('%2F', '/').replaceAll('%7C', '|');
}

export const letter = (i) => String.fromCharCode(65 + i);

// Those that are asked: [letter, query].
export const shown = (state) => state.queries.map((query, i) => [letter(i), query])
    .filter(([, query]) => query.metric && !query.hidden);
