// One metric of several runs over the time since what they are aligned by: a line for each group,
// with a band from its smallest to its largest run.

import {color, element} from '../dom.js';
import {formatter, seconds} from '../numbers.js';
import {axes, BYTES, cursorPlace, Plot, range, swatch, TIMES} from '../plot.js';
import {hideTip, showTip} from '../tip.js';

const HEIGHT = 190;

export class DiffChart extends Plot {
  constructor(series, axis, groups) {
    super();
    this.height = HEIGHT;
    this.series = series;
    this.groups = groups;
    this.format = formatter(series.name, series.unit, series.per_second);
    const first = axis.from + axis.bin_seconds / 2;
    this.axis = Array.from({length: axis.bins}, (_, i) => first + i * axis.bin_seconds);
    this.plot.style.height = HEIGHT + 'px';
    this.plot.setAttribute('role', 'img');
    this.plot.setAttribute('aria-label', `${series.name}: ` + series.groups.map((group, g) =>
        `${groups[g].label} ${this.mean(group)}`).join(', '));
    this.figure = element('figure', {'data-metric': series.name},
        element('figcaption', {}, element('b', {title: series.name}, series.name)), this.plot,
        element('ul', {class: 'legend'}, ...series.groups.map((group, g) => this.legendItem(group, g))));
  }

  mean(group) {
    const values = group.mean.filter((value) => value !== null);
    if (values.length === 0) return 'n/a';
    return this.format(values.reduce((a, b) => a + b, 0) / values.length);
  }

  legendItem(group, g) {
    return element('li', {}, swatch(color(g)), `${this.groups[g].label} ${this.mean(group)}`);
  }

  // When it can be seen for the first time.
  resize() {
    if (!this.plot.clientWidth) return;
    if (this.chart) {
      super.resize();
      return;
    }
    const several = (g) => this.groups[g].runs.length > 1;
    const columns = [this.axis];
    const lines = [{}];
    const bands = [];
    this.series.groups.forEach((group, g) => {
      const line = (width, alpha) => ({stroke: color(g) + alpha, width, points: {show: false}});
      if (several(g)) {
        bands.push({series: [columns.length, columns.length + 1], fill: color(g) + '26'});
        columns.push(group.max, group.min);
        lines.push(line(0.5, '66'), line(0.5, '66'));
      }
      columns.push(group.mean);
      // What stands alone has no line.
      const lonely = alone(group.mean);
      lines.push({...line(1.75, ''), points: {show: lonely.length > 0, size: 6, fill: color(g),
                                              filter: () => lonely}});
    });
    this.chart = new uPlot(this.options(lines, bands), columns, this.plot);
  }

  options(series, bands) {
    return {
      width: this.plot.clientWidth, height: HEIGHT, padding: [8, 34, 0, 0], legend: {show: false},
      cursor: {sync: {key: 'diff'}, points: {size: 5}, drag: {x: false, y: false}},
      scales: {x: {time: false}, y: {range: (u, low, high) => range(low, high)}},
      axes: axes({incrs: TIMES, values: (u, marks) => marks.map(seconds)},
                 {values: (u, marks) => marks.map(this.format),
                  ...(this.series.unit === 'bytes' ? {incrs: BYTES} : {})}),
      series, bands, hooks: {setCursor: [(u) => this.onCursor(u)]},
    };
  }

  onCursor(u) {
    const i = u.cursor.idx;
    if (i === null || i === undefined || !u.over.matches(':hover')) return hideTip(this);
    const rows = this.series.groups.map((group, g) => {
      const value = group.mean[i];
      return element('tr', {}, element('td', {}, swatch(color(g)), this.groups[g].label),
                     element('td', {}, value === null ? 'no samples' : this.format(value)));
    });
    showTip(this, element('table', {}, element('thead', {}, element('tr', {},
        element('th', {colspan: '2'}, seconds(this.axis[i])))), element('tbody', {}, ...rows)),
        ...cursorPlace(u));
  }
}

const alone = (values) => [...values.keys()].filter((i) => values[i] !== null &&
    (values[i - 1] ?? null) === null && (values[i + 1] ?? null) === null);
