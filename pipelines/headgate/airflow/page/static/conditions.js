// The name, the tone and the meaning of each condition.

import { make } from "./elements.js";
import { ago, since, span } from "./format.js";
import { isAway } from "./sources.js";

const then = (status, now) => (status.since ? ago(status.since, now) : "");
const lasting = (status, now) => (status.since ? `for ${span(since(status.since, now))}` : "");

function waiting(status, now) {
  const sources = Object.values(status.sources);
  if (sources.length && sources.every((each) => each.failure)) return `it waits for a person, ${lasting(status, now)}`;
  return `what it reads from has not answered ${lasting(status, now)}; it keeps trying`;
}

const KNOWN = {
  failed: ["failed", "bad", (l, n) => `exit code ${l.failure?.code}, ${then(l, n)}; it is not restarted until somebody acts`],
  dead: ["dead", "bad", (l, n) => `its process ended or does not respond; last report ${then(l, n)}`],
  stuck: ["stuck", "bad", (l, n) => `it is alive, but has made no progress for ${span(since(l.level ?? l.since, n))}`],
  crashed: ["failed", "bad", (l, n) => `exit code ${l.failure?.code}, ${then(l, n)}`],
  waiting: ["waiting", "bad", waiting],
  unknown: ["unknown", "bad", () => "its state cannot be read"],
  ended: ["ended", "warn", (l, n) => `a signal ended it ${then(l, n)}, and nobody had asked it to stop`],
  absent: ["never ran", "still", () => "it has no tables yet"],
  starting: ["starting", "busy", (l, n) => `it is opening its tables, ${lasting(l, n)}`],
  restoring: ["restoring", "busy", (l, n) => `its tables are being restored from a savepoint, ${lasting(l, n)}`],
  working: ["at work", "busy", (l, n) => `${l.operation}, ${lasting(l, n)}`],
  paused: ["paused", "warn", (l, n) => `it reads no new data, ${lasting(l, n)}`],
  running: ["running", "good", (l, n) => lasting(l, n)],
  finished: ["finished", "good", (l, n) => `it has processed all data, and ended ${then(l, n)}`],
  halted: ["stopped", "still", (l, n) => `a person ended its process or its Airflow ${then(l, n)}`],
  resting: ["stopped", "still", (l, n) => `it was asked to stop, and ended ${then(l, n)}`],
};
/** A condition that is not known here is shown by its name, and comes first. */
const known = (name) => KNOWN[name] ?? [name, "warn", lasting];
const ORDER = Object.keys(KNOWN);
const WRONG = ORDER.indexOf("unknown");

const ENDS = { failed: "crashed", finished: "finished", stopped: "halted" };

export function nameOf({ status }) {
  if (!status) return "unknown";
  if (status.condition === "starting" && status.operation) return status.operation === "restore" ? "restoring" : "working";
  return (status.condition === "ended" && ENDS[status.ended]) || status.condition;
}

export function condition(stream, now) {
  const [word, tone, means] = known(nameOf(stream));
  return { word, tone, means: means(stream.status, now) };
}

/** Whether something is wrong that the state does not show. */
export const isWrong = ({ error, status, tables }) =>
  error !== null || isAway({ status }) || tables?.held?.length > 0 || tables?.notices?.length > 0 || tables?.account?.differences.length > 0 || Object.keys(tables?.problems ?? {}).length > 0;

const need = (stream) => (isWrong(stream) ? Math.min(ORDER.indexOf(nameOf(stream)), WRONG) : ORDER.indexOf(nameOf(stream)));

/** The streams that need a person come first. Then they are sorted by name. */
export function byNeed(one, other) {
  return need(one) - need(other) || one.name.localeCompare(other.name) || one.dag_id.localeCompare(other.dag_id);
}

/** The number of streams in each state, as elements. */
export function counted(streams) {
  const words = new Map([...ORDER, ...streams.map(nameOf)].map(known).map(([word, tone]) => [word, tone]));
  const count = (word) => streams.filter((stream) => known(nameOf(stream))[0] === word).length;
  return [...words].filter(([word]) => count(word)).map(([word, tone]) => {
    return make("span", { class: `count ${tone}` }, `${count(word)} ${word}`);
  });
}
