// What a step's alarms found: those that are raised now first, then the newest.

import {element, scrolled} from './dom.js';
import {seconds} from './numbers.js';
import {clock} from './when.js';

const MOST = 100;

function whose(by) {
  if (!by) return '';
  return by.rank === undefined ? by.host : `task ${by.rank} on ${by.host}`;
}

function row(alarm, running, end) {
  const open = alarm.over === 0;
  const length = seconds(Math.max((open ? end : alarm.over / 1e9) - alarm.raised / 1e9, 0));
  const lasted = open ? (running ? `${length} so far` : `${length}, until the end`) : length;
  return element('tr', {class: open && running ? 'active' : ''},
      element('td', {}, element('span', {class: 'state ' + alarm.severity}, alarm.rule)),
      element('td', {class: 'wide-cell'}, alarm.text),
      element('td', {class: 'owner'}, whose(alarm.by)),
      element('td', {class: 'number wide'}, clock(alarm.raised / 1e9)),
      element('td', {class: 'number'}, lasted));
}

// Notes say the same in words.
export const isAlarmNote = (note) => /^alarm .+ \((info|warning|critical)\)/.test(note);

// null if there is nothing to tell.
export function alarmTable(profile) {
  const {job, moments} = profile;
  const all = moments.alarms ?? [];
  if (all.length === 0) return null;
  const running = job.state === 'running';
  const end = job.end ? job.end / 1e9 : Date.now() / 1000;
  const active = (alarm) => running && alarm.over === 0 ? 1 : 0;
  const sorted = [...all].sort((a, b) => active(b) - active(a) || b.raised - a.raised);
  const heads = ['Alarm', 'What', 'On'].map((name) => element('th', {}, name));
  heads.push(element('th', {class: 'number wide'}, 'Raised'), element('th', {class: 'number'}, 'For'));
  return element('section', {'aria-label': 'Alarms', class: 'alarms'},
      element('h2', {}, 'Alarms'),
      scrolled('Table of alarms', {class: 'frame'}, element('table', {},
          element('thead', {}, element('tr', {}, ...heads)),
          element('tbody', {}, ...sorted.slice(0, MOST).map((one) => row(one, running, end))))),
      sorted.length > MOST
        ? element('p', {class: 'words'}, `and ${sorted.length - MOST} more`) : null);
}
