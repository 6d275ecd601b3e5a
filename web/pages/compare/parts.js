// What both comparisons have, of few runs and of many: numbers in their order, of which what matters
// little is folded, and how much of the step is behind a difference.

import {element, plural} from '../dom.js';
import {trim} from '../numbers.js';

const MOST_UNWEIGHED = 12;  // of those that nobody can weigh so many are shown at once
const MOST_WEIGHTY = 40;
const LEAST_WEIGHT = 0.001;

// A bar for the share of the step; docs/archive.md says how it is computed.
export function weightOf(row) {
  if (row.weight === null) return '';
  const bar = element('i', {});
  bar.style.width = `${row.weight * 100}%`;
  const text = row.weight > 0 && row.weight < LEAST_WEIGHT ? '< 0.1 %' : `${trim(row.weight * 100)} %`;
  return element('span', {class: 'meter'}, element('span', {class: 'bar', 'aria-hidden': 'true'}, bar),
                 element('span', {class: 'value'}, text));
}

// `make` fills it when it is opened: there may be a thousand rows.
export function fold(make, text) {
  const details = element('details', {class: 'more'}, element('summary', {}, text));
  details.addEventListener('toggle', () => {
    if (details.open && details.children.length === 1) details.append(make());
  });
  return details;
}

// The rows come in their order. `table` makes one of rows and a name; `differ` and `alike` end what is
// said of folded rows, and `same` names the table of those that are alike.
export function numbersByStanding(rows, table, {differ, alike, same: sameName, nothing}) {
  const standing = (name) => rows.filter((row) => row.standing === name);
  const shown = [...standing('weighty').slice(0, MOST_WEIGHTY),
                 ...standing('unweighed').slice(0, MOST_UNWEIGHED)];
  const slight = rows.filter((row) => ['weighty', 'unweighed', 'slight'].includes(row.standing) &&
                                      !shown.includes(row));
  const folded = (some, text, name) => (some.length ? fold(() => table(some, name), text) : null);
  const [same, pseudo] = [standing('same'), standing('pseudo')];
  return [
    shown.length ? table(shown, 'Numbers') : element('p', {class: 'empty frame'}, nothing),
    folded(slight, `${plural(slight.length, 'more number')} ${differ}`, 'Slight differences'),
    folded(same, `${plural(same.length, 'number')} ${alike}`, sameName),
    folded(pseudo, `${plural(pseudo.length, 'number')} of /proc, /sys and the like`,
           'Filesystems without files'),
  ].filter(Boolean);
}
