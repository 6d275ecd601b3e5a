// The head of a step: what it is, what it came to, what is missing.

import {isAlarmNote} from './alarms.js';
import {element} from './dom.js';
import {bytes, figureValue, seconds} from './numbers.js';
import {coverageOf, stateOf} from './states.js';
import {clock} from './when.js';

function fact(name, ...value) {
  return element('div', {}, element('dt', {}, name), element('dd', {}, ...value));
}

// `title`: what the step is called.
export function describe(job, title, cost) {
  const id = job.step ? job.job + '.' + job.step : job.job;
  const end = job.end ? job.end / 1e9 : Date.now() / 1000;
  const missing = Math.max(job.expected_nodes - job.nodes.length, 0) +
                  job.nodes.filter((node) => node.lost).length;
  const facts = [
    fact('User', job.user + (job.account ? ` (${job.account})` : '')),
    fact('Partition', job.partition + (job.cluster ? ` on ${job.cluster}` : '')),
    fact('Nodes', job.expected_nodes + (missing ? ` (${missing} missing)` : '')),
    fact('Tasks', String(job.expected_tasks)),
    fact('Start', clock(job.start / 1e9)),
    fact('Duration', seconds(Math.max(end - job.start / 1e9, 0))),
    fact('Level, period', `${job.level}, ${seconds(job.period / 1e9)}`),
    fact('Coverage', coverageOf(job.coverage.got, job.coverage.expected)),
  ];
  if (cost && cost.cpu_seconds) {
    facts.push(fact('Cost of Sonde', `${seconds(cost.cpu_seconds)} CPU, ` +
                    `${bytes(cost.peak_node_memory)} on a node`));
  }
  const notes = [...job.notes.filter((note) => !isAlarmNote(note)), ...job.nodes.filter((node) => node.note)
      .map((node) => `${node.host}: ${node.note}`)];
  const figures = job.figures.map((figure) => fact(figure.name, figureValue(figure)));
  return element('section', {'aria-label': 'Step'},
      element('div', {class: 'title'}, element('h1', {}, id + (title ? ' ' + title : '')),
              stateOf(job.state)),
      element('code', {}, job.command),
      figures.length ? element('dl', {class: 'figures', 'aria-label': 'Figures of merit'},
                               ...figures) : null,
      element('dl', {class: 'facts'}, ...facts),
      notes.length ? element('ul', {class: 'notes', 'aria-label': 'Notes'},
                             ...[...new Set(notes)].map((note) => element('li', {}, note))) : null);
}
