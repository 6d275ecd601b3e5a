// The bar above the plots: the scope (all of the step, a node, a rank) and the range of time.

import {element} from '../dom.js';
import {seconds} from '../numbers.js';
import {clock} from '../when.js';

const MOST_NAMES = 200;  // that are offered while a name is written

export class Controls {
  constructor(tools) {
    this.tools = tools;
    this.scope = element(
        'select', {id: 'scope'},
        ...[['', 'the whole step'], ['node', 'a node'], ['rank', 'a rank']].map(
            ([value, text]) => element('option', {value}, text)));
    this.names = element('datalist', {id: 'scope-names'});
    this.name = element(
        'input', {type: 'text', id: 'scope-name', list: 'scope-names', autocomplete: 'off'});
    this.scope.addEventListener('change', () => this.chosen());
    this.name.addEventListener('change', () => this.named());
    this.name.addEventListener('input', () => this.offer());
    this.range = element('span', {class: 'range'});
    this.wrong = element('span', {class: 'gap', role: 'status'});
    this.last = element('select', {id: 'range', 'aria-label': 'Range of time'});
    this.last.addEventListener('change', () => this.ranged());
    const zoom = (text, label, factor) => {
      const button = element(
          'button', {type: 'button', class: 'button', 'aria-label': label, title: label}, text);
      button.addEventListener('click', () => this.zoom(factor));
      return button;
    };
    this.section = element(
        'div', {class: 'controls', role: 'group', 'aria-label': 'What is shown'},
        element('label', {}, 'Show ', this.scope), this.name, this.names,
        element('label', {}, 'Time ', this.last),
        element(
            'span', {class: 'buttons'}, zoom('+', 'Zoom in', 0.5), zoom('\u2212', 'Zoom out', 2)),
        this.range, this.wrong);
  }

  // `wrong`: why the scope is none of the step; undefined: as before.
  draw(state, profile, wrong) {
    if (wrong !== undefined && this.wrong.textContent !== wrong) this.wrong.textContent = wrong;
    const {job} = profile;
    this.hosts = [...new Set(job.nodes.map((node) => node.host))];
    this.tasks = job.expected_tasks;
    this.begin = job.start / 1e9;
    this.end = job.end ? job.end / 1e9 : Date.now() / 1000;
    this.state = state;
    const kind = state.rank ? 'rank' : state.host ? 'node' : '';
    if (document.activeElement !== this.scope && document.activeElement !== this.name) {
      this.scope.value = kind;
      this.name.value = state.rank || state.host;
    }
    this.name.hidden = this.scope.value === '';
    this.label();
    const long = this.end - this.begin;
    const lengths = [60, 300, 900, 3600, 6 * 3600, 86400].filter((length) => length < long);
    const options = [
      ['', 'the whole step'],
      ...lengths.map((length) => [String(length), `its last ${seconds(length)}`])
    ];
    if (state.range) options.push(['own', 'a part']);
    // A list that is open stays so.
    if (this.offered !== options.join()) {
      this.last.replaceChildren(
          ...options.map(([value, text]) => element('option', {value}, text)));
    }
    this.offered = options.join();
    this.last.value = state.range ? 'own' : '';
    const [from, to] = state.range ?? [this.begin, this.end];
    this.range.textContent = `${clock(from)} to ${clock(to)} (${seconds(to - from)})`;
  }

  label() {
    const rank = this.scope.value === 'rank';
    this.name.setAttribute('aria-label', rank ? 'Rank' : 'Node');
    this.name.placeholder = rank ? `0 to ${this.tasks - 1}` : this.hosts[0] ?? 'node';
  }

  chosen() {
    this.name.hidden = this.scope.value === '';
    this.label();
    if (this.name.hidden) return this.tools.open({host: '', rank: ''});
    this.name.value = '';
    this.offer();
    this.name.focus();
  }

  // All names would be too many for a browser's list.
  offer() {
    const text = this.name.value.toLowerCase();
    const from = this.scope.value === 'rank' ?
        Array.from({length: Math.min(this.tasks, 4096)}, (_, i) => String(i)) :
        this.hosts;
    this.names.replaceChildren(...from.filter((name) => name.toLowerCase().includes(text))
                                   .slice(0, MOST_NAMES)
                                   .map((value) => element('option', {value})));
  }

  named() {
    const name = this.name.value.trim();
    const rank = this.scope.value === 'rank';
    const good = rank ? /^\d+$/.test(name) && Number(name) < this.tasks : this.hosts.includes(name);
    this.name.setCustomValidity(
        good     ? '' :
            rank ? `A rank from 0 to ${this.tasks - 1}` :
                   'No node of this step');
    this.name.classList.toggle('wrong', !good);
    this.name.title = this.name.validationMessage;
    if (good)
      this.tools.open(rank ? {rank: String(Number(name)), host: ''} : {host: name, rank: ''});
  }

  ranged() {
    const length = Number(this.last.value);
    if (this.last.value === 'own') return;
    this.tools.zoom(length ? [Math.max(this.end - length, this.begin), this.end] : null, undefined);
  }

  zoom(factor) {
    const [from, to] = this.state.range ?? [this.begin, this.end];
    const middle = (from + to) / 2;
    const half = Math.max((to - from) / 2 * factor, 0.5);
    const range = [Math.max(middle - half, this.begin), Math.min(middle + half, this.end)];
    const all = range[0] <= this.begin && range[1] >= this.end;
    this.tools.zoom(all ? null : range, undefined);
  }
}
