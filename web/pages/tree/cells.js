// One level of the tree: a cell for each node, siblings beside each other. Few nodes have their names in the cells.

import {css, element} from '../dom.js';
import {hideTip, showTip} from '../tip.js';
import {STATUS} from './model.js';

const NAMED = 64;  // nodes that are named in their cells
const NAMED_SIZE = {width: 104, height: 26, gap: 4};
const LARGE = {width: 14, height: 14, gap: 2};
const SMALL = {width: 8, height: 8, gap: 1};
const MANY = 1500;
const MOST_HIGH = 16384;  // pixels that all browsers' canvases have

const sizeFor = (count) => (count <= NAMED ? NAMED_SIZE : count <= MANY ? LARGE : SMALL);

export class Cells {
  // `tools`: colour(node) as CSS, tip(node) as an element, open(node), isChosen(node).
  constructor(tools) {
    this.tools = tools;
    this.nodes = [];
    this.places = [];
    this.at = 0;
    this.canvas = element('canvas', {});
    this.element = element('div', {class: 'cells', tabindex: '0', role: 'group'}, this.canvas);
    this.observer = new ResizeObserver(() => this.render());
    this.observer.observe(this.element);
    this.element.addEventListener('pointermove', (event) => this.onMove(event));
    this.element.addEventListener('pointerleave', () => hideTip(this));
    this.element.addEventListener('click', (event) => this.onClick(event));
    this.element.addEventListener('keydown', (event) => this.onKey(event));
    this.element.addEventListener('focus', () => this.render());
    this.element.addEventListener('blur', () => {
      hideTip(this);
      this.render();
    });
  }

  destroy() { this.observer.disconnect(); }

  draw(nodes, label) {
    this.nodes = nodes;
    this.at = Math.min(this.at, Math.max(nodes.length - 1, 0));
    this.element.setAttribute('aria-label', `${label}. Arrow keys move, Enter opens the node.`);
    this.render();
  }

  // Places of all cells for the width that there is. Between families of small cells one stays free.
  layOut(width) {
    const size = sizeFor(this.nodes.length);
    const columns = Math.max(Math.floor((width + size.gap) / (size.width + size.gap)), 1);
    const named = size === NAMED_SIZE;
    let place = 0;
    this.places = this.nodes.map((node, i) => {
      if (!named && i > 0 && node.parent !== this.nodes[i - 1].parent && place % columns !== 0) ++place;
      const at = place++;
      return {x: at % columns * (size.width + size.gap), y: Math.floor(at / columns) * (size.height + size.gap)};
    });
    this.size = size;
    this.columns = columns;
    return Math.ceil(place / columns) * (size.height + size.gap);
  }

  render() {
    const width = this.element.clientWidth;
    if (!width) return;
    const height = this.layOut(width);
    const ratio = Math.min(devicePixelRatio, MOST_HIGH / height);
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.width = width + 'px';
    this.canvas.style.height = height + 'px';
    const ctx = this.canvas.getContext('2d');
    ctx.scale(ratio, ratio);
    ctx.textBaseline = 'middle';
    const [text, card] = [css('--text'), css('--card')];
    this.nodes.forEach((node, i) => this.drawCell(ctx, node, this.places[i], {text, card}));
    const focused = document.activeElement === this.element;
    if (focused && this.places[this.at]) this.frame(ctx, this.places[this.at], text, 2);
  }

  drawCell(ctx, node, {x, y}, {text, card}) {
    const {width, height} = this.size;
    const colour = this.tools.colour(node);
    const {sign} = STATUS[node.status];
    ctx.font = '12px system-ui, "DejaVu Sans", sans-serif';
    if (this.size === NAMED_SIZE) {
      ctx.fillStyle = card;
      ctx.fillRect(x, y, width, height);
      ctx.fillStyle = colour;
      ctx.fillRect(x, y, 6, height);
      ctx.fillStyle = text;
      ctx.textAlign = 'left';
      ctx.save();
      ctx.beginPath();
      ctx.rect(x, y, width - (sign ? 18 : 4), height);
      ctx.clip();
      ctx.fillText(node.host || 'not known', x + 12, y + height / 2);
      ctx.restore();
      ctx.textAlign = 'right';
      if (sign) ctx.fillText(sign, x + width - 6, y + height / 2);
      this.frame(ctx, {x, y}, this.tools.isChosen(node) ? text : css('--line'), this.tools.isChosen(node) ? 2 : 1);
      return;
    }
    ctx.fillStyle = colour;
    ctx.fillRect(x, y, width, height);
    // What is wrong is larger than its cell, so that one among thousands is found.
    if (sign && node.status !== 'fresh') this.frame(ctx, {x, y}, text, 1.5);
    if (this.tools.isChosen(node)) this.frame(ctx, {x, y}, text, 2);
  }

  frame(ctx, {x, y}, colour, width) {
    ctx.strokeStyle = colour;
    ctx.lineWidth = width;
    ctx.strokeRect(x + width / 2, y + width / 2, this.size.width - width, this.size.height - width);
  }

  find(event) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const {width, height} = this.size;
    return this.places.findIndex((place) => x >= place.x && x < place.x + width && y >= place.y && y < place.y + height);
  }

  onMove(event) {
    const i = this.find(event);
    if (i < 0) return hideTip(this);
    showTip(this, this.tools.tip(this.nodes[i]), event.clientX, event.clientY);
  }

  onClick(event) {
    const i = this.find(event);
    if (i < 0) return;
    this.at = i;
    hideTip(this);
    this.tools.open(this.nodes[i]);
  }

  onKey(event) {
    const steps = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.columns, ArrowUp: -this.columns,
                   Home: -this.nodes.length, End: this.nodes.length};
    if (event.key === 'Escape') return hideTip(this);
    if (event.key === 'Enter' && this.nodes[this.at]) {
      event.preventDefault();
      hideTip(this);
      return this.tools.open(this.nodes[this.at]);
    }
    if (!(event.key in steps) || !this.nodes.length) return;
    event.preventDefault();
    this.at = Math.max(Math.min(this.at + steps[event.key], this.nodes.length - 1), 0);
    this.render();
    const box = this.canvas.getBoundingClientRect();
    const {x, y} = this.places[this.at];
    showTip(this, this.tools.tip(this.nodes[this.at]), box.left + x + this.size.width, box.top + y);
  }
}
