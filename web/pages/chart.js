// One metric over time, with the phases and remarks of the step.

import {color, css, element, linkButton, plural, renew, sum} from './dom.js';
import {align, farthest, perHost, stack} from './lines.js';
import {isIdle, tagsText} from './metrics.js';
import {formatter, times} from './numbers.js';
import {axes, BYTES, cursorPlace, Plot, range, swatch} from './plot.js';
import {saveCsv, savePng, saveSvg} from './save.js';
import {plotSvg} from './step/plot_svg.js';
import {addsShares} from './step/ranks.js';
import {Shown} from './step/shown.js';
import {hideTip, showTip} from './tip.js';
import {clock} from './when.js';

const HEIGHT = 170;
const MOST_LINES = 64;  // of hosts

// Of how many nodes each point is, from the [time, nodes] where that changes; undefined before.
function nodesOf(changes, axis) {
  let next = 0;
  let nodes;
  return axis.map((time) => {
    while (next < changes.length && changes[next][0] <= time) nodes = changes[next++][1];
    return nodes;
  });
}

export class Chart extends Plot {
  // `tools`: what the page does when a range or a time is chosen.
  constructor(metric, tools) {
    super(element('p', {}, 'Loading'));
    this.metric = metric;
    this.tools = tools;
    this.showsIdle = false;
    this.now = element('span');
    this.saves = [];
    this.legend = element('ul', {class: 'legend'});
    this.figure = element('figure', {tabindex: '0', 'data-metric': metric.metric},
        element('figcaption', {}, element('b', {title: `${metric.metric}\n${metric.help}`},
                                          metric.title), this.now, this.menu()),
        this.plot, this.legend);
    this.shown = new Shown(this.figure, this.saves);
    this.figure.addEventListener('keydown', (event) => this.onKey(event));
    this.figure.addEventListener('blur', () => hideTip(this));
  }

  // On demand: the name and the help, what can be saved, the same by node.
  menu() {
    const {metric, title, help} = this.metric;
    const button = (text, act) => {
      const one = element('button', {type: 'button', class: 'button'}, text);
      one.addEventListener('click', act);
      return one;
    };
    this.saves.push(button('PNG', () => this.png()), button('SVG', () => this.svg()),
                    button('CSV', () => this.csv()));
    const panel = element('div', {class: 'panel', tabindex: '-1'},
        element('code', {}, metric), element('p', {}, help),
        element('div', {class: 'buttons'}, button('Heatmap of it', () => this.tools.heatmap(metric)),
                ...this.saves));
    const menu = element('details', {class: 'menu'},
        element('summary', {'aria-label': `About ${title}`, title: 'Name, help, save'}, '\u22ef'),
        panel);
    menu.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') menu.open = false;
      event.stopPropagation();
    });
    menu.addEventListener('focusout', (event) => {
      if (!menu.contains(event.relatedTarget)) menu.open = false;
    });
    return menu;
  }

  png() {
    if (!this.chart) return;
    savePng([this.tools.id, this.metric.metric], this.chart.ctx.canvas,
            `${this.tools.id}: ${this.metric.title}`,
            this.lines.length > 12 ? [] : [this.lines.map((line) => line.label).join(', ')]);
  }

  svg() {
    if (!this.chart) return;
    saveSvg([this.tools.id, this.metric.metric], plotSvg(this.chart, {
      title: `${this.tools.id}: ${this.metric.title}`, lines: this.lines, moments: this.moments, notes: [this.bandWords()].filter(Boolean)}));
  }

  csv() {
    if (!this.data) return;
    const columns = (this.hosts ?? this.lines).flatMap((line) => ['value', 'min', 'max'].filter((name) => line[name])
        .map((name) => [line.label + (name === 'value' ? '' : ' ' + name), line[name]]));
    saveCsv([this.tools.id, this.metric.metric],
            [['time', ...columns.map(([name]) => name)], ...this.axis.map((time, i) =>
                [new Date(time * 1000).toISOString(), ...columns.map(([, values]) => values[i])])]);
  }

  // What is drawn stays only where it answers the same question, as on a running step.
  fail(text) {
    if (this.chart && this.shown.same) return this.notRead(text);
    this.clear(text);
    this.data = null;
    this.now.textContent = '';
    this.legend.replaceChildren();
    this.figure.setAttribute('aria-label', `${this.metric.title}: ${text}`);
  }

  clear(text) {
    this.destroyChart();
    this.plot.replaceChildren(element('p', {}, text));
    this.shown.draw(false);
  }

  notRead(text) {
    this.legend.querySelector('.failed')?.remove();
    this.legend.append(element('li', {class: 'gap failed'}, `not read again: ${text}`));
  }

  // Draws the answer to what was asked last.
  answer(data, byHost, moments) {
    this.draw(data, byHost, moments);
    this.shown.draw(Boolean(this.chart));
  }

  draw(data, byHost, moments) {
    this.data = data;
    this.byHost = byHost;
    this.moments = moments;
    this.height = HEIGHT + moments.stripHeight();
    this.plot.style.height = this.height + 'px';
    this.format = formatter(data.metric, data.unit, data.rate);
    this.hosts = null;
    const {axis, lines: all} = align(data);
    const lines = this.busy(all);
    if (axis.length === 0) {
      this.clear('No samples');
      this.now.textContent = '';
      this.legend.replaceChildren();
      return;
    }
    this.kind = byHost ? 'lines' : lines.every((line) => line.tags.mode) ? 'stack'
                : lines.length === 1 ? 'band' : 'lines';
    this.lines = byHost ? this.linesOfHosts(lines) : this.kind === 'stack' ? stack(lines) : lines;
    this.lines.forEach((line, i) => {
      line.label = line.label || tagsText(line.tags) || (this.reduces() ? 'mean' : 'step');
      line.color = color(i);
    });
    this.axis = axis;
    const changes = this.data.nodes || [];
    this.nodes = nodesOf(changes, axis);
    this.mostNodes = Math.max(...changes.map(([, nodes]) => nodes));
    this.render();
    this.caption();
  }

  linesOfHosts(lines) {
    this.hosts = perHost(lines, this.data.reduction);
    if (addsShares(this.metric, this.data)) {
      for (const line of this.hosts) {
        const ranks = this.tools.tasks().get(line.label) || 1;
        line.value = line.value.map((value) => (value === null ? null : value / ranks));
      }
    }
    return farthest(this.hosts, MOST_LINES);
  }

  // Without what is idle all over the step, unless that is asked for or there is nothing else.
  busy(lines) {
    const name = (tags) => Object.entries(tags).filter(([key]) => key !== 'host')
        .map((pair) => pair.join('=')).sort().join();
    const idle = new Set(this.metric.entries.filter(isIdle).map((entry) => name(entry.tags)));
    const busy = lines.filter((line) => !idle.has(name(line.tags)));
    this.idle = busy.length ? lines.length - busy.length : 0;
    return this.showsIdle || !busy.length ? lines : busy;
  }

  // Whether more than one node or task is behind a point.
  reduces() {
    return this.lines.some((line) => line.count && Math.max(...line.count) > 1);
  }

  // The mean of the whole step, of a gauge, between two readings.
  showNow(value) {
    const {host, task, by, start} = this.shown.parameters ?? {};
    if (host || task || by || start || !this.shown.same) return;
    if (value !== null && this.format && this.lines && this.lines.length === 1) {
      this.now.textContent = this.format(value);
    }
  }

  // Whether a band says where the middle 90 % lie.
  spreads() {
    return this.kind === 'band' && Boolean(this.lines[0].p50) && this.reduces();
  }

  columns() {
    if (this.kind === 'band') {
      const [line] = this.lines;
      const spread = this.spreads() ? [line.p95, line.p5, line.p50] : [];
      return [this.axis, line.max, line.min, line.value, ...spread];
    }
    return [this.axis, ...this.lines.map((line) => line.top || line.value)];
  }

  render() {
    const columns = this.columns();
    const shape = this.height + this.kind + this.spreads() + this.lines.map((line) => line.label).join('\n');
    if (this.chart && this.shape === shape) {
      this.chart.setData(columns);
      return;
    }
    this.destroyChart();
    this.shape = shape;
    this.plot.replaceChildren();
    this.chart = new uPlot(this.options(), columns, this.plot);
  }

  options() {
    const values = (u, splits) => splits.map((value) => this.format(value));
    return {
      width: this.plot.clientWidth || 360,
      height: this.height,
      padding: [8 + this.moments.stripHeight(), 26, 0, 0],
      legend: {show: false},
      // The others follow the pointer, but not what is dragged.
      cursor: {sync: {key: 'step', filters: {pub: (type) => /^mouse(move|leave)$/.test(type)}},
               points: {size: 5}, drag: {x: true, y: false, setScale: false, dist: 5},
               bind: {dblclick: () => () => this.tools.reset()}},
      scales: {x: {range: () => [this.data.start, Math.max(this.data.end, this.data.start + 1e-3)]},
               y: {range: (u, low, high) => range(low, high)}},
      axes: axes({values: (u, splits, i, space, step) => times(splits, step)},
                 {values, ...(this.data.unit === 'bytes' ? {incrs: BYTES} : {})}),
      series: [{}, ...this.seriesOptions()],
      bands: this.bands(),
      hooks: {drawClear: [(u) => this.moments.drawPhases(u)],
              draw: [(u) => this.drawGaps(u), (u) => this.moments.drawAlarms(u),
                     (u) => this.moments.drawRemarks(u)],
              setCursor: [(u) => this.onCursor(u)], setSelect: [(u) => this.onSelect(u)]},
    };
  }

  seriesOptions() {
    const line = (stroke, more = {}) => ({stroke, width: 1.5, points: {show: false}, ...more});
    if (this.kind === 'band') {
      const {color} = this.lines[0];
      const edge = {width: 0.5};
      const band = [line(color + '80', edge), line(color + '80', edge)];
      const median = line(color, {width: 1, dash: [4, 3]});
      return [...band, line(color, {width: 2}), ...(this.spreads() ? [...band, median] : [])];
    }
    return this.lines.map((one, i) => line(one.color, {
      fill: this.kind === 'stack' && i === 0 ? one.color + '59' : undefined,
      width: this.lines.length > 16 ? 1 : 1.5,
    }));
  }

  bands() {
    if (this.kind === 'band') {
      const {color} = this.lines[0];
      if (!this.spreads()) return [{series: [1, 2], fill: color + '33'}];
      return [{series: [1, 2], fill: color + '1f'}, {series: [4, 5], fill: color + '40'}];
    }
    if (this.kind !== 'stack') return [];
    return this.lines.slice(1).map((one, i) => ({series: [i + 2, i + 1], fill: one.color + '59'}));
  }

  // Whether fewer nodes than usual are in a point; `null` where there is none at all.
  missing(i) {
    return this.lines.some((line) => line.count && line.count[i] !== null &&
                                     line.count[i] < Math.max(...line.count)) ||
           this.lines.every((line) => line.value[i] === null);
  }

  // A strip along the bottom where samples are missing, and a quiet one where only nodes are: not
  // yet there or gone, with all that they had counted.
  drawGaps(u) {
    const {ctx, bbox} = u;
    const half = this.data.interval / 2;
    const height = 3 * devicePixelRatio;
    // As one shape: what is drawn twice would be darker.
    const strip = (color, shown) => {
      ctx.fillStyle = color;
      ctx.beginPath();
      this.axis.forEach((time, i) => {
        if (!shown(i)) return;
        const next = i + 1 < this.axis.length ? this.axis[i + 1] - half : time + half;
        const left = Math.max(u.valToPos(time - half, 'x', true), bbox.left);
        const right = Math.min(u.valToPos(next, 'x', true), bbox.left + bbox.width);
        ctx.rect(Math.floor(left), bbox.top + bbox.height - height,
                 Math.ceil(right) - Math.floor(left), height);
      });
      ctx.fill();
    };
    ctx.save();
    strip(css('--soft') + '66', (i) => !this.missing(i) && this.nodes[i] < this.mostNodes);
    strip(css('--warn'), (i) => this.missing(i));
    ctx.restore();
  }

  // What the band around a line is; '' where there is none.
  bandWords() {
    if (this.kind !== 'band' || !this.reduces()) return '';
    return 'band: least to most' + (this.spreads() ? ', darker: 5 to 95 %, dashed: median' : '');
  }

  caption() {
    const last = (line) => line.value.findLast((value) => value !== null);
    const values = this.lines.map(last).filter((value) => value !== undefined);
    const stacked = this.kind === 'stack';
    const text = values.length === 0 ? '' : this.format(stacked ? sum(values) : values[0]);
    this.now.textContent = stacked || this.lines.length === 1 ? text : '';
    const items = this.lines.length > 12 ? [] : this.lines.map((line) => this.legendItem(line));
    if (this.bandWords()) items.push(element('li', {}, this.bandWords()));
    if (this.hosts?.length > this.lines.length) {
      items.push(element('li', {}, `${this.lines.length} of ${plural(this.hosts.length, 'node')}: those that ` +
                                   'differ most from the median'));
    } else if (this.lines.length > 12) {
      items.push(element('li', {}, plural(this.lines.length, 'line')));
    }
    if (this.hosts && addsShares(this.metric, this.data)) items.push(element('li', {}, 'in the mean of a node\u2019s ranks'));
    if (this.axis.some((time, i) => this.missing(i))) {
      items.push(element('li', {class: 'gap'}, 'samples missing'));
    }
    if (this.data.nodes_answered < this.data.nodes_expected) {
      items.push(element('li', {class: 'gap'},
          `${this.data.nodes_answered} of ${plural(this.data.nodes_expected, 'node')} answered`));
    }
    if (this.data.rows_only) {
      items.push(element('li', {class: 'gap', title: this.data.rows_only},
          'without the series of nodes that are missing'));
    }
    if (this.idle) items.push(element('li', {}, this.idleButton()));
    renew(this.legend, ...items);
    const {title, metric, help} = this.metric;
    this.figure.setAttribute('aria-label', `${title} (${metric}): ${help} Now ` +
        this.lines.slice(0, 8).map((line) => {
          const value = last(line);
          return `${line.label} ${value === undefined ? 'unknown' : this.format(value)}`;
        }).join(', '));
  }

  // So many that do nothing are folded.
  idleButton() {
    return linkButton(this.showsIdle ? `hide ${this.idle} idle` : `${this.idle} idle`, () => {
      this.showsIdle = !this.showsIdle;
      this.draw(this.data, this.byHost, this.moments);
    });
  }

  legendItem(line) {
    return element('li', {}, swatch(line.color), line.label);
  }

  onCursor(u) {
    const i = u.cursor.idx;
    const here = u.cursor.left >= 0 && (u.over.matches(':hover') || this.figure === document.activeElement);
    if (!here || i === null || i === undefined) {
      hideTip(this);
      if (u.over.matches(':hover') || this.told) this.tools.cursor(null, this);
      this.told = false;
      return;
    }
    this.told = true;
    this.tools.cursor(u.posToVal(u.cursor.left, 'x'), this);
    showTip(this, this.tipContent(i, this.momentsAt(u)), ...cursorPlace(u));
  }

  // A range was chosen by dragging.
  onSelect(u) {
    const {left, width} = u.select;
    if (!(width > 0)) return;
    const range = [u.posToVal(left, 'x'), u.posToVal(left + width, 'x')];
    u.setSelect({left: 0, width: 0, top: 0, height: 0}, false);
    if (u.over.matches(':hover') || this.told) this.tools.zoom(range);
  }

  // Where the pointer is on the heatmap.
  showTime(time) {
    if (!this.chart || !this.figure.offsetParent) return;
    const left = time === null ? -10 : this.chart.valToPos(time, 'x');
    this.chart.setCursor({left, top: time === null ? -10 : 10}, false);
  }

  // What was told where the pointer is.
  momentsAt(u) {
    const time = u.posToVal(u.cursor.left, 'x');
    return this.moments.at(time, Math.abs(u.posToVal(u.cursor.left + 4, 'x') - time));
  }

  tipContent(i, told) {
    const owner = (line, which) => {
      const host = line[which + '_host'] ? line[which + '_host'][i] : -1;
      const rank = line[which + '_rank'] ? line[which + '_rank'][i] : -1;
      if (host === null || host < 0) return '';
      return ' ' + this.data.hosts[host] + (rank >= 0 ? ' task ' + rank : '');
    };
    const order = this.lines.filter((line) => line.value[i] !== null);
    if (this.kind === 'lines') order.sort((a, b) => b.value[i] - a.value[i]);
    if (this.kind === 'stack') order.reverse();
    const rows = order.slice(0, 10).map((line) => {
      const cells = [element('td', {}, swatch(line.color), line.label), element('td', {}, this.format(line.value[i]))];
      if (line.min && line.count[i] > 1) {
        cells.push(element('td', {}, `least ${this.format(line.min[i])}${owner(line, 'min')}`),
                   element('td', {}, `most ${this.format(line.max[i])}${owner(line, 'max')}`));
        if (line.p50 && line.p50[i] !== null) {
          cells.push(element('td', {}, `median ${this.format(line.p50[i])}, 5 to 95 %: ` +
                                       `${this.format(line.p5[i])} to ${this.format(line.p95[i])}`));
        }
      }
      return element('tr', {}, ...cells);
    });
    const counts = order.filter((line) => line.count).map((line) => line.count[i]);
    const most = Math.max(...this.lines.map((line) => (line.count ? Math.max(...line.count) : 0)));
    const note = rows.length === 0 ? 'no samples'
        : this.nodes[i] < this.mostNodes ? `of ${this.nodes[i]} of ${plural(this.mostNodes, 'node')}`
        : Math.min(...counts) < most ? `from ${Math.min(...counts)} of ${most}` : '';
    return element('div', {}, element('div', {}, clock(this.axis[i]),
                                      note ? element('span', {class: 'gap'}, ' · ' + note) : ''),
                   told.length ? element('ul', {}, ...told) : null,
                   element('table', {}, element('tbody', {}, ...rows)));
  }

  onKey(event) {
    const step = {ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity}[event.key];
    if (event.key === 'Escape') hideTip();
    if (event.target === this.figure && this.chart) {
      if (event.key === '0') return this.tools.reset();
      if (event.key === '+' || event.key === '-') return this.zoomBy(event.key === '+' ? 0.5 : 2);
    }
    if (step === undefined || !this.chart) return;
    event.preventDefault();
    const last = this.axis.length - 1;
    const from = this.chart.cursor.idx ?? last;
    const i = Math.min(Math.max(from + step, 0), last);
    this.chart.setCursor({left: this.chart.valToPos(this.axis[i], 'x'), top: 10});
  }

  // Around the cursor.
  zoomBy(factor) {
    const {start, end} = this.data;
    const middle = this.chart.cursor.idx === null || this.chart.cursor.left < 0
        ? (start + end) / 2 : this.axis[this.chart.cursor.idx];
    const half = (end - start) / 2 * factor;
    this.tools.zoom([middle - half, middle + half]);
  }
}
