// From the series of /api/v1/series to the lines of a chart.

import {sum} from './dom.js';
import {median} from './numbers.js';

const mean = (values) => sum(values) / values.length;
// By a metric's reduction: temperatures and shares cannot be added.
const COMBINED = {
  __proto__: null,
  sum,
  mean,
  min: (values) => Math.min(...values),
  max: (values) => Math.max(...values),
};
const STACK_ORDER = ['user', 'nice', 'system', 'irq', 'softirq', 'steal', 'iowait'];

// How far apart a metric's points lie as a rule: what is dear to measure is not sampled at every
// tick.
function spacing(times, interval) {
  const steps = times.slice(1).map((time, i) => time - times[i]).sort((a, b) => a - b);
  return Math.max(interval, steps[Math.floor(steps.length / 2)] || 0);
}

// All lines over one time axis; where samples are missing there is null, so that the line breaks.
export function align(data) {
  const times = [...new Set(data.series.flatMap((line) => line.time))].sort((a, b) => a - b);
  const usual = spacing(times, data.interval);
  const axis = [];
  for (const time of times) {
    const last = axis[axis.length - 1];
    if (axis.length && time - last > 1.5 * usual) axis.push(last + usual);
    axis.push(time);
  }
  const index = new Map(axis.map((time, i) => [time, i]));
  const column = (line, values) => {
    const out = new Array(axis.length).fill(null);
    line.time.forEach((time, i) => { out[index.get(time)] = values[i]; });
    return out;
  };
  const lines = data.series.map((line) => {
    const out = {tags: line.tags};
    for (const name of ['value', 'min', 'max', 'count', 'min_host', 'max_host', 'min_rank',
                        'max_rank', 'p5', 'p50', 'p95']) {
      if (line[name]) out[name] = column(line, line[name]);
    }
    return out;
  });
  return {axis, lines};
}

// One line per host: a host's own series are put together by the metric's reduction, idle time left
// out.
export function perHost(lines, reduction) {
  const combined = COMBINED[reduction] ?? mean;
  const hosts = new Map();
  for (const line of lines) {
    if (line.tags.mode === 'idle') continue;
    const {host} = line.tags;
    if (hosts.has(host)) hosts.get(host).push(line);
    else hosts.set(host, [line]);
  }
  return [...hosts].map(([host, own]) => {
    const [{tags, count}] = own;
    const value = own[0].value.map((_, i) => {
      const values = own.map((line) => line.value[i]).filter((one) => one !== null);
      return values.length ? combined(values) : null;
    });
    return {label: host, tags, value, count};
  });
}

// At most so many lines: those whose mean differs most from the median of all, the farthest first.
export function farthest(lines, most) {
  if (lines.length <= most) return lines;
  const means = lines.map((line) => {
    const values = line.value.filter((one) => one !== null);
    return values.length ? mean(values) : null;
  });
  const middle = median(means.filter((one) => one !== null));
  const distance = (i) => (means[i] === null ? -1 : Math.abs(means[i] - middle));
  return lines.map((line, i) => [line, distance(i)]).sort((a, b) => b[1] - a[1]).slice(0, most)
      .map(([line]) => line);
}

// Modes of CPU time one upon the other, idle time left out.
export function stack(lines) {
  const rank = (line) => {
    const at = STACK_ORDER.indexOf(line.tags.mode);
    return at < 0 ? STACK_ORDER.length : at;
  };
  const parts = lines.filter((line) => line.tags.mode !== 'idle').sort((a, b) => rank(a) - rank(b));
  let below = null;
  for (const part of parts) {
    part.top = part.value.map((value, i) => (value === null ? null
                                             : value + (below && below[i] ? below[i] : 0)));
    below = part.top;
  }
  return parts;
}
