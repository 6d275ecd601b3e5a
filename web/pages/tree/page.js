// The tree of a running step's daemons (#/tree?job=ID): who sends to whom over what, who is late, silent or lost,
// and how much each sends. `open` in the address is the host whose subtree is shown.

import {$, css, element, plural, scrolled} from '../dom.js';
import {bytes, seconds, trim} from '../numbers.js';
import {getJson} from '../server.js';
import {isDark, palette} from '../step/colours.js';
import {clock} from '../when.js';
import {Cells} from './cells.js';
import {STATUS, TROUBLE, countsOf, isBelow, pathTo, sinceOf, treeOf} from './model.js';

const MOST_ROWS = 60;
const SENT = 'sonde_sent_bytes_total';
// What a daemon has sent in the last seconds; at least two ticks.
const SENT_SECONDS = 30;
const MOST_NODES_ASKED = 16384;
// An answer about more nodes has many megabytes.
const LARGE_REFRESH_MS = 30000;
const COLOURS = [['status', 'how it is'], ['late', 'ticks behind'], ['sent', 'bytes sent']];

const hashOf = (job, host) => '#/tree?' + new URLSearchParams({job, ...(host ? {open: host} : {})});
const rate = (value) => (value === undefined ? 'n/a' : bytes(value) + '/s');
const behindText = (node) => (node.behind === null || node.behind === undefined ? 'n/a' : plural(node.behind, 'tick'));

class TreePage {
  constructor(view, job, opened) {
    this.view = view;
    this.job = job;
    this.opened = opened;  // the host whose subtree is shown; null: all
    this.sent = new Map();
    this.levels = [];
    this.colouring = 'status';
    this.head = element('div');
    this.way = element('nav', {class: 'way', 'aria-label': 'Way from the head'});
    this.select = element('select', {}, ...COLOURS.map(([value, text]) => element('option', {value}, text)));
    this.select.addEventListener('change', () => {
      this.colouring = this.select.value;
      this.render();
    });
    this.search = element('input', {type: 'search', placeholder: 'part of a host name'});
    this.search.addEventListener('input', () => this.render());
    this.search.addEventListener('keydown', (event) => {
      const [first] = this.matches();
      if (event.key === 'Enter' && first) this.open(first);
    });
    this.legend = element('ul', {class: 'legend', 'aria-label': 'Nodes'});
    this.found = element('p', {class: 'words', role: 'status'});
    this.rows = element('div');
    this.trouble = element('div');
    this.table = element('div');
    this.element = element('div', {class: 'tree-page'}, this.head, this.legend, this.trouble,
        element('div', {class: 'tools'}, element('label', {}, 'Colour by ', this.select),
                element('label', {}, 'Host ', this.search)),
        this.found, this.way, this.rows, this.table);
  }

  destroy() { this.levels.forEach((level) => level.cells.destroy()); }

  // The address says another subtree of the same step: shown at once, of what is known already.
  follow(parameters) {
    if (parameters === null || new URLSearchParams(parameters).get('job') !== this.job) return false;
    this.opened = new URLSearchParams(parameters).get('open');
    this.render();
    return true;
  }

  open(node) {
    location.hash = hashOf(this.job, node.level === 0 ? '' : node.host);
  }

  // Nodes whose name has what was typed; none if nothing was.
  matches() {
    const text = this.search.value.trim().toLowerCase();
    return text ? this.tree.nodes.filter((node) => node.host.toLowerCase().includes(text)) : [];
  }

  async readSent(tree) {
    if (tree.nodes.length > MOST_NODES_ASKED) return this.sent;
    const span = Math.max(SENT_SECONDS, 4 * tree.period / 1e9);
    try {
      const data = await getJson('/api/v1/heatmap', {job: this.job, metric: SENT, by: 'host', columns: 1,
          rows: MOST_NODES_ASKED, start: Math.ceil(span) + 's-ago'});
      return new Map(data.names.map((name, i) => [name, data.mean[i][0]]).filter(([, value]) => value !== null));
    } catch (error) {
      // The tree is shown without it: before the second sample there is nothing to tell.
      return new Map();
    }
  }

  // `turn` is which reading it is: answers to the one before are dropped.
  async reload() {
    const turn = this.turn = (this.turn ?? 0) + 1;
    const old = () => this.view.stale() || turn !== this.turn;
    const answer = await getJson('/api/v1/tree', {job: this.job});
    if (old()) return;
    this.view.running = answer.running;
    if (answer.nodes.length > MOST_NODES_ASKED) this.view.every = LARGE_REFRESH_MS;
    const tree = answer.running ? treeOf(answer) : null;
    const sent = tree?.newest_tick ? await this.readSent(tree) : this.sent;
    if (old()) return;
    Object.assign(this, {tree, sent});
    this.render();
  }

  render() {
    const {tree} = this;
    for (const part of [this.legend, this.trouble, this.way, this.rows, this.table, this.found, this.select.closest('.tools')]) {
      part.hidden = !tree;
    }
    if (!tree) {
      this.head.replaceChildren(element('h1', {}, `Tree of ${this.job}`), element('p', {class: 'empty'},
          'This step has ended, and its tree with it: daemons are linked for as long as a step runs.'));
      return;
    }
    // Of several daemons of a host the last one.
    this.top = (this.opened && tree.nodes.findLast((node) => node.host === this.opened)) || tree.head;
    const back = this.focused();
    this.drawHead();
    this.drawLegend();
    this.drawWay();
    this.drawFound();
    this.drawLevels();
    this.drawTrouble();
    this.drawTable();
    back();
  }

  // Gives what returns the focus to a link or table that is made anew.
  focused() {
    const active = document.activeElement;
    const part = [this.found, this.way, this.trouble, this.table].find((one) => one.contains(active));
    if (!part || active === part) return () => {};
    const [name] = ['href', 'aria-label'].filter((one) => active.hasAttribute(one));
    return () => part.querySelector(`[${name}="${CSS.escape(active.getAttribute(name))}"]`)?.focus();
  }

  drawHead() {
    const {tree} = this;
    const carriers = new Map();
    for (const {carrier, status} of tree.nodes) {
      if (status !== 'lost' && status !== 'left') carriers.set(carrier || 'not known', (carriers.get(carrier || 'not known') || 0) + 1);
    }
    const facts = [
      ['Head', tree.head.host],
      ['Nodes', tree.registered === tree.expected ? String(tree.expected) : `${tree.registered} of ${tree.expected}`],
      ['Levels', String(tree.levels.length - 1)],
      ['Links', [...carriers].map(([name, count]) => `${count} over ${name}`).join(', ') || 'none'],
      ['Sent by all', this.sent.size ? rate([...this.sent.values()].reduce((a, b) => a + b, 0)) : 'n/a'],
      ['Newest tick', tree.newest_tick ? `${seconds(Math.max(tree.now - tree.newest_tick, 0) / 1e9)} ago` : 'none yet'],
    ];
    this.head.replaceChildren(element('h1', {}, `Tree of ${this.job}`), element('dl', {class: 'facts'},
        ...facts.map(([name, value]) => element('div', {}, element('dt', {}, name), element('dd', {}, value)))));
  }

  drawLegend() {
    const counts = countsOf(this.tree.nodes);
    this.legend.replaceChildren(...Object.entries(STATUS).filter(([name]) => counts.has(name)).map(([name, {text, colour, sign}]) => {
      const swatch = element('i', {});
      swatch.style.background = css(colour);
      return element('li', {'data-status': name}, swatch, `${counts.get(name)} ${text}${sign ? ` ${sign}` : ''}`);
    }));
  }

  drawWay() {
    const path = pathTo(this.top);
    this.way.replaceChildren(...path.flatMap((node, i) => {
      const name = i === 0 ? `Head on ${node.host}` : node.host;
      const item = node === this.top ? element('b', {'aria-current': 'true'}, name)
                                     : element('a', {href: hashOf(this.job, i ? node.host : '')}, name);
      return i ? ['\u203a', item] : [item];
    }));
  }

  drawFound() {
    const found = this.matches();
    const {value} = this.search;
    this.found.replaceChildren(...(!value.trim() ? [] : found.length === 0 ? [`No host has "${value.trim()}".`] : [
      `${plural(found.length, 'host')}: `,
      ...found.slice(0, 12).flatMap((node) => [element('a', {href: hashOf(this.job, node.host)}, node.host), ' ']),
      found.length > 12 ? `and ${found.length - 12} more` : '',
    ]));
    this.wanted = new Set(found);
  }

  // By colour: what tells most in the whole tree is the scale's end.
  colourer() {
    if (this.colouring === 'status') return (node) => css(STATUS[node.status].colour);
    const value = this.colouring === 'late' ? (node) => node.behind ?? undefined : (node) => this.sent.get(node.host);
    const most = this.tree.nodes.reduce((most, node) => Math.max(most, value(node) ?? 0), 1);
    const colours = palette(isDark());
    return (node) => {
      const of = value(node);
      if (of === undefined) return css('--line');
      const one = colours[Math.round(of / most * 255)];
      return `rgb(${one & 255}, ${one >> 8 & 255}, ${one >> 16 & 255})`;
    };
  }

  drawLevels() {
    const levels = this.tree.levels.slice(this.top.level + 1)
        .map((nodes) => (this.top === this.tree.head ? nodes : nodes.filter((node) => isBelow(node, this.top))))
        .filter((nodes) => nodes.length);
    while (this.levels.length > levels.length) {
      const {cells, section} = this.levels.pop();
      cells.destroy();
      section.remove();
    }
    const cached = new Map();
    const colour = this.colourer();
    this.tools = {
      colour: (node) => {
        const key = this.colouring === 'status' ? node.status : node;
        if (!cached.has(key)) cached.set(key, colour(node));
        return cached.get(key);
      },
      tip: (node) => this.tip(node), open: (node) => this.open(node), isChosen: (node) => this.wanted.has(node),
    };
    levels.forEach((nodes, i) => this.drawLevel(nodes, i));
  }

  drawLevel(nodes, i) {
    if (!this.levels[i]) {
      const page = this;
      const cells = new Cells({colour: (node) => page.tools.colour(node), tip: (node) => page.tools.tip(node),
                               open: (node) => page.tools.open(node), isChosen: (node) => page.tools.isChosen(node)});
      const title = element('h3', {});
      const section = element('section', {class: 'level'}, title, cells.element);
      this.levels[i] = {cells, title, section};
      this.rows.append(section);
    }
    const {cells, title, section} = this.levels[i];
    const below = nodes.reduce((all, node) => all + node.below, 0);
    const text = `Level ${nodes[0].level}: ${plural(nodes.length, 'node')}` + (below ? `, ${below} below` : '');
    title.textContent = text;
    section.setAttribute('aria-label', `Level ${nodes[0].level}`);
    cells.draw(nodes, text);
  }

  tip(node) {
    const lines = [
      `${STATUS[node.status].text}${node.status === 'good' ? '' : `, since ${clock(sinceOf(node))}`}`,
      `sends to ${node.parent.level === 0 ? 'the head' : node.parent.host} over ${node.carrier || 'a carrier that is not known'}`,
      `${behindText(node)} behind, ${rate(this.sent.get(node.host))} sent`,
      ...(node.below ? [`${plural(node.below, 'node')} below`] : []), ...(node.note ? [node.note] : []),
    ];
    return element('div', {}, element('b', {}, node.host || 'not known'), ...lines.map((line) => element('div', {}, line)));
  }

  statusCell(node) {
    const {text, sign} = STATUS[node.status];
    return element('span', {class: 'status' + (TROUBLE.includes(node.status) ? ' bad' : ''), 'data-sign': sign}, text);
  }

  // The nodes that are not as they should be, the worst first.
  drawTrouble() {
    const bad = this.tree.nodes.filter((node) => TROUBLE.includes(node.status))
        .sort((a, b) => TROUBLE.indexOf(a.status) - TROUBLE.indexOf(b.status) || sinceOf(a) - sinceOf(b));
    const missing = this.tree.expected - this.tree.registered;
    this.trouble.replaceChildren(...(bad.length === 0 && this.tree.loose.length === 0 && missing <= 0 ? [] : [
      element('h2', {}, 'Not as it should be'),
      missing > 0 ? element('p', {class: 'words'}, `${plural(missing, 'node')} did not come yet.`) : '',
      this.tree.loose.length ? element('p', {class: 'words'},
          `${plural(this.tree.loose.length, 'node')} not linked to the head now: ` +
          this.tree.loose.slice(0, 12).map((node) => node.host).join(', ')) : '',
      bad.length ? scrolled('Table of nodes that are not as they should be', {class: 'frame trouble'},
          this.nodeTable(bad.slice(0, MOST_ROWS), 'Not as it should be', true)) : '',
      bad.length > MOST_ROWS ? element('p', {class: 'words'}, `and ${bad.length - MOST_ROWS} more`) : '',
    ]));
  }

  drawTable() {
    const {children} = this.top;
    const name = this.top === this.tree.head ? 'Sending to the head' : `Sending to ${this.top.host}`;
    this.table.replaceChildren(element('h2', {}, name), children.length === 0
        ? element('p', {class: 'words'}, 'Nobody sends to this node.')
        : scrolled(name + ', table', {class: 'frame'}, this.nodeTable(children.slice(0, MOST_ROWS), name, false)),
        children.length > MOST_ROWS ? element('p', {class: 'words'}, `and ${children.length - MOST_ROWS} more; all of them are cells above`) : '');
  }

  nodeTable(nodes, label, why) {
    const heads = [['Node', ''], ['Is', ''], [why ? 'For' : 'Behind', 'number'], ['Carrier', 'wide-column'],
                   ['Below', 'number wide-column'], ['Sends', 'number'], ...(why ? [['Why', 'wide-column']] : [])];
    const rows = nodes.map((node) => element('tr', {},
        element('td', {class: 'host'}, node.level ? element('a', {href: hashOf(this.job, node.host)}, node.host || 'not known') : node.host),
        element('td', {}, this.statusCell(node)),
        element('td', {class: 'number', title: why ? clock(sinceOf(node)) : undefined},
                why ? seconds(Math.max(this.tree.now / 1e9 - sinceOf(node), 0)) : behindText(node)),
        element('td', {class: 'wide-column'}, node.carrier || 'not known'),
        element('td', {class: 'number wide-column'}, trim(node.below)),
        element('td', {class: 'number'}, rate(this.sent.get(node.host))),
        why ? element('td', {class: 'why wide-column'}, node.note ?? '') : null));
    return element('table', {'aria-label': label}, element('thead', {}, element('tr', {},
        ...heads.map(([name, kind]) => element('th', {scope: 'col', class: kind || undefined}, name)))),
        element('tbody', {}, ...rows));
  }
}

export async function showTree(view, text) {
  const parameters = new URLSearchParams(text);
  const job = parameters.get('job');
  if (!job) {
    const [newest] = (await getJson('/job/list?limit=1')).filter(({start_time: start}) => start !== 0);
    if (!newest) throw new Error('There is no step yet.');
    if (!view.stale()) location.replace(hashOf(newest.jobid));
    return;
  }
  const page = view.tree ?? new TreePage(view, job, parameters.get('open'));
  const known = view.tree !== undefined;
  await page.reload();
  if (view.stale() || known) return;
  view.tree = view.parts = page;
  view.charts.push(page);  // taken apart with the view
  document.title = `Tree of ${job} \u00b7 Sonde`;
  $('crumb').replaceChildren(element('a', {href: '#/job/' + encodeURIComponent(job)}, 'Step ' + job), ' \u203a Tree');
  $('view').replaceChildren(page.element);
}
