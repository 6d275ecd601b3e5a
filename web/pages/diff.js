// Runs beside each other (#/diff?profiles=A,B), from /api/v1/diff: their numbers with what differs
// beyond noise marked, and their series on one axis.

import {$, color, element, plural} from './dom.js';
import {DiffChart} from './diff_chart.js';
import {MAIN} from './metrics.js';
import {clock, formatter, trim} from './numbers.js';
import {getJson} from './server.js';
import {coverageOf, stateOf} from './states.js';

const DETAILS = ['GPU', 'other'];  // of these only what is beyond noise is shown at once
const MOST_DETAILS = 12;

const idOf = (job) => (job.step ? `${job.job}.${job.step}` : job.job);

function label(group, g) {
  const mark = element('i', {});
  mark.style.background = color(g);
  return element('b', {class: 'run'}, mark, group.label);
}

function runsTable(groups) {
  const head = [['', ''], ['Run', ''], ['State', ''], ['Name', ''], ['Nodes', 'number'],
                ['Tasks', 'number'], ['Start', ''], ['Coverage', 'number'], ['Command', '']];
  const rows = groups.flatMap((group, g) => group.runs.map(({job}, i) => element('tr', {},
      element('td', {}, i === 0 ? label(group, g) : ''),
      element('td', {}, element('a', {href: '#/job/' + encodeURIComponent(idOf(job))}, idOf(job))),
      element('td', {}, stateOf(job.state)), element('td', {class: 'time'}, job.name),
      element('td', {class: 'number'}, String(job.expected_nodes)),
      element('td', {class: 'number'}, String(job.expected_tasks)),
      element('td', {class: 'time'}, clock(job.start / 1e9)),
      element('td', {class: 'number'}, coverageOf(job.coverage.got, job.coverage.expected)),
      element('td', {class: 'wide-cell'}, element('code', {}, job.command)))));
  return element('div', {class: 'frame runs'}, element('table', {},
      element('thead', {}, element('tr', {}, ...head.map(([name, kind]) =>
          element('th', {scope: 'col', class: kind}, name)))),
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

function rowOf(row, section) {
  const format = formatter('', row.unit, false);
  const changes = row.changes.flatMap((change, c) => {
    const size = Math.max(Math.abs(row.groups[0].mean || 0), Math.abs(row.groups[c + 1].mean || 0));
    const noise = size && change.noise !== null ? `\u00b1 ${trim(100 * change.noise / size)} %` : '';
    return [element('td', {class: 'number' + (change.beyond ? ' beyond' : '')}, changeText(row, c)),
            element('td', {class: 'number noise'}, noise)];
  });
  return element('tr', {class: row.beyond ? 'differs' : undefined},
      element('td', {}, section),
      element('td', {class: 'wide-cell'}, row.name,
              row.beyond ? element('span', {class: 'mark', title: 'beyond noise'}, ' *') : null),
      ...row.groups.map((band) => element('td', {class: 'number'}, bandText(band, format))), ...changes);
}

function numbersTable(diff, rows, name) {
  const labels = diff.groups.map((group) => group.label);
  const head = ['', 'Number', ...labels,
                ...labels.slice(1).flatMap((one) => [labels.length > 2 ? `${one} to A` : 'Change', 'Noise'])];
  let section = '';
  const body = rows.map((row) => {
    const is_new = row.section !== section;
    section = row.section;
    return rowOf(row, is_new ? section : '');
  });
  return element('div', {class: 'frame'}, element('table', {class: 'numbers', 'aria-label': name},
      element('thead', {}, element('tr', {}, ...head.map((one, i) =>
          element('th', {scope: 'col', class: i > 1 ? 'number' : undefined}, one)))),
      element('tbody', {}, ...body)));
}

// By how many times its noise a row differs, at most.
const weight = (row) => Math.max(...row.changes.map((change) =>
    (change.noise ? Math.abs(change.difference) / change.noise : change.beyond ? Infinity : 0)));

function numbers(diff) {
  const detail = (row) => DETAILS.includes(row.section);
  const beyond = diff.rows.filter((row) => detail(row) && row.beyond)
      .sort((a, b) => weight(b) - weight(a)).slice(0, MOST_DETAILS);
  const shown = diff.rows.filter((row) => !detail(row) || beyond.includes(row));
  const rest = diff.rows.filter((row) => !shown.includes(row));
  const parts = [numbersTable(diff, shown, 'Numbers')];
  if (rest.length) {
    parts.push(element('details', {class: 'more'}, element('summary', {}, plural(rest.length, 'more number')),
                       numbersTable(diff, rest, 'More numbers')));
  }
  return parts;
}

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
      element('section', {'aria-label': 'Numbers'}, element('h2', {}, 'Numbers'), ...numbers(diff)),
      element('section', {'aria-label': 'Series'}, element('h2', {}, 'Over time'),
              alignSwitch(view, diff, parameters), ...charts(view, diff)));
  view.running = false;
}
