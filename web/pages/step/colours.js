// The scale of colours of a heatmap: viridis, whose lightness rises evenly, so that it can be read
// without telling colours apart. On a light page small values are light, on a dark page dark.
// (Smith and van der Walt, matplotlib, CC0.)

import {ABOVE, BELOW} from './scale.js';

const STOPS = [
  [68, 1, 84], [72, 40, 120], [62, 74, 137], [49, 104, 142], [38, 130, 142], [31, 158, 137],
  [53, 183, 121], [110, 206, 88], [181, 222, 43], [253, 231, 37]
];

export const isDark = () => matchMedia('(prefers-color-scheme: dark)').matches;

// What lies beyond the ends of the scale: no colours of the scale, and each far from that of its end.
const BEYOND_YELLOW = [209, 18, 106], BEYOND_PURPLE = [255, 140, 26];

const packed = ([r, g, b]) => (255 << 24 | b << 16 | g << 8 | r) >>> 0;

export const beyond = (dark, above) => (dark === above ? BEYOND_YELLOW : BEYOND_PURPLE);

// The 256 colours of the scale, and those below and above it, as one number each, as ImageData has
// them.
export function palette(dark) {
  const colours = new Uint32Array(258);
  for (let i = 0; i < 256; ++i) {
    const place = (dark ? i : 255 - i) / 255 * (STOPS.length - 1);
    const below = Math.min(Math.floor(place), STOPS.length - 2);
    const share = place - below;
    colours[i] = packed(
        STOPS[below].map((one, k) => Math.round(one + share * (STOPS[below + 1][k] - one))));
  }
  colours[BELOW] = packed(beyond(dark, false));
  colours[ABOVE] = packed(beyond(dark, true));
  return colours;
}

// What is missing is no colour of the scale but stripes. As a pattern for a canvas.
export function stripes(ctx, dark) {
  const tile = document.createElement('canvas');
  tile.width = tile.height = 6;
  const pen = tile.getContext('2d');
  pen.fillStyle = dark ? '#1a2028' : '#ffffff';
  pen.fillRect(0, 0, 6, 6);
  pen.strokeStyle = dark ? '#5f6b7a' : '#a9b2bd';
  pen.lineWidth = 1.2;
  for (const x of [-6, 0, 6]) {
    pen.beginPath();
    pen.moveTo(x, 6);
    pen.lineTo(x + 6, 0);
    pen.stroke();
  }
  return ctx.createPattern(tile, 'repeat');
}
