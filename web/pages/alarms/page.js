// The alarms of a step (#/alarms?job=ID): what was raised, while it runs its rules with what they are now,
// and a form for a rule that is tried on what the step measured, or added.

import {alarmTable} from '../alarms.js';
import {$, element, plural} from '../dom.js';
import {Combo} from '../explore/combo.js';
import {Names} from '../explore/names.js';
import {seconds} from '../numbers.js';
import {explain, getJson, send} from '../server.js';
import {stateOf} from '../states.js';
import {clock} from '../when.js';
import {RuleForm} from './rule.js';

// POST, whose refusals are told by the server in words.
async function post(path, body) {
  await send(path, {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(body)});
}

const whose = ({node, rank}) => (node === undefined ? '' : rank === undefined ? node : `task ${rank} on ${node}`);

class AlarmPage {
  constructor(view, job) {
    this.view = view;
    this.job = job;
    this.names = new Names();
    this.head = element('div', {class: 'title'});
    this.pick = new Combo({label: 'Another step', placeholder: 'another step', className: 'add-step', pick: true,
        suggest: async () => (await this.names.steps()).map((one) =>
            ({value: one.jobid, about: `${one.name}, ${one.state}, ${clock(one.start_time)}`})),
        commit: (one) => { location.hash = '#/alarms?job=' + encodeURIComponent(one); }});
    this.form = new RuleForm({names: this.names, jobs: () => [job], add: (name, rule) => this.add(name, rule),
                               attempt: (name, rule) => this.attempt(name, rule)});
    this.newRule = element('h2', {});
    this.adding = element('section', {'aria-label': 'New rule'}, this.newRule, this.form.element);
    this.rules = element('section', {'aria-label': 'Rules'});
    this.history = element('div');
    this.error = element('p', {class: 'query-error', role: 'alert', hidden: true});
    this.element = element('div', {class: 'alarm-page'}, element('div', {class: 'top'}, this.head, this.pick.element),
                           this.history, this.error, this.rules, this.adding);
  }

  async add(name, rule) {
    try {
      await post('/alarms/add', {name, target: this.job, rule});
    } catch (error) {
      throw new Error(explain(error));
    }
    this.view.refresh();
  }

  // How often, for how long and on whom it would have been raised.
  async attempt(name, rule) {
    let found;
    try {
      found = await getJson('/api/v1/alarms/try', {job: this.job, rule, ...(name ? {name} : {})});
    } catch (error) {
      throw new Error(explain(error));
    }
    const {job} = await this.names.profile(this.job);
    const running = job.state === 'running';
    const length = ({raised, over}) => ((over || found.last) - raised) / 1e9;
    const all = found.alarms.reduce((sum, alarm) => sum + length(alarm), 0);
    const owners = new Map();
    for (const {by} of found.alarms) if (by) owners.set(by.host, (owners.get(by.host) ?? 0) + 1);
    const on = [...owners].sort((a, b) => b[1] - a[1]).slice(0, 8).map(([host, times]) => `${host} (${times})`);
    const words = found.raised === 0 ? 'It would not have been raised'
        : `It would have been raised ${plural(found.raised, 'time')}, for ${seconds(all)} together` +
          (on.length ? `, on ${on.join(', ')}` : '');
    const notes = [`${words}: looked at ${plural(found.rows, 'tick')}.`];
    if (found.missing.length) notes.push(`The step has no metric ${found.missing.join(', ')}.`);
    if (found.nodes_answered < found.nodes_expected) {
      notes.push(`${found.nodes_answered} of ${plural(found.nodes_expected, 'node')} answered.`);
    }
    if (found.alarms.length < found.raised) notes.push(`The first ${found.alarms.length} are shown.`);
    const table = alarmTable({job: {...job, state: running ? 'running' : job.state}, moments: {alarms: found.alarms}});
    if (table) {
      table.setAttribute('aria-label', 'Trial');
      table.querySelector('h2').remove();
    }
    return [element('p', {class: 'verdict'}, notes.join(' ')), table ?? ''];
  }

  async remove(name) {
    let problem = '';
    try {
      await post('/alarms/del', {name, target: this.job});
    } catch (error) {
      problem = explain(error);
    }
    this.error.textContent = problem;
    this.error.hidden = !problem;
    await this.view.refresh();
    this.rules.querySelector('h2').focus();
  }

  row(alarm, first, now) {
    const state = alarm.active ? element('span', {class: 'state ' + alarm.severity}, 'raised for ' + seconds(Math.max(now - alarm.since / 1e9, 0)))
                               : element('span', {class: 'quiet'}, 'quiet');
    const remove = element('button', {type: 'button', class: 'button', 'aria-label': `Remove the rule ${alarm.name}`}, 'Remove');
    remove.addEventListener('click', () => this.remove(alarm.name));
    const series = alarm.metric.includes('{') ? alarm.metric.slice(alarm.metric.indexOf('{')) : '';
    return element('tr', {class: alarm.active ? 'active' : undefined, 'data-rule': alarm.name},
        element('td', {class: 'name'}, first ? alarm.name : ''),
        element('td', {class: 'now'}, state, alarm.active ? element('span', {class: 'told'}, alarm.text) : ''),
        element('td', {class: 'number'}, alarm.value),
        element('td', {class: 'owner'}, whose(alarm)),
        element('td', {class: 'text'}, element('code', {}, alarm.rule), series ? element('span', {class: 'series'}, series) : ''),
        element('td', {}, alarm.severity), element('td', {class: 'number'}, first ? remove : ''));
  }

  showRules(list) {
    const focused = document.activeElement?.getAttribute('aria-label');
    const names = new Set(list.map(({name}) => name));
    const raised = list.filter(({active}) => active).length;
    // Raised ones first; the entries of a rule, one for each series, stay together.
    const order = [...names].sort((a, b) => {
      const active = (name) => list.some((alarm) => alarm.name === name && alarm.active);
      return active(b) - active(a);
    });
    const now = Date.now() / 1e3;
    const rows = order.flatMap((name) => list.filter((alarm) => alarm.name === name)
        .sort((a, b) => b.active - a.active).map((alarm, i) => this.row(alarm, i === 0, now)));
    const heads = [['Rule', ''], ['State', ''], ['Value', 'number'], ['On', ''], ['What it says', ''], ['Severity', ''], ['', 'number']];
    this.rules.replaceChildren(element('h2', {tabindex: '-1'}, 'Rules'),
        element('p', {class: 'words'}, `${plural(names.size, 'rule')}, ${raised} raised`),
        rows.length === 0 ? element('div', {class: 'frame empty'}, 'No rules')
        : element('div', {class: 'frame'}, element('table', {class: 'rules', 'aria-label': 'Rules'},
            element('thead', {}, element('tr', {}, ...heads.map(([name, kind]) => element('th', {scope: 'col', class: kind || undefined}, name)))),
            element('tbody', {}, ...rows))));
    const again = focused && this.rules.querySelector(`[aria-label="${CSS.escape(focused)}"]`);
    if (again) again.focus();
  }

  // `turn` is which reading it is: answers to the one before are dropped.
  async reload() {
    const turn = this.turn = (this.turn ?? 0) + 1;
    const profile = await this.names.profile(this.job);
    const running = profile.job.state === 'running';
    const list = running ? Object.values(await getJson('/alarms/list', {job: this.job})).flat() : [];
    if (this.view.stale() || turn !== this.turn) return;
    this.head.replaceChildren(element('h1', {}, `Alarms of ${this.job} ${profile.job.name}`), stateOf(profile.job.state));
    this.history.replaceChildren(alarmTable(profile) ?? element('p', {class: 'words'}, 'No alarm was raised.'));
    this.rules.hidden = !running;
    this.newRule.textContent = running ? 'Add or try a rule' : 'Try a rule';
    this.form.setRunning(running);
    if (running) this.showRules(list);
    this.view.running = running;
  }
}

export async function showAlarms(view, text) {
  const job = new URLSearchParams(text).get('job');
  if (!job) {
    const [newest] = (await getJson('/job/list?limit=1')).filter(({start_time: start}) => start !== 0);
    if (!newest) throw new Error('There is no step yet.');
    if (!view.stale()) location.replace('#/alarms?job=' + encodeURIComponent(newest.jobid));
    return;
  }
  const page = view.alarms ?? new AlarmPage(view, job);
  await page.reload();
  if (view.stale() || view.alarms) return;
  view.alarms = view.parts = page;
  document.title = `Alarms of ${job} \u00b7 Sonde`;
  $('crumb').replaceChildren(element('a', {href: '#/job/' + encodeURIComponent(job)}, 'Step ' + job), ' \u203a Alarms');
  $('view').replaceChildren(page.element);
}
