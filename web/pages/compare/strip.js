// A number of many runs as a strip of dots: a dot for each run between the least and the greatest, the
// middle 80 % of the runs and their median behind the dots.

import {css, element} from '../dom.js';
import {hideTip, showTip} from '../tip.js';

const HEIGHT = 34;
const RADIUS = 2.5;
const NEAR = 8;  // pixels from a dot that still mean it
const GOLDEN = 0.618033988749895;

export const runHash = (run) => '#/job/' + encodeURIComponent(idOf(run));
export const idOf = (run) => (run.step ? `${run.job}.${run.step}` : run.job);

export class Strip {
  constructor(row, runs, format) {
    this.row = row;
    this.runs = runs;
    this.format = format;
    this.apart = new Set(row.apart);
    this.canvas = element('canvas', {class: 'strip', role: 'img', 'aria-label':
        `${row.name}: ${format(row.min)} to ${format(row.max)}, median ${format(row.median)}`});
    this.canvas.addEventListener('mousemove', (event) => this.point(event));
    this.canvas.addEventListener('mouseleave', () => hideTip(this));
    this.canvas.addEventListener('click', (event) => {
      const i = this.at(event);
      if (i >= 0) location.hash = runHash(this.run(i));
    });
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.canvas);
  }

  destroy() {
    hideTip(this);
    this.observer.disconnect();
  }
  resize() { this.draw(); }

  index(i) { return this.row.runs ? this.row.runs[i] : i; }
  run(i) { return this.runs[this.index(i)]; }
  x(value) {
    const {min, max} = this.row;
    const room = this.canvas.clientWidth - 4 * RADIUS;
    return 2 * RADIUS + (max > min ? (value - min) / (max - min) : 0.5) * room;
  }
  // Dots of equal values lie beside each other, at the same places each time.
  y(i) { return 2 * RADIUS + ((i * GOLDEN) % 1) * (HEIGHT - 4 * RADIUS); }

  draw() {
    const width = this.canvas.clientWidth;
    if (!width) return;
    const ratio = devicePixelRatio || 1;
    this.canvas.width = width * ratio;
    this.canvas.height = HEIGHT * ratio;
    const pen = this.canvas.getContext('2d');
    pen.scale(ratio, ratio);
    const {p10, p90, median, values} = this.row;
    pen.fillStyle = css('--grid');
    pen.fillRect(this.x(p10), 0, Math.max(this.x(p90) - this.x(p10), 1), HEIGHT);
    const dots = (color, wanted) => {
      pen.fillStyle = color;
      values.forEach((value, i) => {
        if (value === null || this.apart.has(this.index(i)) !== wanted) return;
        pen.beginPath();
        pen.arc(this.x(value), this.y(i), wanted ? RADIUS + 1 : RADIUS, 0, 7);
        pen.fill();
      });
    };
    pen.globalAlpha = values.length > 60 ? 0.6 : 0.9;
    dots(css('--c0'), false);
    pen.globalAlpha = 1;
    dots(css('--c1'), true);
    pen.fillStyle = css('--text');
    pen.fillRect(this.x(median) - 1, 0, 2, HEIGHT);
  }

  // The run whose dot is nearest; -1: none is near.
  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let best = -1;
    let least = NEAR;
    this.row.values.forEach((value, i) => {
      if (value === null) return;
      const far = Math.hypot(this.x(value) - x, this.y(i) - y);
      if (far < least) [least, best] = [far, i];
    });
    return best;
  }

  point(event) {
    const i = this.at(event);
    this.canvas.style.cursor = i >= 0 ? 'pointer' : '';
    if (i < 0) return hideTip(this);
    const run = this.run(i);
    showTip(this, element('div', {}, element('b', {}, idOf(run)), ` ${run.title}`, element('br'),
                          `${this.format(this.row.values[i])}, ${run.nodes} nodes, ${run.state.replaceAll('_', ' ')}`),
            event.clientX, event.clientY);
  }
}
