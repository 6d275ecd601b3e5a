// A node's share of time is that of all its ranks together, so two ranks can be in MPI for 108 % of the
// time. It is shown in the mean of its ranks.

import {isShareOfTime, trim} from '../numbers.js';

// Whether a node's number of a metric is the sum of its ranks' shares of time.
export const addsShares = (metric, {unit, rate, reduction}) =>
    Boolean(metric.by_task) && reduction === 'sum' && isShareOfTime(metric.metric, unit, rate);

// How many ranks are on each node.
export const tasksOf = (profile) => new Map(profile.job.nodes.map((node) => [node.host, node.tasks]));

// How many ranks the nodes of each row of a heatmap have; null where those of one row differ.
function ranksOfRows({by, host, names, rows}, tasks) {
  const of = (name) => tasks.get(name) || 1;
  if (by !== 'host') return rows.map(() => of(host));
  const ranks = rows.map(([first, count]) => new Set(names.slice(first, first + count).map(of)));
  return ranks.some((one) => one.size > 1) ? null : ranks.map(([one]) => one);
}

// A heatmap's data in the mean of the ranks, and what is to be said of that: {data, words, format}.
// `format`: of values that could not be divided; else undefined.
export function perRank(data, metric, tasks) {
  if (data.by === 'task' || !addsShares(metric, data)) return {data, words: ''};
  const ranks = ranksOfRows(data, tasks);
  if (!ranks) return {data, words: ', of all its ranks together', format: (v) => `${trim(v)} ranks`};
  const divided = (tiles) => tiles.map(
      (row, i) => row.map((value) => (value === null ? null : value / ranks[i])));
  return {
    data: {...data, mean: divided(data.mean), min: divided(data.min), max: divided(data.max)},
    words: ranks.some((one) => one > 1) ? ', in the mean of its ranks' : ''
  };
}
