// How the numbers of a program grow with the size of its runs (#/models?runs=cavity&by=nodes), from
// /api/v1/models, which has the JSON of `sonde model`.

import {$, element, linkButton, plural, say} from '../dom.js';
import {formatter, trim} from '../numbers.js';
import {explain, getJson} from '../server.js';
import {GrowthChart} from './growth.js';

const AHEAD = 4;  // growth is from the largest size to so many times that
const BY = [['', 'nodes, else tasks'], ['nodes', 'nodes'], ['tasks', 'tasks'],
            ['threads', 'threads of a task'], ['tag', 'a tag whose value is a number']];
const ENOUGH = 5;  // sizes, of which a trend can be told
const SLOW = 1.5;  // growth by 4 times the size that deserves a look

// The two pages, both about the step if there is one.
export const pagesOf = (here, job) => element('nav', {class: 'pages-of', 'aria-label': 'Models'},
    ...[['models', 'Growth with size'], ['periods', 'What repeats itself']].map(([page, text]) =>
        element('a', {href: `#/${page}` + (job ? '?' + new URLSearchParams({job}) : ''),
                      'aria-current': page === here ? 'page' : undefined}, text)));

export function field(name, control, kind = '') {
  return element('label', {class: `field ${kind}`}, name, control);
}

function form(parameters, go) {
  const input = (attributes) => element('input', {type: 'text', ...attributes});
  const by = parameters.get('by') ?? '';
  const tagged = by.startsWith('tag:');
  const runs = input({value: parameters.get('runs') ?? '', placeholder: 'lammps, or 4711,4712.0', 'data-field': 'runs'});
  const parameter = element('select', {'data-field': 'by'}, ...BY.map(([value, text]) =>
      element('option', {value, selected: value === (tagged ? 'tag' : by)}, text)));
  const tag = input({value: tagged ? by.slice(4) : '', placeholder: 'grid', 'data-field': 'tag'});
  const metric = input({value: parameters.get('metric') ?? '', placeholder: 'the main ones', 'data-field': 'metric'});
  const all = element('input', {type: 'checkbox', 'data-field': 'all'});
  all.checked = parameters.get('all') === 'true';
  const tagField = field('Tag', tag);
  const showTag = () => { tagField.hidden = parameter.value !== 'tag'; };
  parameter.addEventListener('change', showTag);
  showTag();
  const made = element('form', {class: 'models-form', 'aria-label': 'Runs'},
      field('Command, job name, or jobs and steps', runs, 'wide-field'), field('Runs differ in', parameter), tagField,
      field('Numbers whose names have', metric),
      element('label', {class: 'switch check'}, all, 'whole footprint'),
      element('button', {class: 'button'}, 'Model'));
  made.addEventListener('submit', (event) => {
    event.preventDefault();
    const next = new URLSearchParams();
    if (runs.value.trim()) next.set('runs', runs.value.trim());
    const chosen = parameter.value === 'tag' ? (tag.value.trim() ? 'tag:' + tag.value.trim() : '') : parameter.value;
    if (chosen) next.set('by', chosen);
    if (metric.value.trim()) next.set('metric', metric.value.trim());
    if (all.checked) next.set('all', 'true');
    go(next);
  });
  return made;
}

// What is needed before a trend can be told, in words.
function needed(...reasons) {
  return element('div', {class: 'needed'}, ...reasons.map((reason) => element('p', {}, reason)),
      element('p', {}, 'A model needs completed runs of the same program at 5 different sizes or more; of fewer ' +
              'nobody can tell growth from chance. Several runs of each size, and a largest size of at least 4 ' +
              'times the smallest, make it surer.'));
}

const short = (warning) => warning.split(':')[0];

class Models {
  constructor(view, parameters, answer) {
    this.view = view;
    this.parameters = parameters;
    this.answer = answer;
    this.names = answer.parameters;
    this.sizes = new Set(answer.runs.map(({place}) => JSON.stringify(place))).size;
    this.plots = element('section', {'aria-label': 'Model', class: 'model-plot', tabindex: '-1'});
    const common = answer.models.length === 0 ? []
        : answer.models[0].warnings.filter((one) => answer.models.every(({warnings}) => warnings.includes(one)));
    this.common = common;
  }

  places() { return this.answer.runs.map(({place}) => place[this.names[0]]); }

  notes() {
    const all = [...this.answer.notes, ...this.common];
    return all.length ? element('ul', {class: 'notes'}, ...all.map((note) => element('li', {}, note))) : '';
  }

  table() {
    const most = Math.max(...this.places());
    const head = [['Number', ''], [`At ${trim(most)} ${this.names[0]}`, 'number'], [`Times ${AHEAD}`, 'number'],
                  ['Growth', 'number'], ['Model', ''], ['Error', 'number'], ['R\u00b2', 'number'], ['Beware', '']];
    const rows = this.answer.models.map((model) => this.row(model, most));
    return element('div', {class: 'frame'}, element('table', {class: 'growths', 'aria-label': 'Models'},
        element('thead', {}, element('tr', {}, ...head.map(([text, kind]) =>
            element('th', {scope: 'col', class: kind || undefined}, text)))),
        element('tbody', {}, ...rows)));
  }

  row(model, most) {
    const format = formatter('', model.unit, false);
    const trend = model.terms.length > 0;
    const few = this.sizes < ENOUGH;
    const none = few ? 'cannot be told' : 'does not depend on it';
    const at = (size) => {
      if (!model.curve || (few && size > most)) return '';
      const [, value] = model.curve.reduce((a, b) =>
          (Math.abs(Math.log(b[0] / size)) < Math.abs(Math.log(a[0] / size)) ? b : a));
      return format(value);
    };
    const cell = (name, kind, text) => element('td', {class: kind || undefined, 'data-name': name || undefined}, text);
    const show = linkButton(model.metric, () => this.choose(model.metric));
    const own = model.warnings.filter((one) => !this.common.includes(one));
    return element('tr', {'data-metric': model.metric, class: model.metric === this.shown ? 'chosen' : undefined},
        cell('', '', show), cell('Largest', 'number', at(most)), cell(`Times ${AHEAD}`, 'number', at(AHEAD * most)),
        cell('Growth', 'number' + (model.growth > SLOW ? ' fast' : ''), trend ? `\u00d7 ${trim(model.growth)}` : few ? '' : 'none'),
        element('td', {class: 'formula'}, trend ? element('code', {}, model.model) : none),
        cell('Error', 'number', `${trim(model.smape)} %`),
        cell('R\u00b2', 'number', trend && model.adjusted_r2 !== null ? trim(model.adjusted_r2) : ''),
        element('td', {class: 'beware', title: own.join('\n')}, own.map(short).join(', ')));
  }

  choose(metric) {
    this.parameters.set('show', metric);
    this.view.hash = '#/models?' + this.parameters;
    history.replaceState(null, '', this.view.hash);
    this.show(metric);
    this.plots.focus();
  }

  show(metric) {
    const model = this.answer.models.find((one) => one.metric === metric) ?? this.answer.models[0];
    this.shown = model.metric;
    document.querySelectorAll('.growths tr[data-metric]').forEach((row) =>
        row.classList.toggle('chosen', row.dataset.metric === this.shown));
    this.view.dropCharts();
    const words = [element('p', {class: 'words model-text'}, model.terms.length
        ? `${model.metric} = ` : this.sizes < ENOUGH ? `${model.metric}: whether it grows cannot be told. The mean: `
        : `${model.metric} does not depend on ${this.names.join(' and ')}: `,
        element('code', {}, model.model),
        `; ${plural(model.runs, 'run')}, error ${trim(model.smape)} %` +
        (model.left_out ? `, ${plural(model.left_out, 'run')} left out` : ''))];
    const own = model.warnings.filter((one) => !this.common.includes(one));
    if (own.length) words.push(element('ul', {class: 'notes'}, ...own.map((one) => element('li', {}, one))));
    if (!model.curve) {
      this.plots.replaceChildren(element('h2', {}, model.metric), ...words,
          element('p', {class: 'words'}, 'A model of two parameters is not drawn.'));
      return;
    }
    const chart = new GrowthChart(model, this.places(), this.names[0], (i) => {
      const {job, step} = this.answer.runs[i];
      return step ? `${job}.${step}` : job;
    });
    this.view.charts.push(chart);
    this.plots.replaceChildren(element('h2', {}, 'Runs and model'), chart.figure, ...words);
  }
}

export async function showModels(view, text) {
  document.title = 'Models \u00b7 Sonde';
  $('crumb').textContent = 'Models';
  const parameters = new URLSearchParams(text);
  const go = (next) => { location.hash = '#/models?' + next; };
  const job = parameters.get('job');
  if (job && !parameters.has('runs')) {
    // Of a step: the runs of its program.
    const {steps} = await getJson('/api/v1/steps', {job});
    if (view.stale()) return;
    parameters.set('runs', steps[0].name || steps[0].title);
    view.hash = '#/models?' + parameters;
    history.replaceState(null, '', view.hash);
  }
  const top = [pagesOf('models', job), element('h1', {}, 'Growth with the size of runs'), form(parameters, go)];
  view.running = false;
  view.parts = top;
  if (!parameters.get('runs')) {
    $('view').replaceChildren(...top, needed('Name a program, a job, or steps of different sizes.'));
    return;
  }
  const asked = [...parameters].filter(([name]) => name !== 'show' && name !== 'job');
  let answer;
  try {
    answer = await getJson('/api/v1/models', asked);
  } catch (error) {
    if (view.stale()) return;
    if (error instanceof TypeError) throw error;
    say('');
    $('view').replaceChildren(...top, error.status === 404 ? needed(explain(error))
                                     : element('div', {class: 'needed'}, element('p', {}, explain(error))));
    return;
  }
  if (view.stale()) return;
  const models = new Models(view, parameters, answer);
  if (answer.models.length === 0) {
    $('view').replaceChildren(...top, models.notes(), needed('No number of these runs has that name.'));
    return;
  }
  $('view').replaceChildren(...top,
      element('p', {class: 'words'}, `${plural(answer.runs.length, 'run')} of ${plural(models.sizes, 'size')}. ` +
              `Growth: from the largest size to ${AHEAD} times that. What grows most comes first.`),
      models.notes(), models.sizes < ENOUGH ? needed(`These runs have ${plural(models.sizes, 'size')}.`) : '',
      models.plots, element('h2', {}, 'All numbers'), models.table());
  models.show(parameters.get('show'));
}
