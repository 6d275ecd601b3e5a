// Building the page out of elements. Text from the server goes into it as text only.

export const $ = (id) => document.getElementById(id);

// element('td', {class: 'number'}, 'text', child, ...)
export function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) node.setAttribute(key, value === true ? '' : value);
  }
  node.append(...children.filter((child) => child !== undefined && child !== null));
  return node;
}

export const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
export const color = (i) => css('--c' + (i % 8));
export const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

export const plural = (n, one) => `${n} ${one}${n === 1 ? '' : 's'}`;

export function say(text) {
  $('message').textContent = text;
  $('message').hidden = !text;
}
