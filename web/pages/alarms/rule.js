// The form in which a rule is put together. Its text is shown as it grows and can be written by hand; the
// server says what is wrong with it.

import {element} from '../dom.js';
import {Combo} from '../explore/combo.js';

const WHO = [['', 'the step\u2019s number'], ['any', 'any node or task'], ['all', 'all nodes or tasks'],
             ['any node', 'any node'], ['all nodes', 'all nodes'], ['sum', 'sum'], ['avg', 'mean'], ['min', 'least'],
             ['max', 'most'], ['count', 'how many']];
const TESTS = [['>', '>'], ['>=', '\u2265'], ['<', '<'], ['<=', '\u2264'], ['=', '='], ['!=', '\u2260'],
               ['absent', 'is absent'], ['lags', 'lags behind by deviations'], ['leads', 'leads by deviations']];
const SEVERITIES = [['info', 'info'], ['warning', 'warning'], ['critical', 'critical']];
const HELP = [
  ['METRIC{tag=value} > NUMBER', 'the step\u2019s number; any, all, sum, avg, min, max or count before the test says whose'],
  ['rate', 'the change per second, before the test'],
  ['METRIC / METRIC', 'one divided by the other'],
  ['in 1m', 'behind the number: it will compare so by then, if it goes on like this'],
  ['absent; lags 4 by 30%; leads 4 by 30%', 'no value at all; the least, or the most, stands apart from the others'],
  ['and', 'joins up to four conditions'],
  ['for 30s; clear 80%; calm 1m', 'how long it holds before it is raised; the number, and the time, after which it is over'],
  ['info, warning, critical; message "{value} is too much"', 'how bad it is, and what is told'],
];

const quoted = (text) => '"' + text.replaceAll('"', '\u2019') + '"';

// The text of the fields; "" while something that is needed is missing.
export function ruleText({metric, who, rate, test, bound, hold, severity, message}) {
  if (!metric || (test !== 'absent' && bound === '')) return '';
  return [metric, test === 'absent' ? '' : who, test !== 'absent' && rate ? 'rate' : '', test,
          test === 'absent' ? '' : bound, hold ? 'for ' + hold : '', severity === 'warning' ? '' : severity,
          message ? 'message ' + quoted(message) : ''].filter(Boolean).join(' ');
}

function labelled(name, control, help) {
  return element('label', {class: 'field'}, element('span', {class: 'name'}, name), control,
                 help ? element('span', {class: 'help'}, help) : null);
}

const select = (name, all) => element('select', {name}, ...all.map(([value, words]) => element('option', {value}, words)));
const text = (name, placeholder, more = {}) => element('input', {type: 'text', name, placeholder, autocomplete: 'off',
                                                                 spellcheck: 'false', ...more});

export class RuleForm {
  // `names` and `jobs()` for suggestions; `add(name, rule)` and `attempt(name, rule)`, which gives what
  // it came to as an element, throw with the server's words.
  constructor({names, jobs, add, attempt}) {
    this.names = names;
    this.jobs = jobs;
    this.fields = {name: text('name', 'hot', {maxlength: '64'}),
                   who: select('who', WHO), rate: element('input', {type: 'checkbox', name: 'rate'}),
                   test: select('test', TESTS), bound: text('bound', '10, 5G or 90%'), hold: text('hold', '30s'),
                   severity: select('severity', SEVERITIES), message: text('message', 'residual is {value}', {maxlength: '160'})};
    this.fields.severity.value = 'warning';
    this.metric = new Combo({label: 'Metric of the rule', placeholder: 'search metrics', className: 'metric',
        suggest: () => names.metrics(jobs()), commit: () => {
          this.showUnit();
          this.compose();
          this.tried.replaceChildren();
        }});
    this.unit = element('span', {class: 'help'});
    this.rule = element('input', {type: 'text', name: 'rule', required: true, class: 'rule', maxlength: '2048',
                                  spellcheck: 'false', autocomplete: 'off', placeholder: 'heat_residual max > 10 for 3s'});
    this.error = element('p', {class: 'query-error', role: 'alert', hidden: true});
    this.said = element('p', {class: 'words', role: 'status'});
    this.adds = element('button', {type: 'submit', class: 'button'}, 'Add rule');
    this.tries = element('button', {type: 'button', class: 'button'}, 'Try it on this step');
    this.tries.addEventListener('click', () => this.attempt(attempt));
    this.tried = element('div', {class: 'tried', role: 'status'});
    this.element = this.build();
    this.element.addEventListener('input', (event) => {
      this.tried.replaceChildren();  // it was of another rule
      if (event.target !== this.rule && event.target !== this.fields.name && event.target !== this.metric.input) this.compose();
    });
    this.element.addEventListener('submit', (event) => {
      event.preventDefault();
      this.submit(add);
    });
  }

  build() {
    const {fields} = this;
    const metric = element('div', {class: 'field wide-field'}, element('span', {class: 'name'}, 'Metric'), this.metric.element, this.unit);
    return element('form', {class: 'rule-form', 'aria-label': 'Add a rule'},
        element('div', {class: 'fields'}, metric,
            labelled('Whose', fields.who),
            element('label', {class: 'switch rate'}, fields.rate, 'change per second'),
            labelled('Test', fields.test), labelled('Number', fields.bound, 'K, M, G and T are powers of 1024'),
            labelled('For', fields.hold, 'ms, s, m, h'), labelled('Severity', fields.severity),
            labelled('Message', fields.message, '{value} becomes the number')),
        element('div', {class: 'written'}, labelled('Name', fields.name), labelled('Rule', this.rule),
            element('span', {class: 'buttons'}, this.tries, this.adds)),
        this.error, this.said, this.tried,
        element('details', {}, element('summary', {}, 'What a rule can say'),
            element('dl', {class: 'grammar'}, ...HELP.flatMap(([form, words]) =>
                [element('dt', {}, element('code', {}, form)), element('dd', {}, words)]))));
  }

  // The unit in which numbers of the rule are.
  showUnit() {
    const info = this.names.info(this.jobs(), this.metric.input.value);
    this.unit.textContent = !info ? '' : `${info.help} A ${info.type}` +
        (info.unit === '1' || info.unit === '' ? ', a plain number.' : `, in ${info.unit}.`);
    this.fields.rate.checked = Boolean(info) && info.type !== 'gauge';
  }

  compose() {
    const value = (name) => this.fields[name].value.trim();
    this.rule.value = ruleText({metric: this.metric.input.value.trim(), who: value('who'), rate: this.fields.rate.checked,
        test: value('test'), bound: value('bound'), hold: value('hold'), severity: value('severity'), message: value('message')});
  }

  // The name and the rule, as they stand in the form.
  written() {
    return [this.fields.name.value.trim(), this.rule.value.trim()];
  }

  async submit(add) {
    const [name, rule] = this.written();
    this.tell('', '');
    try {
      await add(name, rule);
      this.tell('', `The head watches ${name} now.`);
      if (this.fields.name.value.trim() === name) this.fields.name.value = '';
    } catch (error) {
      this.tell(error.message, '');
    }
  }

  // On what the step has measured so far.
  async attempt(attempt) {
    this.tell('', '');
    this.tries.disabled = true;
    const asked = this.written();
    let shown = [];
    let problem = '';
    try {
      shown = await attempt(...asked);
    } catch (error) {
      problem = error.message;
    }
    this.tries.disabled = false;
    // Who has written on meanwhile is not told of a rule that stands there no more.
    if (this.written().join('\n') !== asked.join('\n')) return;
    this.tried.replaceChildren(...shown);
    this.tell(problem, '');
    this.tries.focus();
  }

  // Rules are added to steps that run.
  setRunning(running) {
    this.adds.hidden = !running;
  }

  tell(error, said) {
    this.error.textContent = error;
    this.error.hidden = !error;
    this.said.textContent = said;
  }
}
