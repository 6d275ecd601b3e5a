// The page: a list of steps (#/, with filters #/?state=failed), a job with its steps (#/job/4711), one
// step with its charts (#/job/4711.0), runs beside each other (#/diff?profiles=A,B), the explorer
// (#/explore?...), a step's alarms (#/alarms?job=4711.0), models of runs of different sizes
// (#/models?runs=cavity), what repeats itself in a step (#/periods?job=4711.0) and the tree of its
// daemons (#/tree?job=4712.0); which of them is shown, and when it is read again.

import {$, element, say} from './dom.js';
import {showAlarms} from './alarms/page.js';
import {showDiff} from './compare/diff.js';
import {showExplore} from './explore/page.js';
import {showJob} from './job.js';
import {showList} from './list/list.js';
import {showModels} from './models/page.js';
import {showPeriods} from './models/periods.js';
import {showSteps} from './steps.js';
import {showTree} from './tree/page.js';
import {Live} from './live.js';
import {explain, Unreachable} from './server.js';
import {takeToken} from './session.js';
import {hideTip} from './tip.js';
import {zoneText} from './when.js';

// Those with parameters behind a '?'.
const PAGES = {
  explore: showExplore,
  models: showModels,
  periods: showPeriods,
  alarms: showAlarms,
  tree: showTree,
};
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
    this.every = REFRESH_MS;  // is read again, while it runs and nobody tells what happens
    this.live = null;
    this.ended = false;
    this.over = new AbortController();  // what listens to the window for this view ends with it
  }
  job() {
    const job = this.hash.match(/^#\/job\/([^?]+)/);
    if (!job) return null;
    try {
      return decodeURIComponent(job[1]);
    } catch (error) {
      return job[1];  // a % that encodes nothing: as it stands, and the server says that there is none
    }
  }
  // Of a step, which has a dot in its name; a job has none.
  isStep() { return /\./.test(this.job()); }
  diff() {
    const diff = this.hash.match(/^#\/diff\?(.+)$/);
    return diff && new URLSearchParams(diff[1]);
  }
  // The parameters of a page such as #/explore?job=4711.0; null: it is another one.
  parametersOf(page) {
    const [path, ...parameters] = this.hash.split('?');
    return path === '#/' + page ? parameters.join('?') : null;
  }
  // One of those that have parameters; undefined: it is none of them.
  page() { return Object.keys(PAGES).find((page) => this.parametersOf(page) !== null); }
  isList() {
    return !this.job() && !this.diff() && !this.page();
  }
  show() {
    const page = this.page();
    if (page) return PAGES[page](this, this.parametersOf(page));
    if (this.diff()) return showDiff(this, this.diff());
    if (!this.job()) return showList(this);
    return this.isStep() ? showJob(this, this.job()) : showSteps(this, this.job());
  }
  // Has the server tell what happens; false where it does not.
  follow() {
    if (this.live) return true;
    if (!this.job() || this.ended || !this.parts) return false;
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
  end() {
    this.over.abort();
    this.unfollow();
    this.dropCharts();
    this.parts?.matrix?.destroy();
  }
  async load() {
    try {
      await this.show();
      if (!this.stale()) say('');
    } catch (error) {
      if (this.stale()) return;
      say(explain(error));
      if (!this.parts) $('view').replaceChildren();
      this.running = error instanceof Unreachable || this.running;
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
  timer = setTimeout(refreshNow, current.every);
}

// From a step the other pages are about that step.
function linkPages(view) {
  const step = view.job() && view.isStep() ? '?job=' + encodeURIComponent(view.job()) : '';
  document.querySelectorAll('.pages a').forEach((link) => { link.href = '#/' + link.dataset.page + step; });
}

// Of a list or a tree that stays on the page, with other filters or another part of it.
function followAddress() {
  if (takeToken()) return navigate();
  const next = new View(location.hash || '#/');
  if (current.tree?.follow(next.parametersOf('tree'))) {
    current.hash = next.hash;
    return;
  }
  if (!current.isList() || !next.isList()) return navigate();
  current.hash = next.hash;
  current.list.filters.forget();
  scrollTo(0, 0);
  return refreshNow();
}

function navigate() {
  hideTip();
  current?.end();
  current = new View(location.hash || '#/');
  linkPages(current);
  $('view').replaceChildren(element('p', {class: 'empty'}, 'Loading'));
  $('view').focus({preventScroll: true});
  scrollTo(0, 0);
  return refreshNow();
}

addEventListener('hashchange', followAddress);
addEventListener('pagehide', () => current.unfollow());
document.addEventListener('visibilitychange', () => { if (!document.hidden) refreshNow(); });
$('refresh').addEventListener('change', refreshNow);
// Colours are read when a chart is made.
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', navigate);
// The address holds what is shown, so this link is no place of its own.
$('skip').addEventListener('click', (event) => {
  event.preventDefault();
  $('view').focus();
});
$('zone').textContent = 'Times: ' + zoneText();
takeToken();
navigate();
