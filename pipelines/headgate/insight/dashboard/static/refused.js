// The pages of late rows, of quarantine and of rejected rows.

import { ask, at, joined } from "./api.js";
import { chart } from "./chart.js";
import { h, redraw, tiles } from "./dom.js";
import { count, span } from "./format.js";
import { grid } from "./grid.js";
import { follow } from "./live.js";
import { Part } from "./part.js";
import { bars } from "./shapes.js";

export function late(main, pipeline, table) {
  const address = joined("late", pipeline, table);
  return page(main, address, pipeline, `late/${table}`, {
    title: `Late rows of ${table}`,
    below: "A row is late for a window that had become final when it arrived. The windows that they missed:",
    links: h("a", { href: at("gold", pipeline, table) }, table),
    facts: (found) => [
      { name: "Late rows", value: count(found.reasons.reduce((sum, each) => sum + each.count, 0)), below: `${count(found.replayed)} replayed` },
      { name: "Late by, median", value: seconds(found.seconds.median) },
      { name: "95 % are late by less than", value: seconds(found.seconds.p95) },
      { name: "At most", value: seconds(found.seconds.max) },
    ],
  });
}

/** Without `source`, of a pipeline that has one source. */
export function quarantine(main, pipeline, source) {
  const of = source === undefined ? [pipeline] : [pipeline, source];
  return page(main, joined("quarantine", ...of), pipeline, `quarantine/${source ?? ""}`, {
    title: `Quarantine of ${source ?? pipeline}`,
    below: "Records that are invalid, by the time of their arrival:",
    links: h("a", { href: at("ledger", pipeline) }, "Ledger"),
    facts: (found) => [
      { name: "Records", value: count(found.reasons.reduce((sum, each) => sum + each.count, 0)) },
      ...found.reasons.slice(0, 5).map((each) => ({ name: each.reason.replaceAll("_", " "), value: count(each.count) })),
    ],
  });
}

export function rejected(main, pipeline, table) {
  const address = joined("rejected", pipeline, table);
  return page(main, address, pipeline, `rejected/${table}`, {
    title: `Rejected rows of ${table}`,
    below: "Records that break rules, by the time of their arrival. A record may break several:",
    links: h("a", { href: at("ledger", pipeline) }, "Ledger"),
    facts: (found) => found.reasons.slice(0, 5).map((each) => ({ name: each.reason, value: count(each.count) })),
  });
}

const seconds = (value) => (value === null || value === undefined ? "–" : span(value));

function page(main, address, pipeline, path, { title, below, links, facts }) {
  const part = new Part({ page: 0, reason: "" });
  const figures = h("div", {});
  const plot = chart({ label: title, height: 220 });
  const reasons = h("div", {});
  const masked = h("p", { class: "soft small" });
  const refresh = () =>
    part.fill(async (signal, { page, reason }) => {
      const found = await ask(address, new URLSearchParams({ page, size: 25, ...(reason ? { reason } : {}) }).toString(), signal);
      const entries = facts(found);
      redraw(figures, entries, () => [tiles(entries)]);
      plot.update({ ...found.over_time, bars: true, name: "rows" });
      redraw(reasons, [found.reasons, reason], () => [chooser(found.reasons, reason, (to) => turn({ page: 0, reason: to }))]);
      masked.textContent = found.masked ? "Letters and digits of values are masked." : "";
      rows.show(found);
    });
  const turn = (to) => (part.want(to), refresh());
  const rows = grid({ label: title, onpage: (step) => turn({ page: rows.within(part.wanted.page + step) }), beyond: "choose a reason, or ask with headgate query" });
  main.replaceChildren(
    h("div", { class: "head" }, h("h1", {}, title), h("p", { class: "links" }, links)),
    part.trouble,
    figures,
    h(
      "div",
      { class: "grid" },
      h("section", { class: "card most" }, h("p", { class: "soft small" }, below), plot.element),
      h("section", { class: "card third" }, h("header", {}, h("h2", {}, "Reasons")), reasons),
    ),
    h("section", { class: "card" }, h("header", {}, h("h2", {}, "Rows"), h("span", { class: "right" }, masked)), rows.element),
  );
  return follow([pipeline], (_, changed) => changed.startsWith(path), refresh);
}

/** The first reasons as the chart has them; it has the others as one. */
function chooser(found, reason, choose) {
  if (!found.length) return h("p", { class: "good" }, "None.");
  const entries = found.map((each, place) => ({ name: each.reason || "none", value: each.count, text: count(each.count), tone: Math.min(place, 6) + 1 }));
  const list = bars(entries, (place) => choose(found[place].reason === reason ? "" : found[place].reason));
  if (!reason) return list;
  const all = h("button", { type: "button", onclick: () => choose("") }, `Only ${reason}: show all`);
  return h("div", { class: "rows" }, list, h("p", {}, all));
}
