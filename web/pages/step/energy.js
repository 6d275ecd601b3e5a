// What the step took of its nodes' energy (/api/v1/insight?of=energy).

import {element, linkButton, plural} from '../dom.js';
import {formatter, known, trim} from '../numbers.js';

const MOST_NODES = 40;
const JOULES_PER_KWH = 3.6e6;

const joules = formatter('', 'joules', false);
const watts = formatter('', 'watts', false);
const number = (value) => String(Number(value.toPrecision(3)));

function sentences(data) {
  const {joules: all, low_joules: low, high_joules: high, gpu_joules: gpu, carbon_grams: carbon} = data;
  const rest = data.processor_joules;
  return [
    `${joules(all)} (${number(all / JOULES_PER_KWH)} kWh), ${watts(data.mean_watts)} in the mean` +
        (known(data.joules_per_task) ? `, ${joules(data.joules_per_task)} for each task` : '') + '.',
    low < high ? `Between ${joules(low)} and ${joules(high)}: what shared nodes draw at rest was ` +
            'not measured.' :
                 '',
    known(gpu) && known(rest) ? `Of GPUs ${joules(gpu)}, the rest ${joules(rest)}.` : '',
    known(carbon) ? `${trim(carbon)} g CO2e.` : '',
    ...data.figures.map((one) => `${one.name}: ${number(one.joules_per_unit)} J for one ${one.unit}.`),
  ].filter(Boolean);
}

function nodes(data, tools) {
  if (data.nodes.length < 2) return null;
  const sorted = [...data.nodes].sort((a, b) => (b.joules ?? 0) - (a.joules ?? 0));
  const most = Math.max(...sorted.map((node) => node.joules ?? 0));
  const rows = sorted.slice(0, MOST_NODES).map((node) => {
    const open = linkButton(node.host, () => tools.open({host: node.host, rank: ''}));
    const bar = element('div', {class: 'stack', 'aria-hidden': 'true'});
    const fill = element('i');
    fill.style.width = (most > 0 ? (node.joules ?? 0) / most * 100 : 0) + '%';
    fill.style.background = 'var(--c0)';
    bar.append(fill);
    const gpus = known(node.gpu_joules) ? `, GPUs ${joules(node.gpu_joules)}` : '';
    return element(
        'div', {role: 'listitem'}, open, bar,
        element('span', {class: 'why'}, known(node.joules) ? joules(node.joules) + gpus : 'n/a'));
  });
  return element(
      'details', {class: 'more'}, element('summary', {}, plural(data.nodes.length, 'node')),
      element('div', {class: 'spent', role: 'list'}, ...rows),
      sorted.length > MOST_NODES ?
          element('p', {class: 'words'}, `and ${sorted.length - MOST_NODES} more, which took less`) :
          null);
}

// null where no energy is known: see noEnergy.
export function energyOf(data, tools) {
  if (!known(data?.joules)) return null;
  const [first, ...others] = sentences(data);
  return element(
      'div', {class: 'energy'}, element('h3', {}, 'Energy'), element('p', {}, first),
      ...others.map((text) => element('p', {class: 'words'}, text)),
      data.missing.length ? element('p', {class: 'words'}, `Not in it: ${data.missing.join('; ')}.`) :
                            null,
      nodes(data, tools));
}

export function noEnergy(data) {
  if (!data?.no_energy) return null;
  return element(
      'details', {class: 'more'}, element('summary', {}, 'No energy: none was measured'),
      element('p', {class: 'words'}, data.no_energy));
}
