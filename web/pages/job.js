// One step (#/job/ID) with its charts, from /api/v1/profile and /api/v1/series.

import {alarmTable} from './alarms.js';
import {Chart} from './chart.js';
import {$, element, plural} from './dom.js';
import {describe} from './facts.js';
import {Histogram} from './histogram.js';
import {footprintTable, GROUPS, MAIN, metricsOf} from './metrics.js';
import {Moments} from './moments.js';
import {explain, getJson} from './server.js';
import {tagsOf} from './tags.js';
import {Timeline} from './timeline.js';

const POINTS = 300;
const PARALLEL = 4;

export async function showJob(view, id) {
  const profile = await getJson('/api/v1/profile', {job: id});
  if (view.stale()) return;
  const metrics = metricsOf(profile);
  const distributions = profile.moments.distributions;
  const key = [...metrics, ...distributions].map((metric) => metric.metric).join(' ');
  document.title = id + ' · Sonde';
  const {job} = profile.job;
  $('crumb').replaceChildren(element('a', {href: '#/job/' + encodeURIComponent(job)}, 'Job ' + job),
                             ' \u203a Step ' + (profile.job.step || id));
  // On a refresh the charts stay where they are and get new data.
  if (view.key !== key) buildJob(view, metrics, distributions);
  view.key = key;
  view.moments = new Moments(profile);
  view.parts.timeline.draw(view.moments);
  view.parts.head.replaceChildren(describe(profile.job, profile.cost),
                                  tagsOf(id, profile.job, () => view.refresh()) ?? '',
                                  alarmTable(profile) ?? '');
  const open = view.parts.table.querySelector('details[open]') !== null;
  view.parts.table.replaceChildren(footprintTable(metrics));
  view.parts.table.firstChild.open = open;
  view.running = profile.job.state === 'running';
  view.histograms.forEach((histogram, i) => histogram.draw(distributions[i]));
  await loadCharts(view, id);
}

function buildJob(view, metrics, distributions) {
  const byHost = element('input', {type: 'checkbox', id: 'by-host'});
  byHost.checked = view.byHost;
  byHost.addEventListener('change', () => {
    view.byHost = byHost.checked;
    view.refresh();
  });
  view.dropCharts();
  const parts = {head: element('div'), timeline: new Timeline(), charts: element('div'),
                 table: element('div')};
  view.histograms = distributions.map((distribution) => new Histogram(distribution));
  GROUPS.forEach(([name], group) => {
    const members = metrics.filter((metric) => metric.group === group);
    if (members.length === 0) return;
    const main = members.filter((metric) => MAIN.test(metric.metric) || name === 'Application');
    const rest = members.filter((metric) => !main.includes(metric));
    parts.charts.append(element('section', {'aria-label': name}, element('h2', {}, name),
        chartGrid(view, main), rest.length ? moreCharts(view, rest) : null));
  });
  if (view.histograms.length) {
    parts.charts.append(element('section', {'aria-label': 'Histograms'},
        element('h2', {}, 'Histograms'),
        element('div', {class: 'grid'}, ...view.histograms.map((histogram) => histogram.figure))));
  }
  view.parts = parts;
  $('view').replaceChildren(parts.head, parts.timeline.section,
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
      view.refresh();
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
        if (!view.stale()) chart.draw(data, view.byHost, view.moments);
      } catch (error) {
        chart.fail(explain(error));
      }
    }
  };
  await Promise.all(Array.from({length: PARALLEL}, work));
}
