// A stream's card. It is created once and updated with every answer, so that open parts stay open.

import { actions } from "./actions.js";
import { chart } from "./chart.js";
import { condition, isWrong, nameOf } from "./conditions.js";
import { drawer, driver, goldTables, lastLines, partitions, past, read, remedy } from "./details.js";
import { make, replace } from "./elements.js";
import { figures } from "./figures.js";
import { pauseOf, unread } from "./notes.js";
import { place } from "./shell.js";
import { failures, onlySource, sourcesOf } from "./sources.js";
import { about, moment, number, plural, span } from "./format.js";

const OLD = 15; // seconds

export function card(identity) {
  const title = make("h2", { id: `stream-${identity}` });
  const parts = {
    state: make("p", { class: "state" }),
    meta: make("p", { class: "meta" }),
    notes: make("div", { class: "notes" }),
    figures: make("div"),
    charts: make("div", { class: "charts" }),
  };
  const links = make("nav", { class: "links" });
  const act = actions();
  const drawers = [
    [drawer("Gold tables", goldTables), (stream) => stream.tables?.account?.gold.length],
    [drawer("Loads, replays, backfills", past), (stream) => hasPast(stream.tables?.past)],
    [drawer("Partitions", partitions), (stream) => sourcesOf(stream).some((each) => Object.keys(each.backlog?.partitions ?? {}).length)],
    [drawer("Driver", driver), () => true],
    [lastLines(), (stream) => stream.control.may_read_log && stream.status?.jobs.length],
  ];
  const element = make(
    "article",
    { class: "card" },
    make("header", {}, title, parts.state, links),
    parts.meta,
    parts.notes,
    parts.figures,
    parts.charts,
    act.element,
    act.messages,
    make("footer", {}, ...drawers.map(([each]) => each.element)),
  );
  element.setAttribute("aria-labelledby", title.id);
  return {
    element,
    update(stream, now) {
      const { word, tone, means } = condition(stream, now);
      element.dataset.tone = isWrong(stream) ? "bad" : tone;
      title.textContent = stream.name;
      parts.state.className = `state ${tone} ${nameOf(stream)}`;
      parts.state.replaceChildren(make("i", { ariaHidden: "true" }), word);
      parts.meta.replaceChildren(meta(stream, means));
      replace(links, linksOf(stream));
      parts.figures.replaceChildren(...figures(stream, now));
      replace(parts.charts, charts(stream));
      act.update(stream);
      replace(parts.notes, notes(stream, act, now));
      for (const [each, applies] of drawers) {
        each.element.hidden = !applies(stream);
        if (!each.element.hidden) each.update(stream, now);
      }
    },
  };
}

const hasPast = (past) => past && Object.values(past).some((each) => each.length);

function meta(stream, means) {
  const { status, tables } = stream;
  const parts = [means];
  const reached = onlySource(stream)?.n;
  if (reached) parts.push(`batch ${number(reached)}`);
  if (tables?.account?.generation) parts.push(`generation ${number(tables.account.generation)}`);
  for (const load of tables?.past?.loads ?? []) {
    if (["reading", "folding"].includes(load.state)) parts.push(`loading history: ${read(load)}`);
  }
  if (status?.restarts) parts.push(`restarted ${plural(status.restarts, "time", "times")} after a failure`);
  return parts.join(" · ");
}

function linksOf(stream) {
  const dag = `dags/${encodeURIComponent(stream.dag_id)}`;
  return [
    place(make("a", { title: stream.dag_id }, "DAG"), dag),
    place(make("a", { title: stream.task_id }, "Task"), `${dag}/tasks/${encodeURIComponent(stream.task_id)}`),
    ...(stream.tables?.has_rules ? [place(make("a", { title: "Rules and their results" }, "Quality"), quality(stream))] : []),
  ];
}

function quality({ dag_id, task_id, map_index }) {
  const where = [dag_id, task_id].map(encodeURIComponent).join("/");
  return `headgate/api/streams/${where}/quality?map_index=${map_index}`;
}

function notes(stream, act, now) {
  const { status, tables, age } = stream;
  const found = [];
  const say = (tone, ...text) => found.push(make("p", { class: `note ${tone}` }, ...text));
  if (status?.failure) say("bad", ...failure(stream));
  for (const [why, parts] of unread(stream)) say("bad", parts.length ? `${parts.join(", ")}: ${why}` : why);
  if (status?.trouble) say("bad", status.trouble);
  for (const text of failures(stream)) say("bad", ...text);
  const paused = pauseOf(stream, now);
  if (paused) say("warn", ...paused, ...(status.is_alive ? [" ", act.another("stop")] : []));
  if (status?.paused && ["running", "waiting"].includes(status.condition)) say("warn", "It is asked to pause: it reads no new data after its current batch.");
  for (const notice of tables?.notices ?? []) say("bad", make("strong", {}, notice.says), ...remedy(notice));
  for (const hold of tables?.held ?? []) {
    const what = make("strong", {}, `${hold.table} is held at batch ${number(hold.n)} since ${moment(hold.since)}`);
    say("bad", what, ` because a later version breaks its rules. ${hold.rules.join("; ")} `, act.another("release"), ...(hold.is_rejectable ? [" ", act.another("reject")] : []));
  }
  for (const load of tables?.past?.loads ?? []) {
    if (load.state === "stopped") say("bad", `Load ${load.id} is stopped: ${load.why}`);
  }
  for (const law of tables?.account?.differences ?? []) say("bad", `Ledger: ${law}`);
  if (age > OLD) say("warn", `As of ${span(Math.round(age / 5) * 5)} ago. Its tables cannot be read now.`);
  return found;
}

/** Why it failed, what to type, and what to press after that. */
function failure({ status, control }) {
  const start = status.condition === "failed" && control.may_act ? ["Then press Start."] : [];
  return [make("strong", {}, status.failure.reason), ...remedy(status.failure), ...start];
}

function charts({ tables }) {
  const found = Object.entries(tables?.history ?? {});
  return found.flatMap(([source, batches]) => chartsOf(tables, source, batches, found.length > 1 ? `${source}: ` : ""));
}

function chartsOf(tables, source, batches, of) {
  if (batches.length < 2) return [];
  const say = ({ n, committed }, what) => `batch ${number(n)}, ${moment(committed)}: ${what}`;
  const bars = (of, value, what) =>
    of.map((batch) => {
      const time = Date.parse(batch.committed);
      return { value: value(batch), time, title: say(batch, what(batch)) };
    });
  const rows = (value) => plural(value, "row", "rows");
  const done = batches.filter((batch) => batch.done !== null);
  const layer = tables.account && !tables.account.gold.some((gold) => gold.source === source) ? "silver" : "gold";
  const label = `${of}${of ? "time" : "Time"} to ${layer}`;
  const parts = (batch) => `${span(batch.done)} until all ${layer} tables had it, ${span(batch.took)} of it until bronze had it`;
  return [
    chart(`${of}${of ? "rows" : "Rows"} per batch`, bars(batches, (batch) => batch.rows, (batch) => rows(batch.rows)), about),
    ...(done.length < 2 ? [] : [chart(label, bars(done, (batch) => batch.done, parts), span)]),
  ];
}
