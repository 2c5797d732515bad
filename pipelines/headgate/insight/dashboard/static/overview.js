// The first page: all pipelines and their gold tables.

import { ask, at, joined } from "./api.js";
import { h, note, redraw } from "./dom.js";
import { ago, count, percent, time } from "./format.js";
import { follow } from "./live.js";
import { Part } from "./part.js";
import { spark } from "./shapes.js";

const TONES = { running: "good", finished: "good", paused: "warn", waiting: "bad", ended: "warn", failed: "bad", dead: "bad", stuck: "bad" };

export async function overview(main) {
  const lines = new Map();
  const part = new Part();
  const body = h("div", {});
  body.style.display = "contents";
  main.replaceChildren(part.trouble, body);
  const refresh = () =>
    part.fill(async (signal) => {
      const found = await ask("overview", "", signal);
      redraw(body, { ...found, at: null }, () => content(found, lines));
      await Promise.allSettled(found.pipelines.flatMap((each) => each.gold.filter((table) => table.exists).map((table) => sparkline(each.pipeline, table.table, lines))));
    });
  const again = await follow([], () => true, refresh);
  setInterval(() => document.hidden || again(), 15_000); // whether a stream runs is no commit
}

function content(found, lines) {
  return [
    h("div", { class: "head" }, h("h1", {}, "Pipelines"), boardLinks(found.boards)),
    ...found.problems.map((problem) => note("bad", problem)),
    ...(found.pipelines.length ? found.pipelines.map((each) => pipelineCard(each, lines)) : [note("soft", "No pipeline may be seen here.")]),
  ];
}

function boardLinks(boards) {
  if (!boards.length) return null;
  return h("p", { class: "links" }, h("span", { class: "soft" }, "Dashboards"), boards.map((board) => h("a", { href: at("board", board.name) }, board.title)));
}

function pipelineCard(found, lines) {
  const name = found.pipeline;
  const sources = found.sources ?? [];
  const isOne = sources.length === 1;
  const trouble = ({ source, trouble: why, remedy }) => note("bad", isOne ? why : `${source}: ${why}`, remedy);
  return h(
    "section",
    { class: "card", "aria-label": `Pipeline ${name}` },
    h(
      "header",
      {},
      h("h2", {}, name),
      found.condition && h("span", { class: `state ${TONES[found.condition] ?? "soft"}` }, found.condition),
      ...(isOne ? freshness(sources[0]) : []),
      h("span", { class: "right small" }, isOne ? quarantine(sources[0], name) : null, h("a", { href: at("ledger", name) }, "Ledger")),
    ),
    found.problem && note("bad", found.problem),
    sources.filter((each) => each.trouble).map(trouble),
    sources.length > 1 ? h("ul", { class: "sources" }, sources.map((each) => h("li", {}, h("b", {}, each.source), ...freshness(each), quarantine(each, name, each.source)))) : null,
    (found.set_aside ?? []).map((files) => note("bad", files)),
    h("div", { class: "tables" }, found.gold.map((table) => tableCard(name, table, lines))),
  );
}

const freshness = ({ arrived, watermark }) => [
  arrived && h("span", { class: "soft small" }, "last record ", ago(arrived)),
  watermark && h("span", { class: "soft small" }, `watermark ${time(Date.parse(watermark) / 1000)} UTC`),
];

const quarantine = ({ quarantined }, ...of) => h("a", { class: "small", href: at("quarantine", ...of) }, `Quarantine (${count(quarantined)})`);

function tableCard(pipeline, table, lines) {
  const title = h("h3", {}, h("a", { href: at("gold", pipeline, table.table) }, table.table));
  if (!table.exists) return h("div", { class: "table-card" }, title, h("p", { class: "soft small" }, "no batch yet"));
  const key = `${pipeline}/${table.table}`;
  const line = lines.get(key) ?? h("div", {});
  lines.set(key, line);
  return h(
    "div",
    { class: "table-card" },
    title,
    line,
    h(
      "dl",
      {},
      ...entry("rows", count(table.rows)),
      ...entry("changed", ago(table.changed)),
      ...(table.late_share === null ? [] : entry("late", percent(table.late_share))),
      ...entry("batch id", count(table.n)),
    ),
    table.held && h("p", { class: "warn small" }, `held since ${table.held.since.slice(0, 16).replace("T", " ")}: ${table.held.rules.join(", ")}`),
  );
}

const entry = (name, value) => [h("dt", {}, name), h("dd", {}, value)];

async function sparkline(pipeline, table, lines) {
  const found = await ask(joined("gold", pipeline, table, "series"), "width=60&top=1");
  lines.get(`${pipeline}/${table}`)?.replaceChildren(spark(found.series[0]?.v ?? [], `${found.figure} over time`));
}
