// The tiles of /api/v1/heatmap as a picture: one pixel a tile. Drawing it larger or in parts is
// then the browser's work, which takes well below a millisecond for any number of nodes.

import {palette, stripes} from './colours.js';
import {colourOf, scaleOf} from './scale.js';

export class Tiles {
  // `rows`: a list of values for each row, null where nothing was measured.
  // `zero`: the scale begins there.
  constructor(rows, columns, dark, zero) {
    this.dark = dark;
    this.height = rows.length;
    this.width = columns;
    this.scale = scaleOf(rows, zero);
    this.canvas = document.createElement('canvas');
    this.canvas.width = Math.max(columns, 1);
    this.canvas.height = Math.max(rows.length, 1);
    this.missing = 0;
    this.paint(rows);
  }

  paint(rows) {
    const ctx = this.canvas.getContext('2d');
    const image = ctx.createImageData(this.canvas.width, this.canvas.height);
    const pixels = new Uint32Array(image.data.buffer);
    const colours = palette(this.dark);
    let at = 0;
    for (const row of rows) {
      for (let i = 0; i < this.width; ++i, ++at) {
        const value = row[i];
        if (value === null || value === undefined) {
          ++this.missing;  // and transparent, so that stripes are seen
        } else {
          pixels[at] = colours[colourOf(this.scale, value)];
        }
      }
    }
    ctx.putImageData(image, 0, 0);
  }

  // A part of the tiles, in tiles, over a part of a canvas, in its pixels.
  draw(ctx, from, to) {
    ctx.fillStyle = this.pattern ??= stripes(ctx, this.dark);
    ctx.fillRect(to.left, to.top, to.width, to.height);
    ctx.imageSmoothingEnabled = false;
    ctx.drawImage(
        this.canvas, from.left, from.top, from.width, from.height, to.left, to.top, to.width,
        to.height);
  }
}
