// The steps and the range of time that all queries share, and how the answers are shown.

import {element} from '../dom.js';
import {clock} from '../when.js';
import {Combo} from './combo.js';
import {button} from './form.js';
import {lengthOf} from './request.js';
import {MOST_STEPS, VIEWS} from './state.js';

const LASTS = ['1m', '5m', '15m', '30m', '1h', '3h', '6h', '12h', '1d', '7d'];
const KINDS = [['step', 'The whole step'], ['part', 'Part of the step'], ['last', 'The last'], ['absolute', 'From, to']];

const choices = (all, chosen) => all.map(([value, words]) => element('option', {value, selected: value === chosen}, words));

// Local time, as a field of the kind datetime-local has it.
function localText(seconds) {
  const date = new Date(seconds * 1e3);
  return new Date(date - date.getTimezoneOffset() * 60e3).toISOString().slice(0, 23);
}

export class Bar {
  // `owner` has state, names, range() in ms, changed() and stepsChanged().
  constructor(owner) {
    this.owner = owner;
    this.steps = element('div', {class: 'steps', role: 'group', 'aria-label': 'Steps'});
    this.stepError = element('p', {class: 'query-error', role: 'alert', hidden: true});
    this.range = element('div', {class: 'range', role: 'group', 'aria-label': 'Range of time'});
    this.rangeError = element('p', {class: 'query-error', role: 'alert', hidden: true});
    this.views = element('div', {class: 'views', role: 'group', 'aria-label': 'How it is shown'});
    this.element = element('section', {class: 'bar', 'aria-label': 'Steps and time'},
        this.steps, this.stepError, this.range, this.rangeError);
    this.showSteps();
    this.showRange();
    this.showViews();
  }

  showSteps() {
    const {state, names} = this.owner;
    const chips = state.jobs.map((job) => {
      const info = names.profiles.get(job)?.job;
      const remove = element('button', {type: 'button', 'aria-label': `Leave out step ${job}`}, '\u00d7');
      remove.addEventListener('click', () => {
        state.jobs = state.jobs.filter((one) => one !== job);
        this.owner.stepsChanged();
        this.add.input.focus();
      });
      return element('span', {class: 'tag', 'data-step': job},
          element('a', {href: '#/job/' + encodeURIComponent(job)}, job), info ? ' ' + info.name : '', remove);
    });
    this.add = new Combo({label: 'Add a step', placeholder: 'add a step', className: 'add-step', pick: true,
        suggest: async () => (await names.steps()).filter(({jobid}) => !state.jobs.includes(jobid))
            .map((job) => ({value: job.jobid, about: `${job.name}, ${job.state}, ${clock(job.start_time)}`})),
        commit: (job) => {
          state.jobs = [...state.jobs, job];
          this.owner.stepsChanged();
        }});
    this.add.input.disabled = state.jobs.length >= MOST_STEPS;
    this.steps.replaceChildren(element('span', {class: 'name'}, state.jobs.length === 1 ? 'Step' : 'Steps'),
                               ...chips, this.add.element);
  }

  setRange(range, focus) {
    this.owner.state.range = range;
    this.showRange();
    if (focus) this.range.querySelector(focus)?.focus();
    this.owner.changed();
  }

  // What is shown now as another kind of range, so that nothing jumps.
  asKind(kind) {
    const {start, end, first} = this.owner.range();
    if (kind === 'part') return {kind, from: (start - first) / 1e3, to: (end - first) / 1e3};
    if (kind === 'absolute') return {kind, from: start / 1e3, to: end / 1e3};
    return kind === 'last' ? {kind, last: '5m'} : {kind};
  }

  showRange() {
    const {range} = this.owner.state;
    const kind = element('select', {'aria-label': 'Range', class: 'kind'}, ...choices(KINDS, range.kind));
    kind.addEventListener('change', () => this.setRange(this.asKind(kind.value), '.kind'));
    const zoom = [['\u2212', 'Zoom out', -0.5, 0.5], ['+', 'Zoom in', 0.25, -0.25], ['\u2190', 'Earlier', -0.5, -0.5],
                  ['\u2192', 'Later', 0.5, 0.5]];
    const buttons = zoom.map(([text, label, from, to]) => button(text, label, () => {
      const {start, end} = this.owner.range();
      this.zoom((start + from * (end - start)) / 1e3, (end + to * (end - start)) / 1e3, `[aria-label="${label}"]`);
    }, {title: label}));
    this.range.replaceChildren(element('span', {class: 'name'}, 'Time'), kind, ...this.fields(range),
                               element('span', {class: 'buttons'}, ...buttons), this.views);
  }

  fields(range) {
    if (range.kind === 'last') {
      const known = LASTS.includes(range.last) ? LASTS : [...LASTS, range.last];
      const last = element('select', {'aria-label': 'Length', class: 'last'}, ...choices(known.map((one) => [one, one]), range.last));
      last.addEventListener('change', () => this.setRange({kind: 'last', last: last.value}, '.last'));
      return [last];
    }
    if (range.kind === 'step') return [];
    const part = range.kind === 'part';
    const field = (name, label, value) => {
      const input = part ? element('input', {type: 'number', step: 'any', 'aria-label': label, class: name, value: String(value)})
                         : element('input', {type: 'datetime-local', step: 'any', 'aria-label': label, class: name, value: localText(value)});
      input.addEventListener('change', () => {
        const read = part ? Number(input.value) : new Date(input.value).getTime() / 1e3;
        if (input.value !== '' && Number.isFinite(read)) this.setRange({...range, [name]: read}, '.' + name);
      });
      return input;
    };
    const unit = part ? [' s'] : [];
    return [field('from', part ? 'From, seconds since the start' : 'From', range.from), 'to',
            field('to', part ? 'To, seconds since the start' : 'To', range.to), ...unit];
  }

  // To a range in seconds since 1970: of the step, unless it is looked at by the clock.
  zoom(from, to, focus) {
    const {start, end, first} = this.owner.range();
    // No finer than what can be seen.
    const fine = (end - start) / 1e3 > 60 ? 1 : 1e3;
    const round = (seconds) => Math.round(seconds * fine) / fine;
    if (to - from < 0.002) return;
    const absolute = this.owner.state.range.kind === 'absolute' || this.owner.state.range.kind === 'last';
    const shift = absolute ? 0 : first / 1e3;
    this.setRange({kind: absolute ? 'absolute' : 'part', from: round(from - shift), to: round(to - shift)}, focus);
  }

  showViews() {
    this.views.replaceChildren(...VIEWS.map((view) => button(view[0].toUpperCase() + view.slice(1), '', () => {
      this.owner.state.view = view;
      this.showViews();
      this.views.querySelector('[aria-pressed=true]').focus();
      this.owner.changed();
    }, {'aria-pressed': String(view === this.owner.state.view)})));
  }

  tell(where, text) {
    const place = where === 'steps' ? this.stepError : this.rangeError;
    place.textContent = text;
    place.hidden = !text;
  }

  // What is wrong with the range before it is asked for; "": nothing.
  static fault(range) {
    if (range.kind === 'last' && lengthOf(range.last) === null) {
      return `The last '${range.last}' is no length of time: expected a number with s, m, h or d, such as 5m.`;
    }
    if ((range.kind === 'part' || range.kind === 'absolute') && range.to <= range.from) {
      return 'The end has to lie after the begin.';
    }
    return '';
  }
}
