// Saves what is shown: a drawing as PNG or SVG, its values as CSV. Nothing leaves the browser.

import {css, element, svg} from './dom.js';

export function download(name, blob) {
  const address = URL.createObjectURL(blob);
  element('a', {href: address, download: name}).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

const fileName = (...parts) => parts.filter(Boolean).join('-').replace(/[^\w.-]+/g, '_');

// RFC 4180; what a spreadsheet would run as a formula is text.
function field(value) {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number') return String(value);
  const text = /^[=+@-]/.test(value) ? '\'' + value : value;
  return /[",\n\r]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
}

// Rows of numbers, texts and null, as text.
export const csv = (rows) => rows.map((row) => row.map(field).join(',')).join('\r\n') + '\r\n';

export function saveCsv(name, rows) {
  download(fileName(...name) + '.csv', new Blob([csv(rows)], {type: 'text/csv'}));
}

// The canvas with its title above it and what else is to be read below it.
export function savePng(name, canvas, title, lines) {
  const ratio = devicePixelRatio;
  const all = document.createElement('canvas');
  const line = 18 * ratio;
  all.width = canvas.width + 16 * ratio;
  all.height = canvas.height + line * (lines.length + 1) + 20 * ratio;
  const ctx = all.getContext('2d');
  ctx.fillStyle = css('--card');
  ctx.fillRect(0, 0, all.width, all.height);
  ctx.fillStyle = css('--text');
  ctx.font = `600 ${14 * ratio}px system-ui, sans-serif`;
  ctx.textBaseline = 'top';
  ctx.fillText(title, 8 * ratio, 8 * ratio);
  ctx.drawImage(canvas, 8 * ratio, line + 8 * ratio);
  ctx.font = `${12 * ratio}px system-ui, sans-serif`;
  ctx.fillStyle = css('--soft');
  lines.forEach(
      (text, i) => ctx.fillText(text, 8 * ratio, canvas.height + line * (i + 1) + 12 * ratio));
  all.toBlob((blob) => download(fileName(...name) + '.png', blob), 'image/png');
}

// A drawing that stands alone: its title above, lines of text below.
export function picture(width, height, title, lines, ...parts) {
  const [w, h] = [Math.ceil(width + 16), Math.ceil(height + 34 + 18 * lines.length)];
  return svg(
      'svg', {
        viewBox: `0 0 ${w} ${h}`,
        width: w,
        height: h,
        fill: css('--soft'),
        'font-family': 'system-ui, sans-serif',
        'font-size': 11
      },
      svg('title', {}, title), svg('rect', {width: w, height: h, fill: css('--card')}),
      svg('text', {x: 8, y: 20, fill: css('--text'), 'font-size': 14, 'font-weight': 600}, title),
      svg('g', {transform: 'translate(8 26)'}, ...parts),
      ...lines.map((text, i) => svg('text', {x: 8, y: height + 42 + 18 * i, 'font-size': 12}, text)));
}

// What the page's style sheets say of a drawing, written into a copy of it.
export function styled(drawing) {
  const copy = drawing.cloneNode(true);
  const here = [drawing, ...drawing.querySelectorAll('*')];
  [copy, ...copy.querySelectorAll('*')].forEach((node, i) => {
    const style = getComputedStyle(here[i]);
    for (const name of ['fill', 'stroke', 'stroke-width', 'font-family', 'font-size', 'font-weight']) {
      node.setAttribute(name, style.getPropertyValue(name));
    }
  });
  const [, , width, height] = drawing.getAttribute('viewBox').split(' ');
  copy.setAttribute('width', width);
  copy.setAttribute('height', height);
  return copy;
}

// Drawings one below the other.
export function column(drawings) {
  const sizes = drawings.map((one) => ['width', 'height'].map((name) => Number(one.getAttribute(name))));
  let y = 0;
  drawings.forEach((one, i) => {
    one.setAttribute('y', y);
    y += sizes[i][1];
  });
  const width = Math.max(...sizes.map(([one]) => one));
  return svg('svg', {viewBox: `0 0 ${width} ${y}`, width, height: y}, ...drawings);
}

export function svgBlob(drawing) {
  const text = '<?xml version="1.0" encoding="UTF-8"?>\n' + new XMLSerializer().serializeToString(drawing);
  return new Blob([text], {type: 'image/svg+xml'});
}

export const saveSvg = (name, drawing) => download(fileName(...name) + '.svg', svgBlob(drawing));
