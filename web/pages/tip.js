// The box beside the pointer.

import {$} from './dom.js';

let tipOwner = null;

export function showTip(owner, content, x, y) {
  tipOwner = owner;
  const tip = $('tip');
  tip.replaceChildren(content);
  tip.hidden = false;
  const left = x + 14 + tip.offsetWidth > innerWidth ? x - 14 - tip.offsetWidth : x + 14;
  tip.style.left = Math.max(left, 4) + 'px';
  tip.style.top = Math.max(Math.min(y + 10, innerHeight - tip.offsetHeight - 4), 4) + 'px';
}

// Hides it if `owner` has shown it, or whoever it was.
export function hideTip(owner = tipOwner) {
  if (owner !== tipOwner) return;
  tipOwner = null;
  $('tip').hidden = true;
}
