// The section of a step's nodes or ranks, or of what is within a node: the heatmap of a metric that is
// chosen, and the table below it.

import {element} from '../dom.js';
import {GROUPS, isIdle} from '../metrics.js';
import {explain, getJson} from '../server.js';

import {Heatmap, tagsOfMetric} from './heatmap.js';
import {insideOf, isPart, nounOf, tagsOf, valuesOf} from './inside.js';
import {Members} from './members.js';
import {tasksOf} from './ranks.js';

// Of these the first one that the step has, unless another one is chosen.
const FIRST = ['task_cpu_seconds_total', 'node_cpu_seconds_total', 'node_load1'];

const AGAIN_MS = 15000;  // from the end of a reading to the next one, because time has passed

export class Matrix {
  constructor(tools) {
    this.tools = tools;
    const select = (id, label, options) => {
      const one = element(
          'select', {id, 'aria-label': label},
          ...options.map(([value, text]) => element('option', {value}, text)));
      return one;
    };
    this.metric = select('heat-metric', 'Metric of the heatmap', []);
    this.by = select('heat-by', 'Rows of', []);
    this.shade =
        select('heat-shade', 'Colour by', [['mean', 'mean'], ['max', 'most'], ['min', 'least']]);
    this.scale = select(
        'heat-scale', 'Scale of colours', [['', 'what is shown'], ['zero', 'from 0']]);
    this.metric.addEventListener(
        'change', () => tools.show({metric: this.metric.value, rows: null}));
    this.by.addEventListener(
        'change', () => tools.show({by: this.by.value === 'host' ? '' : this.by.value, rows: null}));
    this.shade.addEventListener(
        'change', () => tools.show({shade: this.shade.value === 'mean' ? '' : this.shade.value}));
    this.scale.addEventListener('change', () => tools.show({scale: this.scale.value}));
    this.members = new Members(tools);
    const saves = ['PNG', 'SVG', 'CSV'].map((text) => {
      const one = element('button', {type: 'button', class: 'button'}, text);
      one.addEventListener('click', () => this.heatmap[text.toLowerCase()](tools.id));
      return one;
    });
    this.heatmap = new Heatmap(tools, saves);
    this.reset = element('button', {type: 'button', class: 'button'}, 'Show all');
    this.reset.addEventListener('click', () => tools.reset());
    this.heading = element('h2', {}, 'Nodes');
    this.inside = element('div', {class: 'tools inside', role: 'group', 'aria-label': 'Inside the node'});
    this.section = element(
        'section', {'aria-label': 'Nodes and ranks', class: 'matrix'}, this.heading, this.inside,
        element(
            'div', {class: 'tools'}, this.metric, element('label', {}, 'by ', this.by),
            element('label', {}, 'colour ', this.shade),
            element('label', {}, 'scale ', this.scale), this.reset, ...saves),
        this.heatmap.figure, this.members.section);
  }

  destroy() {
    this.heatmap.destroy();
  }

  update(state, metrics, profile, moments) {
    this.state = state;
    this.metrics = metrics;
    this.profile = profile;
    this.moments = moments;
    const tasks = [...metrics.values()].some((one) => one.by_task);
    const task = state.by === 'task' && tasks;
    this.shade.value = state.shade || 'mean';
    this.scale.value = state.scale === 'zero' ? 'zero' : '';
    this.reset.hidden = !state.range && !state.rows;
    const able = [...metrics.values()].filter((one) => !task || one.by_task);
    this.offer(able);
    const wanted = able.find((one) => one.metric === state.metric) ??
        FIRST.map((name) => able.find((one) => one.metric === name)).find(Boolean) ?? able[0];
    this.shown = wanted;
    if (wanted) this.metric.value = wanted.metric;
    this.offerRows(wanted, tasks);
    const by = this.by.value;
    this.heading.textContent = by === 'host' ? 'Nodes' :
        by === 'task'                        ? 'Ranks' :
                                               `${state.host}: ${nounOf(by)}s`;
    const focused = [...this.inside.children].indexOf(document.activeElement);
    this.inside.replaceChildren(...insideOf(state, metrics, this.tools));
    this.inside.children[focused]?.focus();
    this.inside.hidden = !state.host;
  }

  // Nodes, ranks and, within a node, what the metric's tags name.
  offerRows(metric, tasks) {
    const tags = this.state.host && metric ? tagsOf(metric) : [];
    const options = [
      ['host', 'nodes'], ...(tasks ? [['task', 'ranks']] : []),
      ...tags.map((tag) => [tag, `${nounOf(tag)}s of ${this.state.host}`])
    ];
    const key = options.join();
    if (this.rowsOffered !== key) {
      this.by.replaceChildren(
          ...options.map(([value, text]) => element('option', {value}, text)));
    }
    this.rowsOffered = key;
    this.by.closest('label').hidden = options.length < 2;
    this.by.value = options.some(([value]) => value === this.state.by) ? this.state.by : 'host';
  }

  // All metrics by their groups, those that tell something first.
  offer(metrics) {
    const key = metrics.map((one) => one.metric).join();
    if (this.offered === key) return;
    this.offered = key;
    const groups = GROUPS.map(([name], group) => {
      const own = metrics.filter(
          (one) => one.group === group && !one.still && one.entries.some((e) => !isIdle(e)));
      if (own.length === 0) return null;
      return element(
          'optgroup', {label: name},
          ...own.map(
              (one) => element('option', {value: one.metric, title: one.metric}, one.title)));
    });
    const still = metrics.filter((one) => one.still || one.entries.every(isIdle));
    groups.push(
        still.length ?
            element(
                'optgroup', {label: 'without a change'},
                ...still.map((one) => element('option', {value: one.metric}, one.title))) :
            null);
    this.metric.replaceChildren(...groups.filter(Boolean));
  }

  // The question about all that is shown here.
  question() {
    const {state} = this;
    const by = this.by.value;
    const tags = tagsOfMetric(this.shown, by);
    const rows = state.rows && state.rows[0] < this.all(by) ? state.rows : null;
    return {
      job: this.tools.id,
      metric: this.shown.metric,
      by,
      ...(isPart(by) ? {host: state.host} : {}),
      ...(rows ? {first: rows[0], count: rows[1] - rows[0]} : {}),
      ...(tags ? {tags} : {}),
      ...state.times()
    };
  }

  // How many rows there would be without a choice.
  all(by) {
    if (isPart(by)) return valuesOf(this.shown, by);
    if (by === 'task') return this.profile.job.expected_tasks;
    return new Set(this.profile.job.nodes.map((node) => node.host)).size;
  }

  // `again`: because time has passed. That is not done at every tick, since all nodes are asked. A
  // question that is on its way is not asked a second time.
  async load(stale, again) {
    this.section.hidden = !this.shown;
    if (!this.shown) return;
    const question = this.question();
    const key = JSON.stringify(question);
    this.heatmap.shown.ask(question);
    if (!again && this.heatmap.shown.same) this.draw(this.heatmap.answered);
    if (this.loading?.key === key) return;
    if (again && this.read?.key === key && Date.now() - this.read.time < AGAIN_MS) return;
    const loading = this.loading = {key};
    const old = () => stale() || this.loading !== loading;
    await this.ask(question, old);
    if (old()) return;
    this.loading = null;
    this.read = {key, time: Date.now()};
  }

  draw(data) {
    const {state} = this;
    this.heatmap.answered = data;
    this.heatmap.answer(
        data, this.shown, tasksOf(this.profile), state.shade, state.scale === 'zero', this.moments);
  }

  async ask(question, old) {
    const {by} = question;
    const room = this.heatmap.room(Math.max(question.count ?? this.all(by), 1));
    try {
      const data = await getJson('/api/v1/heatmap', {...question, ...room});
      if (old()) return;
      this.draw(data);
    } catch (error) {
      if (old()) return;
      this.heatmap.fail(explain(error));
      this.loading.key = null;  // while the table is read, the heatmap may be asked for again
    }
    await this.members.load(
        this.tools.id, {
          state: this.state,
          by: isPart(by) ? 'host' : by,
          metrics: this.metrics,
          nodes: this.profile.job.nodes
        },
        old);
  }
}
