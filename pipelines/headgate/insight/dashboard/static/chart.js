/* global uPlot */
// Charts over time or over numbers, drawn by uPlot.

import { h, redraw } from "./dom.js";
import { number, ticks, time } from "./format.js";

const MOST = 8;
const shown = new Set();

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** A chart in an element of its own. `update` takes
    {t, time, step, series: [{label, v, low?, high?}], open?, late?, revised?, bars?, unit?}. */
export function chart({ label, height = 290, onselect = null }) {
  const plot = h("div", {});
  const hint = h("div", { class: "hint", hidden: true, "aria-live": "polite" });
  const box = h("div", { class: "chart", tabindex: "0", role: "group", "aria-label": label, "aria-roledescription": "chart" }, plot, hint);
  const legend = h("ul", { class: "legend" });
  const values = h("div", {});
  const details = h("details", { ontoggle: () => details.open && fillTable(values, state.data) }, h("summary", {}, "Values as a table"), values);
  const element = h("figure", {}, box, legend, details);
  const state = { data: null, drawn: null, width: 0, at: null, hint };

  const draw = () => {
    const width = Math.floor(box.clientWidth);
    if (!state.data || width === 0) return;
    state.width = width;
    state.drawn?.destroy();
    state.drawn = null;
    if (state.data.t.length === 0) {
      plot.replaceChildren(h("p", { class: "soft" }, "Nothing to draw here."));
      return;
    }
    plot.replaceChildren();
    state.drawn = new uPlot(options(state.data, width, height, hint, onselect), columns(state.data), plot);
  };
  const update = (data) => {
    const same = state.data && state.drawn && alike(state.data, data);
    state.data = data;
    box.setAttribute("aria-label", `${label}. ${summary(data)} Use the arrow keys to read values.`);
    fillLegend(legend, data);
    if (details.open) fillTable(values, data);
    if (same) {
      state.drawn.data_ = data;
      state.drawn.setData(columns(data));
    } else draw();
    if (state.at !== null && state.drawn) {
      state.at = Math.min(state.at, data.t.length - 1);
      tell(state.drawn, hint, state.at); // whoever reads by keyboard goes on where they are
    }
  };
  box.addEventListener("keydown", (event) => move(event, state));
  box.addEventListener("blur", () => ((hint.hidden = true), (state.at = null)));
  new ResizeObserver(() => Math.abs(box.clientWidth - state.width) > 2 && draw()).observe(box);
  shown.add(draw);
  return { element, update, width: () => Math.max(10, Math.floor(box.clientWidth || 800)) };
}

/** The theme has changed: what is on a canvas is drawn again. */
export function redrawAll() {
  for (const draw of shown) draw();
}

function alike(before, after) {
  return before.series.length === after.series.length && before.time === after.time && before.step === after.step && before.bars === after.bars && Boolean(before.series[0]?.low) === Boolean(after.series[0]?.low) && before.series.every((each, place) => each.label === after.series[place].label);
}

/** uPlot's columns: of each line what is final and what is open; bars are stacked. */
function columns(data) {
  if (data.bars) {
    const sums = data.t.map(() => 0);
    const stacked = data.series.map((each) => each.v.map((value, place) => (sums[place] += value ?? 0)));
    return [data.t, ...stacked.reverse()];
  }
  const open = data.open ?? [];
  const made = [data.t];
  for (const each of data.series) {
    made.push(each.v.map((value, place) => (open[place] ? null : value)));
    made.push(each.v.map((value, place) => (open[place] || open[place + 1] ? value : null)));
  }
  if (data.series.length === 1 && data.series[0].low) made.push(data.series[0].high, data.series[0].low);
  return made;
}

function options(data, width, height, hint, onselect) {
  const tones = Array.from({ length: MOST }, (_, place) => colour(`--chart-${place + 1}`));
  const labels = (_, splits, __, ___, step) => ticks(splits, step);
  const size = (_, texts) => Math.max(58, 18 + 8 * Math.max(...(texts ?? []).map((each) => each.length)));
  const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 }, font: '12px system-ui, "DejaVu Sans", sans-serif' };
  const made = {
    width,
    height,
    padding: [10, 26, 0, 0],
    legend: { show: false },
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "UTC"),
    scales: { x: { time: data.time !== false, range: (plot, low, high) => extent(plot.data[0], low, high, data.step) }, y: { range: (_, low, high) => range(low, high, data.bars) } },
    axes: [{ ...axis, space: 76, values: data.time === false ? labels : clock }, { ...axis, size, values: labels }],
    series: [{}, ...lines(data, tones)],
    cursor: { drag: { x: Boolean(onselect), y: false, setScale: false }, points: { size: 7 } },
    hooks: { init: [(plot) => (plot.data_ = data)], setCursor: [(plot) => tell(plot, hint)], drawClear: [shadeOpen], draw: [drawMarks] },
  };
  if (data.series.length === 1 && data.series[0].low && !data.bars) made.bands = [{ series: [3, 4], fill: `${tones[0]}33` }];
  if (onselect) {
    made.hooks.setSelect = [
      (plot) => {
        const { left, width: wide } = plot.select;
        if (wide > 4) onselect(plot.posToVal(left, "x"), plot.posToVal(left + wide, "x"));
        plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
      },
    ];
  }
  return made;
}

/** Times of an axis: with the day where it begins, with seconds where the axis has them. */
function clock(_, splits, __, ___, step) {
  let day = "";
  return splits.map((value) => {
    const iso = new Date(value * 1000).toISOString();
    const isNew = iso.slice(0, 10) !== day;
    day = iso.slice(0, 10);
    if (step >= 86_400) return day;
    const moment = step < 60 ? iso.slice(11, 19) : iso.slice(11, 16);
    return isNew ? `${moment}\n${day}` : moment;
  });
}

function lines(data, tones) {
  if (data.bars) {
    const paths = uPlot.paths.bars({ size: [0.8, 40], align: 1 });
    return data.series.map((_, place) => ({ fill: tones[place % MOST], stroke: tones[place % MOST], width: 0, paths, points: { show: false } })).reverse();
  }
  const single = data.t.length < 3;
  const filter = (plot, place, show) => (show ? null : alone(plot.data[place]));
  const points = { size: 6, filter };
  const made = data.series.flatMap((each, place) => {
    const stroke = tones[place % MOST];
    return [
      { label: each.label, stroke, width: 1.75, points: { ...points, show: single || undefined } },
      { label: each.label, stroke, width: 1.75, dash: [4, 4], points: { ...points, show: single } },
    ];
  });
  if (data.series.length === 1 && data.series[0].low) made.push({ stroke: "transparent", points: { show: false } }, { stroke: "transparent", points: { show: false } });
  return made;
}

/** The places of values without neighbours: no line leads to them. */
function alone(values) {
  const isThere = (place) => values[place] !== null && values[place] !== undefined;
  const found = [...values.keys()].filter((place) => isThere(place) && !isThere(place - 1) && !isThere(place + 1));
  return found.length ? found : null;
}

/** From zero where that costs little of the height. */
/** The ends of the x axis. By itself, uPlot shows years around a single point. */
function extent(points, low, high, step) {
  return points.length === 1 && step ? [points[0] - step, points[0] + step] : [low, high];
}

function range(low, high, bars) {
  if (low === null || high === null) return [0, 1];
  if (bars) return [0, Math.max(high * 1.05, 1)];
  if (low === high) return low === 0 ? [0, 1] : [Math.min(0, low * 1.1), Math.max(0, high * 1.1)];
  const bottom = low >= 0 && low < (high - low) * 2 ? 0 : low - (high - low) * 0.08;
  return [bottom, high + (high - bottom) * 0.08];
}

const dataOf = (plot) => plot.data_ ?? NOTHING;
const NOTHING = { t: [], series: [] };

function shadeOpen(plot) {
  const data = dataOf(plot);
  const first = (data.open ?? []).indexOf(1);
  if (first < 0) return;
  const { ctx, bbox } = plot;
  const half = first > 0 ? (data.t[first] - data.t[first - 1]) / 2 : 0;
  const left = Math.max(bbox.left, plot.valToPos(data.t[first] - half, "x", true));
  ctx.save();
  ctx.fillStyle = colour("--open");
  ctx.fillRect(left, bbox.top, bbox.left + bbox.width - left, bbox.height);
  ctx.restore();
}

function drawMarks(plot) {
  const data = dataOf(plot);
  const { ctx, bbox } = plot;
  const size = 4 * devicePixelRatio;
  ctx.save();
  ctx.fillStyle = colour("--warn");
  (data.late ?? []).forEach((rows, place) => {
    if (!rows) return;
    const x = plot.valToPos(data.t[place], "x", true);
    const y = bbox.top + bbox.height - 1;
    ctx.beginPath();
    ctx.moveTo(x - size, y);
    ctx.lineTo(x + size, y);
    ctx.lineTo(x, y - size * 1.7);
    ctx.fill();
  });
  ctx.strokeStyle = colour("--chart-4");
  ctx.lineWidth = 2 * devicePixelRatio;
  (data.revised ?? []).forEach((rows, place) => {
    if (!rows) return;
    const x = plot.valToPos(data.t[place], "x", true);
    for (const each of data.series) {
      if (each.v[place] === null) continue;
      const y = plot.valToPos(each.v[place], "y", true);
      ctx.beginPath();
      ctx.moveTo(x, y - size * 1.2);
      ctx.lineTo(x + size * 1.2, y);
      ctx.lineTo(x, y + size * 1.2);
      ctx.lineTo(x - size * 1.2, y);
      ctx.closePath();
      ctx.stroke();
    }
  });
  ctx.restore();
}

/** Say what is at the cursor, or at the place `at` of the data; null for nothing. */
function tell(plot, hint, at = undefined) {
  const idx = at === undefined ? plot.cursor.idx : at;
  const left = at === undefined ? plot.cursor.left : at === null ? -1 : plot.valToPos(dataOf(plot).t[at], "x");
  const data = dataOf(plot);
  if (idx === null || idx === undefined || left === undefined || left < 0 || data.t.length === 0) {
    hint.hidden = true;
    return;
  }
  const facts = [];
  if (data.open?.[idx]) facts.push("open: the result so far");
  if (data.late?.[idx]) facts.push(`${number(data.late[idx])} late rows`);
  if (data.revised?.[idx]) facts.push(`${number(data.revised[idx])} revised rows`);
  const entries = data.series.map((each, place) => {
    const value = each.v[idx];
    const around = each.low && value !== null && each.low[idx] !== each.high[idx] ? ` (${number(each.low[idx])} – ${number(each.high[idx])})` : "";
    return h("li", {}, h("span", { class: `swatch c${(place % MOST) + 1}` }), h("span", {}, each.label || data.name || ""), h("b", {}, `${number(value)}${around}${data.unit ? ` ${data.unit}` : ""}`));
  });
  hint.replaceChildren(h("div", { class: "soft" }, heading(data, idx)), h("ul", {}, entries), ...facts.map((fact) => h("div", { class: "soft" }, fact)));
  hint.hidden = false;
  const { offsetLeft, clientWidth } = plot.over;
  const x = offsetLeft + left;
  hint.style.left = `${Math.max(0, x + hint.offsetWidth + 20 > offsetLeft + clientWidth ? x - hint.offsetWidth - 14 : x + 14)}px`;
  hint.style.top = "8px";
}

const heading = (data, place) => (data.time === false ? number(data.t[place]) : `${time(data.t[place], data.step)} UTC`);

function move(event, state) {
  const plot = state.drawn;
  if (!plot || !["ArrowLeft", "ArrowRight", "Home", "End", "Escape"].includes(event.key)) return;
  event.preventDefault();
  const last = state.data.t.length - 1;
  if (event.key === "Escape") state.at = null;
  else if (event.key === "Home") state.at = 0;
  else if (event.key === "End" || state.at === null) state.at = last;
  else state.at = Math.min(last, Math.max(0, state.at + (event.key === "ArrowLeft" ? -1 : 1)));
  if (state.at === null) plot.setCursor({ left: -10, top: -10 });
  else plot.setCursor({ left: plot.valToPos(state.data.t[state.at], "x"), top: 10 });
  tell(plot, state.hint, state.at);
}

function summary(data) {
  if (data.t.length === 0) return "It is empty.";
  const names = data.series.map((each) => each.label || data.name).filter(Boolean);
  return `${names.length > 1 ? `${names.length} lines: ${names.join(", ")}` : names.join("")} from ${heading(data, 0)} to ${heading(data, data.t.length - 1)}.`;
}

function fillLegend(legend, data) {
  const marks = [
    (data.open ?? []).some(Boolean) && ["open", "open windows: results so far"],
    (data.late ?? []).some(Boolean) && ["late", "late rows (of all keys)"],
    (data.revised ?? []).some(Boolean) && ["revised", "revised windows"],
  ].filter(Boolean);
  const named = data.series.length > 1 ? data.series.map((each, place) => [`c${(place % MOST) + 1}`, each.label]) : [];
  legend.replaceChildren(...[...named, ...marks].map(([kind, text]) => h("li", {}, h("span", { class: `swatch ${kind}` }), text)));
}

function fillTable(values, data) {
  if (!data) return;
  const first = Math.max(0, data.t.length - 200);
  const head = h("tr", {}, h("th", {}, data.time === false ? "x" : "Time (UTC)"), data.series.map((each) => h("th", { class: "number" }, each.label || data.name || "Value")));
  const rows = () => data.t.slice(first).map((_, place) => h("tr", {}, h("td", { class: "time" }, heading(data, first + place)), data.series.map((each) => h("td", { class: "number" }, number(each.v[first + place])))));
  redraw(values, data, () => [first ? h("p", { class: "soft small" }, "The newest 200 points.") : "", h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Values" }, h("table", {}, h("thead", {}, head), h("tbody", {}, rows().reverse())))]);
}
