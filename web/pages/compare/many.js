// Up to 500 runs beside each other (#/diff?search=..., or profiles with many names), from
// /api/v1/runs: how each number spreads over the runs and which runs stand out, what differs most
// first, and series as bands from /api/v1/runs/series.

import {$, element, linkButton, plural, say} from '../dom.js';
import {MAIN} from '../metrics.js';
import {formatter} from '../numbers.js';
import {explain, getJson} from '../server.js';
import {stateOf} from '../states.js';
import {timeOf} from '../when.js';
import {BandChart} from './bands.js';
import {fold, numbersByStanding, weightOf} from './parts.js';
import {idOf, runHash, Strip} from './strip.js';

const MOST_NAMED = 3;  // runs that stand out, until more are asked for
const MOST_METRICS = 16;  // of one request
const WORDS = {differ: 'that differ', alike: 'alike within 5 %', same: 'Alike', nothing: 'No number that matters differs by more than 5 %.'};

function cell(name, kind, ...content) {
  return element('td', {class: kind || undefined, 'data-name': name || undefined}, ...content);
}

// Links to the runs that stand out, with their values.
function apartOf(row, runs, format) {
  if (row.apart.length === 0) return [];
  const valueOf = (run) => row.values && row.values[row.runs ? row.runs.indexOf(run) : run];
  const links = row.apart.map((run) => {
    const value = valueOf(run);
    return element('a', {href: runHash(runs[run]), title: runs[run].title},
                   idOf(runs[run]) + (value === undefined ? '' : ` ${format(value)}`));
  });
  const list = element('span', {class: 'apart'}, ...links.slice(0, MOST_NAMED));
  if (links.length <= MOST_NAMED) return [list];
  const more = linkButton(`${links.length - MOST_NAMED} more`, () => {
    more.replaceWith(...links.slice(MOST_NAMED));
    links[MOST_NAMED].focus();
  });
  list.append(more);
  return [list];
}

function rowOf(view, row, runs) {
  const format = formatter('', row.unit, false);
  const strip = row.values ? new Strip(row, runs, format) : null;
  if (strip) view.charts.push(strip);
  const some = row.count < runs.length ? element('span', {class: 'some'}, ` ${row.count} of ${runs.length} runs`) : null;
  return element('tr', {},
      cell('', 'section', row.section), cell('', 'wide-cell', row.name, some),
      cell('', 'strip-cell', strip ? strip.canvas : '', element('div', {class: 'ends'},
          element('span', {class: 'least'}, format(row.min)), element('span', {class: 'greatest'}, format(row.max)))),
      cell('Median', 'number', format(row.median)),
      cell('10 to 90 %', 'number', `${format(row.p10)} to ${format(row.p90)}`),
      cell('Stand out', 'apart-cell', ...apartOf(row, runs, format)),
      cell('Weight', 'weight', weightOf(row)));
}

function spreadTable(view, rows, runs, name) {
  const head = [['Of', ''], ['Number', ''], ['Each run, from the least to the greatest', ''], ['Median', 'number'],
                ['10 to 90 %', 'number'], ['Stand out', ''], ['Weight', '']];
  return element('div', {class: 'frame'}, element('table', {class: 'numbers spread', 'aria-label': name},
      element('thead', {}, element('tr', {}, ...head.map(([text, kind]) =>
          element('th', {scope: 'col', class: kind || undefined}, text)))),
      element('tbody', {}, ...rows.map((row) => rowOf(view, row, runs)))));
}

function runsTable(runs) {
  const head = [['Run', ''], ['State', ''], ['Name', ''], ['Nodes', 'number'], ['Tasks', 'number'], ['Start', '']];
  return element('div', {class: 'frame runs'}, element('table', {'aria-label': 'Runs'},
      element('thead', {}, element('tr', {}, ...head.map(([text, kind]) =>
          element('th', {scope: 'col', class: kind || undefined}, text)))),
      element('tbody', {}, ...runs.map((run) => element('tr', {},
          cell('', '', element('a', {href: runHash(run)}, idOf(run))), cell('', '', stateOf(run.state)),
          cell('', '', run.title), cell('Nodes', 'number', String(run.nodes)),
          cell('Tasks', 'number', String(run.tasks)), cell('Start', 'time', timeOf(run.start / 1e9)))))));
}

// Series of the runs, on an axis that can be chosen; the main ones, and one more that is chosen.
class Bands {
  constructor(view, parameters, rows) {
    this.view = view;
    this.parameters = parameters;
    this.axis = parameters.get('axis') === 'share' ? 'share' : 'time';
    const metrics = [...new Set(rows.map((row) => row.metric).filter(Boolean))].sort();
    this.main = metrics.filter((metric) => MAIN.test(metric)).slice(0, MOST_METRICS);
    this.others = metrics.filter((metric) => !this.main.includes(metric));
    this.charts = [];
    this.grid = element('div', {class: 'grid', 'aria-live': 'polite'});
    const options = (pairs, chosen) => pairs.map(([value, text]) =>
        element('option', {value, selected: value === chosen}, text));
    this.axisSelect = element('select', {id: 'axis'}, ...options([['time', 'time since the start'],
        ['share', 'share of the run']], this.axis));
    this.more = element('select', {id: 'more'}, ...options([['', 'main metrics'],
        ...this.others.map((metric) => [metric, metric])], parameters.get('metric') || ''));
    for (const select of [this.axisSelect, this.more]) select.addEventListener('change', () => this.change());
    this.element = element('section', {'aria-label': 'Series'}, element('h2', {}, 'Over time'),
        element('div', {class: 'tools'},
                element('label', {class: 'switch'}, 'Over ', this.axisSelect),
                this.others.length ? element('label', {class: 'switch'}, 'Of ', this.more) : null),
        element('p', {class: 'words'}, 'Where runs have ended before, the bands are of those that go on.'), this.grid);
  }

  change() {
    this.axis = this.axisSelect.value;
    this.parameters.delete('axis');
    this.parameters.delete('metric');
    if (this.axis === 'share') this.parameters.set('axis', 'share');
    if (this.more.value) this.parameters.set('metric', this.more.value);
    this.view.hash = '#/diff?' + this.parameters.toString().replaceAll('%2C', ',');
    history.replaceState(null, '', this.view.hash);
    this.read();
  }

  async read() {
    const metrics = this.more.value ? [this.more.value] : this.main;
    const asked = this.asked = {};
    if (metrics.length === 0) {
      this.grid.replaceChildren(element('p', {class: 'words'}, 'Choose a metric.'));
      return;
    }
    this.grid.setAttribute('aria-busy', 'true');
    try {
      const answer = await getJson('/api/v1/runs/series', [...runsAsked(this.parameters),
          ['metric', metrics.join(',')], ['axis', this.axis]]);
      if (this.view.stale() || asked !== this.asked) return;
      this.draw(answer);
    } catch (error) {
      if (!this.view.stale() && asked === this.asked) say(explain(error));
    } finally {
      if (asked === this.asked) this.grid.removeAttribute('aria-busy');
    }
  }

  draw(answer) {
    for (const chart of this.charts) chart.destroy();
    this.view.charts = this.view.charts.filter((chart) => !this.charts.includes(chart));
    this.charts = answer.series.filter((series) => !/mode="idle"/.test(series.name))
        .map((series) => new BandChart(series, answer));
    this.view.charts.push(...this.charts);
    this.grid.replaceChildren(...this.charts.map((chart) => chart.figure),
        ...(answer.series.length === 0 ? [element('p', {class: 'words'}, 'No series of these runs are stored.')] : []),
        ...(answer.left_out ? [element('p', {class: 'words'}, `${answer.left_out} more series are not shown.`)] : []));
  }
}

// Which runs the address asks for: without what only says how they are shown.
const runsAsked = (parameters) => [...parameters].filter(([name]) => name !== 'axis' && name !== 'metric');

function origin(parameters) {
  if (parameters.has('profiles')) return null;
  const filters = runsAsked(parameters).filter(([, value]) => value);
  const text = filters.map(([name, value]) => `${name} ${value}`).join(', ') || 'all steps';
  return element('p', {class: 'words'}, `Chosen by: ${text}. `,
                 element('a', {href: '#/?' + new URLSearchParams(filters)}, 'Change the filters'));
}

export async function showMany(view, parameters) {
  $('crumb').textContent = 'Comparison';
  const {runs, running, rows} = await getJson('/api/v1/runs', runsAsked(parameters));
  if (view.stale()) return;
  view.dropCharts();
  const count = rows.filter((row) => row.values).length;
  const table = (some, name) => spreadTable(view, some, runs, name);
  const bands = new Bands(view, parameters, rows);
  $('view').replaceChildren(
      element('section', {'aria-label': 'Runs'},
          element('div', {class: 'title'}, element('h1', {}, `Comparison of ${plural(runs.length, 'run')}`),
                  element('span', {}, `${count} of ${plural(rows.length, 'number')} ${count === 1 ? 'differs' : 'differ'} by more than 5 %`)),
          origin(parameters),
          running ? element('p', {class: 'words'}, `${plural(running, 'step')} still running: compared when ended.`) : '',
          fold(() => runsTable(runs), plural(runs.length, 'run'))),
      element('section', {'aria-label': 'Numbers'}, element('h2', {}, 'Numbers'),
              element('p', {class: 'words'}, 'A dot is a run; the bar holds the middle 80 % of the runs, the line ' +
                      'is their median. Runs in orange stand out.'),
              ...numbersByStanding(rows, table, WORDS)),
      bands.element);
  view.running = false;
  await bands.read();
}
