// The sources of a stream: what its driver reports of each, and how fresh its table is.

import { make, table } from "./elements.js";
import { remedy } from "./details.js";
import { ago, clock, number, since, span } from "./format.js";

/** Each source with its `name`, what the driver reports, and the `fresh` times of its table. */
export function sourcesOf({ status, tables }) {
  const [reported, fresh] = [status?.sources ?? {}, tables?.freshness?.sources ?? {}];
  const names = new Set([...Object.keys(reported), ...Object.keys(fresh)]);
  return [...names].map((name) => ({ name, ...reported[name], fresh: fresh[name] }));
}

/** The only source; an empty one before there is any; null if there are several. */
export function onlySource(stream) {
  const found = sourcesOf(stream);
  return found.length > 1 ? null : (found[0] ?? {});
}

export const isAway = ({ status }) => Boolean(status?.is_alive) && Object.values(status.sources).some((each) => each.outage || each.failure);

/** A row for each source. */
export function sourceTable(stream, now) {
  const rows = sourcesOf(stream).map((source) => {
    const time = source.fresh?.clock ?? source.watermark;
    return [
      source.name,
      state(source, stream.status, now),
      source.n === undefined ? "–" : number(source.n),
      source.backlog?.says ?? "–",
      time ? clock(time, now) : "–",
      source.fresh?.arrived ? ago(source.fresh.arrived, now) : "–",
    ];
  });
  return table(["source", "state", "batch", "backlog", "watermark", "last record"], rows, [2]);
}

function state({ failure, outage }, status, now) {
  const bad = (...text) => make("b", { class: "bad" }, ...text);
  if (!status?.is_alive) return "–";
  if (failure) return bad("failed");
  if (outage) return bad(`waiting for ${span(since(outage, now))}`);
  return "reads";
}

/** What a person has to do about each source that fails. Why it fails is in the trouble of the stream. */
export function failures(stream) {
  const failed = sourcesOf(stream).filter((each) => stream.status?.is_alive && each.failure);
  return failed.map(({ name, failure }) => [make("strong", {}, `The source ${name} waits for a person.`), ...remedy(failure)]);
}
