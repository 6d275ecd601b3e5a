// What the application told of a step beside values: its phases and remarks, as they are drawn over
// every chart and written in tips. Times are in seconds since 1970.

import {color, css, element, plural} from './dom.js';
import {seconds} from './numbers.js';

export const STRIP = 11;      // px: the height of a lane of phases above a chart
const MAX_LANES = 3;   // above a chart; the timeline shows all
const FEW_REMARKS = 40;  // of more, only ticks are drawn
const MAX_TOLD = 6;    // lines in a tip
const ALARM_COLOURS = {__proto__: null, critical: '--bad', warning: '--warn', info: '--run'};

// Whether two phases are ever at the same time; the intervals of each are in order and apart.
function overlap(one, other) {
  let i = 0, j = 0;
  while (i < one.length && j < other.length) {
    if (one[i].begin < other[j].end && other[j].begin < one[i].end) return true;
    if (one[i].end <= other[j].end) ++i;
    else ++j;
  }
  return false;
}

// Which lane each phase is in: the first in which nothing else is at any of its times, so that
// phases that lie in each other stand below each other.
function giveLanes(byName) {
  const lanes = [];
  for (const phase of byName) {
    const free = lanes.findIndex((lane) =>
      !lane.some((other) => overlap(phase.intervals, other.intervals)));
    phase.lane = free < 0 ? lanes.length : free;
    if (free < 0) lanes.push([phase]);
    else lanes[free].push(phase);
  }
  return lanes.length;
}

export class Moments {
  constructor(profile) {
    const {job, moments} = profile;
    this.begin = job.start / 1e9;
    this.end = job.end ? job.end / 1e9 : Date.now() / 1000;
    const running = job.state === 'running';
    const names = new Map();
    for (const told of moments.phases) {
      if (!names.has(told.name)) names.set(told.name, {name: told.name, intervals: []});
      const open = told.end === 0 || (running && told.ended < told.began);
      names.get(told.name).intervals.push({...told, begin: told.begin / 1e9, open,
          end: Math.max(open ? this.end : told.end / 1e9, told.begin / 1e9),
          pauses: told.pauses / 1e9});
    }
    this.phases = [...names.values()];
    this.phases.forEach((phase, i) => {
      phase.color = color(i);
      phase.began = phase.intervals.reduce((all, one) => all + one.began, 0);
      phase.seconds = phase.intervals.reduce((all, one) => all + one.end - one.begin - one.pauses, 0);
    });
    this.lanes = Math.min(giveLanes(this.phases), MAX_LANES);
    this.alarms = (moments.alarms ?? []).map((alarm) => ({...alarm, begin: alarm.raised / 1e9,
        end: alarm.over ? Math.max(alarm.over / 1e9, alarm.raised / 1e9) : this.end}));
    this.remarks = moments.remarks.map((remark) => ({...remark, time: remark.first / 1e9,
                                                     last: remark.last / 1e9}));
  }

  // px above a chart.
  stripHeight() { return this.lanes ? this.lanes * STRIP + 2 : 0; }

  // Lines of a tip: the phases at a time and the remarks near it.
  at(time, tolerance) {
    const lines = [];
    for (const phase of this.phases) {
      const here = phase.intervals.find((one) => one.begin <= time && time <= one.end);
      if (here) lines.push(this.phaseLine(phase, here));
    }
    for (const alarm of this.alarms) {
      if (alarm.begin - tolerance > time || time > alarm.end + tolerance) continue;
      lines.push(element('li', {class: 'alarm ' + alarm.severity}, `${alarm.rule}: ${alarm.text}`));
    }
    const near = this.remarks.filter((one) => one.time - tolerance <= time &&
                                              time <= one.last + tolerance);
    lines.push(...near.map(remarkLine));
    if (lines.length <= MAX_TOLD) return lines;
    return [...lines.slice(0, MAX_TOLD), element('li', {}, `and ${lines.length - MAX_TOLD} more`)];
  }

  phaseLine(phase, interval) {
    const mark = element('i');
    mark.style.background = phase.color;
    const length = seconds(interval.end - interval.begin - interval.pauses);
    const times = interval.pauses > 0 ? `, ${plural(interval.began, 'time')}` : '';
    return element('li', {}, mark, `${phase.name}: ${interval.open ? 'for ' : ''}${length}${times}`);
  }

  // Behind the lines of a chart: a band for each interval, its name in the strip above if it fits.
  // `strip`: nothing but that.
  drawPhases(u, strip = false) {
    const {ctx, bbox} = u;
    const ratio = devicePixelRatio;
    ctx.save();
    ctx.font = `${9 * ratio}px system-ui, sans-serif`;
    ctx.textBaseline = 'middle';
    for (const phase of this.phases) {
      const lane = Math.min(phase.lane, MAX_LANES - 1);
      const top = bbox.top - (this.lanes - lane) * STRIP * ratio;
      let labelled = -Infinity;
      for (const interval of phase.intervals) {
        const left = Math.max(u.valToPos(interval.begin, 'x', true), bbox.left);
        const right = Math.min(u.valToPos(interval.end, 'x', true), bbox.left + bbox.width);
        if (right < bbox.left || left > bbox.left + bbox.width) continue;
        const width = Math.max(right - left, ratio);
        if (!strip) {
          ctx.fillStyle = phase.color + '0d';
          ctx.fillRect(left, bbox.top, width, bbox.height);
        }
        ctx.fillStyle = phase.color + '59';
        ctx.fillRect(left, top, Math.max(width - ratio, ratio), (STRIP - 1) * ratio);
        const text = ctx.measureText(phase.name).width;
        // Not again and again for a phase that repeats closely.
        if (text + 6 * ratio > width || left < labelled + 120 * ratio) continue;
        ctx.fillStyle = css('--text');
        ctx.fillText(phase.name, left + 3 * ratio, top + (STRIP / 2) * ratio);
        labelled = left;
      }
    }
    ctx.restore();
  }

  // Along the top of a chart, as long as an alarm was raised.
  drawAlarms(u) {
    const {ctx, bbox} = u;
    const ratio = devicePixelRatio;
    ctx.save();
    for (const alarm of this.alarms) {
      const left = Math.max(u.valToPos(alarm.begin, 'x', true), bbox.left);
      const right = Math.min(u.valToPos(alarm.end, 'x', true), bbox.left + bbox.width);
      if (right < bbox.left || left > bbox.left + bbox.width) continue;
      ctx.fillStyle = css(ALARM_COLOURS[alarm.severity] ?? '--warn');
      ctx.fillRect(left, bbox.top, Math.max(right - left, 2 * ratio), 3 * ratio);
    }
    ctx.restore();
  }

  // Over the lines of a chart, none closer to another than 3 px.
  drawRemarks(u) {
    const {ctx, bbox} = u;
    const ratio = devicePixelRatio;
    const places = [];
    for (const remark of this.remarks) {
      const x = u.valToPos(remark.time, 'x', true);
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      if (places.length && x - places[places.length - 1] < 3 * ratio) continue;
      places.push(x);
    }
    const few = places.length <= FEW_REMARKS;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = css('--mark');
    ctx.lineWidth = ratio;
    ctx.setLineDash(few ? [3 * ratio, 3 * ratio] : []);
    for (const x of places) {
      const at = Math.round(x) + 0.5;
      ctx.beginPath();
      ctx.moveTo(at, bbox.top);
      ctx.lineTo(at, bbox.top + (few ? bbox.height : 7 * ratio));
      ctx.stroke();
      if (!few) continue;
      ctx.beginPath();
      ctx.moveTo(at - 3 * ratio, bbox.top);
      ctx.lineTo(at + 3 * ratio, bbox.top);
      ctx.lineTo(at, bbox.top + 5 * ratio);
      ctx.fill();
    }
    ctx.restore();
  }
}

export function remarkLine(remark) {
  const count = remark.count > 1 ? ` (${remark.count} times)` : '';
  return element('li', {class: 'remark'}, remark.text + count);
}
