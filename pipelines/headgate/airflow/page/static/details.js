// The details of a card.

import { make, replace, table } from "./elements.js";
import { copy } from "./shell.js";
import { ago, clock, moment, number, share, span } from "./format.js";

/** A `<details>` whose content follows each answer, but only while it is open. */
export function drawer(title, content, load) {
  const body = make("div", { class: "drawer" });
  const shown = make("details", {}, make("summary", {}, title), body);
  let last = null;
  const show = () => shown.open && last && replace(body, content(...last));
  shown.addEventListener("toggle", () => {
    show();
    if (shown.open && last && load) load(...last);
  });
  return {
    element: shown,
    update(...values) {
      last = values;
      show();
    },
  };
}

export function goldTables(stream, now) {
  const changed = (time) => (time ? ago(time, now) : "–");
  const several = Object.keys(stream.tables.account.n).length > 1;
  const rows = stream.tables.account.gold.map((gold) => [
    gold.table,
    ...(several ? [gold.source] : []),
    gold.final ? clock(gold.final, now) : "–",
    changed(stream.tables.freshness?.gold[gold.table]),
    number(gold.rows),
    `${number(gold.late)} of ${number(gold.pairs)} (${share(gold.late, gold.pairs) || "0 %"})`,
    number(gold.lag),
  ]);
  const headers = ["gold table", ...(several ? ["source"] : []), "final up to", "changed", "rows", "late pairs", "batches behind"];
  return [table(headers, rows, headers.map((_, at) => at).slice(-3))];
}

/** Loads of history, replays of late rows, and backfills. */
export function past(stream) {
  const { loads, replays, backfills } = stream.tables.past;
  const shown = [];
  if (loads.length) {
    const rows = loads.map((load) => [load.id, load.what, load.why ? `${load.state}: ${load.why}` : load.state, read(load), number(load.rows)]);
    shown.push(table(["load of history", "what", "state", "read", "records"], rows, [3, 4]));
  }
  if (replays.length) {
    const rows = replays.map((replay) => [number(replay.number), replay.table, number(replay.n), replay.by]);
    shown.push(table(["replay of late rows", "gold table", "after batch", "requested by"], rows, [0, 2]));
  }
  if (backfills.length) {
    const rows = backfills.map((each) => [each.id, each.computed_by, comparison(each), each.by_end ? "by their end" : "whole", moment(each.begin), each.end ? moment(each.end) : "all that is final"]);
    shown.push(table(["backfill", "computed by", "compared with gold", "windows", "from", "to"], rows));
  }
  return shown;
}

export const read = (load) => `${number(load.read)} of ${number(load.total)} ${load.unit}`;

function comparison(backfill) {
  const { differing, published, empty } = backfill;
  if (empty) return "no final window";
  if (!differing.length) return "equal";
  const tables = differing.join(", ");
  if (backfill.taken_back) return `${tables} differed: published, and taken back by a restore`;
  return `${tables} ${published ? "differed: published" : "differs: not published"}`;
}

export function partitions(stream, now) {
  const sources = Object.entries(stream.status.sources);
  const of = (source) => (sources.length > 1 ? `${source}: ` : "");
  const found = sources.flatMap(([source, { backlog }]) => Object.entries(backlog?.partitions ?? {}).map(([name, behind]) => [`${of(source)}${name}`, behind]));
  found.sort(([, one], [, other]) => other.records - one.records || other.seconds - one.seconds);
  const rows = found.map(([name, behind]) => [
    name,
    number(behind.records),
    span(behind.seconds),
    behind.idle ? "idle" : behind.clock ? clock(behind.clock, now) : "none yet",
  ]);
  return [table(["partition", "unread", "for", "watermark"], rows, [1, 2])];
}

export function driver(stream, now) {
  const jobs = (stream.status?.jobs ?? []).map((job) => [
    job.job,
    job.state,
    job.process,
    ofSources(job, (each) => number(each.n)),
    ofSources(job, (each) => each.backlog ?? "–"),
    ago(job.renewed, now),
  ]);
  const headers = ["job", "state", "process", "batch", "backlog", "last report"];
  return [
    ...(jobs.length ? [table(headers, jobs, [3])] : []),
    path("declaration", stream.file),
    path("tables under", stream.root),
    ...stream.logs.map((log, index) => path(index ? "Spark's log" : "its log", log)),
  ];
}

/** The value of the only source, or of each with its name. */
function ofSources({ sources }, value) {
  const found = Object.entries(sources);
  if (found.length === 1) return value(found[0][1]);
  return found.map(([name, source]) => `${name} ${value(source)}`).join(", ") || "–";
}

function path(what, where) {
  const button = copies(where, `the path of ${what}`);
  return make("p", { class: "path" }, make("span", { class: "faint" }, what), make("code", {}, where), button);
}

function copies(text, what) {
  const button = make("button", { type: "button", class: "small" }, "Copy");
  button.setAttribute("aria-label", `Copy ${what}`);
  button.addEventListener("click", async () => {
    button.textContent = (await copy(text)) ? "Copied" : "Select it";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  return button;
}

/** What to do, line by line; the commands in it can be copied. */
export function remedy({ remedy: text, commands = [] }) {
  return text.split("\n").map((line) => make("span", { class: "command" }, ...typed(line, commands)));
}

function typed(line, commands) {
  const command = commands.find((each) => line.includes(each));
  if (!command) return [line];
  const start = line.indexOf(command);
  const [before, after] = [line.slice(0, start), line.slice(start + command.length)];
  const button = copies(command, "the command");
  return [...typed(before, commands), make("code", {}, command), " ", button, ...typed(after, commands)];
}

/** The driver's last lines: read when it is opened, and again on demand. */
export function lastLines() {
  const lines = make("pre", { tabIndex: 0, ariaLabel: "The driver's last lines" });
  const again = make("button", { type: "button", class: "small" }, "Read again");
  let current = null;
  async function load(stream) {
    current = stream ?? current;
    const where = `${encodeURIComponent(current.dag_id)}/${encodeURIComponent(current.task_id)}`;
    try {
      const answer = await fetch(`api/streams/${where}/log?map_index=${current.map_index}`);
      const content = await answer.json();
      lines.textContent = answer.ok ? content.lines.join("\n") || "The log is empty." : content.detail;
    } catch {
      lines.textContent = "Airflow does not answer.";
    }
    lines.scrollTop = lines.scrollHeight;
  }
  again.addEventListener("click", () => load());
  const shown = drawer("Last lines", () => [lines, again], load);
  return shown;
}
