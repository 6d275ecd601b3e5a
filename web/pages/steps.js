// One job with its steps (#/job/ID without a step), from /api/v1/steps: over time, and as a table.

import {$, element, plural, sum} from './dom.js';
import {timelineOf} from './list/timeline.js';
import {Picks} from './picks.js';
import {bytes, seconds} from './numbers.js';
import {getJson} from './server.js';
import {stateOf} from './states.js';
import {tagList} from './tags.js';
import {timeOf} from './when.js';

const COLUMNS = [
  ['', 'pick'], ['Step', ''], ['State', 'state-cell'], ['Name', ''], ['Nodes', 'number'],
  ['Tasks', 'number'], ['Start', ''], ['Duration', 'number'], ['CPU time', 'number'],
  ['Memory', 'number'], ['Tags', ''],
];

const known = (values) => values.filter((value) => value !== null && value !== undefined);

function summaryOf(steps) {
  const states = new Map();
  for (const step of steps) states.set(step.state, (states.get(step.state) || 0) + 1);
  const ends = steps.map((step) => step.end || Date.now() * 1e6);
  const first = Math.min(...steps.map((step) => step.start));
  const cpu = known(steps.map((step) => step.summary.cpu_seconds));
  const memory = known(steps.map((step) => step.summary.memory_peak_bytes.value));
  const facts = [
    ['Steps', [...states].map(([state, count]) => `${count} ${state.replaceAll('_', ' ')}`).join(', ')],
    ['Name', steps[0].name || steps[0].title],
    ['First start', timeOf(first / 1e9)],
    ['First to last', seconds((Math.max(...ends) - first) / 1e9)],
    ['CPU time', cpu.length ? seconds(sum(cpu)) : 'n/a'],
    ['Memory, most', memory.length ? bytes(Math.max(...memory)) : 'n/a'],
  ];
  return element('dl', {class: 'facts'}, ...facts.map(([name, value]) =>
      element('div', {}, element('dt', {}, name), element('dd', {}, value))));
}

function stepRow(step, picks) {
  const id = step.step ? `${step.job}.${step.step}` : step.job;
  const end = step.end || Date.now() * 1e6;
  const {cpu_seconds: cpu, memory_peak_bytes: memory} = step.summary;
  const cells = [
    picks.box(step.key || id, id, step.state),
    element('a', {href: '#/job/' + encodeURIComponent(id)}, id), stateOf(step.state), element('span', {title: step.command}, step.title),
    String(step.nodes), String(step.tasks), timeOf(step.start / 1e9),
    seconds(Math.max(end - step.start, 0) / 1e9), cpu === null ? '' : seconds(cpu),
    memory.value === null ? '' : bytes(memory.value),
    element('span', {class: 'tags'}, ...tagList(step.tags)),
  ];
  return element('tr', {}, ...COLUMNS.map(([name, kind], i) => element('td', {
    class: kind || undefined,
    'data-name': ['Nodes', 'Tasks', 'CPU time', 'Memory'].includes(name) ? name : undefined,
  }, cells[i])));
}

export async function showSteps(view, id) {
  const {steps} = await getJson('/api/v1/steps', {job: id});
  if (view.stale()) return;
  document.title = `Job ${id} · Sonde`;
  $('crumb').textContent = `Job ${id}`;
  const picks = view.picks || (view.picks = new Picks());
  const head = COLUMNS.map(([name, kind]) => element('th', {scope: 'col', class: kind},
      name || element('span', {class: 'sr-only'}, 'Compare')));
  const focused = document.activeElement?.dataset.step;
  const timeline = timelineOf(steps, focused);
  $('view').replaceChildren(
      element('section', {'aria-label': 'Job'},
          element('div', {class: 'title'}, element('h1', {}, `Job ${id}`), plural(steps.length, 'step')),
          summaryOf(steps)),
      timeline,
      picks.bar(),
      element('div', {class: 'frame'}, element('table', {class: 'jobs'},
          element('thead', {}, element('tr', {}, ...head)),
          element('tbody', {}, ...steps.map((step) => stepRow(step, picks))))));
  if (focused) timeline.querySelector('[tabindex="0"]').focus();
  picks.update();
  view.running = steps.some((step) => step.state === 'running');
}
