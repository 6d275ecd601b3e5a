// What every drawing by uPlot has: a figure's plot that follows its size, and how axes, ranges and
// marks look.

import {css, element} from './dom.js';

// Marks of bytes are at whole ones.
export const BYTES = Array.from({length: 60}, (_, i) => 2 ** i);
// Of seconds as well.
export const TIMES = [0.001, 0.01, 0.1, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 43200,
                      86400, 7 * 86400];

// One figure's plot. Who derives from it has `figure`, makes `chart` and says its height.
export class Plot {
  constructor(...content) {
    this.plot = element('div', {class: 'plot'}, ...content);
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.plot);
  }

  destroy() {
    this.observer.disconnect();
    this.destroyChart();
  }

  destroyChart() {
    if (this.chart) this.chart.destroy();
    this.chart = null;
  }

  resize() {
    if (this.chart) this.chart.setSize({width: this.plot.clientWidth, height: this.height});
  }
}

// Of time and of values; `more` of each is the caller's.
export function axes(time, values) {
  const axis = {stroke: css('--soft'), grid: {stroke: css('--grid'), width: 1}, ticks: {show: false},
                font: '11px system-ui, sans-serif'};
  return [{...axis, size: 24, space: 70, ...time}, {...axis, size: 76, space: 32, ...values}];
}

// With zero in it, and some room above.
export function range(low, high) {
  if (low === null || high === null || !Number.isFinite(high)) return [0, 1];
  if (low >= 0) return [0, high > 0 ? high * 1.08 : 1];
  const room = (high - low || 1) * 0.08;
  return [low - room, Math.max(high + room, 0)];
}

// The colour of a line, before its name.
export function swatch(color) {
  const mark = element('i');
  mark.style.background = color;
  return mark;
}

// Where the cursor is on the page.
export function cursorPlace(u) {
  const box = u.over.getBoundingClientRect();
  return [box.left + u.cursor.left, box.top + Math.max(u.cursor.top, 0)];
}
