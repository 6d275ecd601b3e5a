// How a step ended and how much of it is known, in the list and at the head of a step.

import {element} from './dom.js';

// Words, and a sign before them whose shape is the state's too.
export const stateOf = (name) => element('span', {class: 'state ' + name}, name.replaceAll('_', ' '));

export function coverageOf(got, expected) {
  const ratio = expected ? got / expected : 1;
  // 99.97 % must not look complete.
  const text = ratio >= 1 ? '100 %' : Math.min(ratio * 100, 99.9).toFixed(1) + ' %';
  return element('span', {class: ratio < 1 ? 'partial' : '', title: `${got} of ${expected} samples`},
                 text);
}
