// The step and its phases below what its nodes can do at most (/api/v1/insight?of=roofline): a plot
// with both axes logarithmic, what limits it in words, and the numbers as a table.

import {element, svg} from '../dom.js';
import {bytes, formatter, known, percent, seconds, trim} from '../numbers.js';
import {picture, saveSvg, styled} from '../save.js';

const WIDTH = 460, HEIGHT = 300, LEFT = 84, RIGHT = 14, TOP = 22, BOTTOM = 40;  // px
const LETTERS = 26;  // phases that have one
const AROUND = 0.5;  // of a decade, beside what is shown
const STEP = '\u2605';
const LIMITS = {memory: 'memory', compute: 'arithmetic'};

const shareOf = (ratio) => (known(ratio) ? percent(ratio) : 'n/a');
const flops = formatter('', 'flops_per_second', false);
const rate = (value) => `${bytes(value)}/s`;
const rateOrNone = (value) => (known(value) ? rate(value) : 'bytes not known');
const letter = (i) => String.fromCharCode(65 + i);
const placed = (one) => one.intensity > 0 && one.flops_per_second > 0;

// A logarithmic axis of `size` px: whole decades, and where a value lies.
function axis(values, size) {
  const low = Math.floor(Math.log10(Math.min(...values)) - AROUND);
  const high = Math.ceil(Math.log10(Math.max(...values)) + AROUND);
  const decades = [];
  const apart = Math.ceil((high - low) / 7);
  for (let i = low; i <= high; i += apart) decades.push(10 ** i);
  return {
    low: 10 ** low,
    high: 10 ** high,
    decades,
    place: (value) => (Math.log10(value) - low) / (high - low) * size,
  };
}

function plot(data, points) {
  const {flops_per_second: peak, bytes_per_second: bandwidth, ridge} = data.roof;
  const single = data.roof.single_flops_per_second > peak ? data.roof.single_flops_per_second : null;
  // With room for the names of the ceilings on the right.
  const x = axis([ridge, (single ?? peak) / bandwidth * 4, ...points.map(({one}) => one.intensity)], WIDTH - LEFT - RIGHT);
  const y = axis(
      [single ?? peak, ...points.map(({one}) => one.flops_per_second), Math.min(x.low, ridge) * bandwidth * 10],
      HEIGHT - TOP - BOTTOM);
  const at = (intensity, speed) => [LEFT + x.place(intensity), HEIGHT - BOTTOM - y.place(speed)];
  const text = (left, top, words, more = {}) => svg('text', {x: left, y: top, ...more}, words);
  const grid = [];
  for (const value of x.decades) {
    const [left] = at(value, y.low);
    grid.push(
        svg('line', {class: 'gridline', x1: left, x2: left, y1: TOP, y2: HEIGHT - BOTTOM}),
        text(left, HEIGHT - BOTTOM + 15, trimmed(value), {'text-anchor': 'middle'}));
  }
  for (const value of y.decades) {
    const [, top] = at(x.low, value);
    grid.push(
        svg('line', {class: 'gridline', x1: LEFT, x2: WIDTH - RIGHT, y1: top, y2: top}),
        text(LEFT - 6, top + 4, flops(value), {'text-anchor': 'end'}));
  }
  // The slope of the memory begins at the left edge, or at the lower one.
  const from = Math.max(x.low, y.low / bandwidth);
  const roof = [at(from, from * bandwidth), at(ridge, peak), at(x.high, peak)];
  const [left, top] = roof[1];
  const ceilings = [
    svg('polyline', {class: 'roof', points: roof.map((one) => one.join()).join(' ')}),
    ...(single ? singlePrecision([at(ridge, peak), at(single / bandwidth, single), at(x.high, single)], single) : []),
    text(
        WIDTH - RIGHT, top + (single ? 14 : -6), `arithmetic: ${flops(peak)}`, {'text-anchor': 'end'}),
    slopeLabel(roof[0], [left, top], `memory: ${rate(bandwidth)}`),
  ];
  const marks = points.map(({one, name}) => {
    const [cx, cy] = at(one.intensity, one.flops_per_second);
    const whole = name === STEP;
    return svg(
        'g', {class: whole ? 'point whole' : 'point'},
        svg('title', {}, `${one.name}: ${flops(one.flops_per_second)}`),
        svg('circle', {cx, cy, r: 8}), text(cx, cy + 4, name, {'text-anchor': 'middle'}));
  });
  return svg(
      'svg', {
        viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
        role: 'img',
        'aria-label': `Roofline: ${flops(peak)} of arithmetic, ${rate(bandwidth)} of memory, which ` +
            `meet at ${trim(ridge)} FLOP per byte. The numbers are in the table below.`
      },
      ...grid, text(WIDTH - RIGHT, HEIGHT - 6, 'FLOP per byte', {'text-anchor': 'end'}),
      ...ceilings, ...marks.reverse());
}

// The ceiling of single precision, above that of double precision, which counts.
const singlePrecision = (line, peak) => [
  svg('polyline', {class: 'roof single', points: line.map((one) => one.join()).join(' '), 'stroke-dasharray': '4 4'}),
  svg('text', {x: WIDTH - RIGHT, y: line[2][1] - 6, 'text-anchor': 'end'}, `single precision: ${flops(peak)}`),
];

// Marks of the axis are powers of ten.
const trimmed = (value) => (value >= 1e-3 && value < 1e6 ? String(Number(value.toPrecision(1))) :
                                                           value.toExponential(0));

// Along the slope, above its middle.
function slopeLabel([x1, y1], [x2, y2], words) {
  const angle = Math.atan2(y2 - y1, x2 - x1) * 180 / Math.PI;
  const [x, y] = [(x1 + x2) / 2, (y1 + y2) / 2];
  return svg(
      'text', {x, y: y - 6, 'text-anchor': 'middle', transform: `rotate(${angle} ${x} ${y})`},
      words);
}

// "Memory limits it: 40 GB/s of 200 GB/s, 20 % of the roof."
function limit(data) {
  const {whole, roof} = data;
  if (!roof || whole.bound === 'unknown') return '';
  const memory = whole.bound === 'memory';
  const [name, now, most] = memory ?
      ['Memory', rate(whole.bytes_per_second), rate(roof.bytes_per_second)] :
      ['Arithmetic', flops(whole.flops_per_second), flops(roof.flops_per_second)];
  const far = whole.share < 0.3 ? ', so that something else holds it up as well' : '';
  return `${name} is its limit at ${trim(whole.intensity)} FLOP per byte: ` +
      `${now} of ${most}, ${shareOf(whole.share)} of what can be reached there${far}.`;
}

function table(data) {
  const row = (name, one) => element(
      'tr', {title: `lasts ${seconds(one.seconds)}, ${rateOrNone(one.bytes_per_second)}`},
      element('td', {}, element('b', {}, name), ` ${one.name}`),
      element('td', {class: 'number'}, known(one.flops_per_second) ? flops(one.flops_per_second) : 'n/a'),
      element('td', {class: 'number'}, known(one.intensity) ? trim(one.intensity) : 'n/a'),
      element('td', {}, one.bound === 'unknown' ? '' : LIMITS[one.bound]),
      element('td', {class: 'number'}, shareOf(one.share)));
  const heads = ['', 'FLOP/s', 'FLOP/byte', 'limit', 'of the roof'];
  return element(
      'div', {class: 'frame'},
      element(
          'table', {'aria-label': 'Roofline'},
          element('thead', {}, element('tr', {}, ...heads.map((head, i) => element(
              'th', {scope: 'col', class: i > 0 && i !== 3 ? 'number' : undefined},
              head || element('span', {class: 'sr-only'}, 'Part'))))),
          element(
              'tbody', {}, row(STEP, data.whole),
              ...data.phases.map((one, i) => row(i < LETTERS ? letter(i) : '', one)))));
}

const sentence = (text) => text[0].toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? '' : '.');

// null where nothing was counted: see notCounted.
export function rooflineOf(data, step) {
  if (!data?.counted) return null;
  const points = [
    {one: data.whole, name: STEP},
    ...data.phases.slice(0, LETTERS).map((one, i) => ({one, name: letter(i)}))
  ].filter(({one}) => placed(one));
  const words = [limit(data), ...data.notes, ...(data.no_roof ? [data.no_roof] : [])];
  const drawing = data.roof && points.length ? plot(data, points) : null;
  const save = element('button', {type: 'button', class: 'button'}, 'SVG');
  const names = points.map(({one, name}) => `${name} ${one.name}`).join(', ');
  save.addEventListener('click', () => saveSvg([step, 'roofline'], picture(
      WIDTH, HEIGHT, `${step}: how fast it could be`, [names, limit(data)].filter(Boolean),
      styled(drawing))));
  return element(
      'div', {class: 'roofline'}, element('h3', {}, 'How fast it could be', drawing ? save : null),
      drawing,
      ...words.filter(Boolean).map((text) => element('p', {class: 'words'}, sentence(text))),
      table(data));
}

// What can be said without the counters: what held the step up, and why there is no plot.
export function notCounted(data) {
  if (!data?.whole || data.counted) return null;
  const why = data.whole.bottleneck === 'unknown' ? '' : data.whole.why;
  return element(
      'div', {class: 'not-counted'}, why ? element('p', {}, 'What held it up: ', sentence(why)) : null,
      element(
          'details', {class: 'more'}, element('summary', {}, 'No roofline: nothing was counted'),
          element('p', {class: 'words'}, ...data.notes.map(sentence).join(' '))));
}
