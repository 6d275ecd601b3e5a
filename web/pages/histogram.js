// One histogram of the application's: how its values were distributed over all tasks and the whole
// step. The buckets are those of core/histogram_buckets.h.

import {color, element} from './dom.js';
import {tagsText} from './metrics.js';
import {count, formatter} from './numbers.js';
import {axes, cursorPlace, Plot} from './plot.js';
import {hideTip, showTip} from './tip.js';

const HEIGHT = 170;
const MAX_BARS = 48;
const SUB_BUCKETS = 32;  // for each power of two
const MIN_EXPONENT = -31;
const OVERFLOW = 2529;

// Of a bucket from 1 on: its number less 1 has the exponent above and the part below.
function lowerBound(bucket) {
  const place = bucket - 1;
  return 2 ** (MIN_EXPONENT + Math.floor(place / SUB_BUCKETS)) *
         (1 + (place % SUB_BUCKETS) / SUB_BUCKETS);
}

// Neighbouring buckets as at most MAX_BARS bars of equal width, on a scale of powers of two, and a
// bar of its own for what is too small or too large: [{name, from, to, count}].
function barsOf(buckets) {
  const regular = buckets.filter(([bucket]) => bucket > 0 && bucket < OVERFLOW);
  const bars = [];
  if (regular.length) {
    const first = regular[0][0] - 1, last = regular[regular.length - 1][0] - 1;
    let width = 1;
    while (Math.floor(last / width) - Math.floor(first / width) + 1 > MAX_BARS) width *= 2;
    for (let at = Math.floor(first / width); at <= Math.floor(last / width); ++at) {
      bars.push({from: lowerBound(at * width + 1), to: lowerBound((at + 1) * width + 1), count: 0});
    }
    for (const [bucket, n] of regular) {
      bars[Math.floor((bucket - 1) / width) - Math.floor(first / width)].count += n;
    }
  }
  const [none] = buckets.filter(([bucket]) => bucket === 0);
  const [more] = buckets.filter(([bucket]) => bucket >= OVERFLOW);
  if (none) bars.unshift({name: '0 or less', count: none[1]});
  if (more) bars.push({name: 'more', count: more[1]});
  return bars;
}

export class Histogram extends Plot {
  constructor(distribution) {
    super();
    this.height = HEIGHT;
    const {metric, help, tags} = distribution;
    this.now = element('span');
    this.words = element('p', {class: 'words'});
    const name = [metric, tagsText(tags)].filter((text) => text).join(' ');
    this.figure = element('figure', {tabindex: '0', 'data-histogram': metric},
        element('figcaption', {}, element('b', {title: `${metric}\n${help}`}, name), this.now),
        this.plot, this.words);
  }

  draw(distribution) {
    this.format = formatter(distribution.metric, distribution.unit, false);
    this.total = distribution.count;
    this.bars = barsOf(distribution.buckets);
    this.now.textContent = `${count(distribution.count)} values`;
    const text = this.describe(distribution);
    this.words.textContent = text;
    this.figure.setAttribute('aria-label', `Histogram ${distribution.metric}: ${text}`);
    this.destroyChart();
    this.plot.replaceChildren();
    this.chart = new uPlot(this.options(), [this.bars.map((_, i) => i),
                                            this.bars.map((bar) => bar.count)], this.plot);
  }

  describe({count: n, sum, min, max, p50, p90, p99}) {
    if (n === 0) return 'No values yet';
    const known = min !== null && max !== null;
    return `Half of them up to ${this.format(p50)}, 90 % up to ${this.format(p90)}, ` +
           `99 % up to ${this.format(p99)}; mean ${this.format(sum / n)}` +
           (known ? `, from ${this.format(min)} to ${this.format(max)}` : '');
  }

  options() {
    return {
      width: this.plot.clientWidth || 360,
      height: HEIGHT,
      padding: [8, 26, 0, 0],
      legend: {show: false},
      cursor: {points: {show: false}, drag: {x: false, y: false}, y: false},
      scales: {x: {time: false, range: () => [-0.5, Math.max(this.bars.length, 1) - 0.5]},
               y: {range: (u, low, high) => [0, (high || 1) * 1.08]}},
      axes: axes({grid: {show: false}, incrs: [1, 2, 4, 8, 16, 32],
                  values: (u, splits) => splits.map((at) => this.label(at))},
                 {values: (u, splits) => splits.map(
                     (value) => (value === Math.floor(value) ? count(value) : ''))}),
      series: [{}, {fill: color(0) + 'b3', stroke: color(0), width: 0, points: {show: false},
                    paths: uPlot.paths.bars({size: [0.9, 60]})}],
      hooks: {setCursor: [(u) => this.onCursor(u)]},
    };
  }

  // The middle of a bar stands for where it begins.
  label(at) {
    const bar = this.bars[at];
    if (!bar) return '';
    return bar.name || this.format(bar.from);
  }

  onCursor(u) {
    const i = u.cursor.idx;
    if (u.cursor.left < 0 || i === null || i === undefined || !u.over.matches(':hover')) {
      hideTip(this);
      return;
    }
    const bar = this.bars[i];
    const range = bar.name || `${this.format(bar.from)} to ${this.format(bar.to)}`;
    const share = (bar.count / this.total * 100).toFixed(1);
    showTip(this, element('div', {}, element('div', {}, range),
                          element('div', {}, `${count(bar.count)} values, ${share} %`)),
            ...cursorPlace(u));
  }
}
