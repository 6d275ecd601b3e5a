// What can be asked for: the steps, their profiles and metrics, the tags of a metric, and the words
// of queries. Each is asked once, a running step's profile anew.

import {getJson} from '../server.js';

const MOST_SERIES = 5000;  // whose tags are suggested
const MOST_NAMES = 20000;

const tagsName = (jobs, metric) => `tags ${jobs.join(' ')} ${metric}`;

export class Names {
  constructor() {
    this.kept = new Map();
    this.profiles = new Map();
    this.tags = new Map();  // of metrics in steps, by tagsName
  }

  once(name, make) {
    if (!this.kept.has(name)) {
      this.kept.set(name, make().catch((error) => {
        this.kept.delete(name);
        throw error;
      }));
    }
    return this.kept.get(name);
  }

  aggregators() { return this.once('aggregators', () => getJson('/api/aggregators')); }
  filters() { return this.once('filters', () => getJson('/api/config/filters')); }

  // The newest first.
  async steps() {
    const all = await getJson('/job/list?limit=1000');
    return all.filter((job) => job.start_time !== 0);
  }

  async profile(job) {
    const known = this.profiles.get(job);
    if (known && known.job.end) return known;
    const profile = await getJson('/api/v1/profile', {job});
    this.profiles.set(job, profile);
    return profile;
  }

  // {metric, unit, type, help, reduction} of a metric of the steps; undefined: they have none.
  info(jobs, metric) {
    for (const job of jobs) {
      const entry = this.profiles.get(job)?.footprint.find((one) => one.metric === metric);
      if (entry) return entry;
    }
    return undefined;
  }

  // Those of the steps first, then all other names that can be asked for.
  async metrics(jobs) {
    const own = new Map();
    for (const job of jobs) {
      for (const entry of this.profiles.get(job)?.footprint ?? []) {
        if (!own.has(entry.metric)) own.set(entry.metric, {value: entry.metric, about: entry.help});
      }
    }
    const names = await this.once('metrics', () =>
        getJson('/api/suggest', {type: 'metrics', max: String(MOST_NAMES)}));
    const others = names.filter((name) => !own.has(name)).map((value) => ({value}));
    return [...[...own.values()].sort((a, b) => (a.value < b.value ? -1 : 1)), ...others];
  }

  // Map from key to a sorted list of values, of a metric's series in the steps.
  async tagsOf(jobs, metric) {
    if (!metric || jobs.length === 0) return new Map();
    const name = tagsName(jobs, metric);
    const found = await this.once(name, async () => {
      const keys = new Map();
      for (const job of jobs) {
        const answer = await getJson('/api/search/lookup', {m: `${metric}{job=${job}}`, limit: String(MOST_SERIES)});
        for (const {tags} of answer.results) {
          for (const [key, value] of Object.entries(tags)) {
            if (!keys.has(key)) keys.set(key, new Set());
            keys.get(key).add(value);
          }
        }
      }
      const order = (a, b) => a.localeCompare(b, 'en', {numeric: true});
      return new Map([...keys].sort(([a], [b]) => order(a, b)).map(([key, values]) => [key, [...values].sort(order)]));
    });
    this.tags.set(name, found);
    return found;
  }

  // The keys of a metric's tags in the steps, as far as they have come.
  keysOf(jobs, metric) { return new Set(this.tags.get(tagsName(jobs, metric))?.keys()); }
}
