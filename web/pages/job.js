// One step (#/job/ID): what it came to (/api/v1/overview), all its nodes over time (/api/v1/heatmap)
// and side by side, and a plot of each metric (/api/v1/series). All of it shows the same range of
// time and the same scope, which stand in the address (step/state.js).

import {alarmTable} from './alarms.js';
import {Chart} from './chart.js';
import {$, element, plural, renew} from './dom.js';
import {describe} from './facts.js';
import {Histogram} from './histogram.js';
import {footprintTable, GROUPS, isIdle, MAIN, metricsOf, tagsText} from './metrics.js';
import {Moments} from './moments.js';
import {formatter} from './numbers.js';
import {explain, getJson} from './server.js';
import {Controls} from './step/controls.js';
import {Matrix} from './step/matrix.js';
import {callsOf} from './step/calls.js';
import {tasksOf} from './step/ranks.js';
import {overviewOf} from './step/overview.js';
import {State} from './step/state.js';
import {tagsOf} from './tags.js';
import {Timeline} from './timeline.js';

const POINTS = 300;
const PARALLEL = 4;
const NEAR = 600;  // px: plots so far out of sight are read as well
// Those that are there soon are drawn first.
const INSIGHTS = [['hints', 'budget', 'stragglers', 'phases', 'periods'], ['roofline', 'energy']];

export async function showJob(view, id) {
  const [profile, overview] = await Promise.all([getJson('/api/v1/profile', {job: id}),
                                                 getJson('/api/v1/overview', {job: id})]);
  if (view.stale()) return;
  const metrics = metricsOf(profile, overview.metrics);
  const distributions = profile.moments.distributions;
  // Which ones did not change is found out while the step runs: the plots stay where they are.
  const key = [...metrics, ...distributions].map((metric) => metric.metric).join(' ');
  document.title = id + ' · Sonde';
  const {job} = profile.job;
  $('crumb').replaceChildren(element('a', {href: '#/job/' + encodeURIComponent(job)}, 'Job ' + job),
                             ' \u203a Step ' + (profile.job.step || id));
  view.state ??= new State(view.hash);
  view.profile = profile;
  view.overview = overview;
  view.metrics = new Map(metrics.map((metric) => [metric.metric, metric]));
  if (view.key !== key) buildJob(view, id, metrics, distributions);
  view.key = key;
  view.running = profile.job.state === 'running';
  view.moments = new Moments(profile);
  view.parts.timeline.draw(view.moments);
  drawHead(view, id);
  renew(view.parts.table, footprintTable(metrics));
  view.histograms.forEach((histogram, i) => histogram.draw(distributions[i]));
  if (!view.running) view.asked ??= askInsights(view, id);
  await loadAll(view, id, true);
}

function drawHead(view, id) {
  const {profile} = view;
  renew(view.parts.head, describe(profile.job, view.overview.title, profile.cost),
        tagsOf(id, profile.job, () => view.refresh()) ?? '',
        overviewOf(profile, view.overview, view.insight ?? {}, view.tools), alarmTable(profile) ?? '',
        ...callsOf(view.overview));
  view.parts.controls.draw(view.state, profile);
}

// What follows from the numbers of a finished step, where the server knows it.
async function askInsights(view, id) {
  view.insight = {};
  view.parts.head.setAttribute('aria-busy', 'true');
  for (const some of INSIGHTS) {
    for (const of of some) {
      try {
        view.insight[of] = await getJson('/api/v1/insight', {job: id, of});
      } catch (error) {
        // A head has none of them, and a step may have too little for one of them.
      }
      if (view.stale()) return;
    }
    drawHead(view, id);
  }
  view.parts.head.removeAttribute('aria-busy');
}

// What the parts of the page have done when something is chosen in one of them.
function toolsOf(view, id) {
  const show = (values, back) => {
    view.state.change(values, back);
    view.parts.controls.draw(view.state, view.profile);
    return loadAll(view, id);
  };
  return {
    id,
    change: (values) => view.state.change(values),
    show,
    reset: () => show({range: null, rows: null}),
    // null: all; undefined: as before.
    zoom: (range, rows) => show({
      ...(range !== undefined ? {range: range && inside(view, range)} : {}),
      ...(rows ? {rows} : {})}),
    tasks: () => tasksOf(view.profile),
    async open({host, rank}) {
      // Where the node is not found, that is said when the plots are asked for.
      const of = rank && !host ? await placeOf(view, id, rank).catch(() => '') : host;
      return show({host: of, rank}, true);
    },
    heatmap(metric) {
      show({metric, rows: null});
      view.parts.matrix.section.scrollIntoView({block: 'start'});
    },
    cursor(time, from) {
      if (from !== view.parts.matrix.heatmap) return view.parts.matrix.heatmap.showTime(time);
      view.charts.forEach((chart) => chart.showTime(time));
    },
  };
}

// A range that lies in the step and is not shorter than two ticks.
function inside(view, [from, to]) {
  const {job} = view.profile;
  const begin = job.start / 1e9;
  const end = job.end ? job.end / 1e9 : Date.now() / 1000;
  const least = 2 * job.period / 1e9;
  const middle = Math.min(Math.max((from + to) / 2, begin), end);
  const half = Math.max(to - from, least) / 2;
  const range = [Math.max(middle - half, begin), Math.min(middle + half, end)];
  return range[0] <= begin && range[1] >= end ? null : range;
}

// On which node a rank is.
async function hostOf(view, id, rank) {
  const none = new Error(`There is no rank ${rank} in this step.`);
  if (!/^\d{1,9}$/.test(rank)) throw none;
  const metric = [...view.metrics.values()].find((one) => one.by_task);
  if (!metric) throw new Error('Nothing of this step is measured by rank.');
  const one = await getJson('/api/v1/heatmap', {job: id, metric: metric.metric, by: 'task',
                                                columns: 1, rows: 1, first: rank, count: 1});
  if (one.names.length === 0) throw none;
  if (!one.task_hosts[0]) throw new Error(`Nothing was measured of rank ${rank}.`);
  return one.task_hosts[0];
}

// The same, asked once for each rank that is shown.
function placeOf(view, id, rank) {
  if (view.place?.rank === rank) return view.place.host;
  const place = view.place = {rank, host: hostOf(view, id, rank)};
  place.host.catch(() => { if (view.place === place) view.place = null; });
  return place.host;
}

// What is wrong with the scope, '' if nothing is. A rank's numbers are asked for together with its
// node: without it they would be those of the step.
async function faultOfScope(view, id) {
  const {state} = view;
  const {rank} = state;
  try {
    const host = rank ? await placeOf(view, id, rank) : state.host;
    if (rank && state.rank === rank && !view.stale()) state.change({host});
    const known = !host || view.profile.job.nodes.some((node) => node.host === host);
    return known ? '' : `There is no node ${host} in this step.`;
  } catch (error) {
    return explain(error);
  }
}

function buildJob(view, id, metrics, distributions) {
  const byHost = element('input', {type: 'checkbox', id: 'by-host'});
  byHost.checked = view.byHost;
  byHost.addEventListener('change', () => {
    view.byHost = byHost.checked;
    loadAll(view, id);
  });
  view.dropCharts();
  view.parts?.matrix.destroy();
  const tools = view.tools = toolsOf(view, id);
  const parts = {head: element('div'), timeline: new Timeline(), charts: element('div'),
                 table: element('div'), controls: new Controls(tools), matrix: new Matrix(tools)};
  view.histograms = distributions.map((distribution) => new Histogram(distribution));
  GROUPS.forEach(([name], group) => {
    const members = metrics.filter((metric) => metric.group === group);
    if (members.length === 0) return;
    const moving = members.filter((metric) =>
        !metric.still && metric.entries.some((one) => !isIdle(one)));
    const main = moving.filter((metric) => MAIN.test(metric.metric) || name === 'Application');
    const rest = moving.filter((metric) => !main.includes(metric));
    const still = members.filter((metric) => !moving.includes(metric));
    parts.charts.append(element('section', {'aria-label': name}, element('h2', {}, name),
        main.length ? chartGrid(view, main) : null, rest.length ? moreCharts(view, id, rest) : null,
        still.length ? stillMetrics(still) : null));
  });
  if (view.histograms.length) {
    parts.charts.append(element('section', {'aria-label': 'Histograms'},
        element('h2', {}, 'Histograms'),
        element('div', {class: 'grid'}, ...view.histograms.map((histogram) => histogram.figure))));
  }
  view.parts = parts;
  $('view').replaceChildren(parts.head, parts.controls.section, parts.matrix.section,
      parts.timeline.section, element('label', {class: 'switch'}, byHost, 'One line per host'),
      parts.charts, parts.table);
  followScrolling(view, id);
}

function chartGrid(view, metrics) {
  const charts = metrics.map((metric) => new Chart(metric, view.tools));
  view.charts.push(...charts);
  return element('div', {class: 'grid plots'}, ...charts.map((chart) => chart.figure));
}

// Charts that are made and loaded when they are asked for.
function moreCharts(view, id, metrics) {
  const details = element('details', {class: 'more'},
      element('summary', {}, plural(metrics.length, 'more metric')));
  details.addEventListener('toggle', () => {
    if (details.open && details.children.length === 1) {
      details.append(chartGrid(view, metrics));
      loadCharts(view, id);
    }
  });
  return details;
}

// What did nothing, or never changed: a plot would tell no more than its one value.
function stillMetrics(metrics) {
  const rows = metrics.flatMap((metric) => {
    const values = metric.entries.map((entry) => (metric.type === 'gauge' ? entry.max : entry.last));
    const format = formatter(metric.metric, metric.unit, false);
    const all = new Set(values);
    const told = all.size === 1 ? [[`${metric.entries.length} series`, values[0]]]
        : metric.entries.map((entry, i) => [tagsText(entry.tags), values[i]]);
    return told.map(([tags, value]) => element('tr', {},
        element('td', {title: metric.help}, metric.title, ' ', element('code', {}, metric.metric)),
        element('td', {}, metric.entries.length > 1 ? tags : ''),
        element('td', {class: 'number'}, value === null || value === undefined ? 'n/a' : format(value))));
  });
  return element('details', {class: 'more still'},
      element('summary', {}, `${plural(metrics.length, 'metric')} without a change`),
      element('div', {class: 'frame'}, element('table', {}, element('tbody', {}, ...rows))));
}

const isNear = (figure) => {
  if (figure.offsetParent === null) return false;
  const {top, bottom} = figure.getBoundingClientRect();
  return bottom > -NEAR && top < innerHeight + NEAR;
};

// A plot is read when it comes near what is seen.
function followScrolling(view, id) {
  if (view.scrolls) return;
  view.scrolls = true;
  let waits = 0;
  addEventListener('scroll', () => {
    clearTimeout(waits);
    waits = setTimeout(() => { if (!view.stale()) loadCharts(view, id); }, 100);
  }, {passive: true, signal: view.over.signal});
}

// `view.turn` is which reading it is: answers to the one before are dropped. `again`: because time has
// passed.
async function loadAll(view, id, again = false) {
  const turn = view.turn = (view.turn ?? 0) + 1;
  view.charts.forEach((chart) => chart.shown.ask(asked(view, id, chart.metric)));
  view.wrong = await faultOfScope(view, id);
  if (view.stale() || view.turn !== turn) return;
  view.parts.controls.draw(view.state, view.profile, view.wrong);
  view.parts.matrix.update(view.state, view.metrics, view.profile, view.moments);
  await Promise.all([view.parts.matrix.load(() => view.stale(), again), loadCharts(view, id)]);
}

// The question about a metric in the scope. What is not measured by rank is that of the rank's node.
function asked(view, id, metric) {
  const {state} = view;
  const parameters = {job: id, metric: metric.metric, points: POINTS, ...state.times()};
  if (state.host) parameters.host = state.host;
  if (state.rank && metric.by_task) parameters.task = state.rank;
  if (view.byHost && !state.host && !state.rank) parameters.by = 'host';
  return parameters;
}

async function loadCharts(view, id) {
  const {turn} = view;
  if (view.wrong) return view.charts.forEach((chart) => chart.fail(view.wrong));
  // Only what can be seen: a closed section costs nothing. What was never drawn is drawn once, so
  // that a quick look down the page finds it.
  const queue = view.charts.filter((chart) => chart.turn !== turn && (isNear(chart.figure) ||
      (!chart.data && chart.figure.offsetParent !== null && !chart.figure.closest('details'))));
  queue.forEach((chart) => { chart.turn = turn; });
  const work = async () => {
    while (queue.length && !view.stale() && view.turn === turn) {
      const chart = queue.shift();
      const parameters = asked(view, id, chart.metric);
      const old = () => view.stale() || view.turn !== turn;
      chart.shown.ask(parameters);
      try {
        const data = await getJson('/api/v1/series', parameters);
        if (!old()) chart.answer(data, Boolean(parameters.by), view.moments);
      } catch (error) {
        if (!old()) chart.fail(explain(error));
      }
    }
  };
  await Promise.all(Array.from({length: PARALLEL}, work));
}
