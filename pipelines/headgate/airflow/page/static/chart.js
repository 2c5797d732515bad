// A small bar chart: one bar a batch, in their order.

import { make } from "./elements.js";
import { moment, number } from "./words.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 240;
const HEIGHT = 44;
const BAR = 6; // the widest
const DAY = 10; // characters of a date
const HIGH = 4; // times what most bars are: higher ones are cut
const MOST = 0.8; // of the bars

function draw(tag, attributes, title) {
  const drawn = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) drawn.setAttribute(name, value);
  if (title) drawn.append(Object.assign(document.createElementNS(SVG, "title"), { textContent: title }));
  return drawn;
}

/** The highest value that is shown in full: most bars decide, not the largest. */
function topOf(values) {
  const sorted = values.filter((value) => value > 0).sort((one, other) => one - other);
  const most = sorted[Math.min(sorted.length - 1, Math.floor(MOST * sorted.length))] ?? 0;
  const highest = sorted[sorted.length - 1] ?? 0;
  return highest > HIGH * most ? 2 * most : highest;
}

/**
 * `label` names what is shown; each of `bars` has a `value`, the `time` of its commit and a `title`;
 * `say` writes a value with its unit.
 */
export function chart(label, bars, say) {
  const values = bars.map((bar) => bar.value);
  const top = topOf(values);
  const most = say(Math.max(...values));
  const over = values.filter((value) => value > top).length;
  const cut = over ? `${number(over)} cut at ${say(top)}, ` : "";
  const svg = draw("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    preserveAspectRatio: "none",
    role: "img",
    "aria-label": `${label} of the last ${bars.length} batches: ${cut}at most ${most}`,
  });
  svg.append(draw("line", { x1: 0, x2: WIDTH, y1: HEIGHT - 0.5, y2: HEIGHT - 0.5, class: "ground" }));
  bars.forEach((bar, index) => svg.append(...drawn(bar, index * (WIDTH / bars.length), WIDTH / bars.length, top || 1)));
  return make(
    "figure",
    { class: "chart" },
    make("figcaption", {}, make("span", {}, label), make("span", { class: "faint" }, `${cut}max ${most}`)),
    svg,
    axis(bars[0].time, bars[bars.length - 1].time),
  );
}

/** A bar, and what is pointed at: the height of the chart. */
function drawn({ value, title }, x, room, top) {
  const isOver = value > top;
  const height = isOver ? HEIGHT - 1 : Math.max((value / top) * (HEIGHT - 6), value ? 1.5 : 0.5);
  const width = Math.min(0.8 * room, BAR);
  const bar = draw("rect", { x, y: HEIGHT - 1 - height, width, height, class: isOver ? "over" : "bar" });
  const pointed = draw("rect", { x, y: 0, width: room, height: HEIGHT, class: "pointed" }, title);
  // A gap near the top: the bar goes on above.
  const gap = isOver ? [draw("rect", { x: x - 1, y: 4, width: width + 2, height: 2, class: "gap" })] : [];
  return [bar, ...gap, pointed];
}

/** The times of the first and the last bar, in UTC; with the date of the first if it is another. */
function axis(first, last) {
  const [began, ended] = [moment(first), moment(last)];
  const date = began.slice(0, DAY) === ended.slice(0, DAY) ? "" : `${began.slice(5, DAY)} `;
  const labels = [date + began.slice(DAY + 1), ended.slice(DAY + 1)];
  return make("div", { class: "axis", ariaHidden: "true" }, ...labels.map((label) => make("span", {}, label)));
}
