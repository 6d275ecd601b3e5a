// The page: a list of steps (#/), a job with its steps (#/job/4711), one step with its charts
// (#/job/4711.0) and runs beside each other (#/diff?profiles=A,B); which of them is shown, and when it
// is read again.

import {$, element, say} from './dom.js';
import {showDiff} from './diff.js';
import {showJob} from './job.js';
import {showList} from './list.js';
import {showSteps} from './steps.js';
import {Live} from './live.js';
import {explain} from './server.js';
import {hideTip} from './tip.js';

const REFRESH_MS = 5000;

let current = null;
let timer = 0;

class View {
  constructor(hash) {
    this.hash = hash;
    this.charts = [];
    this.histograms = [];
    this.byHost = false;
    this.running = false;
    this.live = null;
    this.ended = false;
  }
  job() {
    const job = this.hash.match(/^#\/job\/(.+)$/);
    return job && decodeURIComponent(job[1]);
  }
  // Of a step, which has a dot in its name; a job has none.
  isStep() { return /\./.test(this.job()); }
  diff() {
    const diff = this.hash.match(/^#\/diff\?(.+)$/);
    return diff && new URLSearchParams(diff[1]);
  }
  show() {
    if (this.diff()) return showDiff(this, this.diff());
    if (!this.job()) return showList(this);
    return this.isStep() ? showJob(this, this.job()) : showSteps(this, this.job());
  }
  // Has the server tell what happens; false where it does not.
  follow() {
    if (this.live) return true;
    if (!this.job() || this.ended || !this.parts || !window.EventSource) return false;
    this.live = new Live(this.job(), () => this.charts, refreshNow, (ended) => {
      this.live = null;
      this.ended = this.ended || ended;
      if (this.stale()) return;
      if (ended) refreshNow();
      else later();
    });
    return true;
  }
  unfollow() {
    if (this.live) this.live.close();
    this.live = null;
  }
  stale() { return current !== this; }
  refresh() { return refreshNow(); }
  dropCharts() {
    [...this.charts, ...this.histograms].forEach((chart) => chart.destroy());
    this.charts = [];
    this.histograms = [];
  }
  async load() {
    try {
      await this.show();
      if (!this.stale()) say('');
    } catch (error) {
      if (this.stale()) return;
      say(explain(error));
      if (!this.parts) $('view').replaceChildren();
      this.running = error instanceof TypeError || this.running;
    }
  }
}

async function refreshNow() {
  clearTimeout(timer);
  const view = current;
  await view.load();
  if (view !== current) return;
  clearTimeout(timer);
  if (view.running && $('refresh').checked && !document.hidden) {
    if (!view.follow()) later();
  } else {
    view.unfollow();
  }
}

function later() {
  clearTimeout(timer);
  timer = setTimeout(refreshNow, REFRESH_MS);
}

function navigate() {
  hideTip();
  if (current) {
    current.unfollow();
    current.dropCharts();
  }
  current = new View(location.hash || '#/');
  $('view').replaceChildren(element('p', {class: 'empty'}, 'Loading'));
  $('view').focus({preventScroll: true});
  scrollTo(0, 0);
  return refreshNow();
}

addEventListener('hashchange', navigate);
addEventListener('pagehide', () => current.unfollow());
document.addEventListener('visibilitychange', () => { if (!document.hidden) refreshNow(); });
$('refresh').addEventListener('change', refreshNow);
// Colours are read when a chart is made.
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', navigate);
navigate();
