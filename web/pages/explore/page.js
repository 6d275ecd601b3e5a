// The explorer (#/explore?...): queries that are put together by menus, what comes back as plots or a
// table, and the same questions for other programs.

import {$, element} from '../dom.js';
import {download} from '../save.js';
import {Bar} from './bar.js';
import {button, QueryForm} from './form.js';
import {Names} from './names.js';
import {ask, plan} from './request.js';
import {Results} from './results.js';
import {copyButton, Same} from './same.js';
import {MOST_QUERIES, newQuery, readState, shown, writeState} from './state.js';

// What a step that nobody asked anything of shows first.
const FIRST = ['node_cpu_seconds_total', 'task_cpu_seconds_total', 'node_load1'];

function firstQuery(profile) {
  const metrics = profile.footprint;
  const entry = FIRST.map((name) => metrics.find(({metric}) => metric === name)).find(Boolean) ?? metrics[0];
  if (!entry) return newQuery();
  const counts = entry.type !== 'gauge';
  return {...newQuery(entry.metric), ...(counts ? {aggregator: 'sum', rate: 'rate', function: 'max'} : {}),
          by: Object.keys(entry.tags)};
}

class Explorer {
  constructor(view, text) {
    this.view = view;
    this.names = new Names();
    this.state = readState(text);
    this.asked = null;
    this.turn = 0;
    this.unknown = '';  // what is wrong with the steps
  }

  async start() {
    const [aggregators, filters] = await Promise.all([this.names.aggregators(), this.names.filters()]);
    this.words = {aggregators, filters};
    if (this.state.jobs.length === 0) {
      const steps = await this.names.steps();
      if (steps.length) this.state.jobs = [steps[0].jobid];
    }
    await this.loadProfiles();
    if (this.state.queries.length === 0) {
      const [profile] = this.profiles();
      this.state.queries = [profile ? firstQuery(profile) : newQuery()];
    }
    this.results = new Results((from, to) => this.bar.zoom(from, to));
    this.same = new Same();
    this.bar = new Bar(this);
    this.forms = element('div', {class: 'queries'});
    this.add = button('Add query', '', () => this.addQuery(newQuery()));
    this.buildForms();
    this.element = element('div', {class: 'explore'}, element('h1', {class: 'unseen'}, 'Explorer'), this.bar.element,
        this.forms, this.add, element('section', {'aria-label': 'Results', class: 'results'}, this.tools(), this.results.element),
        this.same.element);
  }

  tools() {
    const name = (kind) => `sonde-${this.state.jobs.join('-')}-${shown(this.state)[0]?.[1].metric ?? ''}.${kind}`;
    this.csv = button('CSV', 'Save the points as CSV', () => download(name('csv'), this.results.csv()));
    this.json = button('JSON', 'Save the points as JSON', () => download(name('json'), this.results.json()));
    this.png = button('PNG', 'Save the plots as PNG', async () => download(name('png'), await this.results.picture()));
    this.svg = button('SVG', 'Save the plots as SVG', () => download(name('svg'), this.results.drawing()));
    const link = copyButton(() => location.href, 'Copy the link to this page');
    link.firstChild.before('Link ');
    return element('div', {class: 'tools'}, this.csv, this.json, this.png, this.svg, link);
  }

  // Of the steps that are known.
  profiles() { return this.state.jobs.map((job) => this.names.profiles.get(job)).filter(Boolean); }
  jobs() { return this.state.jobs; }
  count() { return this.state.queries.length; }
  range() { return this.asked ?? plan(this.state, this.profiles(), [], Date.now()); }
  live() { return Boolean(this.asked?.live) || this.profiles().some(({job}) => !job.end); }

  async loadProfiles() {
    const asked = await Promise.allSettled(this.state.jobs.map((job) => this.names.profile(job)));
    const failed = asked.filter(({status}) => status === 'rejected').map(({reason}) => reason);
    const gone = failed.find((error) => error instanceof TypeError);
    if (gone) throw gone;
    this.unknown = this.state.jobs.length === 0 ? 'Choose a step.' : failed.map(({message}) => message).join('; ');
  }

  buildForms() {
    this.queryForms = this.state.queries.map((query, i) => new QueryForm(this, query, i, this.words));
    this.forms.replaceChildren(...this.queryForms.map((form) => form.element));
    this.add.disabled = this.count() >= MOST_QUERIES;
  }

  addQuery(query, at = this.count()) {
    this.state.queries.splice(at, 0, query);
    this.buildForms();
    this.queryForms[at].metric.input.focus();
    this.changed();
  }

  copy(query, changes = {}) {
    const copied = {...query, by: [...query.by], filters: query.filters.map((one) => ({...one})), ...changes};
    this.addQuery(copied, this.state.queries.indexOf(query) + 1);
  }
  // Beside a query of values its change per second, and beside that the values.
  derive(query) { this.copy(query, {rate: query.rate ? '' : 'rate'}); }

  remove(query) {
    this.state.queries.splice(this.state.queries.indexOf(query), 1);
    this.buildForms();
    this.add.focus();
    this.changed();
  }

  async stepsChanged() {
    const text = this.address();
    try {
      await this.loadProfiles();
    } catch {
      // Asking for the data says what is wrong.
    }
    if (this.view.stale() || text !== this.address()) return;
    this.bar.showSteps();
    this.bar.add.input.focus();
    for (const form of this.queryForms) {
      form.showAbout();
      form.loadKeys();
    }
    this.changed();
  }

  address() { return '#/explore?' + writeState(this.state); }

  // Every change is an address of its own, so that the browser's way back leads to what was before.
  changed() {
    const address = this.address();
    if (address !== location.hash) history.pushState(null, '', address);
    this.view.hash = location.hash;
    this.view.refresh();
  }

  drawSame() {
    if (!this.asked) return;
    this.same.draw(this.asked, this.profiles(), (metric) => this.names.info(this.state.jobs, metric),
                   (metric) => this.names.keysOf(this.state.jobs, metric));
  }
  keysCame() { this.drawSame(); }

  async reload() {
    const turn = ++this.turn;
    await this.loadProfiles();
    if (turn !== this.turn || this.view.stale()) return;
    const fault = Bar.fault(this.state.range);
    this.bar.tell('steps', this.unknown);
    this.bar.tell('range', fault);
    const usable = !fault && this.profiles().length > 0;
    const asked = plan(this.state, this.profiles(), usable ? shown(this.state) : [], Date.now());
    this.asked = asked;
    this.drawSame();
    const answers = await Promise.all(asked.queries.map(async (one) => {
      try {
        return {...one, ...await ask(asked, one)};
      } catch (error) {
        if (error instanceof TypeError) throw error;
        return {...one, error: error.message};
      }
    }));
    if (turn !== this.turn || this.view.stale()) return;
    this.draw(answers, asked);
  }

  draw(answers, asked) {
    for (const form of this.queryForms) {
      const answer = answers.find(({letter}) => letter === form.letter);
      form.tell(answer?.error ?? '', answer?.notes ?? []);
    }
    this.results.draw(answers.filter(({results}) => results), this.state.view,
                      (metric) => this.names.info(this.state.jobs, metric), this.state.jobs, asked.first);
    this.csv.disabled = this.json.disabled = this.results.lines.length === 0;
    this.png.disabled = this.svg.disabled = this.results.graphs.size === 0;
    this.element.dataset.turn = String(this.turn);  // the tests wait for it
  }
}

export async function showExplore(view, text) {
  if (!view.explorer) {
    const explorer = new Explorer(view, text);
    await explorer.start();
    if (view.stale()) return;
    view.explorer = view.parts = explorer;
    view.charts.push(explorer.results);
    document.title = 'Explorer \u00b7 Sonde';
    $('crumb').textContent = 'Explorer';
    $('view').replaceChildren(explorer.element);
    history.replaceState(null, '', explorer.address());
    view.hash = location.hash;
  }
  await view.explorer.reload();
  view.running = view.explorer.live();
}
