// One number of runs against their size: the runs, the model's curve and the band of 95 % of runs.
// What lies beyond the runs is dashed.

import {color, css, element} from '../dom.js';
import {formatter, trim} from '../numbers.js';
import {axes, BYTES, cursorPlace, Plot, range, swatch, TIMES} from '../plot.js';
import {hideTip, showTip} from '../tip.js';

const HEIGHT = 320;
const DOUBLES = Array.from({length: 40}, (_, i) => 2 ** i);

export class GrowthChart extends Plot {
  // `sizes` of the runs; `idOf` names one.
  constructor(model, sizes, parameter, idOf) {
    super();
    this.height = HEIGHT;
    this.model = model;
    this.parameter = parameter;
    this.format = formatter('', model.unit, false);
    this.most = Math.max(...sizes);
    this.plot.style.height = HEIGHT + 'px';
    const runs = sizes.map((size, i) => ({size, value: model.values[i], id: idOf(i)}))
        .filter(({value}) => value !== null);
    const all = [...new Set([...runs.map(({size}) => size), ...model.curve.map(([size]) => size)])]
        .sort((a, b) => a - b);
    this.runsAt = new Map(all.map((size) => [size, runs.filter((run) => run.size === size)]));
    const most = Math.max(0, ...[...this.runsAt.values()].map((some) => some.length));
    const curve = new Map(model.curve.map(([size, ...rest]) => [size, rest]));
    const at = (k, wanted) => all.map((size) => (curve.has(size) && wanted(size) ? curve.get(size)[k] : null));
    const everywhere = () => true;
    this.known = [...curve];
    // One more point is drawn solid, so that the two parts meet.
    const first = Math.min(...model.curve.map(([size]) => size).filter((size) => size >= this.most));
    this.columns = [all, at(2, everywhere), at(1, everywhere), at(0, (size) => size <= first),
                    at(0, (size) => size >= first),
                    ...Array.from({length: most}, (_, i) => all.map((size) => this.runsAt.get(size)[i]?.value ?? null))];
    const mark = (style, text) => element('li', {}, swatch(style), text);
    this.figure = element('figure', {'data-metric': model.metric, role: 'img',
        'aria-label': `${model.metric}: ${model.model}, ${runs.length} runs, ${this.format(Math.min(...model.values.filter((v) => v !== null)))} to ${this.format(Math.max(...model.values))}`},
        element('figcaption', {}, element('b', {}, `${model.metric} by ${parameter}`)), this.plot,
        element('ul', {class: 'legend'}, mark(color(1), 'runs'), mark(color(0), 'model'),
                mark(color(0) + '80', `extrapolation, beyond ${trim(this.most)} ${parameter}`),
                curve.size && model.curve.some(([, , low]) => low !== null)
                  ? mark(color(0) + '33', '95 % of runs') : element('li', {}, 'no band: too few runs to tell')));
  }

  resize() {
    if (!this.plot.clientWidth) return;
    if (this.chart) {
      super.resize();
      return;
    }
    const edge = {stroke: color(0) + '66', width: 0.5, points: {show: false}, spanGaps: true};
    const line = {stroke: color(0), width: 2, points: {show: false}, spanGaps: true};
    const dots = {stroke: color(1), width: 0, paths: () => null,
                  points: {show: true, size: 7, fill: color(1), stroke: css('--card'), width: 1}};
    this.chart = new uPlot({
      width: this.plot.clientWidth, height: HEIGHT, padding: [8, 34, 0, 0], legend: {show: false},
      cursor: {points: {show: false}, drag: {x: false, y: false}},
      scales: {x: {time: false, distr: 3, log: 2}, y: {range: (u, low, high) => range(low, high)}},
      axes: axes({splits: () => DOUBLES.filter((size) => size >= this.columns[0][0] && size <= this.columns[0].at(-1)),
                  values: (u, marks) => marks.map((mark) => (mark === null ? '' : trim(mark))), space: 40},
                 {values: (u, marks) => marks.map(this.format),
                  ...({bytes: {incrs: BYTES}, seconds: {incrs: TIMES}}[this.model.unit] ?? {})}),
      series: [{}, edge, edge, line, {...line, dash: [6, 5]},
               ...this.columns.slice(5).map(() => dots)],
      bands: [{series: [1, 2], fill: color(0) + '26'}],
      hooks: {setCursor: [(u) => this.onCursor(u)],
              draw: [(u) => this.markEnd(u)]},
    }, this.columns, this.plot);
  }

  // Where the runs end.
  markEnd(u) {
    const x = Math.round(u.valToPos(this.most, 'x', true));
    u.ctx.save();
    u.ctx.strokeStyle = css('--soft');
    u.ctx.setLineDash([2, 4]);
    u.ctx.beginPath();
    u.ctx.moveTo(x, u.bbox.top);
    u.ctx.lineTo(x, u.bbox.top + u.bbox.height);
    u.ctx.stroke();
    u.ctx.restore();
  }

  onCursor(u) {
    const i = u.cursor.idx;
    if (i === null || i === undefined || !u.over.matches(':hover')) return hideTip(this);
    const size = this.columns[0][i];
    const row = (name, text) => element('tr', {}, element('td', {}, name), element('td', {}, text));
    const rows = this.runsAt.get(size).slice(0, 8).map(({id, value}) => row(id, this.format(value)));
    const [value, low, high] = this.known.find(([one]) => one === size)?.[1] ?? [];
    if (value !== undefined) {
      rows.push(row('model', this.format(value)));
      if (low !== null) rows.push(row('95 % of runs', `${this.format(low)} to ${this.format(high)}`));
    }
    const beyond = size > this.most ? ', beyond the runs' : '';
    showTip(this, element('table', {}, element('thead', {}, element('tr', {}, element('th', {colspan: '2'},
        `${this.parameter} ${trim(size)}${beyond}`))), element('tbody', {}, ...rows)), ...cursorPlace(u));
  }
}
