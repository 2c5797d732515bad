// Where a chart's bars stand, how high they are, and what its axes say. Plain functions of numbers.

const LONG = 5; // times the usual distance of two batches: longer pauses are cut
const HIGH = 4; // times what most bars are: higher ones are cut
const MOST = 0.8; // of the bars are no outliers
const APART = 0.25; // of the width, so that labels of time do not overlap
const FROM_ENDS = 0.4; // those at the ends stand beside their bars, not below them

/** The value below which a share of them lies; 0 of none. */
export function quantile(values, part) {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0;
}

/** The highest value that the scale shows in full: that of most bars decides, not the largest. */
export function topOf(values) {
  const most = quantile(values.filter((value) => value > 0), MOST);
  const highest = Math.max(...values, 0);
  return highest > HIGH * most ? round(2 * most) : highest;
}

/** The next of 1, 2, 5, 10, 20, 50 and so on. */
function round(value) {
  const size = 10 ** Math.floor(Math.log10(value));
  return size * [1, 2, 5, 10].find((step) => step * size >= value);
}

/**
 * Where times stand between 0 and 1, in proportion; `cuts` are the indexes before which a pause
 * was cut short, so that it does not press all bars together.
 */
export function placed(times) {
  const apart = times.slice(1).map((time, index) => Math.max(time - times[index], 0));
  const usual = quantile(apart, 0.5) || Math.max(...apart, 1);
  const cuts = apart.flatMap((gap, index) => (gap > LONG * usual ? [index + 1] : []));
  let along = 0;
  const sums = [0, ...apart.map((gap) => (along += Math.min(Math.max(gap, usual / 2), LONG * usual)))];
  return { at: sums.map((sum) => (along ? sum / along : 1)), cuts };
}

/** The indexes of the bars whose time is written below: the ends, those after a cut, some between. */
export function ticks(at, cuts) {
  const chosen = [];
  const isEnd = (index) => index === 0 || index === at.length - 1;
  const fits = (index) =>
    chosen.every((other) => Math.abs(at[other] - at[index]) >= (isEnd(other) ? FROM_ENDS : APART));
  for (const index of [0, at.length - 1, ...cuts, ...at.keys()]) if (fits(index)) chosen.push(index);
  return chosen.sort((one, other) => one - other);
}
