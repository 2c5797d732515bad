// The page of a gold table: what it is, its figures over time, its top keys, and its rows.

import { ask, at, BASE, joined } from "./api.js";
import { chart } from "./chart.js";
import { h, note, redraw, tiles } from "./dom.js";
import { Filters } from "./filters.js";
import { ago, count, exact, number, percent, span, time } from "./format.js";
import { grid } from "./grid.js";
import { follow } from "./live.js";
import { built, Part } from "./part.js";
import { bars } from "./shapes.js";

export function gold(main, pipeline, table) {
  const address = joined("gold", pipeline, table);
  const refresh = built(main, async () => {
    const page = new GoldPage(address, pipeline, table, await ask(address));
    main.replaceChildren(...page.elements);
    return () => page.refresh();
  });
  return follow([pipeline], (_, path) => [`gold/${table}`, `late/${table}`].includes(path) || path.startsWith("silver/"), refresh);
}

class GoldPage {
  constructor(address, pipeline, table, about) {
    this.address = address;
    this.names = [pipeline, table];
    this.about = about;
    this.figures = new Part();
    this.rowsPart = new Part({ page: 0, sort: "" });
    this.filters = new Filters(address, about, () => {
      this.rowsPart.choose({ ...this.rowsPart.wanted, page: 0 });
      return this.refresh();
    });
    this.facts = h("div", {});
    this.held = h("div", {});
    this.chart = chart({ label: `Figures of ${table} over time`, onselect: (from, to) => this.filters.between(from, to) });
    this.title = h("h2", {});
    this.said = h("p", { class: "soft small" });
    this.topTitle = h("h2", {}, "Top keys");
    this.top = h("div", {});
    this.topSaid = h("p", { class: "soft small" });
    this.rows = grid({
      label: `Rows of ${table}`,
      names: [about.begin, ...about.keys].filter(Boolean),
      onpage: (step) => this.turn({ page: this.rows.within(this.rowsPart.wanted.page + step) }),
      onsort: (sort) => this.turn({ page: 0, sort }),
    });
    // Without the attribute `download`, which would hide why one is refused.
    this.csv = h("a", { class: "button" }, "CSV");
    this.parquet = h("a", { class: "button" }, "Parquet");
    this.elements = this.layout();
  }

  layout() {
    const [pipeline, table] = this.names;
    const { begin, keys } = this.about;
    const hasKeys = keys.length > 0;
    return [
      h(
        "div",
        { class: "head" },
        h("h1", {}, table),
        h("span", { class: "soft" }, this.about.operator.replace(/^window: /, "")),
        h("p", { class: "links" }, this.about.reads ? h("a", { href: at("gold", pipeline, this.about.reads) }, `Made from ${this.about.reads}`) : h("a", { href: at("late", pipeline, table) }, "Late rows"), ...links(this.about.sources, "Quarantine", (source) => at("quarantine", pipeline, source)), ...links(this.about.rules_of, "Rejected rows", (silver) => at("rejected", pipeline, silver)), h("a", { href: at("ledger", pipeline) }, "Ledger")),
      ),
      this.figures.trouble,
      this.held,
      this.facts,
      this.filters.element,
      h(
        "div",
        { class: "grid" },
        begin && h("section", { class: `card ${hasKeys ? "most" : ""}` }, h("header", {}, this.title), this.chart.element, this.said),
        hasKeys ? h("section", { class: `card ${begin ? "third" : ""}` }, h("header", {}, this.topTitle), this.top, this.topSaid) : null,
      ),
      h("section", { class: "card" }, h("header", {}, h("h2", {}, "Rows"), h("span", { class: "right" }, h("span", { class: "soft small" }, "Download"), this.csv, this.parquet)), this.rowsPart.trouble, this.rows.element),
    ];
  }

  refresh() {
    const figures = (signal) => Promise.all([this.refreshAbout(signal), this.refreshChart(signal), this.refreshTop(signal)]);
    return Promise.all([this.figures.fill(figures), this.refreshRows()]);
  }

  async refreshAbout(signal) {
    const found = (this.about = await ask(this.address, "", signal));
    const { held, span: within } = found;
    redraw(this.held, held && [held, found.n], () =>
      held ? [note("warn", `A newer version, up to batch ${count(held.upto)}, is held back by ${held.rules.join(", ")}.`, `The version shown is the last one that was released (batch ${count(found.n)}).`)] : [],
    );
    redraw(this.facts, found, () => [
      tiles([
        { name: "Last change", value: ago(found.changed) },
        { name: "Version shown", value: `batch ${count(found.n)}`, below: `log version ${count(found.version)}` },
        { name: "Rows", value: count(found.rows), below: `${count(found.final)} final, ${count(Math.max(found.rows - found.final, 0))} open` },
        within && { name: "Windows", value: span(within.end - within.first), below: `to ${time(within.end, 60)} UTC` },
        !found.reads && { name: "Late", value: percent(found.late_share), below: `${count(found.late)} of ${count(found.pairs)} ${found.counts}`, tone: found.late_share > 0.05 ? "warn" : null },
        { name: "Quarantined", value: percent(found.quarantined_share), below: `${count(found.quarantined)} of ${count(found.read)} records`, tone: found.quarantined_share > 0.05 ? "warn" : null },
        found.rules_of.length && { name: "Rejected", value: count(found.rejected), below: `by the rules of ${found.rules_of.join(" and ")}` },
      ]),
    ]);
  }

  async refreshChart(signal) {
    if (!this.about.figures.length || !this.about.begin) return;
    const width = Math.min(1200, this.chart.width());
    const found = await ask(`${this.address}/series`, this.filters.query({ width }, ["figure", "by"]), signal);
    const by = found.by.length ? `, by ${found.by.join(" and ")}` : "";
    this.title.textContent = `${found.figure} per window${by}`;
    this.chart.update({ ...found, name: found.figure });
    this.filters.forFigure(found);
    const said = [];
    if (found.per_point > 1) said.push(`Each point is the mean of ${count(found.per_point)} windows; the band goes from the least to the greatest.`);
    if (found.by.length && found.series.length) said.push(`The ${found.series.length} greatest keys.`);
    if (found.across === null && this.about.keys.length) said.push("This figure cannot be combined over keys.");
    said.push("Drag over the chart to choose a time.");
    this.said.textContent = said.join(" ");
  }

  async refreshTop(signal) {
    if (!this.about.keys.length || !this.about.figures.length) return;
    const found = await ask(`${this.address}/top`, this.filters.query({ most: 10 }, ["figure", "by"]), signal);
    const over = { sum: "sum of", avg: "mean of", min: "least", max: "greatest" }[found.over];
    this.topTitle.textContent = `Top ${found.by.join(", ")} by ${found.figure}`;
    const entries = found.rows.map((row) => ({
      name: row.keys.map((key) => key ?? "null").join(" · "),
      value: row.value,
      // A value may be too long for a filter.
      fixed: row.keys.some((key, place) => key !== null && row.exact[place] === null),
      text: (found.over === "avg" ? number(row.value) : exact(row.text)) + (row.share === null ? "" : `  (${percent(row.share)})`),
    }));
    redraw(this.top, found, () => [entries.length ? bars(entries, (place) => this.filters.only(found.by, found.rows[place])) : h("p", { class: "soft" }, "No rows.")]);
    const within = this.about.begin ? " over the chosen windows" : "";
    this.topSaid.textContent = `${over} ${found.figure}${within}; ${count(found.groups)} ${found.groups === 1 ? "key" : "keys"}.`;
  }

  turn(to) {
    this.rowsPart.want(to);
    return this.refreshRows();
  }

  refreshRows() {
    const chosen = this.filters.query();
    for (const [link, form] of [[this.csv, "csv"], [this.parquet, "parquet"]]) link.href = `${BASE}/api/${this.address}/rows.${form}?${chosen}`;
    return this.rowsPart.fill(async (signal, { page, sort }) => {
      const found = await ask(`${this.address}/rows`, this.filters.query({ page, size: 25, ...(sort ? { sort } : {}) }), signal);
      this.rows.show(found, sort);
    });
  }
}

/** A link for each name; each says its name if there are several. */
function links(names, label, address) {
  return names.map((name) => h("a", { href: address(name) }, names.length > 1 ? `${label}: ${name}` : label));
}
