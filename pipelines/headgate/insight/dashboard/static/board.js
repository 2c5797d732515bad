// A dashboard that the project declares.

import { ask, joined } from "./api.js";
import { chart } from "./chart.js";
import { h, redraw } from "./dom.js";
import { exact, number } from "./format.js";
import { grid } from "./grid.js";
import { follow } from "./live.js";
import { built, Part } from "./part.js";
import { bars } from "./shapes.js";

export function board(main, name) {
  const address = joined("board", name);
  const refresh = built(main, async () => {
    const found = await ask(address);
    const charts = found.charts.map((each) => new Chart(address, each));
    main.replaceChildren(h("div", { class: "head" }, h("h1", {}, found.title)), h("div", { class: "grid" }, charts.map((each) => each.element)));
    document.title = `${found.title} · Headgate`;
    return () => Promise.all(charts.map((each) => each.refresh()));
  });
  return follow([], (_, path) => path.startsWith("gold/"), refresh);
}

class Chart {
  constructor(address, declared) {
    this.address = `${address}/${joined(declared.name)}`;
    this.declared = declared;
    this.part = new Part();
    this.body = h("div", {});
    this.said = h("p", { class: "soft small" });
    this.element = h("section", { class: `card ${declared.width}` }, h("header", {}, h("h2", {}, declared.title)), this.part.trouble, this.body, this.said);
    if (declared.kind === "line") {
      this.plot = chart({ label: declared.title, height: 230 });
      this.body.append(this.plot.element);
    }
  }

  refresh() {
    return this.part.fill(async (signal) => {
      const found = await ask(this.address, "", signal);
      this.said.textContent = [found.cut ? "There are more rows than are shown." : "", found.left_out ? `${found.left_out} more lines are left out.` : "", found.per_point > 1 ? `Each point is the mean of ${found.per_point}.` : ""].filter(Boolean).join(" ");
      this.said.hidden = !this.said.textContent;
      this[found.kind](found);
      this.element.dataset.drawn = "yes";
    });
  }

  line(found) {
    const step = found.t.length > 1 ? found.t[1] - found.t[0] : 60;
    this.plot.update({ ...found, step, unit: found.unit ?? "" });
  }

  bar(found) {
    const [first, ...others] = found.series;
    const entries = found.labels.map((label, place) => ({
      name: label ?? "null",
      value: first.v[place],
      text: [first, ...others].map((each) => `${number(each.v[place])}${found.unit ? ` ${found.unit}` : ""}`).join(" · "),
    }));
    redraw(this.body, found, () => [bars(entries)]);
  }

  number(found) {
    redraw(this.body, found, () => [h("p", { class: "big" }, exact(found.text), found.unit ? h("span", { class: "small" }, ` ${found.unit}`) : null)]);
  }

  table(found) {
    if (!this.rows) {
      this.rows = grid({ label: this.declared.title, onpage: () => {} });
      this.rows.element.lastChild.hidden = true;
      this.body.append(this.rows.element);
    }
    this.rows.show({ ...found, total: found.cells.length, reachable: found.cells.length, page: 0, size: found.cells.length || 1 });
  }
}
