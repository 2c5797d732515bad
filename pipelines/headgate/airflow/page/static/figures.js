// The numbers of a card.

import { make } from "./elements.js";
import { onlySource, sourceTable } from "./sources.js";
import { about, ago, bytes, clock, moment, number, plural, share, since, span } from "./format.js";

const ONE = { files: "file", records: "record", batches: "batch" };

function figure(label, value, more, tone, title) {
  return make(
    "div",
    { class: tone ? `figure ${tone}` : "figure", title },
    make("dt", {}, label),
    make("dd", {}, make("b", {}, value), more ? make("small", {}, more) : null),
  );
}

/** Figures about the run, then figures about what became of its events. */
export function figures(stream, now) {
  const { tables } = stream;
  const account = tables?.account;
  // A stream that never ran has no figures.
  const status = stream.status?.jobs.length ? stream.status : null;
  const [found, events] = [[], []];
  const only = onlySource(stream);
  const changed = gold(tables?.freshness, only, now);
  if (status) found.push(speed(status), ...(only ? [backlog(only, status), changed, watermark(only, now)] : [changed]));
  const saved = tables?.savepoints ? [savepoints(tables.savepoints, now)] : [];
  if (status) found.push(...saved.splice(0));
  if (account) {
    events.push(
      figure("Read", about(account.read), "events", null, number(account.read)),
      outcome("Duplicates", account.duplicate, account.read, "read", "events"),
      outcome("Quarantined", account.quarantined, account.read, "read", "events"),
      outcome("Rejected", account.rejected, account.silver_read, "read", "records that silver tables have read"),
      outcome("Late", account.late, account.pairs, "pairs", "pairs of a silver row and a window"),
      ledger(account),
    );
  }
  const group = (figures) => (figures.length ? [make("dl", { class: "figures" }, ...figures)] : []);
  return [...group([...found, ...saved]), ...(only ? [] : [sourceTable(stream, now)]), ...group(events)];
}

function speed(status) {
  if (!status.seconds || status.rows === null) return figure("Rows/s", "–", "no batch yet");
  const amount = `${about(status.rows)} in ${span(status.seconds)}`;
  return figure("Rows/s", about(status.rows / status.seconds), amount, null, `the last batch: ${amount}`);
}

function backlog({ backlog: behind }, { is_alive: alive, condition }) {
  if (!behind) return figure("Backlog", "–", "unknown");
  const level = condition === "waiting" ? "before the outage" : "up to date";
  if (!behind.count) return figure("Backlog", "none", alive ? level : "when it ended");
  const unit = behind.count === 1 ? ONE[behind.unit] : behind.unit;
  const size = behind.size ? `, ${bytes(behind.size)}` : "";
  const oldest = behind.seconds ? `, ${span(behind.seconds)}` : size;
  return figure("Backlog", about(behind.count), `${unit}${oldest}`, null, behind.says);
}

/** From the times of commits, so that a restart of the driver makes nothing look newer. */
function gold(fresh, only, now) {
  const arrived = only?.fresh?.arrived;
  const record = arrived ? `last record ${ago(arrived, now)}` : only && "last record unknown";
  if (!fresh?.changed) return figure("Gold changed", "–", record);
  return figure("Gold changed", ago(fresh.changed, now), record, null, moment(fresh.changed));
}

function watermark({ backlog: unread, fresh, watermark: reported }, now) {
  const held = unread?.holding;
  const time = fresh?.clock ?? reported;
  if (!time) return figure("Watermark", "–", held ? `waits for ${held}` : "no event yet");
  const behind = since(time, now);
  const lag = behind < 0 ? `${span(-behind)} ahead` : `${span(behind)} behind`;
  return figure("Watermark", clock(time, now), lag, null, moment(time));
}

/** A part of a whole: the percentage, and what it is a percentage of, in one unit. */
function outcome(label, count, of, short, unit) {
  const part = share(count, of) || "0 %";
  return figure(label, about(count), `${part} of ${about(of)} ${short}`, null, `${number(count)} of ${number(of)} ${unit}: ${part}`);
}

function ledger(account) {
  const wrong = account.differences.length;
  if (wrong) return figure("Ledger", "✗ differs", plural(wrong, "check fails", "checks fail"), "bad");
  const gaps = account.gaps ? `, ${plural(account.gaps, "gap", "gaps")} accepted` : "";
  const aside = account.set_aside;
  if (aside) return figure("Ledger", `${plural(aside, "file", "files")} missing`, `the rest balances${gaps}`, "warn");
  const reached = Object.values(account.n);
  const where = reached.length > 1 ? "of all sources" : `to batch ${number(reached[0])}`;
  return figure("Ledger", "✓ balances", `${where}${gaps}`, "good");
}

function savepoints({ number: count, damaged, newest }, now) {
  const broken = damaged ? `, ${number(damaged)} damaged` : "";
  if (!newest.length) return figure("Savepoints", number(count), damaged ? "all damaged" : "none taken", damaged ? "bad" : null);
  const [last] = newest;
  const age = `last ${ago(last.created, now)}${broken}`;
  return figure("Savepoints", number(count), age, damaged ? "bad" : null, last.id);
}
