// Times as people read them: by the browser's clock, whose zone the page names once, at its top. The
// title of a time has it in UTC, as the command line and the API have.

import {element} from './dom.js';

const pad = (number) => String(number).padStart(2, '0');

// "UTC+1" for the zone at a time; with summer time the two halves of a year differ.
export function offsetOf(date) {
  const minutes = -date.getTimezoneOffset();
  if (minutes === 0) return 'UTC';
  const size = Math.abs(minutes);
  return `UTC${minutes < 0 ? '\u2212' : '+'}${Math.floor(size / 60)}` +
         (size % 60 ? ':' + pad(size % 60) : '');
}

export function zoneText() {
  const {timeZone} = Intl.DateTimeFormat().resolvedOptions();
  const offset = offsetOf(new Date());
  return timeZone && timeZone !== 'UTC' ? `${timeZone} (${offset})` : offset;
}

export const utcText = (seconds) =>
    new Date(seconds * 1000).toISOString().replace('T', ' ').replace(/\.\d+Z$/, ' UTC');

// "26 Nov, 15:21:05", with the year if it is another than now; '' for no time.
export function clock(seconds) {
  if (!seconds) return '';
  const date = new Date(seconds * 1000);
  const year = date.getFullYear() === new Date().getFullYear() ? {} : {year: 'numeric'};
  return date.toLocaleString([], {day: 'numeric', month: 'short', ...year, hour: '2-digit',
                                  minute: '2-digit', second: '2-digit', hour12: false});
}

// An element; '' for no time.
export function timeOf(seconds) {
  if (!seconds) return '';
  return element('time', {datetime: new Date(seconds * 1000).toISOString(), title: utcText(seconds)},
                 clock(seconds));
}
