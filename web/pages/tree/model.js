// The tree of a running step's daemons, made of the answer of /api/v1/tree.

// How it is with a node: what people are told of it, from good to bad. `sign` tells it without its colour.
export const STATUS = {
  head: {text: 'head', colour: '--c4', sign: ''},
  good: {text: 'in time', colour: '--ok', sign: ''},
  left: {text: 'has left', colour: '--line', sign: ''},
  fresh: {text: 'no sample yet', colour: '--soft', sign: '…'},
  late: {text: 'late', colour: '--warn', sign: '!'},
  silent: {text: 'silent', colour: '--c1', sign: '–'},
  away: {text: 'away', colour: '--c3', sign: '?'},
  lost: {text: 'lost', colour: '--bad', sign: '×'},
};
export const TROUBLE = ['lost', 'away', 'silent', 'late'];

// A node's sample may come after its tick's row, and is in it soon: that is no matter.
const LATE_TICKS = 2;
const LATE_SECONDS = 0.5;
// So long the head waits for a node that it has lost sight of.
const SILENT_SECONDS = 3;

// Ticks by which the newest row is ahead of the newest one with the node's sample; null: it has none.
function ticksBehind(node, tree) {
  if (!tree.newest_tick || !node.last_tick) return null;
  return Math.max(Math.round((tree.newest_tick - node.last_tick) / tree.period), 0);
}

function statusOf(node, tree) {
  if (node.state !== 'connected') return node.state;
  if (node.behind === null) return 'fresh';
  const behind = node.behind * tree.period / 1e9;
  if (node.behind < LATE_TICKS || behind < LATE_SECONDS) return 'good';
  return node.behind > LATE_TICKS && behind >= SILENT_SECONDS ? 'silent' : 'late';
}

// Since when a node is as it is, in seconds since 1970.
export const sinceOf = (node) => (['silent', 'late'].includes(node.status) ? node.last_tick : node.since) / 1e9;

const byHost = new Intl.Collator('en', {numeric: true});

// All nodes with their children, level and how many are below; `levels` from the head down, siblings beside each other.
export function treeOf(answer) {
  const head = {host: answer.head, status: 'head', level: 0, children: [], below: 0, parent: null};
  const nodes = answer.nodes.map((node) => ({...node, children: [], level: 0, below: 0,
                                             behind: ticksBehind(node, answer), to: node.parent}));
  for (const node of nodes) {
    node.status = statusOf(node, answer);
    node.parent = node.to === null ? head : nodes[node.to];
    node.parent.children.push(node);
  }
  const levels = [[head]];
  const seen = new Set([head]);
  for (let level = levels[0]; level.length; level = levels.at(-1)) {
    const next = level.flatMap((node) => node.children.sort((a, b) => byHost.compare(a.host, b.host)));
    for (const node of next) {
      node.level = levels.length;
      seen.add(node);
    }
    if (!next.length) break;
    levels.push(next);
  }
  // While nodes move they may have been told of each other; nobody of these sends to the head.
  const loose = nodes.filter((node) => !seen.has(node));
  for (const level of levels.slice(1).reverse()) {
    for (const node of level) node.parent.below += node.below + 1;
  }
  return {...answer, head, nodes, levels, loose};
}

export const isBelow = (node, top) => {
  for (let one = node; one; one = one.parent) {
    if (one === top) return true;
  }
  return false;
};

// From the head to the node.
export function pathTo(node) {
  const path = [];
  for (let one = node; one; one = one.parent) path.unshift(one);
  return path;
}

export function countsOf(nodes) {
  const counts = new Map();
  for (const node of nodes) counts.set(node.status, (counts.get(node.status) || 0) + 1);
  return counts;
}
