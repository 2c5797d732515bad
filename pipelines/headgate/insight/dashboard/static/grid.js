// Tables of rows, by pages.

import { h, redraw } from "./dom.js";
import { count } from "./format.js";

/** `show` takes {columns, numbers, cells, total, reachable, page, size} and their order. `onpage` gets
    a step, `onsort` an order, and ask for other rows; `within` is the next page that there is.
    `names` are the columns that distinguish rows, if not only all together do. `beyond` says how to
    get rows that no page reaches. */
export function grid({ label, onpage, onsort = null, names = null, beyond = "filter, or download" }) {
  let last = 0;
  const table = h("table", {});
  const said = h("span", { class: "soft" });
  const back = h("button", { type: "button", onclick: () => onpage(-1) }, "Newer");
  const next = h("button", { type: "button", onclick: () => onpage(1) }, "Older");
  const element = h(
    "div",
    { class: "rows" },
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, table),
    h("div", { class: "pages" }, back, next, said),
  );
  element.style.display = "grid";
  element.style.gap = "0.625rem";
  const show = (rows, sort = "") => {
    last = Math.max(0, Math.ceil(rows.reachable / rows.size) - 1);
    if (rows.page > last) return onpage(0); // there are fewer rows now
    const nameOf = (row) => row.filter((_, place) => !names || names.includes(rows.columns[place]));
    const lines = () => rows.cells.map((row) => h("tr", { "data-name": JSON.stringify(nameOf(row)) }, row.map((cell, place) => dataCell(cell, rows.numbers[place]))));
    const none = () => h("tr", {}, h("td", { colspan: rows.columns.length, class: "soft" }, "No rows."));
    redraw(table, [rows.columns, rows.cells, sort], () => [
      h("caption", { class: "unseen" }, label),
      h("thead", {}, h("tr", {}, rows.columns.map((name, place) => header(name, rows.numbers[place], sort, onsort)))),
      h("tbody", {}, rows.cells.length ? lines() : none()),
    ]);
    const first = rows.page * rows.size;
    said.textContent = rows.total ? `${count(first + 1)} – ${count(first + rows.cells.length)} of ${count(rows.total)}` : "";
    if (rows.reachable < rows.total) said.textContent += ` (the first ${count(rows.reachable)} can be reached: ${beyond})`;
    back.disabled = rows.page === 0;
    next.disabled = first + rows.size >= rows.reachable;
    const isSorted = Boolean(sort);
    back.textContent = isSorted ? "Back" : "Newer";
    next.textContent = isSorted ? "Next" : "Older";
  };
  return { element, show, within: (page) => Math.min(Math.max(page, 0), last) };
}

function header(name, isNumber, sort, onsort) {
  const attributes = { scope: "col", class: isNumber ? "number" : null };
  if (!onsort) return h("th", attributes, name);
  const isUp = sort === name;
  const isDown = sort === `-${name}`;
  const following = isDown ? name : isUp ? "" : `-${name}`;
  const button = h("button", { type: "button", onclick: () => onsort(following) }, name, isDown ? " ↓" : isUp ? " ↑" : "");
  return h("th", { ...attributes, "aria-sort": isDown ? "descending" : isUp ? "ascending" : "none" }, button);
}

const LONG = 90;
const TIME = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?Z$/;

function dataCell(cell, isNumber) {
  if (cell === null) return h("td", { class: isNumber ? "number null" : "null" }, "null");
  if (TIME.test(cell)) return h("td", { class: "time", title: cell }, cell.replace(/(\.\d+)?Z$/, ""));
  if (cell.length > LONG) {
    const whole = h("details", {}, h("summary", { dir: "auto" }, `${cell.slice(0, LONG - 20)} …`), cell);
    return h("td", { dir: "auto" }, whole);
  }
  return h("td", { class: isNumber ? "number" : null, dir: isNumber ? null : "auto" }, cell);
}
