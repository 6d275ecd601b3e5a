// Numbers and times as people write them.

export function trim(value, digits = 3) {
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-3) return value.toExponential(1);
  const decimals = size >= 100 ? 0 : size >= 10 ? digits - 2 : digits - 1;
  return String(Number(value.toFixed(size < 1 ? digits : decimals)));
}

function scaled(value, base, prefixes) {
  let i = 0;
  let size = Math.abs(value);
  while (size >= base && i + 1 < prefixes.length) {
    size /= base;
    value /= base;
    ++i;
  }
  return trim(value) + prefixes[i];
}

export const bytes = (v) => scaled(v, 1024, [' B', ' KiB', ' MiB', ' GiB', ' TiB', ' PiB', ' EiB']);
export const count = (v) => (Math.abs(v) < 1e3 ? trim(v) : scaled(v, 1e3, ['', ' k', ' M', ' G', ' T']));

const prefixed = (v, symbol) =>
  scaled(v, 1e3, [' ', ' k', ' M', ' G', ' T', ' P'].map((prefix) => prefix + symbol));

export function seconds(v) {
  const size = Math.abs(v);
  if (size === 0) return '0 s';
  if (size < 1e-3) return trim(v * 1e6) + ' µs';
  if (size < 1) return trim(v * 1e3) + ' ms';
  if (size < 120) return trim(v) + ' s';
  const minutes = Math.round(v / 60);
  const whole = Math.round(v);
  if (whole < 7200) return Math.floor(whole / 60) + ' min ' + whole % 60 + ' s';
  return Math.floor(minutes / 60) + ' h ' + (minutes % 60) + ' min';
}

export const known = (value) => Number.isFinite(value);  // null: it was not measured
export const percent = (ratio) => `${trim(ratio * 100)} %`;

export function median(values) {
  if (values.length === 0) return 0;
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

// Seconds in a second, which are written as percent; of CPU time they are cores.
export const isShareOfTime = (metric, unit, rate) => unit === 'seconds' && rate && !/cpu_seconds/.test(metric);

// How the values of a metric are written; `rate` if they are changes per second.
export function formatter(metric, unit, rate) {
  if (unit === 'bytes') return rate ? (v) => bytes(v) + '/s' : bytes;
  if (unit === 'seconds') {
    if (!rate) return seconds;
    return isShareOfTime(metric, unit, rate) ? (v) => trim(v * 100) + ' %'
                                             : (v) => trim(v) + (trim(v) === '1' ? ' core' : ' cores');
  }
  if (unit === 'joules' && rate) return (v) => prefixed(v, 'W');
  if (unit === 'bytes_per_second') return (v) => bytes(v) + '/s';
  // An application names its units as it likes, such as 'constructor'.
  const symbol = {__proto__: null, hertz: 'Hz', flops_per_second: 'FLOP/s', joules: 'J', watts: 'W'}[unit];
  if (symbol) return (v) => prefixed(v, symbol) + (rate ? '/s' : '');
  if (unit === 'celsius') return (v) => trim(v) + ' °C';
  if (unit === 'ratio' || (unit === '1' && !rate && /_ratio$/.test(metric))) return (v) => trim(v * 100) + ' %';
  const name = unit === '1' || unit === '' ? '' : ' ' + unit;
  return (v) => count(v) + name + (rate ? '/s' : '');
}

// A figure of merit, with as many digits as one needs to compare runs.
export function figureValue(figure) {
  if (figure.value === null) return 'n/a';
  const unit = figure.unit === '1' || figure.unit === '' ? '' : ' ' + figure.unit;
  return String(Number(figure.value.toPrecision(6))) + unit;
}

// From `from` to `to`, s, the times that are whole ones of local time, `apart` seconds from each other;
// where a clock is changed in between, marks that are hours apart are whole ones on both sides of it.
export function wholeTimes(from, to, apart) {
  const behind = (time) => new Date(time * 1000).getTimezoneOffset() * 60;
  const first = behind(from);
  const marks = [];
  for (let local = Math.ceil((from - first) / apart) * apart;; local += apart) {
    const time = local + (apart > 3600 ? behind(local + first) : first);
    if (time > to) return marks;
    marks.push(time);
  }
}

// The marks of a time axis: dates when they are days apart, seconds when they are less than minutes.
export function times(splits, step) {
  const style = step >= 86400 ? {month: 'short', day: 'numeric'}
                              : {hour: '2-digit', minute: '2-digit', hour12: false,
                                 ...(step < 60 ? {second: '2-digit'} : {})};
  return splits.map((time) => new Date(time * 1000).toLocaleString([], style));
}
