// The ledger of a pipeline: where every event is.

import { ask, joined } from "./api.js";
import { h, note, redraw, tiles } from "./dom.js";
import { count } from "./format.js";
import { follow } from "./live.js";
import { Part } from "./part.js";

const SOURCE = ["n", "read", "replayed", "duplicate", "differing", "quarantined", "corrected"];
const SILVER = ["read", "duplicate", "quarantined", "rejected", "silver", "filtered", "lag"];
const EXPLODED = ["read", "duplicate", "quarantined", "empty", "exploded", "items", "rejected", "silver", "filtered", "lag"];
const GOLD = ["pairs", "folded", "late", "replayed", "rows", "final", "lag"];

export function ledger(main, pipeline) {
  const part = new Part();
  const body = h("div", {});
  body.style.display = "contents";
  main.replaceChildren(h("div", { class: "head" }, h("h1", {}, `Ledger of ${pipeline}`)), part.trouble, body);
  const refresh = () =>
    part.fill(async (signal) => {
      const found = await ask(joined("ledger", pipeline), "", signal);
      redraw(body, found, () => content(found));
    });
  return follow([pipeline], () => true, refresh);
}

function verdict(found, aside) {
  if (!found.balanced) return note("bad", "Counts differ:", found.differences.join("\n"));
  if (!aside) return note("good", "Every event is accounted for.");
  return note("bad", `Every event that was read is accounted for. The records of ${count(aside)} ${aside === 1 ? "file" : "files"} set aside are missing.`);
}

function content(found) {
  const sources = found.sources ?? {}; // only if there are several
  const each = Object.keys(sources).length ? Object.values(sources) : [found];
  const unread = each.flatMap((source) => source.files ?? []);
  const gaps = each.flatMap((source) => source.gaps);
  return [
    verdict(found, unread.filter((file) => file.status === "set_aside").length),
    tiles([
      { name: "Read", value: count(found.read), below: found.n === undefined ? "of all sources" : `as of batch ${count(found.n)}` },
      { name: "Duplicates", value: count(found.duplicate), below: `${count(found.differing)} differ from the first copy` },
      { name: "Quarantined", value: count(found.quarantined), below: `${count(found.corrected)} corrected later` },
      { name: "Rejected", value: count(found.rejected) },
      { name: "Replayed", value: count(found.replayed) },
    ]),
    Object.keys(sources).length ? section("Sources", "each has batch ids of its own", SOURCE, sources, "source") : null,
    ...silver(Object.entries(found.silver)),
    section("Gold", "pairs = folded + late", GOLD, found.gold),
    unread.length ? h("section", { class: "card" }, h("h2", {}, "Files that are not read"), h("ul", {}, unread.map((file) => h("li", {}, `${file.path}, ${file.status.replace("_", " ")}: ${file.reason}`)))) : null,
    gaps.length ? h("section", { class: "card" }, h("h2", {}, "Accepted gaps"), h("ul", {}, gaps.map((gap) => h("li", {}, `${gap.topic}, partition ${gap.partition}, from ${count(gap.first)} to ${gap.end === null ? "?" : count(gap.end - 1)}: ${gap.reason}`)))) : null,
  ].filter(Boolean);
}

// A table that explodes an array counts its records and its items.
function silver(tables) {
  const [plain, exploded] = [false, true].map((is) => tables.filter(([, account]) => "items" in account === is));
  const law = "read = duplicate + quarantined + ";
  return [
    plain.length ? section("Silver", `${law}rejected + silver + filtered`, SILVER, Object.fromEntries(plain)) : null,
    exploded.length ? section("Silver, by item", `${law}empty + exploded; items = rejected + silver + filtered`, EXPLODED, Object.fromEntries(exploded)) : null,
  ];
}

function section(title, law, columns, tables, what = "table") {
  const rows = Object.entries(tables).map(([name, account]) => h("tr", {}, h("th", { scope: "row" }, name), columns.map((column) => h("td", { class: "number" }, count(account[column])))));
  return h(
    "section",
    { class: "card" },
    h("header", {}, h("h2", {}, title), h("span", { class: "soft small" }, law)),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title }, h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, what), columns.map((column) => h("th", { scope: "col", class: "number" }, column === "n" ? "batch" : column)))), h("tbody", {}, rows))),
  );
}
