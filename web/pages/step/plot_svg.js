// A plot of uPlot as a drawing of lines, areas and texts, with the phases and remarks of the step.

import {css, plural, svg} from '../dom.js';
import {STRIP} from '../moments.js';
import {picture} from '../save.js';

const MOST_NAMED = 24;  // lines, in the legend
const LETTER = 5.2;     // px of a letter of the strip's texts, about

const round = (value) => Math.round(value * 10) / 10;

// A colour as SVG 1.1 has it: those with transparency are written as two attributes.
function paint(name, colour) {
  const [, solid, alpha] = colour.match(/^(#[0-9a-f]{6})([0-9a-f]{2})$/i) ?? [null, colour, 'ff'];
  return {[name]: solid, [`${name}-opacity`]: Math.round(parseInt(alpha, 16) / 2.55) / 100};
}

const valueOf = (u, series, i, name) =>
    (typeof series[name] === 'function' ? series[name](u, i) : series[name]);

class PlotDrawing {
  constructor(u) {
    this.u = u;
    const ratio = devicePixelRatio;
    this.left = u.bbox.left / ratio;
    this.top = u.bbox.top / ratio;
    this.width = u.bbox.width / ratio;
    this.height = u.bbox.height / ratio;
    this.x = u.data[0].map((time) => this.atX(time));
  }

  atX(time) { return round(this.left + this.u.valToPos(time, 'x')); }
  atY(value) { return round(this.top + this.u.valToPos(value, 'y')); }

  // Indexes of neighbouring points that all have values.
  runs(...columns) {
    const runs = [];
    let run = null;
    this.x.forEach((_, i) => {
      const there = columns.every((column) => column[i] !== null && column[i] !== undefined);
      if (there && !run) runs.push(run = []);
      if (there) run.push(i);
      else run = null;
    });
    return runs;
  }

  points(run, column) { return run.map((i) => `${this.x[i]} ${this.atY(column[i])}`); }

  area(one, other, fill) {
    const d = this.runs(one, other).map((run) =>
        `M${this.points(run, one).join('L')}L${this.points([...run].reverse(), other).join('L')}Z`);
    return d.length ? svg('path', {d: d.join(''), ...paint('fill', fill)}) : null;
  }

  lines() {
    const {u} = this;
    const drawn = u.bands.map(({series: [a, b], fill}) =>
        this.area(u.data[a], u.data[b], typeof fill === 'function' ? fill(u, a) : fill));
    u.series.forEach((series, i) => {
      if (i === 0) return;
      const column = u.data[i];
      const fill = valueOf(u, series, i, 'fill');
      if (fill) drawn.push(this.area(column, column.map(() => 0), fill));
      // A point that stands alone is a line of no length, which round ends show.
      const d = this.runs(column).map((run) => {
        const [first, ...others] = this.points(run, column);
        return `M${first}L${(others.length ? others : [first]).join('L')}`;
      }).join('');
      if (!d) return;
      drawn.push(svg('path', {
        d, fill: 'none', ...paint('stroke', valueOf(u, series, i, 'stroke')),
        'stroke-width': series.width, 'stroke-linecap': 'round', 'stroke-linejoin': 'round',
        'stroke-dasharray': series.dash ? series.dash.join(' ') : undefined}));
    });
    return drawn;
  }

  // As the axes of the plot have been made.
  axes() {
    const [times, values] = this.u.axes;
    const bottom = this.top + this.height;
    const drawn = [];
    (times._splits ?? []).forEach((time, i) => {
      const x = this.atX(time);
      drawn.push(svg('line', {x1: x, x2: x, y1: this.top, y2: bottom, stroke: css('--grid')}),
                 svg('text', {x, y: bottom + 15, 'text-anchor': 'middle'}, times._values[i] ?? ''));
    });
    (values._splits ?? []).forEach((value, i) => {
      const y = this.atY(value);
      drawn.push(svg('line', {x1: this.left, x2: this.left + this.width, y1: y, y2: y, stroke: css('--grid')}),
                 svg('text', {x: this.left - 6, y: y + 4, 'text-anchor': 'end'}, values._values[i] ?? ''));
    });
    return drawn;
  }

  inside(begin, end) {
    const left = Math.max(this.atX(begin), this.left);
    const right = Math.min(this.atX(end), this.left + this.width);
    return right >= left ? [left, Math.max(right - left, 1)] : null;
  }

  phases(moments) {
    return moments.phases.flatMap((phase) => phase.intervals.flatMap((interval) => {
      const place = this.inside(interval.begin, interval.end);
      if (!place) return [];
      const [x, width] = place;
      const y = this.top - (moments.lanes - Math.min(phase.lane, moments.lanes - 1)) * STRIP;
      const named = phase.name.length * LETTER + 6 < width;
      return [
        svg('rect', {x, y, width, height: STRIP - 1, ...paint('fill', phase.color + '59')},
            svg('title', {}, phase.name)),
        named ? svg('text', {x: x + 3, y: y + STRIP - 2, 'font-size': 9}, phase.name) : null,
      ];
    }));
  }

  remarks(moments) {
    return moments.remarks.flatMap((remark) => {
      const place = this.inside(remark.time, remark.time);
      if (!place) return [];
      const [x] = place;
      return [svg('line', {x1: x, x2: x, y1: this.top, y2: this.top + this.height, stroke: css('--soft'),
                           'stroke-dasharray': '3 3'}, svg('title', {}, remark.text))];
    });
  }
}

function legend(lines, left, top) {
  return lines.slice(0, MOST_NAMED).flatMap((line, i) => [
    svg('rect', {x: left, y: top + i * 16 - 9, width: 10, height: 10, fill: line.color}),
    svg('text', {x: left + 16, y: top + i * 16}, line.label),
  ]);
}

// `lines`: label and colour of each. `notes`: lines below.
export function plotSvg(u, {title, lines, moments, notes}) {
  const drawing = new PlotDrawing(u);
  const more = lines.length > MOST_NAMED ? [`${plural(lines.length, 'line')}, ${MOST_NAMED} of them named`] : [];
  const height = u.height + 16 * Math.min(lines.length, MOST_NAMED) + 10;
  return picture(u.width, height, title, [...notes, ...more], ...drawing.phases(moments),
                 ...drawing.axes(), ...drawing.lines(), ...drawing.remarks(moments),
                 ...legend(lines, drawing.left, u.height + 16));
}
