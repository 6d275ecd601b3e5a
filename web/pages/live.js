// What happens in a running step, told by the server as it happens (/api/live). While this is open
// nothing is asked at intervals; where it cannot be, the page asks as before.

const MOST_METRICS = 64;
const AGAIN_MS = 5000;   // charts are read again after a tick, but not more often
const SOON_MS = 300;     // after an alarm or a note; several come together

export class Live {
  // `charts` show a gauge's present value at once; `refresh` reads everything again; `lost` is told
  // when there are no events any more, with whether the step has ended.
  constructor(id, charts, refresh, lost) {
    this.charts = charts;
    this.refresh = refresh;
    this.lost = lost;
    this.read = Date.now();
    this.timer = 0;
    const names = charts().filter((chart) => chart.metric.type === 'gauge')
        .map((chart) => chart.metric.metric).slice(0, MOST_METRICS);
    const query = new URLSearchParams({job: id, metric: names.join(',')});
    this.source = new EventSource('./api/live?' + query);
    this.source.addEventListener('tick', (event) => this.onTick(JSON.parse(event.data)));
    for (const kind of ['alarm', 'note', 'lost']) {
      this.source.addEventListener(kind, () => this.readIn(SOON_MS));
    }
    this.source.addEventListener('end', () => this.over(true));
    this.source.addEventListener('error', () => this.over(false));
  }

  close() {
    clearTimeout(this.timer);
    this.timer = 0;
    this.source.close();
  }

  over(ended) {
    this.close();
    this.lost(ended);
  }

  onTick(tick) {
    for (const chart of this.charts()) {
      const own = tick.series.filter((one) => one.metric === chart.metric.metric);
      if (own.length === 1) chart.showNow(own[0].mean);
    }
    this.readIn(Math.max(this.read + AGAIN_MS - Date.now(), 0));
  }

  readIn(ms) {
    if (this.timer && ms > SOON_MS) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.timer = 0;
      this.read = Date.now();
      this.refresh();
    }, ms);
  }
}
