// What a person has to know about a stream, beside its condition.

import { nameOf } from "./conditions.js";
import { make } from "./elements.js";
import { place } from "./shell.js";
import { clock } from "./format.js";

/** Why the DAG is paused, what that means for the stream, and how to go on; null if that is of no importance. */
export function pauseOf(stream, now) {
  const { pause, status } = stream;
  if (!pause || !status || (!status.is_alive && ["resting", "finished"].includes(nameOf(stream)))) return null;
  const at = pause.at && `at ${clock(pause.at, now)}`;
  const runs = place(make("a", {}, "the last run"), `dags/${encodeURIComponent(stream.dag_id)}/runs`);
  const why = {
    airflow: () => [`Airflow has paused its DAG ${at}, after ${pause.failed_runs} failed runs in a row: see `, runs, ". "],
    person: () => [`${pause.who ?? "A person"} has paused its DAG ${at}. `],
  }[pause.by]?.() ?? ["Its DAG is paused. "];
  const means = status.is_alive ? "The stream continues, but it is not restarted if it fails. " : "The stream is not started. ";
  const start = !status.is_alive && stream.control.may_act ? ", or press Start" : "";
  const cause = pause.by === "airflow" ? "Remove the cause, then switch the DAG on" : "Switch the DAG on";
  return [...why, means, `${cause}${start}.`];
}

/** What cannot be read: each reason once, with the parts that it concerns, and without the reason of the failure. */
export function unread({ status, tables, error }) {
  const { reason = "", remedy = "" } = status?.failure ?? {};
  const said = new Set(`${reason}\n${remedy}`.split("\n"));
  const found = new Map(error ? [[error, []]] : []);
  for (const [part, why] of Object.entries(tables?.problems ?? {})) {
    if (why !== error) found.set(why, [...(found.get(why) ?? []), part]);
  }
  return [...found].filter(([why]) => !why.split("\n").every((line) => said.has(line)));
}
