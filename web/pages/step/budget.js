// For what the time was spent (/api/v1/insight?of=budget): a bar of the whole step and, unfolded, one
// of each phase, node and rank, with the same colours.

import {element, linkButton, plural} from '../dom.js';
import {known, median, percent, seconds} from '../numbers.js';

const MOST_ROWS = 40;  // of a list
const LEAST = 0.005;   // a share below this is not seen
const MOST_AWAITED = 3;
const LEAST_AWAITED = 0.01;  // of the CPU time
// Of time in which nothing was done there is stripes and no colour.
const COLOURS = {
  __proto__: null,
  computing: 'var(--c0)',
  mpi_waiting: 'var(--c1)',
  mpi_moving: 'var(--c5)',
  io: 'var(--c2)',
  gpu_waiting: 'var(--c4)',
  stolen: 'var(--c7)',
};

function mark(kind) {
  const one = element('i', {class: COLOURS[kind] ? undefined : 'idle'});
  if (COLOURS[kind]) one.style.background = COLOURS[kind];
  return one;
}

function barOf(kinds, shares) {
  const bar = element('div', {class: 'stack', 'aria-hidden': 'true'});
  for (const {kind, name} of kinds) {
    if (!(shares[kind] > 0)) continue;
    const part = mark(kind);
    part.title = `${name} ${percent(shares[kind])}`;
    part.style.width = shares[kind] * 100 + '%';
    bar.append(part);
  }
  return bar;
}

// "computing 68 %, waiting in MPI 21 %"
const inWords = (kinds, shares, most) =>
    kinds.filter(({kind}) => shares[kind] >= LEAST)
        .sort((a, b) => shares[b.kind] - shares[a.kind])
        .slice(0, most)
        .map(({kind, name}) => `${name} ${percent(shares[kind])}`)
        .join(', ');

function legend(kinds, rows, whole) {
  const seen = kinds.filter(({kind}) => rows.some(({shares}) => shares[kind] >= LEAST));
  return element(
      'ul', {class: 'legend'},
      ...seen.map(
          ({kind, name, certainty, known_from: from}) => element(
              'li', {title: from}, mark(kind), `${name} ${percent(whole.shares[kind] ?? 0)}`,
              certainty === 'estimated' ? ' (estimated)' : '')));
}

// Those first whose computing differs most from that of the others.
function oddFirst(rows) {
  const middle = median(rows.map(({shares}) => shares.computing).filter(known));
  const far = ({shares}) => (known(shares.computing) ? Math.abs(shares.computing - middle) : -1);
  return [...rows].sort((a, b) => far(b) - far(a));
}

// `named`: a row's name as an element.
function list(title, kinds, rows, named) {
  if (rows.length < 2) return null;
  const shown = rows.slice(0, MOST_ROWS);
  return element(
      'details', {class: 'more'}, element('summary', {}, title),
      element(
          'div', {class: 'spent', role: 'list'},
          ...shown.map(
              (row) => element(
                  'div', {role: 'listitem'}, named(row), barOf(kinds, row.shares),
                  element('span', {class: 'why'}, inWords(kinds, row.shares, 2) || 'not known')))),
      rows.length > shown.length ? element('p', {class: 'words'},
                                           `and ${rows.length - shown.length} more, which differ less`) :
                                   null);
}

const phaseName = ({name}, told) => (told ? name : `phase ${name}`);

function lists(budget, kinds, tools) {
  return [
    list(
        plural(budget.phases.length, 'phase'), kinds, budget.phases,
        (one) => {
          const name = `${phaseName(one, budget.phases_told)}, ${seconds(one.seconds)}`;
          const begin = one.begin / 1e9;
          return one.intervals === 1 ? linkButton(name, () => tools.zoom([begin, begin + one.seconds])) :
                                       element('span', {}, name);
        }),
    list(
        plural(budget.nodes.length, 'node'), kinds, oddFirst(budget.nodes),
        ({node}) => linkButton(node, () => tools.open({host: node, rank: ''}))),
    list(
        plural(budget.ranks.length, 'rank'), kinds, oddFirst(budget.ranks),
        ({rank, node}) =>
            linkButton(`rank ${rank} on ${node}`, () => tools.open({host: node, rank: String(rank)}))),
  ];
}

function efficiency({efficiency: of}) {
  if (!of || !known(of.parallel)) return null;
  return element(
      'p', {class: 'words'},
      `Parallel efficiency ${percent(of.parallel)}: load balance ${percent(of.load_balance)}, ` +
          `communication ${percent(of.communication)}.`);
}

// For whom the others waited in collectives, or in receives: that is what `key` of a rank tells.
function awaited({ranks, whole}, where, key, tools) {
  const all = ranks.filter((one) => one[key] >= LEAST_AWAITED * whole.cpu_seconds)
                  .sort((a, b) => b[key] - a[key]);
  if (all.length === 0) return null;
  return element(
      'p', {class: 'words', 'data-what': 'awaited'},
      `In ${where} the others waited for `,
      ...all.slice(0, MOST_AWAITED).flatMap(({rank, node, [key]: time}, i) => [
        i ? ', ' : '',
        linkButton(`rank ${rank} on ${node}`, () => tools.open({host: node, rank: String(rank)})),
        ` (${seconds(time)} of all together)`
      ]),
      all.length > MOST_AWAITED ? ` and ${all.length - MOST_AWAITED} more.` : '.');
}

function notKnown(kinds, whole) {
  const all = kinds.filter(({kind}) => !known(whole.shares[kind]));
  if (all.length === 0) return null;
  return element(
      'p', {class: 'words', title: all.map((one) => `${one.name}: ${one.known_from}`).join('\n')},
      `Not known, and so part of the others: ${all.map(({name}) => name).join(', ')}.`);
}

// `more`: what else stands in its card. null: nothing is known.
export function budgetOf(budget, nodesOfStep, tools, ...more) {
  if (!budget?.whole || !Object.values(budget.whole.shares).some((share) => share >= LEAST)) {
    return more.some(Boolean) ? element('div', {class: 'budget'}, ...more) : null;
  }
  const {kinds, whole} = budget;
  const all = [whole, ...budget.phases, ...budget.nodes, ...budget.ranks];
  const nodes = budget.nodes_read < nodesOfStep ?
      element('p', {class: 'words'}, `From ${budget.nodes_read} nodes, spread over the step.`) :
      null;
  return element(
      'div', {class: 'budget'}, element('h3', {}, 'For what the time was spent'),
      barOf(kinds, whole.shares), legend(kinds, all, whole), efficiency(whole),
      awaited(budget, 'collectives', 'awaited_seconds', tools),
      awaited(budget, 'receives', 'awaited_in_receives_seconds', tools), notKnown(kinds, whole), nodes, ...lists(budget, kinds, tools), ...more);
}
