// A small bar chart: one bar a batch, the newest on the right.

import { make } from "./elements.js";

const SVG = "http://www.w3.org/2000/svg";
const BARS = 60;
const WIDTH = 240;
const HEIGHT = 44;

function draw(tag, attributes) {
  const drawn = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) drawn.setAttribute(name, value);
  return drawn;
}

/** `values` are of the bars, `titles` what each says; `label` names them, `most` is the highest. */
export function chart(label, values, titles, most) {
  const top = Math.max(...values, 0) || 1;
  const step = WIDTH / BARS;
  const svg = draw("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    preserveAspectRatio: "none",
    role: "img",
    "aria-label": `${label} of the last ${values.length} batches, at most ${most}`,
  });
  svg.append(draw("line", { x1: 0, x2: WIDTH, y1: HEIGHT - 0.5, y2: HEIGHT - 0.5, class: "ground" }));
  values.forEach((value, index) => {
    const height = Math.max((value / top) * (HEIGHT - 2), value ? 1.5 : 0.5);
    const x = WIDTH - (values.length - index) * step;
    const bar = draw("rect", { x: x + 0.5, y: HEIGHT - 1 - height, width: step - 1, height });
    const title = draw("title", {});
    title.textContent = titles[index];
    bar.append(title);
    svg.append(bar);
  });
  return make(
    "figure",
    { class: "chart" },
    make("figcaption", {}, make("span", {}, label), make("span", { class: "faint" }, `max ${most}`)),
    svg,
  );
}
