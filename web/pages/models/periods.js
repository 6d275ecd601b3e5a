// What repeats itself in a step (#/periods?job=4711.0), from /api/v1/insight: each metric with its period,
// or why there is none, and the strongest frequencies of the one that is chosen.

import {$, color, css, element, linkButton} from '../dom.js';
import {formatter, percent, seconds, trim} from '../numbers.js';
import {axes, BYTES, cursorPlace, Plot} from '../plot.js';
import {explain, getJson} from '../server.js';
import {hideTip, showTip} from '../tip.js';
import {field, pagesOf} from './page.js';

const HEIGHT = 220;

// Bars of the strongest frequencies by their periods.
class Spectrum extends Plot {
  constructor({name, unit, waves}) {
    super();
    this.height = HEIGHT;
    this.plot.style.height = HEIGHT + 'px';
    this.format = formatter(name, unit.replace(/\/s$/, ''), unit.endsWith('/s'));
    this.bytes = unit.startsWith('bytes');
    this.waves = waves.map((wave) => ({hertz: wave.frequency_hertz, amp: wave.amplitude, conf: wave.confidence}))
        .sort((a, b) => a.hertz - b.hertz);
    this.figure = element('figure', {role: 'img', 'aria-label': `Strongest frequencies of ${name}: ` +
        this.waves.map(({hertz}) => seconds(1 / hertz)).join(', ')},
        element('figcaption', {}, element('b', {}, `Strongest frequencies of ${name}`)), this.plot,
        element('p', {class: 'words'}, 'Height: the amplitude of the wave. Below: its period. The filled ones may be the period.'));
  }

  resize() {
    if (!this.plot.clientWidth) return;
    if (this.chart) {
      super.resize();
      return;
    }
    const bars = uPlot.paths.bars({size: [0.5, 28]});
    const x = this.waves.map((_, i) => i);
    const of = (wanted) => this.waves.map((wave) => ((wave.conf > 0) === wanted ? wave.amp : null));
    this.chart = new uPlot({
      width: this.plot.clientWidth, height: HEIGHT, padding: [8, 10, 0, 0], legend: {show: false},
      cursor: {points: {show: false}, drag: {x: false, y: false}},
      scales: {x: {time: false, range: [-0.6, x.length - 0.4]}, y: {range: (u, low, high) => [0, high > 0 ? high * 1.08 : 1]}},
      axes: axes({splits: () => x, values: (u, marks) => marks.map((i) => seconds(1 / this.waves[i].hertz)), space: 30},
                 {values: (u, marks) => marks.map(this.format), ...(this.bytes ? {incrs: BYTES} : {})}),
      series: [{}, {paths: bars, stroke: color(0), fill: color(0), points: {show: false}},
               {paths: bars, stroke: css('--soft'), fill: css('--grid'), points: {show: false}}],
      hooks: {setCursor: [(u) => this.onCursor(u)]},
    }, [x, of(true), of(false)], this.plot);
  }

  onCursor(u) {
    const wave = this.waves[u.cursor.idx];
    if (!wave || !u.over.matches(':hover')) return hideTip(this);
    showTip(this, element('div', {}, `every ${seconds(1 / wave.hertz)} (${trim(wave.hertz)} Hz), amplitude ${this.format(wave.amp)}` +
                                     (wave.conf > 0 ? `, confidence ${percent(wave.conf)}` : '')), ...cursorPlace(u));
  }
}

class Periods {
  constructor(view, metrics) {
    this.view = view;
    this.metrics = metrics;
    this.plot = element('div', {class: 'model-plot', tabindex: '-1'});
  }

  table() {
    const head = [['Metric', ''], ['Period', 'number'], ['Confidence', 'number'], ['Like itself', 'number'], ['Why none', '']];
    const cell = (name, kind, text) => element('td', {class: kind || undefined, 'data-name': name || undefined}, text);
    const rows = this.metrics.map((one) => {
      const show = linkButton(one.name, () => this.show(one));
      const found = one.period_seconds !== undefined;
      return element('tr', {'data-metric': one.name}, cell('', '', show),
          cell('Period', 'number', found ? seconds(one.period_seconds) : ''),
          cell('Confidence', 'number', found ? percent(one.confidence) : ''),
          cell('Like itself', 'number', found ? percent(one.correlation) : ''),
          element('td', {class: 'beware'}, one.why_not ?? ''));
    });
    return element('div', {class: 'frame'}, element('table', {class: 'growths', 'aria-label': 'Periods'},
        element('thead', {}, element('tr', {}, ...head.map(([text, kind]) =>
            element('th', {scope: 'col', class: kind || undefined,
                           title: text === 'Like itself' ? 'How alike the metric is to itself one and two periods later' : undefined}, text)))),
        element('tbody', {}, ...rows)));
  }

  show(one) {
    document.querySelectorAll('.growths tr[data-metric]').forEach((row) =>
        row.classList.toggle('chosen', row.dataset.metric === one.name));
    this.view.dropCharts();
    if (one.waves.length === 0) {
      this.plot.replaceChildren(element('p', {class: 'words'}, `${one.name}: no frequencies are known.`));
      return;
    }
    const chart = new Spectrum(one);
    this.view.charts.push(chart);
    this.plot.replaceChildren(chart.figure);
  }
}

export async function showPeriods(view, text) {
  document.title = 'What repeats itself \u00b7 Sonde';
  $('crumb').textContent = 'What repeats itself';
  view.running = false;
  const parameters = new URLSearchParams(text);
  const job = parameters.get('job') ?? '';
  const input = element('input', {type: 'text', value: job, placeholder: '4711.0', 'data-field': 'job'});
  const form = element('form', {class: 'models-form', 'aria-label': 'Step'}, field('Step', input),
                       element('button', {class: 'button'}, 'Show'));
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    location.hash = '#/periods?' + new URLSearchParams({job: input.value.trim()});
  });
  const top = [pagesOf('periods', job), element('h1', {}, 'What repeats itself'), form];
  view.parts = top;
  const say_why = (why) => $('view').replaceChildren(...top, element('div', {class: 'needed'}, element('p', {}, why)));
  if (!job) return say_why('Name a step that has ended. A period needs five repetitions and 24 samples at least.');
  let metrics;
  try {
    ({metrics} = await getJson('/api/v1/insight', {job, of: 'periods'}));
  } catch (error) {
    if (view.stale()) return;
    if (error instanceof TypeError) throw error;
    return say_why(explain(error));
  }
  if (view.stale()) return;
  const periods = new Periods(view, metrics);
  const count = metrics.filter((one) => one.period_seconds !== undefined).length;
  $('view').replaceChildren(...top,
      element('p', {class: 'words'}, 'Of ', element('a', {href: '#/job/' + encodeURIComponent(job)}, job), ': ' +
              (count ? `${count} of ${metrics.length} metrics repeat themselves.` : 'no metric repeats itself.')),
      periods.table(), periods.plot);
  if (metrics.length) periods.show(metrics[0]);
}
