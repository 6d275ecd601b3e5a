// Building the page out of elements. Text from the server goes into it as text only.

export const $ = (id) => document.getElementById(id);

// element('td', {class: 'number'}, 'text', child, ...)
export const element = (name, attributes, ...children) =>
    filled(document.createElement(name), attributes, ...children);

// The same of a drawing: svg('line', {x1: 0, ...})
export const svg = (name, attributes, ...children) =>
    filled(document.createElementNS('http://www.w3.org/2000/svg', name), attributes, ...children);

function filled(node, attributes = {}, ...children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) node.setAttribute(key, value === true ? '' : value);
  }
  node.append(...children.filter((child) => child !== undefined && child !== null));
  return node;
}

// A button that looks like a link: what it leads to is on this page.
export function linkButton(text, act) {
  const button = element('button', {type: 'button', class: 'link'}, text);
  button.addEventListener('click', act);
  return button;
}

const FOCUSABLE = 'a[href], button, input, select, summary, [tabindex]';
const called = (one) => one.tagName + (one.getAttribute('aria-label') ?? one.textContent);
// With that of its card: two cards may unfold nodes.
const foldName = (details) => `${details.parentElement.className} ${called(details.firstChild)}`;

// Which of the elements that can have the focus has it: of those with its name, and of all.
function focusIn(node) {
  const active = document.activeElement;
  if (active === node || !node.contains(active)) return null;
  const all = [...node.querySelectorAll(FOCUSABLE)];
  const named = all.filter((one) => called(one) === called(active));
  return {active, name: called(active), ofName: named.indexOf(active), ofAll: all.indexOf(active)};
}

function focusAgain(node, {active, name, ofName, ofAll}) {
  const all = [...node.querySelectorAll(FOCUSABLE)];
  const one = all.filter((other) => called(other) === name)[ofName] ?? all[ofAll];
  if (!one || one.tagName !== active.tagName) return;
  if (one.tagName === 'INPUT') one.value = active.value;
  one.focus({preventScroll: true});
}

// Draws anew what is in a node. What has the focus keeps it, and what was unfolded or scrolled stays
// so, for on a running step this happens every few seconds.
export function renew(node, ...children) {
  const focus = focusIn(node);
  const folds = new Map([...node.querySelectorAll('details')].map((one) => [foldName(one), one.open]));
  const places = [...node.querySelectorAll('.frame')].map((one) => [one.scrollLeft, one.scrollTop]);
  node.replaceChildren(...children);
  for (const one of node.querySelectorAll('details')) one.open = folds.get(foldName(one)) ?? one.open;
  const frames = node.querySelectorAll('.frame');
  if (frames.length === places.length) {
    frames.forEach((one, i) => { [one.scrollLeft, one.scrollTop] = places[i]; });
  }
  if (focus) focusAgain(node, focus);
}

// A frame around what may be larger than its place: keys scroll it, too.
export const scrolled = (name, attributes, ...children) =>
    element('div', {tabindex: '0', role: 'group', 'aria-label': name, ...attributes}, ...children);

export const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
export const color = (i) => css('--c' + (i % 8));
export const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

export const plural = (n, one) => `${n} ${one}${n === 1 ? '' : 's'}`;

export function say(text) {
  $('message').textContent = text;
  $('message').hidden = !text;
}
