// The steps of a job on one line of time: a bar from the start of each to its end, those that overlap
// one below the other, the batch script above them. Its state is a colour, a pattern and a word.

import {element, plural} from '../dom.js';
import {seconds, times, wholeTimes} from '../numbers.js';
import {stateOf} from '../states.js';
import {hideTip, showTip} from '../tip.js';
import {clock} from '../when.js';

import {idOf} from './rows.js';

const MOST_BARS = 1000;
const MOST_ROWS = 40;
const LEAST = 0.003;  // of the whole: a bar is at least so wide, and takes that room
const APART =
    [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];
const MARKS = 8;

// Steps with their times in s.
function barsOf(steps, now) {
  return steps.map((step) => ({
                     step,
                     begin: step.start / 1e9,
                     end: Math.max(step.end ? step.end / 1e9 : now, step.start / 1e9),
                   }));
}

// Rows in which no two bars overlap; a bar goes into the first one that has room.
function rowsOf(bars, least) {
  const rows = [];
  for (const bar of [...bars].sort((a, b) => a.begin - b.begin || b.end - a.end)) {
    let row = rows.find((one) => one.until <= bar.begin);
    if (!row) rows.push(row = {bars: []});
    row.until = Math.max(bar.end, bar.begin + least);
    row.bars.push(bar);
  }
  return rows.map((row) => row.bars);
}

// What is drawn of the steps: rows of bars, and how many are left out.
export function layOut(steps, now) {
  const all = barsOf(steps, now);
  const begin = Math.min(...all.map((bar) => bar.begin));
  const end = Math.max(...all.map((bar) => bar.end), begin + 1);
  const longest = [...all].sort((a, b) => (b.end - b.begin) - (a.end - a.begin)).slice(0, MOST_BARS);
  const least = (end - begin) * LEAST;
  const outer = rowsOf(longest.filter((bar) => bar.step.step === 'batch'), least);
  const rows = [...outer, ...rowsOf(longest.filter((bar) => bar.step.step !== 'batch'), least)];
  const shown = rows.slice(0, MOST_ROWS);
  const drawn = shown.reduce((sum, row) => sum + row.length, 0);
  return {begin, end, rows: shown, outer: outer.length, left: all.length - drawn};
}

function tip({step, begin, end}) {
  const state = step.state.replaceAll('_', ' ');
  return element(
      'div', {}, element('b', {}, `${idOf(step)} ${step.title}`),
      element('div', {}, `${state}, ${seconds(end - begin)}`),
      element('div', {}, `${clock(begin)} to ${step.end ? clock(end) : 'now'}`),
      element('div', {}, `${plural(step.nodes, 'node')}, ${plural(step.tasks, 'task')}`));
}

function barOf(bar, {begin, end}) {
  const {step} = bar;
  const id = idOf(step);
  const state = step.state.replaceAll('_', ' ');
  const text = `${step.step || id} ${step.title} \u00b7 ${seconds(bar.end - bar.begin)}`;
  const node = element(
      'a', {
        class: `bar state ${step.state}`,
        href: '#/job/' + encodeURIComponent(id),
        tabindex: '-1',
        'data-step': id,
        'aria-label': `${text}, ${state}, ${clock(bar.begin)}`
      },
      text);
  const share = (time) => (time - begin) / (end - begin) * 100;
  node.style.left = Math.min(share(bar.begin), 100 - LEAST * 100) + '%';
  node.style.width = Math.max(share(bar.end) - share(bar.begin), LEAST * 100) + '%';
  const show = (x, y) => showTip(node, tip(bar), x, y);
  node.addEventListener('pointermove', (event) => show(event.clientX, event.clientY));
  node.addEventListener('pointerleave', () => hideTip(node));
  node.addEventListener('focus', () => {
    const {left, bottom} = node.getBoundingClientRect();
    show(left, bottom);
  });
  node.addEventListener('blur', () => hideTip(node));
  return node;
}

// One bar can be reached by Tab, and from there the others by arrow keys: next and previous by their
// starts, and those of the row above or below.
function onKey(event, rows) {
  const at = document.activeElement;
  const row = rows.findIndex((one) => one.includes(at));
  if (row < 0) return;
  const nearest = (bars) => {
    const middle = (node) => node.offsetLeft + node.offsetWidth / 2;
    return bars?.reduce((a, b) => (Math.abs(middle(b) - middle(at)) < Math.abs(middle(a) - middle(at)) ? b : a));
  };
  const bars = rows[row];
  const to = {
    ArrowLeft: () => bars[bars.indexOf(at) - 1],
    ArrowRight: () => bars[bars.indexOf(at) + 1],
    ArrowUp: () => nearest(rows[row - 1]),
    ArrowDown: () => nearest(rows[row + 1]),
    Home: () => bars[0],
    End: () => bars.at(-1),
  }[event.key]?.();
  if (event.key in {ArrowLeft: 0, ArrowRight: 0, ArrowUp: 0, ArrowDown: 0, Home: 0, End: 0}) {
    event.preventDefault();
  }
  if (!to) return;
  at.tabIndex = -1;
  to.tabIndex = 0;
  to.focus();
}

function axisOf({begin, end}) {
  const apart = APART.find((one) => (end - begin) / one <= MARKS) ??
      86400 * Math.ceil((end - begin) / 86400 / MARKS);
  const marks = wholeTimes(begin, end, apart);
  return element('div', {class: 'marks', 'aria-hidden': 'true'}, ...times(marks, apart).map((text, i) => {
    const mark = element('span', {}, text);
    mark.style.left = (marks[i] - begin) / (end - begin) * 100 + '%';
    return mark;
  }));
}

// `focused`: the step whose bar had the keyboard's focus.
export function timelineOf(steps, focused, now = Date.now() / 1000) {
  if (steps.length === 0) return '';
  const plan = layOut(steps, now);
  const rows = plan.rows.map((row) => row.map((bar) => barOf(bar, plan)));
  const first = rows.flat().find((node) => node.dataset.step === focused) ?? rows[0][0];
  first.tabIndex = 0;
  const lines = element(
      'div', {class: 'rows'},
      ...rows.map((bars, i) => element('div', {class: i < plan.outer ? 'row outer' : 'row'}, ...bars)));
  lines.addEventListener('keydown', (event) => onKey(event, rows));
  const states = [...new Set(plan.rows.flat().map(({step}) => step.state))].sort();
  return element(
      'section', {'aria-label': 'Steps over time', class: 'steps-line'},
      element('h2', {}, 'Steps over time'),
      element('div', {class: 'frame'}, element('div', {class: 'inner'}, lines, axisOf(plan))),
      element('ul', {class: 'legend'}, ...states.map((state) => element(
          'li', {}, element('i', {class: `swatch ${state}`}), stateOf(state)))),
      plan.left ? element('p', {class: 'words'},
                          `${plural(plan.left, 'step')} left out here: ` +
                              'the shortest, or more than have room. The table has all.') :
                  null);
}
