// Small charts without a library: bars as a list, and lines as long as a word.

import { h, svg } from "./dom.js";

/** Bars with their names and values; `onchoose` gets the place of the one that was clicked. One that
 *  is `fixed` cannot be. */
export function bars(entries, onchoose = null) {
  const most = Math.max(...entries.map(({ value }) => Math.abs(value ?? 0)), 0);
  return h(
    "ul",
    { class: "bars" },
    entries.map(({ name, value, text, tone = 1, fixed = false }, place) => {
      const fill = h("i", {});
      fill.style.width = `${most ? (100 * Math.abs(value ?? 0)) / most : 0}%`;
      if (tone !== 1) fill.style.background = `var(--chart-${tone})`;
      const label = onchoose && !fixed
        ? h("button", { class: "name", type: "button", title: `Show ${name} alone`, onclick: () => onchoose(place) }, name)
        : h("span", { class: "name", title: name }, name);
      return h("li", {}, label, h("span", {}, text), h("span", { class: "track", "aria-hidden": "true" }, fill));
    }),
  );
}

export function spark(values, label) {
  const known = values.filter((value) => value !== null);
  if (known.length < 2) return h("div", { class: "soft small" }, "not enough windows for a line yet");
  const low = Math.min(...known, 0);
  const high = Math.max(...known);
  const step = 100 / (values.length - 1);
  const points = values.map((value, place) => (value === null ? null : `${(place * step).toFixed(2)},${(30 - (28 * (value - low)) / (high - low || 1)).toFixed(2)}`));
  return svg("svg", { class: "spark", viewBox: "0 0 100 32", preserveAspectRatio: "none", role: "img", "aria-label": label }, svg("polyline", { points: points.filter(Boolean).join(" ") }));
}
