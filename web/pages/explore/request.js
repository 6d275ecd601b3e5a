// From what the explorer shows to the bodies of POST /api/query, and asking for them.

import {send} from '../server.js';
import {downsampleText} from './state.js';

const POINTS = 400;  // of a line, where the downsampling is left to us
const UNITS = {ms: 1, s: 1e3, m: 60e3, h: 3600e3, d: 86400e3, w: 7 * 86400e3, n: 30 * 86400e3, y: 365 * 86400e3};
const NICE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 10e3, 20e3, 30e3, 60e3, 120e3, 300e3, 600e3,
              1200e3, 1800e3, 3600e3, 7200e3, 6 * 3600e3, 12 * 3600e3, 86400e3];

// ms; null for what is no length of that kind, such as 0all and 1dc.
export function lengthOf(text) {
  const parts = text.match(/^(\d+)(ms|s|m|h|d|w|n|y)$/i);
  return parts && Number(parts[1]) > 0 ? Number(parts[1]) * UNITS[parts[2].toLowerCase()] : null;
}

export function lengthText(ms) {
  const unit = ['d', 'h', 'm', 's', 'ms'].find((name) => ms % UNITS[name] === 0);
  return ms / UNITS[unit] + unit;
}

// The range in ms since 1970, and whether it goes on until now. `profiles` are those of the steps.
export function rangeOf(range, profiles, now) {
  const starts = profiles.map(({job}) => job.start / 1e6);
  const first = starts.length ? Math.floor(Math.min(...starts)) : now;
  if (range.kind === 'part') {
    return {start: Math.round(first + range.from * 1e3), end: Math.round(first + range.to * 1e3), first};
  }
  if (range.kind === 'absolute') {
    return {start: Math.round(range.from * 1e3), end: Math.round(range.to * 1e3), first};
  }
  if (range.kind === 'last') {
    return {start: now - (lengthOf(range.last) ?? 0), end: now, first, live: true};
  }
  const live = profiles.some(({job}) => !job.end);
  const last = live ? now : Math.max(...profiles.map(({job}) => Math.ceil(job.end / 1e6)));
  return {start: first, end: Math.max(last, first + 1), first, live};
}

// What "auto" is: as few points as a plot can show, none of them of a part of a period. "" is every
// tick.
export function autoInterval(length, period) {
  const wanted = length / POINTS;
  if (wanted <= period) return '';
  const nice = NICE.find((one) => one >= wanted && one % period === 0);
  return lengthText(nice ?? Math.ceil(wanted / period) * period);
}

const intervalOf = (query, auto) => (query.interval === 'auto' ? auto : query.interval);

function filtersOf(query, jobs) {
  const filters = [];
  for (const key of query.by.filter((one) => one !== 'job')) {
    filters.push({type: 'wildcard', tagk: key, filter: '*', groupBy: true});
  }
  if (jobs.length) {
    filters.push({type: 'literal_or', tagk: 'job', filter: jobs.join('|'), groupBy: query.by.includes('job')});
  }
  // One that is being written is not asked for yet.
  const whole = ({key, type, pattern}) => key && (pattern || type === 'not_key');
  for (const one of query.filters.filter(whole)) {
    filters.push({type: one.type, tagk: one.key, filter: one.type === 'not_key' ? '' : one.pattern,
                  groupBy: false});
  }
  return filters;
}

function jsonOf(query, jobs, auto) {
  const json = {metric: query.metric, aggregator: query.aggregator};
  const downsample = downsampleText(intervalOf(query, auto), query);
  if (downsample) json.downsample = downsample;
  if (query.rate) json.rate = true;
  if (query.rate === 'counter') json.rateOptions = {counter: true};
  if (query.rate === 'drop') json.rateOptions = {counter: true, dropResets: true};
  json.filters = filtersOf(query, jobs);
  if (query.explicit) json.explicitTags = true;
  return json;
}

// What is asked for: {start, end, live, step, queries: [{letter, query, json}]}, times in ms.
// `steps` is of the steps that are chosen.
export function plan(state, profiles, queries, now) {
  const period = Math.max(1, ...profiles.map(({job}) => Math.round(job.period / 1e6)));
  const range = rangeOf(state.range, profiles, now);
  const auto = autoInterval(range.end - range.start, period);
  // A bucket that begins before the range is not in the answer: the step's first one shall be.
  if (state.range.kind === 'step') {
    const lengths = queries.map(([, query]) => lengthOf(intervalOf(query, auto)) ?? 1);
    range.start -= range.start % Math.max(1, ...lengths);
  }
  return {...range, kind: state.range.kind, last: state.range.last, jobs: state.jobs, period,
          queries: queries.map(([letter, query]) => ({letter, query, interval: intervalOf(query, auto),
                                                      json: jsonOf(query, state.jobs, auto)}))};
}

// Of some of a plan's queries. Without an end it is the time of the question.
export function bodyOf(asked, queries) {
  const times = asked.kind === 'last' ? {start: asked.last + '-ago'}
                : asked.live ? {start: asked.start} : {start: asked.start, end: asked.end};
  return {...times, msResolution: true, noAnnotations: true, queries: queries.map(({json}) => json)};
}

export const QUERY_PATH = '/api/query?arrays=true&nan=null';

// {results, notes} of one query; an error has the server's words.
export async function ask(asked, query) {
  const {response, body: answer} = await send(QUERY_PATH, {method: 'POST',
      headers: {'Content-Type': 'application/json'}, body: JSON.stringify(bodyOf(asked, [query]))});
  const [answered, expected] = ['Answered', 'Expected'].map((name) =>
      Number(response.headers.get('Sonde-Nodes-' + name) ?? 0));
  const notes = [];
  if (answered < expected) notes.push(`${answered} of ${expected} nodes answered`);
  const rowsOnly = response.headers.get('Sonde-Rows-Only');
  if (rowsOnly) notes.push('without the series of nodes that are missing: ' + rowsOnly);
  return {results: answer, notes};
}
