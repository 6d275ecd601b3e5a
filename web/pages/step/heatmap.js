// All nodes or ranks of a step over time: a row for each, or for several neighbours where there are
// more than rows. The server makes the tiles (/api/v1/heatmap).

import {css, element, plural} from '../dom.js';
import {formatter, times, wholeTimes} from '../numbers.js';
import {hideTip, showTip} from '../tip.js';

import {beyond, isDark, palette, stripes} from './colours.js';
import {heatSvg} from './heat_svg.js';
import {isPart, nameOf, nounOf} from './inside.js';
import {perRank} from './ranks.js';
import {saveCsv, savePng, saveSvg} from '../save.js';
import {clock} from '../when.js';
import {Shown} from './shown.js';
import {Tiles} from './tiles.js';

const LEFT = 84, RIGHT = 12, BOTTOM = 26;  // px around the tiles
const MOST_HEIGHT = 420;
const ROW = 18;         // px of a row where there is room
const DRAG = 5;         // px that are no click
const DOUBLE_MS = 250;  // in which a second click makes it a double one
const SHADES = {
  __proto__: null,  // the address may name anything, such as 'constructor'
  mean: 'the mean',
  max: 'the most',
  min: 'the least'
};
const STEPS =
    [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];

// The series of a metric that are put together: time in which nothing is done is left out.
export function tagsOfMetric(metric, by) {
  if (by === 'mode') return '';
  const modes = metric.entries.map((entry) => entry.tags.mode);
  return modes.includes('idle') ? 'mode=not_literal_or(idle|iowait)' : '';
}

export class Heatmap {
  // `tools`: what the page does when a range, a node or a time is chosen. `saves`: buttons.
  constructor(tools, saves = []) {
    this.tools = tools;
    this.canvas = element('canvas', {});
    this.marker = element('div', {class: 'marker', hidden: true});
    this.chosen = element('div', {class: 'chosen', hidden: true});
    this.area = element(
        'div', {class: 'heat', tabindex: '0', role: 'group'}, this.canvas, this.marker,
        this.chosen);
    this.area.setAttribute('aria-label', 'Heatmap');
    this.key = element('div', {class: 'key'});
    this.words = element('p', {class: 'words', 'aria-live': 'polite'});
    this.figure = element('figure', {class: 'heatmap'}, this.area, this.key, this.words);
    this.shown = new Shown(this.figure, saves);
    this.observer = new ResizeObserver(() => this.render());
    this.observer.observe(this.area);
    this.area.addEventListener('pointerdown', (event) => this.onDown(event));
    this.area.addEventListener('pointermove', (event) => this.onMove(event));
    this.area.addEventListener('pointerup', (event) => this.onUp(event));
    this.area.addEventListener('pointerleave', () => this.onLeave());
    this.area.addEventListener('dblclick', () => {
      clearTimeout(this.click);
      this.tools.reset();
    });
    this.area.addEventListener('keydown', (event) => this.onKey(event));
    this.area.addEventListener('blur', () => this.onLeave());
  }

  destroy() {
    clearTimeout(this.click);
    this.observer.disconnect();
  }

  // How many tiles there is room for.
  room(members) {
    const width = Math.max((this.area.clientWidth || 600) - LEFT - RIGHT, 100);
    const rows = Math.min(members, MOST_HEIGHT);
    return {columns: Math.max(Math.min(Math.floor(width / 4), 400), 20), rows: Math.max(rows, 1)};
  }

  // What is drawn stays only where it answers the same question, as on a running step.
  fail(text) {
    this.words.classList.add('gap');
    if (this.data && this.shown.same) {
      this.words.textContent = `Not read again: ${text}`;
      return;
    }
    this.data = this.drag = this.at = null;
    this.shown.draw(false);
    hideTip(this);
    this.marker.hidden = this.chosen.hidden = true;
    Object.assign(this.canvas, {width: 0, height: 0});
    Object.assign(this.canvas.style, {width: '0', height: '0'});
    this.key.replaceChildren();
    this.words.textContent = text;
    this.area.setAttribute('aria-label', `Heatmap: ${text}`);
  }

  // Draws the answer to what was asked last. `tasks`: of each node.
  answer(data, metric, tasks, ...how) {
    const shares = perRank(data, metric, tasks);
    this.draw(shares.data, ...how, shares);
    this.shown.draw();
  }

  // `zero`: the scale of colours begins there. `about`: of what the values are, and how they are written.
  draw(data, shade, zero, moments, about = {words: ''}) {
    this.about = about;
    this.data = data;
    this.shade = shade in SHADES ? shade : 'mean';
    this.moments = moments;
    this.format = about.format ?? formatter(data.metric, data.unit, data.rate);
    this.tiles = new Tiles(data[this.shade], data.columns, isDark(), zero);
    this.view = null;
    this.chosen.hidden = !this.drag;
    if (this.at) {
      this.at = {
        row: Math.max(Math.min(this.at.row, this.tiles.height - 1), 0),
        column: Math.max(Math.min(this.at.column, this.tiles.width - 1), 0)
      };
    }
    this.render();
    this.drawKey();
    const several = data.rows.some(([, count]) => count > 1);
    const spans = data.end - data.start;
    const noun = nounOf(data.by);
    const opens = !isPart(data.by);
    this.words.classList.remove('gap');
    this.words.textContent = data.names.length === 0 ?
        `No ${noun}s` :
        (several ? `${data.names.length} ${noun}s in ${data.rows.length} rows. ` : '') +
            `A tile is ${SHADES[this.shade]} over ${this.span(data.interval)}` +
            (several ? ` and its ${noun}s` : '') + about.words + '. ' +
            'Drag to zoom, double-click to see all' + (opens ? `, click to open a ${noun}.` : '.');
    this.area.setAttribute(
        'aria-label',
        `${data.title} of ${plural(data.names.length, noun)}` +
            (data.host ? ` of ${data.host}` : '') + ' over ' +
            `${this.span(spans)}, from ${this.format(this.tiles.scale.least)} to ` +
            `${this.format(this.tiles.scale.most)}. Arrow keys move` +
            (opens ? `, Enter opens the ${noun}.` : '.'));
  }

  span(seconds) {
    return seconds >= 120 ? `${Math.round(seconds / 6) / 10} min` :
                            `${Math.round(seconds * 100) / 100} s`;
  }

  plotHeight() {
    const rows = this.data.rows.length;
    return Math.max(Math.min(rows * ROW, MOST_HEIGHT), rows, 24);
  }

  strip() {
    return this.moments ? this.moments.stripHeight() + 2 : 2;
  }

  // Draws what there is, or a part of it until the server has more: `view` is in tiles.
  render() {
    if (!this.data) return;
    const ratio = devicePixelRatio;
    const width = Math.max(this.area.clientWidth, 160);
    const height = this.strip() + this.plotHeight() + BOTTOM;
    if (this.canvas.width !== Math.round(width * ratio) ||
        this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
      this.canvas.style.width = width + 'px';
      this.canvas.style.height = height + 'px';
    }
    this.box =
        {left: LEFT, top: this.strip(), width: width - LEFT - RIGHT, height: this.plotHeight()};
    const ctx = this.canvas.getContext('2d');
    ctx.clearRect(0, 0, this.canvas.width, this.canvas.height);
    const part = this.view ?? {left: 0, top: 0, width: this.tiles.width, height: this.tiles.height};
    const to = {
      left: LEFT * ratio,
      top: this.box.top * ratio,
      width: this.box.width * ratio,
      height: this.box.height * ratio
    };
    if (this.tiles.height > 0) this.tiles.draw(ctx, part, to);
    this.drawAxes(ctx, part, ratio);
    this.drawMoments(ctx, to, part);
  }

  // The times of a part's edges.
  edges(part) {
    const {start, interval} = this.data;
    return [start + part.left * interval, start + (part.left + part.width) * interval];
  }

  drawAxes(ctx, part, ratio) {
    const {box} = this;
    ctx.save();
    ctx.scale(ratio, ratio);
    ctx.fillStyle = css('--soft');
    ctx.font = '11px system-ui, sans-serif';
    ctx.textBaseline = 'middle';
    ctx.textAlign = 'right';
    for (const [text, y] of this.labels(part)) ctx.fillText(text, LEFT - 6, y);
    ctx.textBaseline = 'top';
    ctx.textAlign = 'center';
    for (const [text, x] of this.timeMarks(part)) {
      ctx.fillText(text, x, box.top + box.height + 7);
      ctx.fillRect(Math.round(x), box.top + box.height + 1, 1, 4);
    }
    ctx.restore();
  }

  // Names of rows, and where they stand, as far as there is room.
  labels(part) {
    const {box} = this;
    const each = box.height / part.height;
    const step = Math.max(Math.ceil(14 / each), 1);
    const labels = [];
    for (let row = Math.ceil(part.top); row < part.top + part.height; row += step) {
      const y = box.top + (row + 0.5 - part.top) * each;
      if (y > box.top + box.height) break;
      labels.push([this.short(this.nameOf(this.data.rows[row][0])), y]);
    }
    return labels;
  }

  timeMarks(part) {
    const {box} = this;
    const [from, to] = this.edges(part);
    const wanted = (to - from) / Math.max(box.width / 90, 1);
    const apart = STEPS.find((one) => one >= wanted) ?? 86400 * Math.ceil(wanted / 86400);
    const marks = wholeTimes(from, to, apart);
    return times(marks, apart)
        .map((text, i) => [text, box.left + (marks[i] - from) / (to - from) * box.width])
        .filter(([, x]) => x >= box.left + 20 && x <= box.left + box.width - 16);
  }

  short(name) {
    return name.length > 13 ? name.slice(0, 5) + '\u2026' + name.slice(-7) : name;
  }

  nameOf(member) {
    return nameOf(this.data.by, this.data.names[member]);
  }

  // Phases above the tiles and remarks over them, as on the plots.
  drawMoments(ctx, bbox, part) {
    if (!this.moments) return;
    const [from, to] = this.edges(part);
    const plot = {
      ctx,
      bbox,
      valToPos: (time) => bbox.left + (time - from) / (to - from) * bbox.width
    };
    this.moments.drawPhases(plot, true);
    this.moments.drawAlarms(plot);
    this.moments.drawRemarks(plot);
  }

  drawKey() {
    const dark = isDark();
    const bar = element('canvas', {width: '256', height: '1', 'aria-hidden': 'true'});
    const ctx = bar.getContext('2d');
    const image = ctx.createImageData(256, 1);
    new Uint32Array(image.data.buffer).set(palette(dark).subarray(0, 256));
    ctx.putImageData(image, 0, 0);
    const {low, high} = this.tiles.scale;
    const items = [
      this.beyondKey(false), element('span', {}, this.format(low)), bar,
      element('span', {}, this.format(high)), this.beyondKey(true)
    ].filter(Boolean);
    if (this.tiles.missing) {
      const mark = element('canvas', {width: '22', height: '12', 'aria-hidden': 'true'});
      const pen = mark.getContext('2d');
      pen.fillStyle = stripes(pen, dark);
      pen.fillRect(0, 0, 22, 12);
      items.push(element('span', {class: 'none'}, mark, ' nothing measured'));
    }
    if (this.data.nodes_answered < this.data.nodes_expected) {
      items.push(element(
          'span', {class: 'gap'},
          `${this.data.nodes_answered} of ${plural(this.data.nodes_expected, 'node')} answered`));
    }
    this.key.replaceChildren(...items);
  }

  // What is far from all others, at an end of the scale: "3 tiles below, to 12 %".
  beyondKey(above) {
    const {below: fewer, above: more, least, most} = this.tiles.scale;
    const [count, to] = above ? [more, most] : [fewer, least];
    if (count === 0) return null;
    const mark = element('i', {'aria-hidden': 'true'});
    mark.style.background = `rgb(${beyond(isDark(), above).join()})`;
    return element(
        'span', {class: 'beyond'}, mark,
        `${plural(count, 'tile')} ${above ? 'above' : 'below'}, to ${this.format(to)}`);
  }

  // The tile at a place of the page.
  tileAt(event) {
    const area = this.canvas.getBoundingClientRect();
    return this.tileOf(event.clientX - area.left, event.clientY - area.top);
  }

  tileOf(x, y) {
    if (!this.data || !this.box || this.tiles.height === 0) return null;
    const part = this.view ?? {left: 0, top: 0, width: this.tiles.width, height: this.tiles.height};
    const column = Math.floor(part.left + (x - this.box.left) / this.box.width * part.width);
    const row = Math.floor(part.top + (y - this.box.top) / this.box.height * part.height);
    if (column < 0 || row < 0 || column >= this.tiles.width || row >= this.tiles.height)
      return null;
    return {row, column};
  }

  // Which node or rank a click on a tile opens: of several the one with the largest value.
  memberOf({row, column}) {
    const [first, count] = this.data.rows[row];
    const most = this.data.max_at && this.data.max_at[row][column];
    return count > 1 && most !== null && most !== undefined ? most : first;
  }

  describe({row, column}) {
    const {data} = this;
    const [first, count] = data.rows[row];
    const time = data.start + (column + 0.5) * data.interval;
    const host = (member) => data.task_hosts?.[member] ? ` on ${data.task_hosts[member]}` : '';
    const who = count === 1 ?
        this.nameOf(first) + host(first) :
        `${this.nameOf(first)} to ${this.nameOf(first + count - 1)} (${count})`;
    const lines = [];
    const mean = data.mean[row][column];
    if (mean === null) {
      lines.push('nothing measured');
    } else {
      const [min, max] = [data.min[row][column], data.max[row][column]];
      lines.push('mean ' + this.format(mean));
      const at = (list) => count > 1 ? ' ' + this.nameOf(list[row][column]) : '';
      if (min < max) {
        lines.push(
            `least ${this.format(min)}${at(data.min_at)}`,
            `most ${this.format(max)}${at(data.max_at)}`);
      }
      if (count > 1 && data.members[row][column] < count) {
        lines.push(`from ${data.members[row][column]} of ${count}`);
      }
    }
    return {who, time, lines};
  }

  showTile(tile, x, y) {
    const {who, time, lines} = this.describe(tile);
    const told = this.moments ? this.moments.at(time, this.data.interval / 2) : [];
    showTip(
        this,
        element(
            'div', {}, element('b', {}, who), element('div', {}, clock(time)),
            told.length ? element('ul', {}, ...told) : null,
            ...lines.map((line) => element('div', {}, line))),
        x, y);
    this.tools.cursor(time, this);
  }

  // Where the pointer is on another plot.
  showTime(time) {
    if (!this.data || !this.box) return;
    const part = this.view ?? {left: 0, width: this.tiles.width};
    const [from, to] = this.edges(part);
    this.marker.hidden = time === null || time < from || time > to;
    if (this.marker.hidden) return;
    Object.assign(this.marker.style, {
      height: this.box.height + 'px',
      top: this.box.top + 'px',
      left: this.box.left + (time - from) / (to - from) * this.box.width + 'px'
    });
  }

  onDown(event) {
    if (event.button !== 0 || !this.tileAt(event)) return;
    const area = this.canvas.getBoundingClientRect();
    this.drag = {x: event.clientX - area.left, y: event.clientY - area.top, moved: false};
    this.area.setPointerCapture(event.pointerId);
  }

  dragged(event) {
    const area = this.canvas.getBoundingClientRect();
    const inside = (value, from, size) => Math.min(Math.max(value, from), from + size);
    const x = inside(event.clientX - area.left, this.box.left, this.box.width);
    const y = inside(event.clientY - area.top, this.box.top, this.box.height);
    const {x: fromX, y: fromY} = this.drag;
    // Time alone, unless it is dragged across several rows as well.
    const rows = Math.abs(y - fromY) > 24 && this.data.names.length > 8;
    return {
      left: Math.min(x, fromX),
      width: Math.abs(x - fromX),
      top: rows ? Math.min(y, fromY) : this.box.top,
      height: rows ? Math.abs(y - fromY) : this.box.height,
      rows
    };
  }

  onMove(event) {
    if (!this.drag) {
      const tile = this.tileAt(event);
      if (tile)
        this.showTile(tile, event.clientX, event.clientY);
      else
        this.onLeave();
      return;
    }
    const place = this.dragged(event);
    this.drag.moved = this.drag.moved || place.width > DRAG || place.rows;
    this.chosen.hidden = !this.drag.moved;
    hideTip(this);
    for (const name of ['left', 'top', 'width', 'height'])
      this.chosen.style[name] = place[name] + 'px';
  }

  onUp(event) {
    if (!this.drag) return;
    const place = this.dragged(event);
    const {moved} = this.drag;
    this.drag = null;
    this.chosen.hidden = true;
    if (moved) return this.zoom(place);
    const tile = this.tileAt(event);
    clearTimeout(this.click);
    if (!tile) return;
    const chosen = this.openedBy(tile);  // what is drawn by then may be something else
    this.click = setTimeout(() => this.open(chosen), DOUBLE_MS);
  }

  // Whose page a tile opens; null: nobody's.
  openedBy(tile) {
    if (!this.data || isPart(this.data.by)) return null;
    const member = this.memberOf(tile);
    const name = this.data.names[member];
    return this.data.by === 'task' ? {rank: name, host: this.data.task_hosts[member]} :
                                     {host: name, rank: ''};
  }

  open(chosen) {
    if (chosen) this.tools.open(chosen);
  }

  // Shows the part at once, from the tiles there are, and has finer ones asked for.
  zoom(place) {
    const part = {left: 0, top: 0, width: this.tiles.width, height: this.tiles.height};
    const {box, data} = this;
    const view = {
      left: (place.left - box.left) / box.width * part.width,
      width: Math.max(place.width / box.width * part.width, 1e-6),
      top: (place.top - box.top) / box.height * part.height,
      height: Math.max(place.height / box.height * part.height, 0.5),
    };
    const [from, to] = this.edges(view);
    const wide = place.width > DRAG;
    this.view = {...view, ...(wide ? {} : {left: 0, width: part.width})};
    this.render();
    let rows = null;
    if (place.rows) {
      const first = data.rows[Math.floor(view.top)][0];
      const [last, count] =
          data.rows[Math.min(Math.ceil(view.top + view.height), data.rows.length) - 1];
      rows = [data.first + first, data.first + last + count];
    }
    this.tools.zoom(wide ? [from, to] : undefined, rows);
  }

  onLeave() {
    hideTip(this);
    this.tools.cursor(null, this);
    if (!this.drag) this.chosen.hidden = true;
  }

  onKey(event) {
    const step = {
      ArrowLeft: [0, -1],
      ArrowRight: [0, 1],
      ArrowUp: [-1, 0],
      ArrowDown: [1, 0],
      Home: [0, -Infinity],
      End: [0, Infinity]
    }[event.key];
    if (event.key === 'Escape') return this.onLeave();
    if (!this.data || this.tiles.height === 0) return;
    const inside = (value, most) => Math.min(Math.max(value, 0), most - 1);
    this.at ??= {row: 0, column: 0};
    if (event.key === 'Enter') return this.open(this.openedBy(this.at));
    if (!step) return;
    event.preventDefault();
    this.at = {
      row: inside(this.at.row + step[0], this.tiles.height),
      column: inside(this.at.column + step[1], this.tiles.width)
    };
    const area = this.canvas.getBoundingClientRect();
    const x =
        area.left + this.box.left + (this.at.column + 0.5) / this.tiles.width * this.box.width;
    const y = area.top + this.box.top + (this.at.row + 0.5) / this.tiles.height * this.box.height;
    this.showTile(this.at, x, y);
    const {who, time, lines} = this.describe(this.at);
    this.words.textContent = `${who}, ${clock(time)}: ${lines.join(', ')}`;
    const tile = {
      width: this.box.width / this.tiles.width,
      height: this.box.height / this.tiles.height
    };
    this.chosen.hidden = false;
    Object.assign(this.chosen.style, {
      left: this.box.left + this.at.column * tile.width + 'px',
      width: Math.max(tile.width, 3) + 'px',
      top: this.box.top + this.at.row * tile.height + 'px',
      height: Math.max(tile.height, 3) + 'px'
    });
  }

  // What is to be read below a picture of it.
  notes() {
    const {data, tiles: {scale: {low, high, below, above, least, most}}} = this;
    const beyond = [
      below ? `${plural(below, 'tile')} below, to ${this.format(least)}` : '',
      above ? `${plural(above, 'tile')} above, to ${this.format(most)}` : ''
    ].filter(Boolean).join(', ');
    return [
      `From ${this.format(low)} to ${this.format(high)}; ${SHADES[this.shade]} over ` +
          `${this.span(data.interval)}${this.about.words}; ${clock(data.start)} to ${clock(data.end)}`,
      ...(beyond ? [beyond] : []), ...(this.tiles.missing ? ['Striped: nothing measured'] : [])
    ];
  }

  title(step) {
    return `${step}: ${this.data.title}` + (this.data.host ? ` on ${this.data.host}` : '');
  }

  png(step) {
    savePng([step, this.data.metric, 'heatmap'], this.canvas, this.title(step), this.notes());
  }

  svg(step) {
    if (this.tiles.height === 0) return;
    const part = {left: 0, top: 0, width: this.tiles.width, height: this.tiles.height};
    saveSvg([step, this.data.metric, 'heatmap'], heatSvg({
              title: this.title(step),
              rows: this.data[this.shade],
              scale: this.tiles.scale,
              format: this.format,
              box: this.box,
              labels: this.labels(part),
              marks: this.timeMarks(part),
              notes: this.notes()
            }));
  }

  csv(step) {
    const {data} = this;
    const columns = Array.from(
        {length: data.columns},
        (_, i) => new Date((data.start + i * data.interval) * 1000).toISOString());
    const rows = data.rows.map(
        ([first, count],
         row) => [this.nameOf(first), this.nameOf(first + count - 1), ...data[this.shade][row]]);
    saveCsv([step, data.metric, 'heatmap'], [['first', 'last', ...columns], ...rows]);
  }
}
