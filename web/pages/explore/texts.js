// The same questions for other programs: curl, Grafana's OpenTSDB data source, Python.
//
// Each function gives {text, notes, pieces}: the text to be copied, what is to be said about it, and
// for texts with a piece for each query these pieces: [{letter, text, why}], `why` where there is none.

import {bodyOf, QUERY_PATH} from './request.js';

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

export function curlText(asked) {
  const url = new URL('.' + QUERY_PATH, location.href.replace(/#.*/, ''));
  const {queries, ...rest} = bodyOf(asked, asked.queries);
  // A line for each query.
  const json = `${JSON.stringify(rest).slice(0, -1)}, "queries": [\n    ` +
               `${queries.map((one) => JSON.stringify(one)).join(',\n    ')}]}`;
  const text = `curl -sS -H "Authorization: Bearer $SONDE_TOKEN" -H "Content-Type: application/json" \\\n` +
               `  ${quoted(url.href)} \\\n  -d ${quoted(json)}`;
  return {text, notes: ['SONDE_TOKEN is the token that "sonde url" or "sonde serve" printed.']};
}

// Whether brackets close as they open; the form for addresses cannot have others.
function balanced(text) {
  let depth = 0;
  for (const c of text) {
    if (c === '(') ++depth;
    if (c === ')' && --depth < 0) return false;
  }
  return depth === 0;
}

const plain = (filter) => filter.type === 'literal_or' && !/[*(){},=]/.test(filter.filter);
const filterText = (filter) => filter.tagk + '=' +
    (plain(filter) || (filter.groupBy && filter.filter === '*') ? filter.filter
                                                                : `${filter.type}(${filter.filter})`);

// "sum:rate:10s-avg:metric{host=*}{job=4711.0}"
function mOf({json, letter}) {
  if (!json.filters.every(({filter}) => balanced(filter))) {
    return {letter, why: 'a pattern has brackets that do not close, which m= cannot say'};
  }
  if (/^(rate|explicit_tags|\d[^:]*):/.test(json.metric)) {
    return {letter, why: 'the name of the metric begins as an option does'};
  }
  const options = json.rateOptions;
  const rate = !json.rate ? [] : [!options ? 'rate' : options.dropResets ? 'rate{dropcounter}' : 'rate{counter}'];
  const parts = [json.aggregator, ...rate];
  if (json.downsample) parts.push(json.downsample);
  if (json.explicitTags) parts.push('explicit_tags');
  const braces = (grouped) => json.filters.filter((one) => one.groupBy === grouped).map(filterText).join(',');
  const [by, where] = [braces(true), braces(false)];
  parts.push(json.metric + (by || where ? `{${by}}` : '') + (where ? `{${where}}` : ''));
  return {letter, text: parts.join(':')};
}

// Pieces as one text; "A: why" where there is none.
function together(pieces, comment) {
  return pieces.map(({letter, text, why}) => (why ? `${comment}${letter}: none: ${why}` : text)).join('\n');
}

export function grafanaText(asked) {
  const pieces = asked.queries.map(mOf);
  return {text: together(pieces, '# '), pieces,
          notes: ['The m= of /api/query; in Grafana\u2019s editor each part has a field.']};
}

const py = (value) => JSON.stringify(value);

function tuple(all) {
  return all.length === 1 ? `(${all[0]},)` : `(${all.join(', ')})`;
}

function pythonCall(asked, {json, query}) {
  const words = [py(json.metric), py(json.aggregator)];
  if (asked.kind === 'last') {
    words.push(`last=${(asked.end - asked.start) / 1e3}`);
  } else if (!(asked.kind === 'step' && asked.live)) {
    words.push(`start=${asked.start / 1e3}`, `end=${asked.end / 1e3}`);
  }
  if (json.downsample) words.push(`downsample=${py(json.downsample)}`);
  if (json.rate) words.push('rate=' + ({counter: '"counter"', drop: '"drop"'}[query.rate] ?? 'True'));
  const filters = json.filters.filter((one) => !one.groupBy && one.tagk !== 'job')
      .map((one) => `(${py(one.type)}, ${py(one.tagk)}, ${py(one.filter)})`);
  if (filters.length) words.push(`filters=[${filters.join(', ')}]`);
  if (query.by.length) words.push('by=' + tuple(query.by.map(py)));
  if (json.explicitTags) words.push('explicit_tags=True');
  return `query.get(${words.join(', ')})`;
}

// `profiles`: of the steps.
export function pythonText(asked, profiles) {
  const lines = ['from sonde.query import Query', '', 'query = Query()', 'answers = {'];
  for (const one of asked.queries) lines.push(`    ${py(one.letter)}: ${pythonCall(asked, one)},`);
  lines.push('}', 'for letter, answer in answers.items():', '    for series in answer:',
             '        print(letter, series.tags, series.points)');
  const notes = ['A program asks so about its own step, while that runs.'];
  if (profiles.length > 1) notes.push('Of several steps each answers for itself.');
  if (profiles.some(({job}) => job.end)) {
    notes.push('A step that has ended is asked over HTTP, as by curl.');
  }
  return {text: lines.join('\n'), notes};
}
