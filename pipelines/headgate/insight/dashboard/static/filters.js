// What a page of a gold table shows of it. The choice is in the address of the page.

import { ask } from "./api.js";
import { field, h, redraw, select } from "./dom.js";
import { time, visible } from "./format.js";

const RANGES = [["", "All"], [3600, "Last hour"], [21_600, "Last 6 hours"], [86_400, "Last 24 hours"], [604_800, "Last 7 days"], [2_592_000, "Last 30 days"]];
const CHART = ["figure", "by"];
const KEPT = [...CHART, "last", "from", "to"];
const PAUSE = 250; // milliseconds without a letter: then values are suggested
let lists = 0;

/** Calls `commit` for what was typed into `input`, which loses the focus. Not if the whole window loses
    it: the person may go on typing. After a click that has begun: new chips would lose it. */
function whenLeft(input, commit) {
  if (document.activeElement === input && !document.hasFocus()) return;
  if (document.querySelector("button:active")) addEventListener("click", () => setTimeout(commit), { once: true });
  else commit();
}

/** What the address of the page says about the choice; it may have other parameters. */
function given() {
  return new URLSearchParams([...new URLSearchParams(location.search)].filter(([name]) => KEPT.includes(name) || name.startsWith("key.") || name.startsWith("null.")));
}

export class Filters {
  constructor(address, about, changed) {
    this.address = address;
    this.about = about;
    this.changed = changed;
    this.chosen = given();
    this.shows = []; // for each control, a function that shows what is chosen
    this.chips = h("div", { class: "chips", role: "group", "aria-label": "Filters" });
    this.controls = h("div", { class: "filters", role: "search", "aria-label": `Filter ${about.table}` }, this.built());
    this.element = h("div", { class: "card" }, this.controls, this.chips);
    this.fill();
    addEventListener("popstate", () => {
      this.chosen = given();
      this.fill();
      this.changed();
    });
  }

  /** The parameters of a question, with `more`; those of the chart alone if they are named. */
  query(more = {}, chart = []) {
    const made = new URLSearchParams([...this.chosen].filter(([name]) => !CHART.includes(name) || chart.includes(name)));
    for (const [name, value] of Object.entries(more)) made.set(name, value);
    if (made.get("by") === "" || made.get("by") === "total") made.delete("by");
    return made.toString();
  }

  /** The controls. They stay, so whoever uses them by keyboard goes on where they are. */
  built() {
    const { figures, keys, begin } = this.about;
    const controls = [];
    if (figures.length) controls.push(field("Figure", this.list("figure", figures.map((each) => [each.name, each.name]), (value) => this.set({ figure: value }))));
    if (keys.length && figures.length) {
      this.by = this.list("by", [["", "All keys together"], ...keys.map((each) => [each, `A line for each ${each}`])], (value) => this.set({ by: value }));
      controls.push(field("Lines", this.by));
    }
    if (begin) {
      controls.push(field("Time", this.list("last", RANGES, (value) => this.set({ last: value, from: "", to: "" }))));
      controls.push(this.moment("from", "From (UTC)"), this.moment("to", "To (UTC)"));
    }
    return [...controls, ...keys.map((key) => this.keyField(key))];
  }

  fill() {
    for (const show of this.shows) show();
    const chips = [...this.chosen].filter(([name]) => !CHART.includes(name));
    redraw(this.chips, chips, () => chips.map(([name, value]) => this.chip(name, value)));
  }

  /** A list of values, the first of which is chosen if the address has none of them. */
  list(name, options, choose) {
    const made = select(options, null, choose);
    const known = options.map(([value]) => String(value));
    this.shows.push(() => (made.value = known.includes(this.chosen.get(name)) ? this.chosen.get(name) : known[0]));
    return made;
  }

  moment(name, label) {
    let applied;
    let shown;
    // Not at a change: a browser tells of one after each part that is typed, such as 0002 for a year.
    const commit = () => {
      if (input.value !== shown && !input.validity.badInput) this.set({ [name]: input.value && `${input.value}Z`, last: "" });
    };
    const input = h("input", { type: "datetime-local", max: "9999-12-31T23:59", onblur: () => whenLeft(input, commit), onkeydown: (event) => event.key === "Enter" && commit() });
    this.shows.push(() => {
      const value = (this.chosen.get(name) ?? "").replace(/(Z|\+00:00)$/, "").slice(0, 16);
      if (applied === value) return; // else what is typed may be lost
      applied = value;
      if (input.value !== value) input.value = value;
      shown = input.value;
    });
    return h("label", { class: "moment" }, label, input);
  }

  keyField(key) {
    const list = h("datalist", { id: `values-${++lists}` });
    const exact = new Map(); // of what is shown: a chosen value filters by the whole of it
    let asked;
    let timer;
    const suggest = async () => {
      asked?.abort();
      asked = new AbortController();
      try {
        const found = await ask(`${this.address}/values`, new URLSearchParams({ key, part: input.value }).toString(), asked.signal);
        const values = found.values.filter((each) => each.exact !== null);
        for (const each of values) exact.set(each.shown, each.exact);
        list.replaceChildren(...values.map((each) => h("option", { value: each.shown })));
      } catch (error) {
        if (error.name !== "AbortError") list.replaceChildren();
      }
    };
    const commit = () => {
      const { value } = input;
      input.value = ""; // a chip shows it
      if (value !== "") this.set({ [`key.${key}`]: exact.get(value) ?? value, [`null.${key}`]: null });
    };
    const input = h("input", {
      type: "text",
      list: list.id,
      placeholder: "any",
      autocomplete: "off",
      "data-key": key,
      onfocus: suggest,
      oninput: () => (clearTimeout(timer), (timer = setTimeout(suggest, PAUSE))),
      onchange: () => whenLeft(input, commit),
      onblur: () => whenLeft(input, commit),
    });
    return h("label", {}, key, input, list);
  }

  chip(name, value) {
    const [kind, ...rest] = name.split(".");
    const key = rest.join(".");
    const range = RANGES.find(([seconds]) => String(seconds) === value)?.[1] ?? `last ${value} s`;
    const text = { key: `${key} = ${visible(value)}`, null: `${key} is null`, last: range, from: `from ${value.replace("T", " ")}`, to: `to ${value.replace("T", " ")}` }[kind];
    const remove = () => {
      this.set({ [name]: null });
      if (!this.chips.firstChild) this.controls.querySelector("select, input").focus();
    };
    return h("span", { class: "chip" }, text, h("button", { type: "button", "aria-label": `Remove the filter ${text}`, onclick: remove }, "×"));
  }

  /** Only the rows of the keys of an entry; null is a value. */
  only(keys, entry) {
    const wanted = {};
    keys.forEach((key, place) => {
      const isNull = entry.keys[place] === null;
      wanted[`key.${key}`] = isNull ? null : entry.exact[place];
      wanted[`null.${key}`] = isNull ? "1" : null;
    });
    this.set(wanted);
  }

  /** Only what begins between two moments, in seconds since 1970. */
  between(from, to) {
    const iso = (seconds) => `${time(seconds).replace(" ", "T")}Z`;
    this.set({ from: iso(from), to: iso(to), last: "" });
  }

  /** Null removes a filter; so does an empty text, but that is a value of a key. */
  set(wanted) {
    for (const [name, value] of Object.entries(wanted)) {
      if (value === null || (value === "" && !name.startsWith("key."))) this.chosen.delete(name);
      else this.chosen.set(name, value);
    }
    history.pushState(null, "", `${location.pathname}${this.chosen.size ? `?${this.chosen}` : ""}`);
    this.fill();
    this.changed();
  }

  /** A figure that cannot be combined has a line for each key, whatever is chosen. */
  forFigure(found) {
    if (this.by) this.by.disabled = found.across === null;
  }
}
