// One series of many runs: at each moment the median of the runs, the middle 80 % of them, and the least
// and the greatest.

import {color, element} from '../dom.js';
import {formatter, percent, seconds} from '../numbers.js';
import {axes, BYTES, cursorPlace, Plot, range, swatch, TIMES} from '../plot.js';
import {hideTip, showTip} from '../tip.js';

const HEIGHT = 200;

export class BandChart extends Plot {
  constructor(series, answer) {
    super();
    this.height = HEIGHT;
    this.series = series;
    this.runs = answer.runs;
    this.share = answer.axis === 'share';
    this.format = formatter(series.name, series.unit, series.per_second);
    const width = answer.end / answer.bins;
    this.axis = Array.from({length: answer.bins}, (_, i) => (i + 0.5) * width);
    this.plot.style.height = HEIGHT + 'px';
    const legend = (alpha, text) => element('li', {}, swatch(color(0) + alpha), text);
    const most = Math.max(...series.count);
    this.plot.setAttribute('role', 'img');
    this.plot.setAttribute('aria-label', this.summary());
    this.figure = element('figure', {'data-metric': series.name},
        element('figcaption', {}, element('b', {title: series.name}, series.name),
                element('span', {}, most < this.runs ? `${most} of ${this.runs} runs` : '')),
        this.plot,
        element('ul', {class: 'legend'}, legend('', 'median'), legend('73', '10 to 90 %'),
                legend('33', 'all runs')));
  }

  summary() {
    const known = this.series.median.filter((value) => value !== null);
    if (known.length === 0) return `${this.series.name}: no samples`;
    return `${this.series.name}: median ${this.format(Math.min(...known))} to ${this.format(Math.max(...known))}`;
  }

  // When it can be seen for the first time.
  resize() {
    if (!this.plot.clientWidth) return;
    if (this.chart) {
      super.resize();
      return;
    }
    const {max, p90, median, p10, min} = this.series;
    const edge = {stroke: color(0) + '66', width: 0.5, points: {show: false}};
    const middle = {stroke: color(0), width: 2, points: {show: median.length === 1, size: 6}};
    this.chart = new uPlot({
      width: this.plot.clientWidth, height: HEIGHT, padding: [8, 34, 0, 0], legend: {show: false},
      cursor: {sync: {key: 'bands'}, points: {size: 5}, drag: {x: false, y: false}},
      scales: {x: {time: false}, y: {range: (u, low, high) => range(low, high)}},
      axes: axes({...(this.share ? {} : {incrs: TIMES}),
                  values: (u, marks) => marks.map(this.share ? percent : seconds)},
                 {values: (u, marks) => marks.map(this.format),
                  ...(this.series.unit === 'bytes' ? {incrs: BYTES} : {})}),
      series: [{}, edge, edge, middle, edge, edge],
      bands: [{series: [1, 5], fill: color(0) + '33'}, {series: [2, 4], fill: color(0) + '59'}],
      hooks: {setCursor: [(u) => this.onCursor(u)]},
    }, [this.axis, max, p90, median, p10, min], this.plot);
  }

  onCursor(u) {
    const i = u.cursor.idx;
    if (i === null || i === undefined || !u.over.matches(':hover')) return hideTip(this);
    const row = (name, values) => element('tr', {}, element('td', {}, name),
        element('td', {}, values[i] === null ? 'no samples' : this.format(values[i])));
    const {max, p90, median, p10, min, count} = this.series;
    const at = this.share ? `${percent(this.axis[i])} of the run` : `after ${seconds(this.axis[i])}`;
    showTip(this, element('table', {}, element('thead', {}, element('tr', {}, element('th', {colspan: '2'},
        `${at}, ${count[i]} of ${this.runs} runs`))), element('tbody', {}, row('greatest', max),
        row('90 %', p90), row('median', median), row('10 %', p10), row('least', min))), ...cursorPlace(u));
  }
}
