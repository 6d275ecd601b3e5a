// A program's calls of MPI, for files and of its functions, from `calls` of /api/v1/overview: the
// tables of the report.

import {element, plural, scrolled} from '../dom.js';
import {bytes, count, known, percent, seconds} from '../numbers.js';

const SHOWN = 5;  // functions before the rest is folded

const share = (part, whole) => (whole > 0 ? percent(part / whole) : '');

// A column: its name, the text of a row's cell ('' if it was not counted), whether it is a number.
const TIME = [
  ['Calls', (row) => count(row.calls)],
  ['Time', (row) => (known(row.seconds) ? seconds(row.seconds) : '')],
  ['Share', (row, whole) => (known(row.seconds) ? share(row.seconds, whole) : '')],
];
const cellOf = (key, format) => (row) => (known(row[key]) ? format(row[key]) : '');
const MPI = [
  ...TIME,
  ['Waiting', cellOf('wait_seconds', seconds)],
  ['Sent', cellOf('sent_bytes', bytes)],
  ['Received', cellOf('received_bytes', bytes)],
];
const FILES = [
  ...TIME,
  ['Read', cellOf('read_bytes', bytes)],
  ['Written', cellOf('written_bytes', bytes)],
  ['One call, median', cellOf('median_bytes', bytes)],
];

// `names`: of the first columns, with what a row has there. Columns in which no row has anything are
// left out.
function table(names, columns, rows, whole) {
  const used = columns.filter(([, text]) => rows.some((row) => text(row, whole) !== ''));
  return scrolled(
      'Calls by ' + names.map(([name]) => name.toLowerCase()).join(' and '), {class: 'frame'},
      element(
          'table', {},
          element(
              'thead', {},
              element(
                  'tr', {}, ...names.map(([name]) => element('th', {scope: 'col'}, name)),
                  ...used.map(([name]) => element('th', {scope: 'col', class: 'number'}, name)))),
          element(
              'tbody', {},
              ...rows.map(
                  (row) => element(
                      'tr', {}, ...names.map(([, key]) => element('td', {}, row[key])),
                      ...used.map(
                          ([, text]) => element('td', {class: 'number'}, text(row, whole))))))));
}

// The first rows, and the rest folded.
function longTable(names, columns, rows, whole, what) {
  const rest = rows.slice(SHOWN);
  return [
    table(names, columns, rows.slice(0, SHOWN), whole),
    rest.length ? element(
                      'details', {class: 'more'},
                      element('summary', {}, `${plural(rest.length, 'more ' + what)}`),
                      table(names, columns, rest, whole)) :
                  null
  ];
}

function section(title, about, ...parts) {
  return element(
      'section', {'aria-label': title, class: 'calls'}, element('h2', {}, title),
      element('p', {class: 'words'}, about), ...parts);
}

// Sections of what was counted.
export function callsOf({calls}) {
  const whole = calls.task_seconds;
  const of = known(whole) ? `Sums of all tasks; share: of their ${seconds(whole)}.` : 'Sums of all tasks.';
  return [
    calls.mpi.length ? section(
                           'MPI', of, table([['Class', 'name']], MPI, calls.mpi, whole),
                           ...(calls.mpi_functions.length ? longTable(
                                                                [['Function', 'name']], MPI,
                                                                calls.mpi_functions, whole, 'function') :
                                                            [])) :
                       null,
    calls.files.length ?
        section(
            'Files', of,
            ...longTable(
                [['Filesystem', 'name'], ['Operation', 'operation']], FILES, calls.files, whole, 'row')) :
        null,
    calls.functions.length ?
        section(
            'Functions', of,
            ...longTable([['Function', 'name']], TIME, calls.functions, whole, 'function')) :
        null
  ].filter(Boolean);
}
