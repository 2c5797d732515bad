// A small bar chart over time: one bar a batch, at the time of its commit.

import { make } from "./elements.js";
import { placed, ticks, topOf } from "./scales.js";
import { moment, number } from "./format.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 240;
const HEIGHT = 44;
const BAR = 6; // the widest
const DAY = 10; // characters of a date
const SHORT = 600_000; // milliseconds: seconds are shown below that

function draw(tag, attributes, title) {
  const drawn = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) drawn.setAttribute(name, value);
  if (title) drawn.append(Object.assign(document.createElementNS(SVG, "title"), { textContent: title }));
  return drawn;
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
  const { at, cuts } = placed(bars.map((bar) => bar.time));
  const cut = over ? `${number(over)} cut at ${say(top)}, ` : "";
  const svg = draw("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    preserveAspectRatio: "none",
    role: "img",
    "aria-label": `${label} of the last ${bars.length} batches: ${cut}at most ${most}`,
  });
  const x = at.map((place) => BAR + place * (WIDTH - BAR));
  svg.append(draw("line", { x1: 0, x2: WIDTH, y1: HEIGHT - 0.5, y2: HEIGHT - 0.5, class: "ground" }));
  for (const index of cuts) {
    const middle = (x[index - 1] + x[index] - BAR) / 2;
    svg.append(draw("line", { x1: middle, x2: middle, y1: 0, y2: HEIGHT, class: "cut" }));
  }
  bars.forEach((bar, index) => svg.append(...drawn(bar, x[index], x[index] - (x[index - 1] ?? 0), top || 1)));
  return make(
    "figure",
    { class: "chart" },
    make("figcaption", {}, make("span", {}, label), make("span", { class: "faint" }, `${cut}max ${most}`)),
    svg,
    axis(bars, at, ticks(at, cuts)),
  );
}

/** The bar that ends at `right`, and what is pointed at: the height of the chart, back to the bar before. */
function drawn({ value, title }, right, room, top) {
  const isOver = value > top;
  const height = isOver ? HEIGHT - 1 : Math.max((value / top) * (HEIGHT - 6), value ? 1.5 : 0.5);
  const width = Math.max(Math.min(0.8 * room, BAR), 0.8);
  const bar = draw("rect", { x: right - width, y: HEIGHT - 1 - height, width, height, class: isOver ? "over" : "bar" });
  const reach = Math.max(Math.min(room, 2 * BAR), width);
  const pointed = draw("rect", { x: right - reach, y: 0, width: reach, height: HEIGHT, class: "pointed" }, title);
  // A gap near the top: the bar goes on above.
  const gap = isOver ? [draw("rect", { x: right - width - 1, y: 4, width: width + 2, height: 2, class: "gap" })] : [];
  return [bar, ...gap, pointed];
}

/** Times below the bars that `marked` names, in UTC; with the date where another day begins. */
function axis(bars, at, marked) {
  const seconds = bars[bars.length - 1].time - bars[0].time < SHORT ? 8 : 5;
  let day = moment(bars[bars.length - 1].time).slice(0, DAY);
  const labels = marked.map((index) => {
    const text = moment(bars[index].time);
    const date = text.slice(0, DAY) === day ? "" : `${text.slice(5, DAY)} `;
    day = text.slice(0, DAY);
    const shown = make("span", {}, `${date}${text.slice(DAY + 1, DAY + 1 + seconds)}Z`);
    shown.style.left = `${100 * at[index]}%`;
    shown.className = index === 0 ? "first" : index === bars.length - 1 ? "last" : "";
    return shown;
  });
  return make("div", { class: "axis", ariaHidden: "true" }, ...labels);
}
