// A query as PromQL, where there is an equivalent. Prometheus has what it scraped of
// /metrics?scope=node: one sample for each node, with the labels host and job.

import {lengthOf, lengthText} from './request.js';

// An address may name anything, such as 'constructor': these have no names but their own.
const AGGREGATORS = {__proto__: null, sum: 'sum', zimsum: 'sum', pfsum: 'sum', avg: 'avg', min: 'min', mimmin: 'min',
                     max: 'max', mimmax: 'max', count: 'count', dev: 'stddev'};
const OVER_TIME = {__proto__: null, avg: 'avg', sum: 'sum', zimsum: 'sum', pfsum: 'sum', min: 'min', mimmin: 'min', max: 'max',
                   mimmax: 'max', count: 'count', last: 'last', dev: 'stddev'};
const QUANTILES = {__proto__: null, p5: 0.05, p50: 0.5, p75: 0.75, p90: 0.9, p95: 0.95, p99: 0.99, p999: 0.999};
const INTERPOLATES = 'Between the values that there are, Prometheus\u2019 quantile lies elsewhere: it counts ' +
    'from 0 to n - 1, OpenTSDB\u2019s percentile to n + 1.';

const name = (text) => text.replace(/[^a-zA-Z0-9_:]/g, '_').replace(/^(?=\d)/, '_');
const label = (text) => text.replace(/[^a-zA-Z0-9_]/g, '_').replace(/^(?=\d)/, '_');
const string = (text) => JSON.stringify(text);
const literal = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
const alternatives = (pattern) => pattern.split('|').filter(Boolean);

function matchers({type, tagk, filter}) {
  const key = label(tagk);
  const any = alternatives(filter).map(literal).join('|');
  const glob = filter.split('*').map(literal).join('.*');
  switch (type) {
    case 'literal_or':
      return [alternatives(filter).length === 1 ? `${key}=${string(alternatives(filter)[0])}`
                                                : `${key}=~${string(any)}`];
    case 'iliteral_or':
      return [`${key}=~${string(`(?i:${any})`)}`];
    case 'not_literal_or':
      return [`${key}!=""`, `${key}!~${string(any)}`];
    case 'not_iliteral_or':
      return [`${key}!=""`, `${key}!~${string(`(?i:${any})`)}`];
    case 'wildcard':
      return [glob === '.*' ? `${key}!=""` : `${key}=~${string(glob)}`];
    case 'iwildcard':
      return [glob === '.*' ? `${key}!=""` : `${key}=~${string(`(?i:${glob})`)}`];
    case 'regexp':
      return [`${key}=~${string(`.*(?:${filter}).*`)}`];
    case 'not_key':
      return [`${key}=""`];
    default:
      return null;
  }
}

function selectorOf(json) {
  const all = [];
  for (const filter of json.filters) {
    const made = matchers(filter);
    if (!made) return {why: `there is no such filter, ${filter.type}`};
    all.push(...made);
  }
  return {text: name(json.metric) + (all.length ? `{${[...new Set(all)].join(', ')}}` : '')};
}

// "10s", also of what Prometheus has no unit for.
function duration(interval) {
  const ms = lengthOf(interval);
  return ms === null ? null : lengthText(ms);
}

// The selector downsampled, or as a rate.
function overTime(selector, asked, {query, interval}, type, notes) {
  const all = /^\d*all$/i.test(interval);
  const window = all ? lengthText(asked.end - asked.start) : interval ? duration(interval) : '1m';
  if (!window) {
    return {why: /c$/i.test(interval) ? `Prometheus has no intervals of the calendar such as ${interval}`
                                      : `${interval} is no interval`};
  }
  if (all) notes.push('Ask at the end of the range, as an instant.');
  if (interval || query.rate) notes.push('What is in brackets has to be so long that it holds two scrapes.');
  if (query.rate) {
    if (interval && !['last', 'max', 'avg'].includes(query.function)) {
      return {why: `a rate of values downsampled by ${query.function} has no equivalent`};
    }
    if (interval && query.function === 'avg') notes.push('A rate between means is smoother than rate().');
    if (query.rate !== 'rate') notes.push('rate() takes a fall as a new beginning at 0, not as an overflow.');
    if (type === 'gauge') return {text: `delta(${selector}[${window}]) / ${lengthOf(window) / 1e3}`};
    return {text: `rate(${selector}[${window}])`};
  }
  if (!interval) return {text: selector};
  if (QUANTILES[query.function]) {
    notes.push(INTERPOLATES);
    return {text: `quantile_over_time(${QUANTILES[query.function]}, ${selector}[${window}])`};
  }
  const over = OVER_TIME[query.function];
  if (!over) return {why: `PromQL has no function over time as the downsampling ${query.function}`};
  return {text: `${over}_over_time(${selector}[${window}])`};
}

function aggregate(json, query, inner, notes) {
  const {aggregator} = json;
  if (aggregator === 'none') return {text: inner};
  const by = query.by.length ? ` by (${query.by.map(label).join(', ')}) ` : '';
  if (aggregator === 'squareSum') return {text: `sum${by}((${inner}) ^ 2)`};
  if (QUANTILES[aggregator]) {
    notes.push(INTERPOLATES);
    return {text: `quantile${by}(${QUANTILES[aggregator]}, ${inner})`};
  }
  if (!AGGREGATORS[aggregator]) return {why: `PromQL has no aggregator as ${aggregator}`};
  return {text: `${AGGREGATORS[aggregator]}${by}(${inner})`};
}

// Whether a node's one value is enough where tasks measure: [aggregator, reduction of the metric].
function tasksFit(aggregator, reduction) {
  const fits = {__proto__: null, sum: ['sum'], zimsum: ['sum'], pfsum: ['sum'], min: ['min'], mimmin: ['min'], max: ['max'],
                mimmax: ['max']};
  return (fits[aggregator] ?? []).includes(reduction);
}

// `info`: {type, reduction} of the metric, undefined if no step that is chosen has it; `keys`: of its
// series' tags.
function promqlOf(asked, one, info, keys, notes) {
  const {json, query} = one;
  if (!info) return {why: `${json.metric} is not a metric of /metrics: /api/query calculates it, or the step lacks it`};
  if (json.explicitTags) return {why: 'PromQL cannot ask for series that have no other labels'};
  if ([...query.by, ...json.filters.map(({tagk}) => tagk)].includes('task')) {
    return {why: 'Prometheus has one value for each node, and none for each task'};
  }
  if (keys.has('task') && !tasksFit(json.aggregator, info.reduction)) {
    return {why: `Prometheus has one value for each node, the ${info.reduction} of its tasks: ` +
                 `the ${json.aggregator} of all tasks cannot be made of these`};
  }
  const selector = selectorOf(json);
  if (selector.why) return selector;
  const inner = overTime(selector.text, asked, one, info.type, notes);
  if (inner.why) return inner;
  if (query.fill !== 'none' && one.interval) notes.push('PromQL leaves gaps where nothing was measured: it does not fill.');
  return aggregate(json, query, inner.text, notes);
}

// `infoOf` and `keysOf` by the metric's name.
export function promqlText(asked, infoOf, keysOf) {
  const all = new Set(['Prometheus has to scrape /metrics?scope=node with honor_labels. Between samples it keeps ' +
                       'the last one, where OpenTSDB draws a line.']);
  const pieces = asked.queries.map((one) => {
    const notes = [];
    const made = promqlOf(asked, one, infoOf(one.json.metric), keysOf(one.json.metric), notes);
    if (!made.why) notes.forEach((note) => all.add(note));
    return {letter: one.letter, ...made};
  });
  const text = pieces.map(({letter, text, why}) => (why ? `# ${letter}: none: ${why}` : text)).join('\n');
  return {text, pieces, notes: [...all]};
}
