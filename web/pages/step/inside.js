// What is within a node: its cores, GPUs, disks and network interfaces, as the heatmap shows them by
// a tag of a metric (/api/v1/heatmap?by=cpu&host=...), and how these are called.

import {element} from '../dom.js';

// Tags are named by applications, too: these have no names but their own.
const NOUNS = {__proto__: null, host: 'node', task: 'rank', cpu: 'core', gpu: 'GPU'};
// Their names are numbers.
const NUMBERED = {__proto__: null, task: 'rank', cpu: 'core', gpu: 'GPU'};
// What is opened by one click, by a tag of the first of these metrics that the step has.
const PARTS = [
  ['cores', 'cpu', ['node_cpu_core_seconds_total']],
  ['GPUs', 'gpu', ['gpu_utilization_ratio', 'gpu_memory_used_bytes']],
  ['disks', 'device', ['node_disk_written_bytes_total', 'node_disk_read_bytes_total']],
  [
    'network interfaces', 'device',
    ['node_network_receive_bytes_total', 'node_network_transmit_bytes_total']
  ],
];

export const nounOf = (by) => NOUNS[by] ?? by;
export const nameOf = (by, name) => (NUMBERED[by] ? `${NUMBERED[by]} ${name}` : name);
export const isPart = (by) => by !== 'host' && by !== 'task';

const hasTag = (metric, tag) => metric.entries.some((entry) => entry.tags[tag] !== undefined);

// How many values a tag has on all nodes.
export const valuesOf = (metric, tag) =>
    new Set(metric.entries.map((entry) => entry.tags[tag]).filter((one) => one !== undefined)).size;

// The tags by which a metric can be shown within a node.
export const tagsOf = (metric) => [...new Set(metric.entries.flatMap((entry) => Object.keys(entry.tags)))];

// Buttons for what is within the node that is shown.
export function insideOf(state, metrics, tools) {
  if (!state.host) return [];
  const parts = PARTS.flatMap(([words, tag, names]) => {
    const name = names.find((one) => metrics.has(one) && hasTag(metrics.get(one), tag));
    if (!name) return words === 'cores' ? [element('span', {}, 'cores are recorded at level 4')] : [];
    const on = state.by === tag && names.includes(state.metric);
    const button = element(
        'button', {type: 'button', class: 'button', 'aria-pressed': String(on)}, words);
    button.addEventListener('click', () => tools.show({metric: name, by: tag, rows: null}, true));
    return [button];
  });
  const back = element('button', {type: 'button', class: 'button'}, 'all nodes');
  back.addEventListener('click', () => tools.show({host: '', rank: '', by: '', rows: null}, true));
  return [element('span', {}, `Inside ${state.host}:`), ...parts, back];
}
