// From answers to lines: what each is called, in which unit it is, and all of them over one time axis.

import {formatter} from '../numbers.js';
import {csv} from '../save.js';

export const MOST_DRAWN = 64;

// What the numbers of a query are: {unit, rate, words}. Counting series or points makes plain numbers
// of every unit, and so do squares and products.
export function unitOf(query, info) {
  const rate = Boolean(query.rate);
  const plain = ['count', 'squareSum', 'mult'];
  if (query.aggregator === 'count' || (query.interval && ['squareSum', 'mult', 'count'].includes(query.function)) ||
      plain.includes(query.aggregator)) {
    return {unit: '1', rate: false, words: 'number'};
  }
  const unit = info?.unit ?? '1';
  if (unit === 'seconds' && rate) return {unit, rate, words: /cpu_seconds/.test(query.metric) ? 'cores' : 'share of the time'};
  if (unit === 'joules' && rate) return {unit, rate, words: 'watts'};
  return {unit, rate, words: (unit === '1' || unit === '' ? 'number' : unit.replaceAll('_', ' ')) + (rate ? ' per second' : '')};
}

function tagsText(tags, query, jobs) {
  const own = Object.entries(tags).filter(([key]) =>
      query.by.includes(key) || (query.aggregator === 'none' && (key !== 'job' || jobs.length > 1)));
  return own.map(([key, value]) => `${key}=${value}`).join(' ');
}

export const titleOf = (query) => `${query.aggregator === 'none' ? '' : query.aggregator + ' of '}${query.metric}` +
    (query.rate ? ' per second' : '');

// How far apart a line's points lie as a rule.
function spacing(points) {
  const steps = points.slice(1).map(([time], i) => time - points[i][0]).sort((a, b) => a - b);
  return steps[Math.floor(steps.length / 2)] || 0;
}

// With a null where points are missing, so that the line breaks there.
function withGaps(points) {
  const usual = spacing(points);
  const out = [];
  for (const point of points) {
    const last = out[out.length - 1];
    if (last && usual && point[0] - last[0] > 1.5 * usual) out.push([last[0] + usual, null]);
    out.push(point);
  }
  return out;
}

// `answers`: [{letter, query, results}]. A line is {letter, name, tags, points, unit, format, stats},
// its points [ms, value or null].
export function linesOf(answers, infoOf, jobs) {
  return answers.flatMap(({letter, query, results}) => {
    const unit = unitOf(query, infoOf(query.metric));
    const format = formatter(query.metric, unit.unit, unit.rate);
    return results.map((one) => {
      const points = one.dps.map(([time, value]) => [time, typeof value === 'number' ? value : null]);
      const values = points.map(([, value]) => value).filter((value) => value !== null);
      const stats = values.length === 0 ? null : {
        last: values[values.length - 1], mean: values.reduce((a, b) => a + b, 0) / values.length,
        min: values.reduce((a, b) => Math.min(a, b)), max: values.reduce((a, b) => Math.max(a, b))};
      return {letter, query, name: tagsText(one.tags, query, jobs) || titleOf(query), tags: one.tags, points,
              format, stats, unit, key: `${unit.unit} ${unit.words}`};
    });
  });
}

// {axis, columns}, the axis in seconds. Undefined is where other lines have a point: a line goes on
// there, and breaks at null.
export function align(lines) {
  const gapped = lines.map((line) => withGaps(line.points));
  const axis = [...new Set(gapped.flatMap((points) => points.map(([time]) => time)))].sort((a, b) => a - b);
  const index = new Map(axis.map((time, i) => [time, i]));
  const columns = gapped.map((points) => {
    const column = new Array(axis.length).fill(undefined);
    points.forEach(([time, value]) => { column[index.get(time)] = value; });
    return column;
  });
  return {axis: axis.map((ms) => ms / 1e3), columns};
}

// Each column upon those before it. Between its points a line counts with what lies between them.
export function stack(axis, columns) {
  let below = new Array(axis.length).fill(0);
  return columns.map((column) => {
    const full = [...column];
    let before = -1;
    column.forEach((value, i) => {
      if (value === undefined) return;
      if (before >= 0 && value !== null && column[before] !== null) {
        for (let k = before + 1; k < i; ++k) {
          const share = (axis[k] - axis[before]) / (axis[i] - axis[before]);
          full[k] = column[before] + share * (value - column[before]);
        }
      }
      before = i;
    });
    const top = full.map((value, i) => (value === undefined || value === null ? null : below[i] + value));
    below = below.map((value, i) => top[i] ?? value);
    return top;
  });
}

// Times in the first column, then one for each line: as a spreadsheet reads it.
export function csvOf(lines) {
  const times = [...new Set(lines.flatMap((line) => line.points.map(([time]) => time)))].sort((a, b) => a - b);
  const values = lines.map((line) => new Map(line.points));
  const head = ['time', 'seconds', ...lines.map((line) => `${line.letter}: ${line.name}`)];
  const rows = times.map((time) => [new Date(time).toISOString(), time / 1e3, ...values.map((own) => own.get(time) ?? null)]);
  return csv([head, ...rows]);
}

// The same as JSON: times in ms since 1970.
export function jsonOf(lines) {
  return JSON.stringify(lines.map((line) => ({
    query: line.letter, name: line.name, metric: line.query.metric, tags: line.tags, unit: line.unit.unit,
    per_second: line.unit.rate, points: line.points})), null, 1) + '\n';
}
