// The metrics of a profile: their groups, and all of them as a table.

import {element, scrolled} from './dom.js';
import {formatter} from './numbers.js';

export const GROUPS = [
  ['CPU', /^node_cpu_/],
  ['Counters', new RegExp('^(task_(perf|instructions|frequency|branch|cache|frontend|backend|flops|' +
      'vector|arithmetic|counters|memory_(stall|bytes))_|node_memory_traffic_)')],
  ['GPUs', /^gpu_/],
  ['Memory', /^node_(memory|vmstat|buddyinfo|hugepages|numa)_/],
  ['Load and pressure', new RegExp('^node_(load|pressure|procs|threads|context|forks|intr|softirqs|' +
      'interrupts|schedstat)')],
  ['Network', /^node_(network|netstat|softnet|sockstat|infiniband|slingshot)_/],
  ['Disks and file systems', /^node_(disk|filesystem|nfs|mountstats|lustre)_/],
  ['Tasks', /^(task_|cgroup_)/],
  ['Energy and temperature', /^(node_|power_)/],
  ['Sonde', /^sonde_/],
  ['Application', /./],
];

// Of a group that has many, these are drawn at once and the others on demand.
export const MAIN = new RegExp('^(node_cpu_seconds_total|node_memory_(MemAvailable|Cached|AnonPages)_bytes|' +
    'node_load1|node_pressure_.*_waiting_seconds_total|node_network_(receive|transmit)_bytes_total|' +
    'node_disk_(read|written)_bytes_total|task_cpu_seconds_total|task_resident_memory_bytes|' +
    'task_(read|written)_bytes_total|task_threads|task_perf_(cycles|instructions)_total|' +
    'task_instructions_per_cycle|task_(flops|memory_bytes)_per_second|node_memory_traffic_bytes_total|' +
    'gpu_utilization_ratio|gpu_memory_used_bytes|gpu_power_watts|node_(step_)?energy_joules_total|' +
    'node_temperature_celsius|sonde_(cpu_seconds_total|memory_bytes))$');

// The metrics of a profile: [{metric, title, still, unit, type, help, entries}], in the order of
// GROUPS. `told`: what /api/v1/overview says of them.
export function metricsOf(profile, told = []) {
  const words = new Map(told.map((one) => [one.metric, one]));
  const metrics = new Map();
  for (const entry of profile.footprint) {
    if (!metrics.has(entry.metric)) {
      const group = GROUPS.findIndex(([, pattern]) => pattern.test(entry.metric));
      const {title = entry.metric, still = false, by_task = false} = words.get(entry.metric) ?? {};
      metrics.set(entry.metric, {...entry, title, still, by_task, group, entries: []});
    }
    metrics.get(entry.metric).entries.push(entry);
  }
  return [...metrics.values()].sort((a, b) => a.group - b.group);
}

// Things that do nothing: loop devices and the like, and what has nothing but zeros.
const IDLE_NAME = /^(loop|ifb|ram|zram|dummy|sr|fd|nbd)\d+$/;
export function isIdle(entry) {
  if (Object.values(entry.tags).some((value) => IDLE_NAME.test(value))) return true;
  return entry.type === 'gauge' ? entry.min === 0 && entry.max === 0 : entry.last === 0;
}

export function tagsText(tags) {
  return Object.entries(tags).map(([, value]) => value).join(' ');
}

export function ownerText(owner) {
  if (!owner) return '';
  return ' ' + (owner.host || 'node ' + owner.node) +
         (owner.rank === undefined ? '' : ' task ' + owner.rank);
}

export function footprintTable(metrics) {
  const rows = [];
  for (const metric of metrics) {
    const counter = metric.type !== 'gauge';
    const amount = formatter(metric.metric, metric.unit, false);
    const mean = formatter(metric.metric, metric.unit, counter);
    const cell = (value, format, owner) => element('td', {class: 'number'},
        value === null || value === undefined ? 'n/a' : format(value) + ownerText(owner));
    for (const entry of metric.entries) {
      rows.push(element('tr', {},
          element('td', {title: metric.help}, metric.title, ' ', element('b', {}, tagsText(entry.tags)),
                  ' ', element('code', {}, metric.metric)),
          cell(entry.last, amount), cell(entry.mean, mean), cell(entry.min, amount, entry.min_owner),
          cell(entry.max, amount, entry.max_owner)));
    }
  }
  const head = [['Metric', ''], [`Step`, 'number'], ['Mean', 'number'], ['Least', 'number'],
                ['Most', 'number']];
  return element('details', {}, element('summary', {}, 'All metrics as a table'),
      scrolled('Table of metrics', {class: 'frame'}, element('table', {},
          element('thead', {}, element('tr', {},
              ...head.map(([name, kind]) => element('th', {scope: 'col', class: kind}, name)))),
          element('tbody', {}, ...rows))));
}
