// The lines of one unit over time, with the cursor and the zoom that all graphs of the page share.

import {css, element} from '../dom.js';
import {times} from '../numbers.js';
import {axes, BYTES, cursorPlace, Plot, range, swatch} from '../plot.js';
import {column} from '../save.js';
import {plotSvg} from '../step/plot_svg.js';
import {hideTip, showTip} from '../tip.js';
import {clock} from '../when.js';
import {align, stack} from './lines.js';

const HEIGHT = 300;
const FEW = 60;  // points, which are drawn as points too
const TOLD = 12;  // lines in a tip
const NO_MOMENTS = {phases: [], remarks: [], lanes: 0};

export class Graph extends Plot {
  // `zoom(from, to)` is called with seconds when a part was chosen.
  constructor(zoom) {
    super();
    this.zoom = zoom;
    this.height = HEIGHT;
    this.plot.style.height = HEIGHT + 'px';
    this.caption = element('figcaption');
    this.figure = element('figure', {tabindex: '0', class: 'graph'}, this.caption, this.plot);
    this.figure.addEventListener('keydown', (event) => this.onKey(event));
    this.figure.addEventListener('blur', () => hideTip(this));
  }

  draw(lines, stacked) {
    this.lines = lines;
    this.format = lines[0].format;
    this.stacked = stacked;
    const {axis, columns} = align(lines);
    this.axis = axis;
    this.values = columns;
    const drawn = stacked ? stack(axis, columns) : columns;
    const {words} = lines[0].unit;
    this.caption.replaceChildren(element('b', {}, words), stacked ? element('span', {}, 'stacked') : '');
    this.figure.setAttribute('aria-label', `${words}: ` + lines.slice(0, 8).map((line) =>
        `${line.letter} ${line.name} now ${line.stats ? this.format(line.stats.last) : 'unknown'}`).join(', '));
    const shape = `${stacked} ${words} ${axis.length > FEW} ` + lines.map((line) => line.color).join(' ');
    if (this.chart && this.shape === shape) {
      this.chart.setData([axis, ...drawn]);
      return;
    }
    this.destroyChart();
    this.shape = shape;
    this.plot.replaceChildren();
    this.chart = new uPlot(this.options(), [axis, ...drawn], this.plot);
  }

  options() {
    const values = (u, splits) => splits.map((value) => this.format(value));
    const {lines, stacked} = this;
    const few = this.axis.length <= FEW;
    return {
      width: this.plot.clientWidth || 600,
      height: this.height,
      padding: [8, 26, 0, 0],
      legend: {show: false},
      cursor: {sync: {key: 'explore'}, points: {size: 5}, drag: {x: true, y: false, setScale: false}},
      scales: {y: {range: (u, low, high) => range(low, high)}},
      axes: axes({values: (u, splits, i, space, step) => times(splits, step)},
                 {values, ...(lines[0].unit.unit === 'bytes' ? {incrs: BYTES} : {})}),
      series: [{}, ...lines.map((line, i) => ({
        stroke: line.color, width: lines.length > 16 ? 1 : 1.5, points: {show: few, size: 5},
        fill: stacked && i === 0 ? line.color + '59' : undefined}))],
      bands: stacked ? lines.slice(1).map((line, i) => ({series: [i + 2, i + 1], fill: line.color + '59'})) : [],
      hooks: {setCursor: [(u) => this.onCursor(u)], setSelect: [(u) => this.onSelect(u)]},
    };
  }

  onSelect(u) {
    const {left, width} = u.select;
    if (width < 4) return;
    const [from, to] = [u.posToVal(left, 'x'), u.posToVal(left + width, 'x')];
    u.setSelect({left: 0, top: 0, width: 0, height: 0}, false);
    hideTip(this);
    // Graphs beside this one follow its pointer.
    if (u.over.matches(':hover') || this.figure === document.activeElement) this.zoom(from, to);
  }

  onCursor(u) {
    const i = u.cursor.idx;
    const here = u.cursor.left >= 0 && (u.over.matches(':hover') || this.figure === document.activeElement);
    if (!here || i === null || i === undefined) {
      hideTip(this);
      return;
    }
    const told = this.lines.map((line, k) => [line, this.values[k][i]])
        .filter(([, value]) => value !== undefined && value !== null);
    if (this.stacked) told.reverse();
    else told.sort((a, b) => b[1] - a[1]);
    const rows = told.slice(0, TOLD).map(([line, value]) => element('tr', {},
        element('td', {}, swatch(line.color), `${line.letter} ${line.name}`), element('td', {}, this.format(value))));
    const more = told.length - rows.length;
    showTip(this, element('div', {}, element('div', {}, clock(this.axis[i])),
        element('table', {}, element('tbody', {}, ...rows)), more > 0 ? `and ${more} more` : null), ...cursorPlace(u));
  }

  onKey(event) {
    const step = {ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity}[event.key];
    if (event.key === 'Escape') hideTip();
    if (step === undefined || !this.chart || this.axis.length === 0) return;
    event.preventDefault();
    const last = this.axis.length - 1;
    const i = Math.min(Math.max((this.chart.cursor.idx ?? last) + step, 0), last);
    this.chart.setCursor({left: this.chart.valToPos(this.axis[i], 'x'), top: 10});
  }
}

// All graphs below each other as one picture, with the names of their lines; a promise of a Blob.
export function pictureOf(graphs) {
  const ratio = devicePixelRatio;
  const [row, margin] = [18 * ratio, 12 * ratio];
  const width = Math.max(...graphs.map((graph) => graph.chart.ctx.canvas.width)) + 2 * margin;
  const heights = graphs.map((graph) => (graph.lines.length + 2) * row + graph.chart.ctx.canvas.height);
  const canvas = element('canvas');
  canvas.width = width;
  canvas.height = heights.reduce((a, b) => a + b, 2 * margin);
  const ctx = canvas.getContext('2d');
  ctx.fillStyle = css('--card');
  ctx.fillRect(0, 0, canvas.width, canvas.height);
  ctx.textBaseline = 'middle';
  let y = margin;
  for (const graph of graphs) {
    ctx.fillStyle = css('--text');
    ctx.font = `600 ${13 * ratio}px system-ui, sans-serif`;
    ctx.fillText(graph.lines[0].unit.words, margin, y + row / 2);
    y += row;
    ctx.drawImage(graph.chart.ctx.canvas, margin, y);
    y += graph.chart.ctx.canvas.height;
    ctx.font = `${12 * ratio}px system-ui, sans-serif`;
    for (const line of graph.lines) {
      ctx.fillStyle = line.color;
      ctx.fillRect(margin, y + row / 2 - 4 * ratio, 8 * ratio, 8 * ratio);
      ctx.fillStyle = css('--text');
      ctx.fillText(`${line.letter} ${line.name}`, margin + 14 * ratio, y + row / 2);
      y += row;
    }
    y += row;
  }
  return new Promise((done) => canvas.toBlob(done, 'image/png'));
}

// The same as a drawing.
export function drawingOf(graphs) {
  return column(graphs.map((graph) => plotSvg(graph.chart, {
    title: graph.lines[0].unit.words,
    lines: graph.lines.map((line) => ({label: `${line.letter} ${line.name}`, color: line.color})),
    moments: NO_MOMENTS,
    notes: [],
  })));
}
