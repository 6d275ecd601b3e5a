// Few runs beside each other (#/diff?profiles=A,B), from /api/v1/diff: their numbers, what
// differs and matters most first, and their series on one axis.

import {$, color, element, plural} from '../dom.js';
import {MAIN} from '../metrics.js';
import {formatter, trim} from '../numbers.js';
import {getJson} from '../server.js';
import {coverageOf, stateOf} from '../states.js';
import {timeOf} from '../when.js';
import {DiffChart} from './diff_chart.js';
import {showMany} from './many.js';
import {numbersByStanding, weightOf} from './parts.js';

const MOST_GROUPS = 8;  // of /api/v1/diff; more are compared by how they spread

const idOf = (job) => (job.step ? `${job.job}.${job.step}` : job.job);

function label(group, g) {
  const mark = element('i', {});
  mark.style.background = color(g);
  return element('b', {class: 'run'}, mark, group.label);
}

function cell(name, kind, ...content) {
  return element('td', {class: kind || undefined, 'data-name': name || undefined}, ...content);
}

function runsTable(groups) {
  const head = [['', ''], ['Run', ''], ['State', ''], ['Name', ''], ['Nodes', 'number'],
                ['Tasks', 'number'], ['Start', ''], ['Coverage', 'number'], ['Command', '']];
  const rows = groups.flatMap((group, g) => group.runs.map(({job, title}, i) => element('tr', {},
      cell('', 'label', i === 0 ? label(group, g) : ''),
      cell('', '', element('a', {href: '#/job/' + encodeURIComponent(idOf(job))}, idOf(job))),
      cell('', '', stateOf(job.state)), cell('', 'time', title),
      cell('Nodes', 'number', String(job.expected_nodes)),
      cell('Tasks', 'number', String(job.expected_tasks)),
      cell('Start', 'time', timeOf(job.start / 1e9)),
      cell('Coverage', 'number', coverageOf(job.coverage.got, job.coverage.expected)),
      cell('', 'wide-cell', element('code', {}, job.command)))));
  return element('div', {class: 'frame runs'}, element('table', {'aria-label': 'Runs'},
      element('thead', {}, element('tr', {}, ...head.map(([name, kind]) =>
          element('th', {scope: 'col', class: kind},
                  name || element('span', {class: 'sr-only'}, 'Group'))))),
      element('tbody', {}, ...rows)));
}

// "+12 %"; where nothing was before, the difference itself.
function changeText(row, c) {
  const [base, other] = [row.groups[0], row.groups[c + 1]];
  const {difference, ratio} = row.changes[c];
  if (base.mean === null && other.mean === null) return '';
  if (base.mean === null) return 'new';
  if (other.mean === null) return 'gone';
  if (difference === 0) return 'same';
  const sign = difference > 0 ? '+' : '\u2212';
  if (!base.mean) return sign + formatter('', row.unit, false)(Math.abs(difference));
  if (Math.abs(ratio) >= 10) return '\u00d7 ' + trim(ratio + 1);
  return `${sign}${trim(Math.abs(100 * difference / base.mean))} %`;
}

function bandText(band, format) {
  if (band.mean === null) return 'n/a';
  const spread = band.min !== band.max ? ` (${format(band.min)} to ${format(band.max)})` : '';
  return format(band.mean) + spread;
}

function rowOf(row, groups) {
  const format = formatter('', row.unit, false);
  const others = groups.slice(1).map((group) => (groups.length > 2 ? ` ${group.label}` : ''));
  const changes = row.changes.flatMap((change, c) => {
    const size = Math.max(Math.abs(row.groups[0].mean || 0), Math.abs(row.groups[c + 1].mean || 0));
    const noise = size && change.noise !== null ? `\u00b1 ${trim(100 * change.noise / size)} %` : '';
    return [cell('Change' + others[c], 'number' + (change.beyond ? ' beyond' : ''), changeText(row, c)),
            cell('Noise', 'number noise', noise)];
  });
  return element('tr', {class: row.beyond ? 'differs' : undefined},
      cell('', 'section', row.section),
      cell('', 'wide-cell', row.name,
           row.beyond ? element('span', {class: 'mark', title: 'beyond noise'}, ' *') : null),
      ...row.groups.map((band, g) => cell(groups[g].label, 'number', bandText(band, format))), ...changes,
      cell('Weight', 'weight', weightOf(row)));
}

function numbersTable(diff, rows, name) {
  const labels = diff.groups.map((group) => group.label);
  const head = ['Of', 'Number', ...labels,
                ...labels.slice(1).flatMap((one) => [labels.length > 2 ? `${one} to A` : 'Change', 'Noise'])];
  return element('div', {class: 'frame'}, element('table', {class: 'numbers', 'aria-label': name},
      element('thead', {}, element('tr', {},
          ...head.map((one, i) => element('th', {scope: 'col', class: i > 1 ? 'number' : undefined}, one)),
          element('th', {scope: 'col', title: 'How much of the step\'s time, memory or I/O is behind it'},
                  'Weight'))),
      element('tbody', {}, ...rows.map((row) => rowOf(row, diff.groups)))));
}

const WORDS = {differ: 'beyond noise', alike: 'within noise', same: 'Within noise',
               nothing: 'Nothing that matters differs beyond noise.'};

const nameOf = (series) => series.name.replace(/[/{].*/, '');

function charts(view, diff) {
  const isMain = (series) => MAIN.test(nameOf(series)) && !/idle/.test(series.name);
  const grid = (all) => {
    const made = all.map((series) => new DiffChart(series, diff.axis, diff.groups));
    view.charts.push(...made);
    return element('div', {class: 'grid'}, ...made.map((chart) => chart.figure));
  };
  const rest = diff.series.filter((series) => !isMain(series));
  const more = element('details', {class: 'more'},
                       element('summary', {}, `${rest.length} more series`));
  more.addEventListener('toggle', () => {
    if (more.open && more.children.length === 1) more.append(grid(rest));
  });
  return [grid(diff.series.filter(isMain)), rest.length ? more : null].filter(Boolean);
}

// What the runs can be aligned by.
function alignSwitch(view, diff, parameters) {
  const phases = diff.rows.filter((row) => row.section === 'phases' &&
                                           row.groups.every((band) => band.mean !== null));
  if (phases.length === 0) return null;
  const names = ['start', ...phases.map((row) => 'phase:' + row.name)];
  const select = element('select', {id: 'align'}, ...names.map((name) =>
      element('option', {value: name, selected: name === diff.axis.align},
              name === 'start' ? 'their starts' : 'phase ' + name.slice(6))));
  select.addEventListener('change', () => {
    parameters.set('align', select.value);
    location.hash = '#/diff?' + parameters.toString().replaceAll('%2C', ',');
  });
  return element('label', {class: 'switch'}, 'Aligned by ', select);
}

export async function showDiff(view, parameters) {
  document.title = 'Comparison · Sonde';
  const groups = parameters.getAll('profiles');
  if (groups.length === 0 || (groups.length === 1 && groups[0].split(',').length > MOST_GROUPS)) {
    return showMany(view, parameters);
  }
  $('crumb').textContent = 'Comparison';
  const diff = await getJson('/api/v1/diff', parameters);
  if (view.stale()) return;
  view.dropCharts();
  const count = diff.rows.filter((row) => row.beyond).length;
  $('view').replaceChildren(
      element('section', {'aria-label': 'Runs'},
          element('div', {class: 'title'}, element('h1', {}, 'Comparison'),
                  element('span', {}, count ? `${plural(count, 'number')} of ${diff.rows.length} ` +
                                              (count === 1 ? 'differs' : 'differ') + ' beyond noise *'
                                            : 'Nothing differs beyond noise')),
          runsTable(diff.groups), element('p', {class: 'words'}, diff.noise)),
      element('section', {'aria-label': 'Numbers'}, element('h2', {}, 'Numbers'), 
              ...numbersByStanding(diff.rows, (rows, name) => numbersTable(diff, rows, name), WORDS)),
      element('section', {'aria-label': 'Series'}, element('h2', {}, 'Over time'),
              alignSwitch(view, diff, parameters),
              ...(diff.series.length ? charts(view, diff)
                                     : [element('p', {class: 'words'}, 'No series of these runs are stored.')])));
  view.running = false;
}
