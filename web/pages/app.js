// The page: a list of steps (#/) and one step with its charts (#/job/ID). It reads /job/list,
// /api/v1/profile and /api/v1/series. Text from the server goes into the page as text only.
'use strict';

const REFRESH_MS = 5000;
const POINTS = 300;
const PARALLEL = 4;
const MAX_LINES = 64;
const STACK_ORDER = ['user', 'nice', 'system', 'irq', 'softirq', 'steal', 'iowait'];

const GROUPS = [
  ['CPU', /^node_cpu_/],
  ['Counters', new RegExp('^(task_(perf|instructions|frequency|branch|cache|frontend|backend|flops|' +
      'vector|arithmetic|counters|memory_(stall|bytes))_|node_memory_traffic_)')],
  ['GPUs', /^gpu_/],
  ['Memory', /^node_(memory|vmstat|buddyinfo|hugepages|numa)_/],
  ['Load and pressure', new RegExp('^node_(load|pressure|procs|threads|context|forks|intr|softirqs|' +
      'interrupts|schedstat)')],
  ['Network', /^node_(network|netstat|softnet|sockstat|infiniband|slingshot)_/],
  ['Disks and file systems', /^node_(disk|filesystem|nfs|mountstats|lustre)_/],
  ['Tasks', /^(task_|cgroup_)/],
  ['Energy and temperature', /^(node_|power_)/],
  ['Sonde', /^sonde_/],
  ['Application', /./],
];

// Of a group that has many, these are drawn at once and the others on demand.
const MAIN = new RegExp('^(node_cpu_seconds_total|node_memory_(MemAvailable|Cached|AnonPages)_bytes|' +
    'node_load1|node_pressure_.*_waiting_seconds_total|node_network_(receive|transmit)_bytes_total|' +
    'node_disk_(read|written)_bytes_total|task_cpu_seconds_total|task_resident_memory_bytes|' +
    'task_(read|written)_bytes_total|task_threads|task_perf_(cycles|instructions)_total|' +
    'task_instructions_per_cycle|task_(flops|memory_bytes)_per_second|node_memory_traffic_bytes_total|' +
    'gpu_utilization_ratio|gpu_memory_used_bytes|gpu_power_watts|node_(step_)?energy_joules_total|' +
    'node_temperature_celsius|sonde_(cpu_seconds_total|memory_bytes))$');

// ---- Small helpers ----

const $ = (id) => document.getElementById(id);

// element('td', {class: 'number'}, 'text', child, ...)
function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) node.setAttribute(key, value === true ? '' : value);
  }
  node.append(...children.filter((child) => child !== undefined && child !== null));
  return node;
}

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const color = (i) => css('--c' + (i % 8));
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

async function getJson(path, parameters = {}) {
  const query = new URLSearchParams(parameters).toString();
  const response = await fetch(query ? path + '?' + query : path);
  const body = await response.json();
  if (!response.ok) {
    const error = new Error(body.error ? body.error.message : response.statusText);
    error.status = response.status;
    throw error;
  }
  return body;
}

function say(text) {
  $('message').textContent = text;
  $('message').hidden = !text;
}

function explain(error) {
  if (error instanceof TypeError) {
    return 'The server does not answer: the step has ended, or the tunnel is gone. ' +
           'Finished steps are shown by "sonde serve".';
  }
  return error.message;
}

// ---- Numbers for people ----

function trim(value, digits = 3) {
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

const bytes = (v) => scaled(v, 1024, [' B', ' KiB', ' MiB', ' GiB', ' TiB', ' PiB', ' EiB']);
const count = (v) => (Math.abs(v) < 1e3 ? trim(v) : scaled(v, 1e3, ['', ' k', ' M', ' G', ' T']));

const prefixed = (v, symbol) =>
  scaled(v, 1e3, [' ', ' k', ' M', ' G', ' T', ' P'].map((prefix) => prefix + symbol));

function seconds(v) {
  const size = Math.abs(v);
  if (size === 0) return '0 s';
  if (size < 1e-3) return trim(v * 1e6) + ' µs';
  if (size < 1) return trim(v * 1e3) + ' ms';
  if (size < 120) return trim(v) + ' s';
  const minutes = Math.round(v / 60);
  if (size < 7200) return Math.floor(v / 60) + ' min ' + Math.round(v % 60) + ' s';
  return Math.floor(minutes / 60) + ' h ' + (minutes % 60) + ' min';
}

// How the values of a metric are written; `rate` if they are changes per second.
function formatter(metric, unit, rate) {
  if (unit === 'bytes') return rate ? (v) => bytes(v) + '/s' : bytes;
  if (unit === 'seconds') {
    if (!rate) return seconds;
    return /cpu_seconds/.test(metric) ? (v) => trim(v) + (v === 1 ? ' core' : ' cores')
                                      : (v) => trim(v * 100) + ' %';
  }
  if (unit === 'joules' && rate) return (v) => prefixed(v, 'W');
  if (unit === 'bytes_per_second') return (v) => bytes(v) + '/s';
  const symbol = {hertz: 'Hz', flops_per_second: 'FLOP/s', joules: 'J', watts: 'W'}[unit];
  if (symbol) return (v) => prefixed(v, symbol) + (rate ? '/s' : '');
  if (unit === 'celsius') return (v) => trim(v) + ' °C';
  if (unit === 'ratio') return (v) => trim(v * 100) + ' %';
  const name = unit === '1' || unit === '' ? '' : ' ' + unit;
  return (v) => count(v) + name + (rate ? '/s' : '');
}

function clock(time) {
  return time ? new Date(time * 1000).toLocaleString([], {dateStyle: 'medium', timeStyle: 'medium',
                                                           hour12: false})
              : '';
}

// The marks of a time axis: dates when they are days apart, seconds when they are less than minutes.
function times(splits, step) {
  const style = step >= 86400 ? {month: 'short', day: 'numeric'}
                              : {hour: '2-digit', minute: '2-digit', hour12: false,
                                 ...(step < 60 ? {second: '2-digit'} : {})};
  return splits.map((time) => new Date(time * 1000).toLocaleString([], style));
}

const stateOf = (name) => element('span', {class: 'state ' + name}, name);

function coverageOf(got, expected) {
  const ratio = expected ? got / expected : 1;
  // 99.97 % must not look complete.
  const text = ratio >= 1 ? '100 %' : Math.min(ratio * 100, 99.9).toFixed(1) + ' %';
  return element('span', {class: ratio < 1 ? 'partial' : '', title: `${got} of ${expected} samples`},
                 text);
}

const plural = (n, one) => `${n} ${one}${n === 1 ? '' : 's'}`;

// ---- The list of steps ----

const COLUMNS = [
  ['Step', ''], ['State', 'state-cell'], ['Name', ''], ['User', ''], ['Nodes', 'number'],
  ['Tasks', 'number'], ['Start', ''], ['Duration', 'number'], ['Coverage', 'number'],
];

function jobRow(job) {
  const end = job.end_time || Date.now() / 1000;
  const cells = [
    element('a', {href: '#/job/' + encodeURIComponent(job.jobid)}, job.jobid),
    stateOf(job.state), job.name, job.user, String(job.nodes), String(job.size),
    clock(job.start_time), seconds(Math.max(end - job.start_time, 0)),
    coverageOf(job.samples, job.samples_expected),
  ];
  const named = ['Nodes', 'Tasks', 'Coverage'];
  return element('tr', {}, ...cells.map((cell, i) => element('td', {
    class: COLUMNS[i][1] || undefined,
    'data-name': named.includes(COLUMNS[i][0]) ? COLUMNS[i][0] : undefined,
  }, cell)));
}

async function showList(view) {
  const jobs = await getJson('/job/list');
  if (view.stale()) return;
  $('crumb').textContent = plural(jobs.length, 'step');
  document.title = 'Sonde';
  if (jobs.length === 0) {
    $('view').replaceChildren(element('div', {class: 'frame empty'}, 'No step yet. Start one with ',
                                      element('code', {}, 'srun --telemetry-level=2 ./app')));
  } else {
    const head = COLUMNS.map(([name, kind]) => element('th', {scope: 'col', class: kind}, name));
    $('view').replaceChildren(element('div', {class: 'frame'},
        element('table', {class: 'jobs'}, element('thead', {}, element('tr', {}, ...head)),
                element('tbody', {}, ...jobs.map(jobRow)))));
  }
  view.running = true;  // a new step may appear
}

// ---- One step ----

function fact(name, ...value) {
  return element('div', {}, element('dt', {}, name), element('dd', {}, ...value));
}

function describe(job, cost) {
  const id = job.step ? job.job + '.' + job.step : job.job;
  const end = job.end ? job.end / 1e9 : Date.now() / 1000;
  const missing = Math.max(job.expected_nodes - job.nodes.length, 0) +
                  job.nodes.filter((node) => node.lost).length;
  const facts = [
    fact('User', job.user + (job.account ? ` (${job.account})` : '')),
    fact('Partition', job.partition + (job.cluster ? ` on ${job.cluster}` : '')),
    fact('Nodes', job.expected_nodes + (missing ? ` (${missing} missing)` : '')),
    fact('Tasks', String(job.expected_tasks)),
    fact('Start', clock(job.start / 1e9)),
    fact('Duration', seconds(Math.max(end - job.start / 1e9, 0))),
    fact('Level, period', `${job.level}, ${seconds(job.period / 1e9)}`),
    fact('Coverage', coverageOf(job.coverage.got, job.coverage.expected)),
  ];
  if (cost && cost.cpu_seconds) {
    facts.push(fact('Cost of Sonde', `${seconds(cost.cpu_seconds)} CPU, ` +
                    `${bytes(cost.peak_node_memory)} on a node`));
  }
  const notes = [...job.notes, ...job.nodes.filter((node) => node.note)
      .map((node) => `${node.host}: ${node.note}`)];
  return element('section', {'aria-label': 'Step'},
      element('div', {class: 'title'}, element('h1', {}, id + (job.name ? ' ' + job.name : '')),
              stateOf(job.state)),
      element('code', {}, job.command),
      element('dl', {class: 'facts'}, ...facts),
      notes.length ? element('ul', {class: 'notes', 'aria-label': 'Notes'},
                             ...[...new Set(notes)].map((note) => element('li', {}, note))) : null);
}

// The metrics of a profile: [{name, unit, type, help, entries}], in the order of GROUPS.
function metricsOf(profile) {
  const metrics = new Map();
  for (const entry of profile.footprint) {
    if (!metrics.has(entry.metric)) {
      const group = GROUPS.findIndex(([, pattern]) => pattern.test(entry.metric));
      metrics.set(entry.metric, {...entry, group, entries: []});
    }
    metrics.get(entry.metric).entries.push(entry);
  }
  return [...metrics.values()].sort((a, b) => a.group - b.group);
}

function tagsText(tags) {
  return Object.entries(tags).map(([, value]) => value).join(' ');
}

function ownerText(owner) {
  if (!owner) return '';
  return ' ' + (owner.host || 'node ' + owner.node) +
         (owner.rank === undefined ? '' : ' task ' + owner.rank);
}

function footprintTable(metrics) {
  const rows = [];
  for (const metric of metrics) {
    const counter = metric.type !== 'gauge';
    const amount = formatter(metric.metric, metric.unit, false);
    const mean = formatter(metric.metric, metric.unit, counter);
    const cell = (value, format, owner) => element('td', {class: 'number'},
        value === null || value === undefined ? 'n/a' : format(value) + ownerText(owner));
    for (const entry of metric.entries) {
      rows.push(element('tr', {},
          element('td', {title: metric.help}, element('code', {}, metric.metric), ' ',
                  tagsText(entry.tags)),
          cell(entry.last, amount), cell(entry.mean, mean), cell(entry.min, amount, entry.min_owner),
          cell(entry.max, amount, entry.max_owner)));
    }
  }
  const head = [['Metric', ''], [`Step`, 'number'], ['Mean', 'number'], ['Least', 'number'],
                ['Most', 'number']];
  return element('details', {}, element('summary', {}, 'All metrics as a table'),
      element('div', {class: 'frame'}, element('table', {},
          element('thead', {}, element('tr', {},
              ...head.map(([name, kind]) => element('th', {scope: 'col', class: kind}, name)))),
          element('tbody', {}, ...rows))));
}

async function showJob(view, id) {
  const profile = await getJson('/api/v1/profile', {job: id});
  if (view.stale()) return;
  const metrics = metricsOf(profile);
  const key = metrics.map((metric) => metric.metric).join(' ');
  document.title = id + ' · Sonde';
  $('crumb').textContent = 'Step ' + id;
  // On a refresh the charts stay where they are and get new data.
  if (view.key !== key) buildJob(view, metrics);
  view.key = key;
  view.parts.head.replaceChildren(describe(profile.job, profile.cost));
  const open = view.parts.table.querySelector('details[open]') !== null;
  view.parts.table.replaceChildren(footprintTable(metrics));
  view.parts.table.firstChild.open = open;
  view.running = profile.job.state === 'running';
  await loadCharts(view, id);
}

function buildJob(view, metrics) {
  const byHost = element('input', {type: 'checkbox', id: 'by-host'});
  byHost.checked = view.byHost;
  byHost.addEventListener('change', () => {
    view.byHost = byHost.checked;
    refreshNow();
  });
  view.dropCharts();
  const parts = {head: element('div'), charts: element('div'), table: element('div')};
  GROUPS.forEach(([name], group) => {
    const members = metrics.filter((metric) => metric.group === group);
    if (members.length === 0) return;
    const main = members.filter((metric) => MAIN.test(metric.metric) || name === 'Application');
    const rest = members.filter((metric) => !main.includes(metric));
    parts.charts.append(element('section', {'aria-label': name}, element('h2', {}, name),
        chartGrid(view, main), rest.length ? moreCharts(view, rest) : null));
  });
  view.parts = parts;
  $('view').replaceChildren(parts.head,
      element('label', {class: 'switch'}, byHost, 'One line per host'), parts.charts, parts.table);
}

function chartGrid(view, metrics) {
  const charts = metrics.map((metric) => new Chart(metric));
  view.charts.push(...charts);
  return element('div', {class: 'grid'}, ...charts.map((chart) => chart.figure));
}

// Charts that are made and loaded when they are asked for.
function moreCharts(view, metrics) {
  const details = element('details', {class: 'more'},
      element('summary', {}, plural(metrics.length, 'more metric')));
  details.addEventListener('toggle', () => {
    if (details.open && details.children.length === 1) {
      details.append(chartGrid(view, metrics));
      refreshNow();
    }
  });
  return details;
}

async function loadCharts(view, id) {
  // Only what can be seen: a closed section costs nothing.
  const queue = view.charts.filter((chart) => chart.figure.offsetParent !== null);
  const work = async () => {
    while (queue.length && !view.stale()) {
      const chart = queue.shift();
      const parameters = {job: id, metric: chart.metric.metric, points: POINTS};
      if (view.byHost) parameters.by = 'host';
      try {
        const data = await getJson('/api/v1/series', parameters);
        if (!view.stale()) chart.draw(data, view.byHost);
      } catch (error) {
        chart.fail(explain(error));
      }
    }
  };
  await Promise.all(Array.from({length: PARALLEL}, work));
}

// ---- Charts ----

// How far apart a metric's points lie as a rule: what is dear to measure is not sampled at every
// tick.
function spacing(times, interval) {
  const steps = times.slice(1).map((time, i) => time - times[i]).sort((a, b) => a - b);
  return Math.max(interval, steps[Math.floor(steps.length / 2)] || 0);
}

// All lines over one time axis; where samples are missing there is null, so that the line breaks.
function align(data) {
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
                        'max_rank']) {
      if (line[name]) out[name] = column(line, line[name]);
    }
    return out;
  });
  return {axis, lines};
}

// One line per host: a host's own series are added up, idle time left out.
function perHost(lines) {
  const hosts = new Map();
  for (const line of lines) {
    if (line.tags.mode === 'idle') continue;
    const host = line.tags.host;
    const into = hosts.get(host);
    if (!into) {
      hosts.set(host, {label: host, tags: line.tags, value: [...line.value], count: line.count});
      continue;
    }
    line.value.forEach((value, i) => {
      if (value !== null) into.value[i] = (into.value[i] || 0) + value;
    });
  }
  return [...hosts.values()].slice(0, MAX_LINES);
}

// Modes of CPU time one upon the other, idle time left out.
function stack(lines) {
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

class Chart {
  constructor(metric) {
    this.metric = metric;
    this.plot = element('div', {class: 'plot'}, element('p', {}, 'Loading'));
    this.now = element('span');
    this.legend = element('ul', {class: 'legend'});
    this.figure = element('figure', {tabindex: '0', 'data-metric': metric.metric},
        element('figcaption', {}, element('b', {title: `${metric.metric}\n${metric.help}`},
                                          metric.metric), this.now),
        this.plot, this.legend);
    this.figure.addEventListener('keydown', (event) => this.onKey(event));
    this.figure.addEventListener('blur', () => hideTip());
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.plot);
  }

  destroy() {
    this.observer.disconnect();
    if (this.chart) this.chart.destroy();
    this.chart = null;
  }

  fail(text) {
    if (this.chart) return;  // what is drawn stays; the page says what is wrong
    this.plot.replaceChildren(element('p', {}, text));
  }

  resize() {
    if (this.chart) this.chart.setSize({width: this.plot.clientWidth, height: 170});
  }

  draw(data, byHost) {
    this.data = data;
    this.format = formatter(data.metric, data.unit, data.rate);
    const {axis, lines} = align(data);
    if (axis.length === 0) {
      this.destroyPlot();
      this.plot.replaceChildren(element('p', {}, 'No samples'));
      return;
    }
    this.kind = byHost ? 'lines' : lines.every((line) => line.tags.mode) ? 'stack'
                : lines.length === 1 ? 'band' : 'lines';
    this.lines = byHost ? perHost(lines) : this.kind === 'stack' ? stack(lines) : lines;
    this.lines.forEach((line, i) => {
      line.label = line.label || tagsText(line.tags) || (this.reduces() ? 'mean' : 'step');
      line.color = color(i);
    });
    this.axis = axis;
    this.render();
    this.caption();
  }

  // Whether more than one node or task is behind a point.
  reduces() {
    return this.lines.some((line) => line.count && Math.max(...line.count) > 1);
  }

  destroyPlot() {
    if (this.chart) this.chart.destroy();
    this.chart = null;
  }

  columns() {
    if (this.kind === 'band') {
      const [line] = this.lines;
      return [this.axis, line.max, line.min, line.value];
    }
    return [this.axis, ...this.lines.map((line) => line.top || line.value)];
  }

  render() {
    const columns = this.columns();
    const shape = this.kind + this.lines.map((line) => line.label).join('\n');
    if (this.chart && this.shape === shape) {
      this.chart.setData(columns);
      return;
    }
    this.destroyPlot();
    this.shape = shape;
    this.plot.replaceChildren();
    this.chart = new uPlot(this.options(), columns, this.plot);
  }

  options() {
    const soft = css('--soft'), grid = css('--grid');
    const axis = {stroke: soft, grid: {stroke: grid, width: 1}, ticks: {show: false},
                  font: '11px system-ui, sans-serif'};
    const values = (u, splits) => splits.map((value) => this.format(value));
    const binary = Array.from({length: 60}, (_, i) => 2 ** i);
    return {
      width: this.plot.clientWidth || 360,
      height: 170,
      padding: [8, 26, 0, 0],
      legend: {show: false},
      cursor: {sync: {key: 'step'}, points: {size: 5}, drag: {x: false, y: false}},
      scales: {y: {range: (u, low, high) => this.range(low, high)}},
      axes: [
        {...axis, size: 24, space: 70, values: (u, splits, i, space, step) => times(splits, step)},
        {...axis, size: 76, space: 32, values, ...(this.data.unit === 'bytes' ? {incrs: binary} : {})},
      ],
      series: [{}, ...this.seriesOptions()],
      bands: this.bands(),
      hooks: {draw: [(u) => this.drawGaps(u)], setCursor: [(u) => this.onCursor(u)]},
    };
  }

  range(low, high) {
    if (low === null || high === null || !Number.isFinite(high)) return [0, 1];
    if (low >= 0) return [0, high > 0 ? high * 1.08 : 1];
    const room = (high - low || 1) * 0.08;
    return [low - room, Math.max(high + room, 0)];
  }

  seriesOptions() {
    const line = (stroke, more = {}) => ({stroke, width: 1.5, points: {show: false}, ...more});
    if (this.kind === 'band') {
      const edge = {width: 0.5};
      return [line(this.lines[0].color + '80', edge), line(this.lines[0].color + '80', edge),
              line(this.lines[0].color, {width: 2})];
    }
    return this.lines.map((one, i) => line(one.color, {
      fill: this.kind === 'stack' && i === 0 ? one.color + '59' : undefined,
      width: this.lines.length > 16 ? 1 : 1.5,
    }));
  }

  bands() {
    if (this.kind === 'band') return [{series: [1, 2], fill: this.lines[0].color + '33'}];
    if (this.kind !== 'stack') return [];
    return this.lines.slice(1).map((one, i) => ({series: [i + 2, i + 1], fill: one.color + '59'}));
  }

  // Whether fewer nodes than usual are in a point; `null` where there is none at all.
  missing(i) {
    return this.lines.some((line) => line.count && line.count[i] !== null &&
                                     line.count[i] < Math.max(...line.count)) ||
           this.lines.every((line) => line.value[i] === null);
  }

  // A strip along the bottom where samples are missing.
  drawGaps(u) {
    const {ctx, bbox} = u;
    const half = this.data.interval / 2;
    ctx.save();
    ctx.fillStyle = css('--warn');
    const height = 3 * devicePixelRatio;
    this.axis.forEach((time, i) => {
      if (!this.missing(i)) return;
      const next = i + 1 < this.axis.length ? this.axis[i + 1] - half : time + half;
      const left = Math.max(u.valToPos(time - half, 'x', true), bbox.left);
      const right = Math.min(u.valToPos(next, 'x', true), bbox.left + bbox.width);
      ctx.fillRect(Math.floor(left), bbox.top + bbox.height - height,
                   Math.ceil(right) - Math.floor(left), height);
    });
    ctx.restore();
  }

  caption() {
    const last = (line) => line.value.findLast((value) => value !== null);
    const values = this.lines.map(last).filter((value) => value !== undefined);
    const stacked = this.kind === 'stack';
    const text = values.length === 0 ? '' : this.format(stacked ? sum(values) : values[0]);
    this.now.textContent = stacked || this.lines.length === 1 ? text : '';
    const items = this.lines.length > 12 ? [] : this.lines.map((line) => this.legendItem(line));
    if (this.kind === 'band' && this.reduces()) items.push(element('li', {}, 'band: least to most'));
    if (this.lines.length > 12) items.push(element('li', {}, plural(this.lines.length, 'line')));
    if (this.axis.some((time, i) => this.missing(i))) {
      items.push(element('li', {class: 'gap'}, 'samples missing'));
    }
    if (this.data.nodes_answered < this.data.nodes_expected) {
      items.push(element('li', {class: 'gap'},
          `${this.data.nodes_answered} of ${plural(this.data.nodes_expected, 'node')} answered`));
    }
    this.legend.replaceChildren(...items);
    this.figure.setAttribute('aria-label', `${this.metric.metric}: ${this.metric.help} Now ` +
        this.lines.slice(0, 8).map((line) => {
          const value = last(line);
          return `${line.label} ${value === undefined ? 'unknown' : this.format(value)}`;
        }).join(', '));
  }

  legendItem(line) {
    const mark = element('i');
    mark.style.background = line.color;
    return element('li', {}, mark, line.label);
  }

  onCursor(u) {
    const i = u.cursor.idx;
    const here = u.cursor.left >= 0 && (u.over.matches(':hover') || this.figure === document.activeElement);
    if (!here || i === null || i === undefined) {
      if (tipOwner === this) hideTip();
      return;
    }
    const box = u.over.getBoundingClientRect();
    showTip(this, this.tipContent(i), box.left + u.cursor.left, box.top + Math.max(u.cursor.top, 0));
  }

  tipContent(i) {
    const owner = (line, which) => {
      const host = line[which + '_host'] ? line[which + '_host'][i] : -1;
      const rank = line[which + '_rank'] ? line[which + '_rank'][i] : -1;
      if (host === null || host < 0) return '';
      return ' ' + this.data.hosts[host] + (rank >= 0 ? ' task ' + rank : '');
    };
    const order = this.lines.filter((line) => line.value[i] !== null);
    if (this.kind === 'lines') order.sort((a, b) => b.value[i] - a.value[i]);
    if (this.kind === 'stack') order.reverse();
    const rows = order.slice(0, 10).map((line) => {
      const mark = element('i');
      mark.style.background = line.color;
      const cells = [element('td', {}, mark, line.label), element('td', {}, this.format(line.value[i]))];
      if (line.min && line.count[i] > 1) {
        cells.push(element('td', {}, `least ${this.format(line.min[i])}${owner(line, 'min')}`),
                   element('td', {}, `most ${this.format(line.max[i])}${owner(line, 'max')}`));
      }
      return element('tr', {}, ...cells);
    });
    const counts = order.filter((line) => line.count).map((line) => line.count[i]);
    const most = Math.max(...this.lines.map((line) => (line.count ? Math.max(...line.count) : 0)));
    const note = rows.length === 0 ? 'no samples'
        : Math.min(...counts) < most ? `from ${Math.min(...counts)} of ${most}` : '';
    return element('div', {}, element('div', {}, clock(this.axis[i]),
                                      note ? element('span', {class: 'gap'}, ' · ' + note) : ''),
                   element('table', {}, element('tbody', {}, ...rows)));
  }

  onKey(event) {
    const step = {ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity}[event.key];
    if (event.key === 'Escape') hideTip();
    if (step === undefined || !this.chart) return;
    event.preventDefault();
    const last = this.axis.length - 1;
    const from = this.chart.cursor.idx ?? last;
    const i = Math.min(Math.max(from + step, 0), last);
    this.chart.setCursor({left: this.chart.valToPos(this.axis[i], 'x'), top: 10});
  }
}

let tipOwner = null;

function showTip(owner, content, x, y) {
  tipOwner = owner;
  const tip = $('tip');
  tip.replaceChildren(content);
  tip.hidden = false;
  const left = x + 14 + tip.offsetWidth > innerWidth ? x - 14 - tip.offsetWidth : x + 14;
  tip.style.left = Math.max(left, 4) + 'px';
  tip.style.top = Math.max(Math.min(y + 10, innerHeight - tip.offsetHeight - 4), 4) + 'px';
}

function hideTip() {
  tipOwner = null;
  $('tip').hidden = true;
}

// ---- Which view is shown, and when it is read again ----

let current = null;
let timer = 0;

class View {
  constructor(hash) {
    this.hash = hash;
    this.charts = [];
    this.byHost = false;
    this.running = false;
  }
  stale() { return current !== this; }
  dropCharts() {
    this.charts.forEach((chart) => chart.destroy());
    this.charts = [];
  }
  async load() {
    const job = this.hash.match(/^#\/job\/(.+)$/);
    try {
      await (job ? showJob(this, decodeURIComponent(job[1])) : showList(this));
      if (!this.stale()) say('');
    } catch (error) {
      if (this.stale()) return;
      say(explain(error));
      if (!this.parts) $('view').replaceChildren();
      this.running = error instanceof TypeError || this.running;
    }
  }
}

async function refreshNow() {
  clearTimeout(timer);
  const view = current;
  await view.load();
  if (view !== current) return;
  clearTimeout(timer);
  if (view.running && $('refresh').checked && !document.hidden) {
    timer = setTimeout(refreshNow, REFRESH_MS);
  }
}

function navigate() {
  hideTip();
  if (current) current.dropCharts();
  current = new View(location.hash || '#/');
  $('view').replaceChildren(element('p', {class: 'empty'}, 'Loading'));
  $('view').focus({preventScroll: true});
  scrollTo(0, 0);
  return refreshNow();
}

addEventListener('hashchange', navigate);
document.addEventListener('visibilitychange', () => { if (!document.hidden) refreshNow(); });
$('refresh').addEventListener('change', refreshNow);
// Colours are read when a chart is made.
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', navigate);
navigate();
