// The list of steps (#/), from /job/list and /api/v1/damage.

import {$, element, plural} from './dom.js';
import {clock, figureValue, seconds} from './numbers.js';
import {Picks} from './picks.js';
import {getJson} from './server.js';
import {coverageOf, stateOf} from './states.js';

const COLUMNS = [
  ['', 'pick'], ['Step', ''], ['State', 'state-cell'], ['Name', ''], ['User', ''], ['Nodes', 'number'],
  ['Tasks', 'number'], ['Start', ''], ['Duration', 'number'], ['Coverage', 'number'],
];
const FIGURE = ['Figure of merit', ''];  // where a step has one

function jobRow(job, columns, picks) {
  const end = job.end_time || Date.now() / 1000;
  const cells = [
    picks.box(job.jobid, job.jobid, job.state),
    element('a', {href: '#/job/' + encodeURIComponent(job.jobid)}, job.jobid),
    stateOf(job.state), job.name, job.user, String(job.nodes), String(job.size),
    clock(job.start_time), seconds(Math.max(end - job.start_time, 0)),
    coverageOf(job.samples, job.samples_expected),
    job.figures.slice(0, 2).map((figure) => `${figure.name} ${figureValue(figure)}`).join(', '),
  ];
  const named = ['Nodes', 'Tasks', 'Coverage'];
  return element('tr', {}, ...columns.map(([name, kind], i) => element('td', {
    class: kind || undefined,
    'data-name': named.includes(name) ? name : undefined,
  }, cells[i])));
}

// What `sonde serve` could not read of the archive, as the list was made and before.
async function damageNote() {
  const {damage} = await getJson('/api/v1/damage');
  if (damage.length === 0) return [];
  const open = document.querySelector('.damage details[open]') !== null;
  return [element('section', {class: 'frame damage', 'aria-label': 'Damage'},
      element('p', {}, 'Some of the archive cannot be read. The rest is shown. ',
              element('code', {}, 'sonde archive verify'), ' names all that is lost, ',
              element('code', {}, 'sonde archive repair'), ' mends the archive.'),
      element('details', {open}, element('summary', {}, 'What could not be read'),
              element('ul', {}, ...damage.map((what) => element('li', {}, what)))))];
}

export async function showList(view) {
  // Without metric-proxy's own: the sum of all, and the nodes.
  const jobs = (await getJson('/job/list')).filter((job) => job.start_time !== 0);
  const note = await damageNote();
  if (view.stale()) return;
  $('crumb').textContent = plural(jobs.length, 'step');
  document.title = 'Sonde';
  if (jobs.length === 0) {
    $('view').replaceChildren(...note, element('div', {class: 'frame empty'}, 'No step yet. Start one with ',
                                      element('code', {}, 'srun --telemetry-level=2 ./app')));
  } else {
    const columns = jobs.some((job) => job.figures.length) ? [...COLUMNS, FIGURE] : COLUMNS;
    const head = columns.map(([name, kind]) => element('th', {scope: 'col', class: kind}, name));
    const picks = view.picks || (view.picks = new Picks());
    $('view').replaceChildren(...note, picks.bar(), element('div', {class: 'frame'},
        element('table', {class: 'jobs'}, element('thead', {}, element('tr', {}, ...head)),
                element('tbody', {}, ...jobs.map((job) => jobRow(job, columns, picks))))));
    picks.update();
  }
  view.running = true;  // a new step may appear
}
