// The nodes or ranks of a step as a table: what each did in the range that is shown. A column is a
// heatmap of one column (/api/v1/heatmap).

import {element, linkButton, plural, renew} from '../dom.js';
import {formatter, median} from '../numbers.js';
import {explain, getJson} from '../server.js';

import {tagsOfMetric} from './heatmap.js';
import {tasksOf} from './ranks.js';
import {Shown} from './shown.js';
import {saveCsv} from '../save.js';

const AT_ONCE = 16384;      // rows of one answer: of more members one row would be several
const MOST = 131072;        // members that are read
const SHOWN = 50;           // at once
const ODD = 4;              // so many times the usual distance from the others is far
const LEAST_SPREAD = 0.03;  // of the median: smaller differences are nothing
// A column: its name, which metric it is made of (the first that the step has), which statistic of
// a node's values, and whether the most is worst, or the least. `each`: a node's number is that of
// its ranks in the mean, for a share of time of several ranks together says nothing.
const COLUMNS = [
  {
    name: 'CPU',
    metrics: ['task_cpu_seconds_total', 'node_cpu_seconds_total'],
    of: 'mean',
    worst: 'least'
  },
  {name: 'Memory, peak', metrics: ['task_resident_memory_bytes'], of: 'max', worst: 'most'},
  {name: 'GPU', metrics: ['gpu_utilization_ratio'], of: 'mean', worst: 'least'},
  {name: 'Received', metrics: ['node_network_receive_bytes_total'], of: 'mean', worst: 'most'},
  {name: 'Sent', metrics: ['node_network_transmit_bytes_total'], of: 'mean', worst: 'most'},
  {
    name: 'Read',
    metrics: ['task_read_bytes_total', 'node_disk_read_bytes_total'],
    of: 'mean',
    worst: 'most'
  },
  {
    name: 'Written',
    metrics: ['task_written_bytes_total', 'node_disk_written_bytes_total'],
    of: 'mean',
    worst: 'most'
  },
  {name: 'MPI', metrics: ['mpi_seconds_total'], of: 'mean', worst: 'most', each: true},
  {name: 'MPI wait', metrics: ['mpi_wait_seconds_total'], of: 'mean', worst: 'most', each: true},
];

// A heatmap of one column with a row for each member, and for no more than one: as many answers as
// that takes. undefined: nobody waits for it any more.
async function readEach(question, stale) {
  const parts = [];
  let all = 1;
  for (let first = 0; first < Math.min(all, MOST); first += AT_ONCE) {
    const part = await getJson(
        '/api/v1/heatmap', {...question, columns: 1, rows: AT_ONCE, first, count: AT_ONCE});
    if (stale()) return undefined;
    parts.push(part);
    all = part.all;
  }
  const joined = (name) => parts[0][name] && parts.flatMap((part) => part[name]);
  return {
    ...parts[0],
    names: joined('names'),
    task_hosts: joined('task_hosts'),
    mean: joined('mean'),
    max: joined('max')
  };
}

export class Members {
  constructor(tools) {
    this.tools = tools;
    this.shown = SHOWN;
    this.columns = [];
    this.filter = element('input', {
      type: 'text',
      id: 'member-filter',
      placeholder: 'part of a name',
      'aria-label': 'Show only names with'
    });
    this.filter.addEventListener('input', () => {
      this.shown = SHOWN;
      this.render();
    });
    this.frame = element('div', {class: 'frame'});
    this.more = element('p', {class: 'words'});
    this.csv = element('button', {type: 'button', class: 'button'}, 'CSV');
    this.csv.addEventListener('click', () => this.save());
    this.section = element(
        'div', {class: 'members'},
        element('div', {class: 'tools'}, element('label', {}, 'Filter ', this.filter), this.csv),
        this.frame, this.more);
    this.shownOf = new Shown(this.section, [this.csv]);
  }

  // `by`: host or task. `metrics`: of the step, by name. `nodes`: of the step.
  async load(id, {state, by, metrics, nodes}, stale) {
    this.shownOf.ask({by, ...state.times()});
    const before = this.shownOf.same ? this.columns : [];
    const columns = [];
    for (const column of COLUMNS) {
      const name = column.metrics.find(
          (one) => metrics.has(one) && (by === 'host' || metrics.get(one).by_task));
      if (name) columns.push({...column, metric: metrics.get(name)});
    }
    for (const column of columns) {
      const tags = tagsOfMetric(column.metric);
      try {
        column.data = await readEach(
            {job: id, metric: column.metric.metric, by, ...(tags ? {tags} : {}), ...state.times()},
            stale);
      } catch (error) {
        column.error = explain(error);
        // Of the same question.
        column.data = before.find((one) => one.name === column.name)?.data;
      }
      if (stale()) return;
    }
    this.tasks = tasksOf({job: {nodes}});
    this.id = id;
    this.by = by;
    this.state = state;
    this.columns = columns;
    this.render();
    this.shownOf.draw(columns.some((column) => column.data));
  }

  value(column, i) {
    const value = column.data?.[column.of][i]?.[0] ?? null;
    if (value === null || !column.each || this.by !== 'host') return value;
    return value / (this.tasks.get(column.data.names[i]) || 1);
  }

  rows() {
    const first = this.columns.find((column) => column.data);
    if (!first) return [];
    const {names, task_hosts: hosts} = first.data;
    return names.map((name, i) => ({
                       name,
                       host: hosts ? hosts[i] : name,
                       rank: hosts ? name : '',
                       values: this.columns.map((column) => this.value(column, i)),
                       odd: [],
                     }));
  }

  // "CPU", or "-CPU" for the best first; "name"; else those first that differ most from the others.
  sorting() {
    const text = this.state.sort;
    const best = text.startsWith('-');
    const at = this.columns.findIndex((column) => column.name === text.slice(best ? 1 : 0));
    return {at, best, name: text === 'name'};
  }

  // How far each number is from the others: its distance from the median, in times of the usual
  // one (the median of the distances, as a standard deviation of a normal distribution).
  judge(rows) {
    this.columns.forEach((_, i) => {
      const values = rows.map((row) => row.values[i]).filter((value) => value !== null);
      const middle = median(values);
      const usual = 1.4826 * median(values.map((value) => Math.abs(value - middle)));
      const spread = Math.max(usual, LEAST_SPREAD * Math.abs(middle), Number.MIN_VALUE);
      for (const row of rows) {
        const value = row.values[i];
        row.odd[i] = value === null || values.length < 3 ? 0 : Math.abs(value - middle) / spread;
      }
    });
    for (const row of rows) row.oddest = Math.max(...row.odd);
    return rows;
  }

  sorted() {
    const {at, best, name} = this.sorting();
    if (this.columns.length === 0) return [];
    const sign = at < 0 ? 0 : (this.columns[at].worst === 'most' ? -1 : 1) * (best ? -1 : 1);
    const text = this.filter.value.trim().toLowerCase();
    // What was not measured stands last.
    return this.judge(this.rows())
        .filter(
            (row) => !text || row.name.toLowerCase().includes(text) ||
                row.host.toLowerCase().includes(text))
        .sort((a, b) => {
          if (name) return 0;  // as they are
          if (at < 0) return b.oddest - a.oddest;
          const [one, other] = [a.values[at], b.values[at]];
          if (one === null || other === null) return (one === null) - (other === null);
          return sign * (one - other);
        });
  }

  head(column, i) {
    const {at, best} = this.sorting();
    const sorted = i === at;
    const falling = (column.worst === 'most') !== best;
    const button = element(
        'button', {
          type: 'button',
          title: `${column.metric.title}: ${column.metric.help}` +
              (column.each && this.by === 'host' ? ' In the mean of its ranks.' : '')
        },
        column.name, sorted ? (falling ? ' \u25be' : ' \u25b4') : '');
    button.addEventListener('click', () => {
      this.tools.change({sort: (sorted && !best ? '-' : '') + column.name});
      this.render();
      this.frame.querySelectorAll('th button')[i + 1].focus();
    });
    return element(
        'th', {
          scope: 'col',
          class: 'number',
          'aria-sort': sorted ? (falling ? 'descending' : 'ascending') : 'none'
        },
        button);
  }

  // By name, or again those first that differ most.
  nameHead(text) {
    const {name} = this.sorting();
    const button = element(
        'button', {type: 'button', title: name ? 'Those first that differ most' : 'By name'}, text,
        name ? ' \u25b4' : '');
    button.addEventListener('click', () => {
      this.tools.change({sort: name ? '' : 'name'});
      this.render();
      this.frame.querySelector('th button').focus();
    });
    return element('th', {scope: 'col', 'aria-sort': name ? 'ascending' : 'none'}, button);
  }

  row(row, most) {
    const task = this.by === 'task';
    const open = linkButton(
        task ? 'rank ' + row.name : row.name,
        () => this.tools.open({host: row.host, rank: row.rank}));
    const chosen =
        task ? row.rank === this.state.rank : row.host === this.state.host && !this.state.rank;
    return element(
        'tr', {class: chosen ? 'chosen-row' : undefined},
        element('td', {}, open, task && row.host ? ` ${row.host}` : ''),
        ...this.columns.map((column, i) => {
          const value = row.values[i];
          if (value === null) return element('td', {class: 'number', title: column.error}, 'n/a');
          const format = formatter(column.metric.metric, column.metric.unit, column.data.rate);
          const bar = element('i', {class: 'inline-bar', 'aria-hidden': 'true'});
          bar.style.width = (most[i] > 0 ? Math.max(value / most[i], 0) * 100 : 0) + '%';
          return element(
              'td',
              {class: 'number' + (row.odd[i] > ODD ? ' odd' : ''), 'data-value': String(value)},
              bar, format(value));
        }));
  }

  render() {
    const rows = this.sorted();
    const most = this.columns.map(
        (_, i) => rows.reduce((all, row) => Math.max(all, row.values[i] ?? 0), 0));
    const noun = this.by === 'task' ? 'rank' : 'node';
    renew(this.frame, element(
        'table', {'aria-label': noun === 'rank' ? 'Ranks' : 'Nodes'},
        element(
            'thead', {},
            element(
                'tr', {}, this.nameHead(noun === 'rank' ? 'Rank' : 'Node'),
                ...this.columns.map((column, i) => this.head(column, i)))),
        element('tbody', {}, ...rows.slice(0, this.shown).map((row) => this.row(row, most)))));
    const left = rows.length - this.shown;
    const {at, name} = this.sorting();
    renew(
        this.more,
        at < 0 && !name && rows.length > 2 ?
            `The ${
                noun}s that differ most from the others stand first; what is far from them is bold. ` :
            '',
        this.cut(noun), this.faults(), this.moreButton(left, rows.length, noun) ?? '');
  }

  // Of more than are read.
  cut(noun) {
    const first = this.columns.find((column) => column.data)?.data;
    return first && first.all > first.names.length ?
        `The first ${first.names.length} of ${plural(first.all, noun)}. ` :
        '';
  }

  faults() {
    const wrong = this.columns.filter((column) => column.error)
                      .map((column) => `${column.name}: ${column.error}`);
    return wrong.length ? wrong.join('; ') + ' ' : '';
  }

  moreButton(left, all, noun) {
    if (left <= 0) return null;
    const button = element(
        'button', {type: 'button', class: 'button'},
        `${Math.min(left, 200)} more of ${plural(all, noun)}`);
    button.addEventListener('click', () => {
      this.shown += 200;
      this.render();
    });
    return button;
  }

  save() {
    const head = [
      this.by === 'task' ? 'rank' : 'node', 'host',
      ...this.columns.map(
          (column) =>
              `${column.metric.metric} ${column.of}` + (column.data?.rate ? ' per second' : ''))
    ];
    saveCsv(
        [this.id, 'nodes'],
        [head, ...this.sorted().map((row) => [row.name, row.host, ...row.values])]);
  }
}
