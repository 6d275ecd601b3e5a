// A heatmap as a drawing: for each colour one path of all tiles that have it, so that even many tiles
// are few elements; the names of rows, times, and the scale with its numbers.

import {css, svg} from '../dom.js';
import {picture} from '../save.js';

import {isDark, palette} from './colours.js';
import {colourOf} from './scale.js';

const SCALE = 200;  // px

const hex = (packed) => '#' +
    [packed, packed >> 8, packed >> 16].map((part) => (part & 255).toString(16).padStart(2, '0')).join('');
const round = (value) => Math.round(value * 100) / 100;

// Neighbours in a row that have the same colour are one rectangle; of those that are missing, null.
function tilesByColour(rows, scale, {left, top, width, height}) {
  const paths = new Map();
  const wide = width / rows[0].length;
  const high = height / rows.length;
  rows.forEach((row, i) => {
    const colours = row.map((value) => (value === null ? null : colourOf(scale, value)));
    for (let from = 0; from < colours.length;) {
      let to = from + 1;
      while (to < colours.length && colours[to] === colours[from]) ++to;
      const one = `M${round(left + from * wide)} ${round(top + i * high)}h${round((to - from) * wide)}` +
          `v${round(high)}H${round(left + from * wide)}z`;
      paths.set(colours[from], (paths.get(colours[from]) ?? '') + one);
      from = to;
    }
  });
  return paths;
}

function missingPattern() {
  return svg(
      'pattern', {id: 'missing', width: 6, height: 6, patternUnits: 'userSpaceOnUse'},
      svg('path', {d: 'M0 6L6 0', stroke: css('--soft'), 'stroke-width': 1, fill: 'none'}));
}

function scaleBar(colours, {low, high}, format, x, y) {
  const stops = [];
  for (let i = 0; i <= 10; ++i) {
    stops.push(svg('stop', {offset: `${i * 10}%`, 'stop-color': hex(colours[Math.round(i * 25.5)])}));
  }
  return [
    svg('defs', {}, svg('linearGradient', {id: 'scale'}, ...stops), missingPattern()),
    svg('text', {x, y: y + 10}, format(low)),
    svg('rect', {x: x + 80, y, width: SCALE, height: 12, fill: 'url(#scale)'}),
    svg('text', {x: x + 88 + SCALE, y: y + 10}, format(high)),
  ];
}

// `box`: where the tiles are. `labels` and `marks`: [text, px] of rows and of times. `notes`: lines
// below.
export function heatSvg({title, rows, scale, format, box, labels, marks, notes}) {
  const colours = palette(isDark());
  const {left, top, width, height} = box;
  const tiles = [...tilesByColour(rows, scale, box)].map(([colour, d]) => svg('path', {
    d, 'shape-rendering': 'crispEdges', fill: colour === null ? 'url(#missing)' : hex(colours[colour])}));
  const bottom = top + height;
  return picture(
      left + width + 12, bottom + 56, title, notes,
      ...scaleBar(colours, scale, format, left, bottom + 34), ...tiles,
      ...labels.map(([text, y]) => svg('text', {x: left - 6, y: round(y) + 4, 'text-anchor': 'end'}, text)),
      ...marks.map(([text, x]) => svg('text', {x: round(x), y: bottom + 17, 'text-anchor': 'middle'}, text)));
}
