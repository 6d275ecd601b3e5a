// What a step came to, in one look: sentences, bars of what was used of what was asked for, who had
// the most and the least, and what to change.

import {element, linkButton, plural, sum} from '../dom.js';
import {bytes, formatter, known, percent, seconds} from '../numbers.js';

import {budgetOf} from './budget.js';
import {energyOf, noEnergy} from './energy.js';
import {notCounted, rooflineOf} from './roofline.js';


// A row: what, how much of it as a bar (or none), in words, and who.
function row(name, ratio, text, ...who) {
  const bar = element('div', {class: 'bar', 'aria-hidden': 'true'});
  if (known(ratio)) {
    const fill = element('i', {class: ratio > 0.95 ? 'full' : undefined});
    fill.style.width = Math.min(Math.max(ratio, 0), 1) * 100 + '%';
    bar.append(fill);
  } else {
    bar.classList.add('no-bar');
  }
  return element(
      'div', {class: 'used', 'data-what': name}, element('b', {}, name), bar,
      element('span', {}, text, ...who));
}

// Opens the node or rank, "rank 3 on n2".
function ownerLink(owner, tools) {
  if (!owner || !owner.host) return null;
  const {host, rank} = owner;
  return linkButton(
      rank === undefined ? host : `rank ${rank} on ${host}`,
      () => tools.open({host, rank: rank === undefined ? '' : String(rank)}));
}

// The entry of the footprint with the largest number of a metric.
function entryOf(profile, name, tags = {}) {
  return profile.footprint
      .filter(
          (entry) => entry.metric === name &&
              Object.entries(tags).every(([key, value]) => entry.tags[key] === value))
      .sort((a, b) => (b.last ?? 0) - (a.last ?? 0))[0];
}

function extremes(entry, format, tools) {
  if (!entry || !known(entry.max) || !known(entry.min) || entry.max === entry.min) return [];
  const [most, least] = [ownerLink(entry.max_owner, tools), ownerLink(entry.min_owner, tools)];
  return [
    ...(most ? [' \u00b7 most ', most, ` (${format(entry.max)})`] : []),
    ...(least ? [', least ', least, ` (${format(entry.min)})`] : [])
  ];
}

// Rows of the report's numbers (/api/v1/overview), those that were measured.
function rowsOf(profile, overview, tools) {
  const {summary: s} = overview;
  const asked = new Map(overview.asked.map((one) => [one.what, one]));
  const rows = [];
  const tasks = plural(profile.job.expected_tasks, 'task');
  if (known(s.cpu_of_tasks)) {
    const user = entryOf(profile, 'task_cpu_seconds_total', {mode: 'user'});
    const cpus = asked.get('cpus');
    rows.push(
        row('CPU', cpus ? cpus.used / cpus.asked : s.cpu_of_tasks,
            cpus ? cpus.text :
                   `${percent(s.cpu_of_tasks)} of ${tasks} \u00d7 ${seconds(s.measured_seconds)}`,
            ...extremes(user, seconds, tools)));
  }
  const memory = asked.get('memory');
  if (memory || known(s.memory_of_node)) {
    const entry = entryOf(profile, 'task_resident_memory_bytes');
    const who = entry && ownerLink(entry.max_owner, tools);
    rows.push(
        row('Memory', memory ? memory.used / memory.asked : s.memory_of_node,
            `${bytes(s.memory_peak_bytes.value)} at most of ` +
                (memory ? bytes(memory.asked) : `${bytes(s.memory_total_bytes)} of the node`) +
                ` (${percent(memory ? memory.used / memory.asked : s.memory_of_node)})`,
            ...(who ? [' \u00b7 most ', who] : [])));
  } else if (known(s.memory_peak_bytes.value)) {
    const by = s.memory_peak_bytes.by;
    rows.push(row('Memory', null, bytes(s.memory_peak_bytes.value) + ' at most' + (by ? ', ' + by : '')));
  }
  const gpus = profile.footprint.filter(
      (entry) => entry.metric === 'gpu_utilization_ratio' && known(entry.mean));
  if (gpus.length) {
    const mean = sum(gpus.map((entry) => entry.mean)) / gpus.length;
    const text = asked.get('gpus') ? '; ' + asked.get('gpus').text : '';
    rows.push(
        row('GPU', mean, `busy ${percent(mean)} of the time${text}`,
            ...extremes(gpus.sort((a, b) => b.mean - a.mean)[0], percent, tools)));
  }
  const {mpi_seconds: mpi, mpi_waiting: {seconds: wait, slowest}, task_seconds: time} = overview.calls;
  if (known(mpi) && time > 0) {
    rows.push(
        row('MPI', mpi / time,
            `${percent(mpi / time)} of the tasks' time` +
                (known(wait) ? `, ${percent(wait / time)} waiting for other ranks` : '') +
                (slowest ? `; the slowest is ${slowest}` : ''),
            ...extremes(
                entryOf(profile, 'mpi_wait_seconds_total') ?? entryOf(profile, 'mpi_seconds_total'),
                seconds, tools)));
  }
  const each = (value) => `${bytes(value)} (${bytes(value / s.duration_seconds)}/s)`;
  const pair = (name, [one, verb], [other, verb2], whose, metric) => {
    if (!known(one) && !known(other)) return;
    rows.push(row(
        name, null,
        [known(one) ? `${each(one)} ${verb}` : '', known(other) ? `${each(other)} ${verb2}` : '']
                .filter(Boolean)
                .join(', ') +
            whose,
        ...extremes(entryOf(profile, metric), bytes, tools)));
  };
  pair(
      'I/O', [s.task_read_bytes, 'read'], [s.task_written_bytes, 'written'], ' by the tasks',
      'task_written_bytes_total');
  pair(
      'Network', [s.network_received_bytes, 'received'], [s.network_sent_bytes, 'sent'],
      ' by the nodes', 'node_network_receive_bytes_total');
  const limit = asked.get('time');
  if (limit && known(limit.asked)) rows.push(row('Time', limit.used / limit.asked, limit.text));
  return rows;
}

const MOST_HINTS = 5;
const MOST_PHASES = 8;

function hints(insight) {
  const all = insight?.hints ?? [];
  if (all.length === 0) return null;
  return element(
      'div', {class: 'hints'}, element('h3', {}, 'What to change'),
      element(
          'ol', {},
          ...all.slice(0, MOST_HINTS)
              .map(
                  (hint) => element(
                      'li', {}, element('b', {}, hint.says), ' ', hint.change,
                      element('span', {class: 'why'}, ' ', hint.why)))));
}

function stragglers(insight, begin, tools) {
  const all = (insight?.metrics ??
               []).flatMap((metric) => metric.stragglers.map((one) => ({...one, by: metric})));
  if (all.length === 0) return null;
  return element(
      'div', {class: 'stragglers'}, element('h3', {}, 'Who falls behind'),
      element('ul', {}, ...all.slice(0, MOST_HINTS).map((one) => {
        const format = formatter('', one.by.unit, false);
        const cause = one.causes[0];
        return element(
            'li', {}, ownerLink({host: one.node, rank: one.rank}, tools),
            ` ${one.by.name} ${format(one.value)}, the others ${format(one.others)}, ` +
                (one.from_start ? 'from the start' :
                                  `since ${seconds(one.since / 1e9 - begin)} after the start`) +
                (cause ? `; likely: ${cause.name}` : ''));
      })),
      all.length > MOST_HINTS ?
          element('p', {class: 'words'}, `and ${all.length - MOST_HINTS} more`) :
          null);
}

// Phases that nobody annotated; a click shows that part of the time.
function phases(insight, profile, tools) {
  const all = insight?.found ?? [];
  if (all.length < 2 || profile.moments.phases.length) return null;
  const begin = profile.job.start;
  return element(
      'div', {class: 'found-phases'}, element('h3', {}, 'Phases, found in the numbers'),
      element('ol', {}, ...all.slice(0, MOST_PHASES).map((phase) => {
        const button = linkButton(
            `${seconds((phase.begin - begin) / 1e9)} to ${seconds((phase.end - begin) / 1e9)}`,
            () => tools.zoom([phase.begin / 1e9, phase.end / 1e9]));
        const means = insight.columns.map((column, i) => {
          const format = formatter('', column.unit, false);  // of a counter it is that of its rate
          return known(phase.means[i]) ? `${column.name} ${format(phase.means[i])}` : '';
        });
        return element(
            'li', {}, button, ' ',
            element('span', {class: 'why'}, means.filter(Boolean).slice(0, 3).join(', ')));
      })),
      all.length > MOST_PHASES ?
          element('p', {class: 'words'}, `and ${all.length - MOST_PHASES} more`) :
          null);
}

function periods(insight) {
  const all = (insight?.metrics ?? []).filter((one) => known(one.period_seconds));
  if (all.length === 0) return null;
  return element(
      'div', {class: 'periods'}, element('h3', {}, 'What repeats itself'),
      element(
          'ul', {},
          ...all.slice(0, MOST_HINTS)
              .map(
                  (one) =>
                      element('li', {}, `${one.name}: every ${seconds(one.period_seconds)}`))));
}

// `insight`: by its kind, as far as the server has it.
export function overviewOf(profile, overview, insight, tools) {
  const rows = rowsOf(profile, overview, tools);
  const headline = overview.headline.map((text) => element('li', {}, text));
  const parts = [
    hints(insight.hints),
    budgetOf(
        insight.budget, profile.job.nodes.length, tools, notCounted(insight.roofline),
        noEnergy(insight.energy)),
    rooflineOf(insight.roofline, tools.id), energyOf(insight.energy, tools),
    stragglers(insight.stragglers, profile.job.start / 1e9, tools),
    phases(insight.phases, profile, tools), periods(insight.periods)
  ].filter(Boolean);
  if (headline.length + rows.length + parts.length === 0) return element('div');
  return element(
      'section', {'aria-label': 'In short', class: 'in-short'}, element('h2', {}, 'In short'),
      headline.length ? element('ul', {class: 'headline'}, ...headline) : null,
      rows.length ? element('div', {class: 'bars'}, ...rows) : null,
      parts.length ? element('div', {class: 'insights'}, ...parts) : null);
}
