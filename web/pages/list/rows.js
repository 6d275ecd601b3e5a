// The table of steps: its head, by which it is sorted, and a row for each step.

import {element} from '../dom.js';
import {bytes, figureValue, seconds} from '../numbers.js';
import {coverageOf, stateOf} from '../states.js';
import {tagText} from '../tags.js';
import {timeOf} from '../when.js';

// Title, kind, what the server sorts by.
const COLUMNS = [
  ['', 'pick'], ['Step', 'id'], ['State', 'state-cell', 'state'], ['Name', 'called'], ['User', 'user'],
  ['Nodes', 'number nodes', 'nodes'], ['Tasks', 'number tasks', 'tasks'], ['Start', 'start', 'start'],
  ['Duration', 'number duration', 'time'], ['CPU', 'use', 'use'], ['Memory', 'use', 'mem'],
  ['Coverage', 'number coverage'], ['Tags', 'labels'],
];

export const idOf = (step) => (step.step ? `${step.job}.${step.step}` : step.job);
export const keyOf = (step) => step.key || idOf(step);

// `go` is told of the query with another order.
export function headOf(query, go) {
  const cells = COLUMNS.map(([title, kind, sort]) => {
    if (!sort) {
      return element('th', {scope: 'col', class: kind},
                     title || element('span', {class: 'sr-only'}, 'Compare'));
    }
    const sorted = query.sort === sort;
    const arrow = sorted ? (query.reverse ? '\u25b2' : '\u25bc') : '';
    const button = element('button', {type: 'button', class: 'sort', 'data-sort': sort}, title,
                           element('span', {class: 'arrow', 'aria-hidden': 'true'}, arrow));
    button.addEventListener('click', () => go(query.with({sort, reverse: sorted && !query.reverse}), false));
    return element('th', {scope: 'col', class: kind,
                          'aria-sort': sorted ? (query.reverse ? 'ascending' : 'descending') : undefined},
                   button);
  });
  return element('tr', {}, ...cells);
}

// A bar for a share, with the number beside it.
function meter(share, text, title) {
  if (text === '') return '';
  const bar = element('i', {});
  bar.style.width = `${Math.min(Math.max(share || 0, 0), 1) * 100}%`;
  return element('span', {class: 'meter', title},
                 share === null ? null : element('span', {class: 'bar', 'aria-hidden': 'true'}, bar),
                 element('span', {class: 'value'}, text));
}

function cpuOf({cpu_of_tasks: share, cpu_seconds: time}) {
  if (share === null || time === null) return '';
  return meter(share, `${Math.round(share * 100)} %`, `${seconds(time)} of CPU time`);
}

function memoryOf({memory_peak_bytes: {value, by}, memory_of_node: share}) {
  if (value === null) return '';
  const of = share === null ? '' : `, ${(share * 100).toFixed(1)} % of the node's`;
  return meter(share, bytes(value), `most${by ? ' on ' + by : ''}${of}`);
}

function calledOf(step) {
  const detail = step.command && step.command !== step.title
    ? element('code', {class: 'command', title: step.command}, step.command) : null;
  return element('div', {}, element('b', {}, step.title), detail);
}

function labelsOf(step, query) {
  const chips = Object.entries(step.tags).map((tag) => {
    const text = tagText(tag);
    return element('a', {class: 'tag', href: query.withTag(text).hash(), title: `Only steps with ${text}`},
                   text);
  });
  const figure = step.figure ? element('span', {class: 'figure-of-merit'},
                                       `${step.figure.name} ${figureValue(step.figure)}`) : null;
  return element('span', {class: 'tags'}, ...chips, figure);
}

// `now` of the server, in ns, ends what runs.
export function rowOf(step, query, now, picks) {
  const id = idOf(step);
  const running = step.state === 'running';
  const end = step.end || now;
  const cells = [
    picks.box(keyOf(step), id, step.state), element('a', {href: '#/job/' + encodeURIComponent(id)}, id),
    stateOf(step.state), calledOf(step), step.user, String(step.nodes), String(step.tasks),
    timeOf(step.start / 1e9), seconds(Math.max(end - step.start, 0) / 1e9), cpuOf(step.summary),
    memoryOf(step.summary), coverageOf(step.coverage.got, step.coverage.expected), labelsOf(step, query),
  ];
  return element('tr', {class: running ? 'live' : undefined}, ...COLUMNS.map(([title, kind], i) =>
      element('td', {class: kind, 'data-name': title || undefined}, cells[i])));
}
