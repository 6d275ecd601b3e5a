// The list of steps (#/), from /api/v1/steps and /api/v1/damage. What it shows stands in the address.
// It is read again every few seconds, and only rows that changed are drawn anew.

import {$, element, plural} from '../dom.js';
import {Picks} from '../picks.js';
import {getJson} from '../server.js';
import {Filters} from './filters.js';
import {ListQuery} from './query.js';
import {headOf, idOf, keyOf, rowOf} from './rows.js';

// What `sonde serve` could not read of the archive, as the list was made and before.
async function damageNote() {
  const {damage} = await getJson('/api/v1/damage');
  if (damage.length === 0) return [];
  const open = document.querySelector('.damage details[open]') !== null;
  return [element('section', {class: 'frame damage', 'aria-label': 'Damage'},
      element('p', {}, 'Some of the archive cannot be read. The rest is shown. ',
              element('code', {}, 'sonde archive verify'), ' names all that is lost, ',
              element('code', {}, 'sonde archive repair'), ' mends the archive.'),
      element('details', {open}, element('summary', {}, 'What could not be read'),
              element('ul', {}, ...damage.map((what) => element('li', {}, what)))))];
}

function emptyNote(query) {
  if (query.filters().length === 0) {
    return element('div', {class: 'frame empty'}, 'No step yet. Start one with ',
                   element('code', {}, 'srun --telemetry-level=2 ./app'));
  }
  return element('div', {class: 'frame empty'}, 'No step passes these filters. ',
                 element('a', {href: query.cleared().hash()}, 'Show all steps'));
}

const MOST_COMPARED = 500;

const FOCUSED = 'a[href], button, input';

class List {
  constructor(view) {
    this.view = view;
    this.rows = new Map();  // of steps that are shown: their elements and what these were made from
    this.asked = 0;
    this.picks = new Picks();
    this.filters = new Filters((query, replaces) => this.go(query, replaces));
    this.note = element('div');
    this.chips = element('div', {class: 'chips', role: 'group', 'aria-label': 'Filters that are set'});
    this.count = element('span', {class: 'count', role: 'status'});
    this.all = element('span', {class: 'all'});
    this.head = element('thead');
    this.body = element('tbody');
    this.table = element('div', {class: 'frame'},
        element('table', {class: 'jobs list', 'aria-label': 'Steps'}, this.head, this.body));
    this.empty = element('div');
    this.pager = element('nav', {class: 'pager', 'aria-label': 'Pages of the list'});
    $('view').replaceChildren(element('h1', {class: 'sr-only'}, 'Steps'), this.note, this.filters.form,
        this.chips, element('div', {class: 'above'}, this.count, this.all, this.picks.bar()), this.table,
        this.empty, this.pager);
    // Until there is something in them.
    for (const part of [this.table, this.pager, this.picks.element]) part.hidden = true;
  }

  go(query, replaces) {
    const hash = query.hash();
    if (hash === this.view.hash) return;
    if (replaces) history.replaceState(null, '', hash);
    else history.pushState(null, '', hash);
    this.view.hash = hash;
    this.view.refresh();
  }

  async read() {
    const query = new ListQuery(this.view.hash.replace(/^[^?]*\??/, ''));
    const asked = ++this.asked;
    this.filters.show(query);
    this.drawChips(query);
    if (this.head_of !== query.hash()) this.table.setAttribute('aria-busy', 'true');
    try {
      const [answer, note] = await Promise.all([getJson('/api/v1/steps', query.forServer()), damageNote()]);
      // Another was asked for meanwhile.
      if (this.view.stale() || asked !== this.asked) return;
      if (answer.one_step && answer.steps.length === 1) {
        location.replace('#/job/' + encodeURIComponent(idOf(answer.steps[0])));
        return;
      }
      const last = Math.max(1, Math.ceil(answer.found / query.rows));
      if (query.page > last) {
        this.go(query.with({page: last}), true);
        return;
      }
      this.note.replaceChildren(...note);
      this.draw(query, answer, last);
    } finally {
      if (asked === this.asked) this.table.removeAttribute('aria-busy');
    }
  }

  drawChips(query) {
    if (this.chips_of === query.hash()) return;
    this.chips_of = query.hash();
    const chips = query.chips();
    this.chips.hidden = chips.length === 0;
    this.chips.replaceChildren(...chips.map(({text, without}) => element('span', {class: 'tag'}, text,
        element('a', {href: without.hash(), title: 'Take this filter away',
                      'aria-label': `Take the filter ${text} away`}, '\u00d7'))),
        chips.length > 1 ? element('a', {href: query.cleared().hash()}, 'Clear all') : '');
  }

  draw(query, answer, last) {
    const {steps, found} = answer;
    document.title = 'Sonde';
    $('crumb').textContent = 'Steps';
    const first = answer.offset + 1;
    this.setText(this.count, found === 0 ? 'No step' : found <= steps.length ? plural(found, 'step')
                 : `${first.toLocaleString('en')} to ${(first + steps.length - 1).toLocaleString('en')} of ` +
                   `${found.toLocaleString('en')} steps`);
    this.drawAll(query, answer);
    this.table.hidden = steps.length === 0;
    this.empty.replaceChildren(...(steps.length === 0 ? [emptyNote(query)] : []));
    if (this.head_of !== query.hash()) {
      const focused = this.head.contains(document.activeElement) && document.activeElement.dataset.sort;
      this.head.replaceChildren(headOf(query, (next, replaces) => this.go(next, replaces)));
      if (focused) this.head.querySelector(`[data-sort="${focused}"]`).focus();
    }
    this.drawRows(query, answer);
    if (this.pager_of !== query.hash() + last) this.drawPager(query, last);
    if (!this.head_of) performance.mark('rows');  // for who measures how long the page takes
    this.head_of = query.hash();
    this.pager_of = query.hash() + last;
    this.picks.boxes = steps.filter((step) => step.state !== 'running').length;
    this.picks.update();
  }

  // The comparison of all steps that pass the filters, on whichever page they are.
  drawAll(query, {found, one_step}) {
    const made_of = `${found} ${query.hash()}`;
    if (one_step || this.all_of === made_of) return;
    this.all_of = made_of;
    const filters = new URLSearchParams(query.filters()).toString() || 'search=';
    this.all.replaceChildren(found < 2 ? '' : found <= MOST_COMPARED
        ? element('a', {class: 'button', href: '#/diff?' + filters}, `Compare all ${found}`)
        : `Up to ${MOST_COMPARED} can be compared at once: set filters.`);
  }

  setText(node, text) {
    if (node.textContent !== text) node.textContent = text;
  }

  drawRows(query, {steps, now}) {
    const before = this.rows;
    this.rows = new Map();
    const order = query.hash();  // the links of tags are in the rows
    for (const step of steps) {
      const made_of = order + JSON.stringify(step) + (step.state === 'running' ? now : '');
      const known = before.get(keyOf(step));
      const row = known && known.made_of === made_of ? known.row : rowOf(step, query, now, this.picks);
      if (known && known.row !== row) this.keepFocus(known.row, row);
      this.rows.set(keyOf(step), {row, made_of});
    }
    const rows = [...this.rows.values()].map(({row}) => row);
    const same = rows.length === this.body.children.length &&
                 rows.every((row, i) => row === this.body.children[i]);
    if (!same) this.body.replaceChildren(...rows);
    if (this.to_focus) this.to_focus.focus({preventScroll: true});
    this.to_focus = null;
  }
  // What was focused in a row that is drawn anew is focused again.
  keepFocus(old, row) {
    if (!old.contains(document.activeElement)) return;
    const at = [...old.querySelectorAll(FOCUSED)].indexOf(document.activeElement);
    this.to_focus = row.querySelectorAll(FOCUSED)[at] || null;
  }

  drawPager(query, last) {
    this.pager.hidden = last === 1;
    const link = (page, text, name) => (page < 1 || page > last || page === query.page
      ? element('span', {'aria-current': page === query.page && !name ? 'page' : undefined,
                         class: name ? 'off' : undefined}, text)
      : element('a', {href: query.with({page}).hash(), 'aria-label': name || `Page ${page}`}, text));
    const near = [1, query.page - 1, query.page, query.page + 1, last]
        .filter((page, i, all) => page >= 1 && page <= last && all.indexOf(page) === i);
    const numbers = near.flatMap((page, i) => [
      ...(i > 0 && page > near[i - 1] + 1 ? [element('span', {class: 'off'}, '\u2026')] : []),
      link(page, page.toLocaleString('en'))]);
    this.pager.replaceChildren(link(query.page - 1, '\u2039 Previous', 'Previous page'), ...numbers,
                               link(query.page + 1, 'Next \u203a', 'Next page'));
  }
}

export async function showList(view) {
  if (!view.list) view.list = new List(view);
  view.parts = view.list;
  view.running = true;  // a new step may appear
  await view.list.read();
}
