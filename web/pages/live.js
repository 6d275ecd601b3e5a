// What happens in a running step, told by the server as it happens (/api/live). While this is open
// nothing is asked at intervals; where it cannot be, the page asks as before.

import {eventsOf} from './events.js';
import {ask} from './session.js';

const MOST_METRICS = 64;
const AGAIN_MS = 5000;   // charts are read again after a tick, but not more often
const SOON_MS = 300;     // after an alarm or a note; several come together

// The series of a tick by their metrics.
function grouped(series) {
  const metrics = new Map();
  for (const one of series) {
    if (metrics.has(one.metric)) metrics.get(one.metric).push(one);
    else metrics.set(one.metric, [one]);
  }
  return metrics;
}

export class Live {
  // `charts` show a gauge's present value at once; `refresh` reads everything again; `lost` is told
  // when there are no events any more, with whether the step has ended.
  constructor(id, charts, refresh, lost) {
    this.charts = charts;
    this.refresh = refresh;
    this.lost = lost;
    this.read = Date.now();
    this.timer = 0;
    this.stop = new AbortController();
    const names = charts().filter((chart) => chart.metric.type === 'gauge')
        .map((chart) => chart.metric.metric).slice(0, MOST_METRICS);
    this.listen('/api/live?' + new URLSearchParams({job: id, metric: names.join(',')}));
  }

  async listen(path) {
    try {
      // By the header proxies know that they must not wait for the end.
      const response = await ask(path, {signal: this.stop.signal, headers: {Accept: 'text/event-stream'}});
      if (!response.ok) return this.over(false);
      for await (const event of eventsOf(response)) {
        if (event.kind === 'end') return this.over(true);
        this.hear(event);
      }
      this.over(false);
    } catch (error) {
      if (!this.stop.signal.aborted) this.over(false);
    }
  }

  // A fault of the page's own is no end of the events.
  hear({kind, data}) {
    try {
      if (kind === 'tick') this.onTick(JSON.parse(data));
      if (['alarm', 'note', 'lost'].includes(kind)) this.readIn(SOON_MS);
    } catch (error) {
      reportError(error);
    }
  }

  close() {
    clearTimeout(this.timer);
    this.timer = 0;
    this.stop.abort();
  }

  over(ended) {
    this.close();
    this.lost(ended);
  }

  onTick(tick) {
    const series = grouped(tick.series);
    for (const chart of this.charts()) {
      const own = series.get(chart.metric.metric);
      if (own && own.length === 1) chart.showNow(own[0].mean);
    }
    this.readIn(Math.max(this.read + AGAIN_MS - Date.now(), 0));
  }

  // On a large step reading takes longer than AGAIN_MS: another one would begin before it is over,
  // and its answers would be dropped.
  async readNow() {
    this.timer = 0;
    if (this.reading) {
      this.missed = true;
      return;
    }
    this.reading = true;
    await this.refresh();
    this.reading = false;
    this.read = Date.now();
    if (this.missed && !this.stop.signal.aborted) this.readIn(AGAIN_MS);
    this.missed = false;
  }

  readIn(ms) {
    if (this.timer && ms > SOON_MS) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.readNow(), ms);
  }
}
