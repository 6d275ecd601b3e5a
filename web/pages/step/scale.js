// The scale of a heatmap's colours. It spans what is shown, so that values which lie close together
// are told apart; what is far from all others stands beyond its ends, in colours of its own, and does
// not make the others look alike. A tile of these has the first two colours after the scale's.

const TAIL = 0.02;         // of the values, on each side of the middle ones
const LEAST_SPAN = 0.02;   // of the largest value: smaller differences are not drawn as large ones
export const BELOW = 256;  // in the palette
export const ABOVE = 257;

// How many of the values, which are sorted, pass a test that only the first ones pass.
function leading(sorted, passes) {
  let [from, to] = [0, sorted.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (passes(sorted[middle])) from = middle + 1;
    else to = middle;
  }
  return from;
}

const below = (sorted, limit) => leading(sorted, (value) => value < limit);
const upTo = (sorted, limit) => leading(sorted, (value) => value <= limit);

const quantile = (sorted, share) => sorted[Math.round((sorted.length - 1) * share)];

// Values that are further from the middle 96 % than these are wide are far.
function fences(sorted) {
  const [low, high] = [quantile(sorted, TAIL), quantile(sorted, 1 - TAIL)];
  const wide = high - low;
  return wide > 0 ? [low - wide, high + wide] : [-Infinity, Infinity];
}

function widened(low, high) {
  const least = LEAST_SPAN * Math.max(Math.abs(low), Math.abs(high));
  if (high - low >= least && high > low) return [low, high];
  if (least === 0) return [low, low + 1];
  const middle = (low + high) / 2;
  // Nothing is negative only because its scale is.
  const from = low >= 0 ? Math.max(middle - least / 2, 0) : middle - least / 2;
  return [from, from + least];
}

// `rows`: lists of values, null where nothing was measured. `zero`: with zero in it. Gives the ends
// of the scale, how many values lie beyond them, and the extremes of all.
export function scaleOf(rows, zero = false) {
  const sorted = new Float64Array(rows.reduce((sum, row) => sum + row.length, 0));
  let count = 0;
  for (const row of rows) {
    for (const value of row) {
      if (value !== null && value !== undefined) sorted[count++] = value;
    }
  }
  return scaleOfSorted(sorted.subarray(0, count).sort(), zero);
}

function scaleOfSorted(sorted, zero) {
  if (sorted.length === 0) return {low: 0, high: 1, below: 0, above: 0, least: 0, most: 0};
  const [from, to] = fences(sorted);
  // The first and the last one within.
  let low = sorted[below(sorted, from)];
  let high = sorted[upTo(sorted, to) - 1];
  if (zero) [low, high] = [Math.min(low, 0), Math.max(high, 0)];
  [low, high] = widened(low, high);
  return {
    low,
    high,
    below: below(sorted, low),
    above: sorted.length - upTo(sorted, high),
    least: sorted[0],
    most: sorted.at(-1),
  };
}

// Which colour of the palette a value has.
export function colourOf({low, high}, value) {
  if (value < low) return BELOW;
  if (value > high) return ABOVE;
  return (value - low) / (high - low) * 255 + 0.5 | 0;
}
