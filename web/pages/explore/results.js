// What came back: graphs by unit, a table of the lines, a table of their points.

import {color, element, plural} from '../dom.js';
import {trim} from '../numbers.js';
import {swatch} from '../plot.js';
import {svgBlob} from '../save.js';
import {clock} from '../when.js';
import {drawingOf, Graph, pictureOf} from './graph.js';
import {csvOf, jsonOf, linesOf, MOST_DRAWN} from './lines.js';

const MOST_ROWS = 500;
const MOST_COLUMNS = 16;

// A cell has the number as it came, and shows it as people write it.
const numberCell = (value, format, name) => element('td',
    {class: 'number', 'data-value': value ?? '', 'data-name': name, title: value ?? undefined},
    value === null || value === undefined ? '' : format(value));

function linesTable(lines) {
  const head = [['Line', ''], ['Points', 'number wide'], ['Last', 'number'], ['Mean', 'number'], ['Least', 'number'],
                ['Most', 'number']];
  const rows = lines.map((line) => element('tr', {'data-line': `${line.letter} ${line.name}`},
      element('td', {class: 'line'}, swatch(line.color), element('b', {}, line.letter), ' ' + line.name),
      element('td', {class: 'number wide'}, String(line.points.length)),
      ...[['last', 'last'], ['mean', 'mean'], ['min', 'least'], ['max', 'most']].map(([one, name]) =>
          numberCell(line.stats ? line.stats[one] : null, line.format, name))));
  return element('div', {class: 'frame'}, element('table', {class: 'lines', 'aria-label': 'Lines'},
      element('thead', {}, element('tr', {}, ...head.map(([name, kind]) =>
          element('th', {scope: 'col', class: kind || undefined}, name)))),
      element('tbody', {}, ...rows)));
}

function pointsTable(lines, first) {
  const shown = lines.slice(0, MOST_COLUMNS);
  const times = [...new Set(shown.flatMap((line) => line.points.map(([time]) => time)))].sort((a, b) => a - b);
  const values = shown.map((line) => new Map(line.points));
  const rows = times.slice(0, MOST_ROWS).map((time) => element('tr', {'data-time': String(time)},
      element('th', {scope: 'row', title: new Date(time).toISOString()}, clock(time / 1e3)),
      element('td', {class: 'number wide'}, trim((time - first) / 1e3) + ' s'),
      ...shown.map((line, i) => numberCell(values[i].get(time), line.format))));
  const left = [];
  if (times.length > rows.length) left.push(`${times.length - rows.length} more times`);
  if (lines.length > shown.length) left.push(plural(lines.length - shown.length, 'more line'));
  return [element('div', {class: 'frame points'}, element('table', {'aria-label': 'Points'},
      element('thead', {}, element('tr', {}, element('th', {scope: 'col'}, 'Time'),
          element('th', {scope: 'col', class: 'number wide'}, 'In the step'),
          ...shown.map((line) => element('th', {scope: 'col', class: 'number'}, swatch(line.color), `${line.letter} ${line.name}`)))),
      element('tbody', {}, ...rows))),
      left.length ? element('p', {class: 'words'}, `The CSV has ${left.join(' and ')}.`) : ''];
}

export class Results {
  constructor(zoom) {
    this.zoom = zoom;
    this.graphs = new Map();  // by unit
    this.lines = [];
    this.plots = element('div', {class: 'plots'});
    this.tables = element('div', {class: 'tables'});
    this.element = element('div', {}, this.plots, this.tables);
  }

  // `first` is when the step began, in ms.
  draw(answers, view, infoOf, jobs, first) {
    this.lines = linesOf(answers, infoOf, jobs);
    this.lines.forEach((line, i) => { line.color = color(i); });
    const empty = this.lines.length === 0;
    if (empty || view === 'table') this.dropGraphs();
    else this.drawGraphs(view === 'stacked');
    if (empty) {
      this.tables.replaceChildren(element('div', {class: 'frame empty'},
          answers.length ? 'No samples in this range' : 'Choose a metric'));
      return;
    }
    const scrolled = this.tables.querySelector('.points')?.scrollTop ?? 0;
    const unseen = this.lines.length - MOST_DRAWN;
    this.tables.replaceChildren(
        unseen > 0 && view !== 'table' ? element('p', {class: 'words'}, `${MOST_DRAWN} of ${this.lines.length} lines are drawn.`) : '',
        ...(view === 'table' ? pointsTable(this.lines, first) : [linesTable(this.lines)]));
    const points = this.tables.querySelector('.points');
    if (points) points.scrollTop = scrolled;
  }

  drawGraphs(stacked) {
    const groups = new Map();
    for (const line of this.lines.slice(0, MOST_DRAWN)) {
      groups.set(line.key, [...(groups.get(line.key) ?? []), line]);
    }
    for (const [key, graph] of this.graphs) {
      if (groups.has(key)) continue;
      graph.destroy();
      graph.figure.remove();
      this.graphs.delete(key);
    }
    for (const [key, lines] of groups) {
      if (!this.graphs.has(key)) {
        this.graphs.set(key, new Graph(this.zoom));
        this.plots.append(this.graphs.get(key).figure);
      }
      this.graphs.get(key).draw(lines, stacked);
    }
  }

  dropGraphs() {
    for (const graph of this.graphs.values()) {
      graph.destroy();
      graph.figure.remove();
    }
    this.graphs.clear();
  }

  // View.dropCharts calls it.
  destroy() { this.dropGraphs(); }

  csv() { return new Blob([csvOf(this.lines)], {type: 'text/csv'}); }
  json() { return new Blob([jsonOf(this.lines)], {type: 'application/json'}); }
  picture() { return pictureOf([...this.graphs.values()]); }
  drawing() { return svgBlob(drawingOf([...this.graphs.values()])); }
}
