// Reads and shows the status of all streams every few seconds while the page is visible.

import { byNeed, condition, counted } from "./conditions.js";
import { card } from "./card.js";
import { empty, noStream } from "./empty.js";
import { followTheme, place } from "./shell.js";
import { plural } from "./format.js";

const EVERY = 5000; // milliseconds
const MANY = 8; // streams: a filter is of use

const dag = new URLSearchParams(window.location.search).get("dag_id");
const cards = new Map();
const find = (id) => document.getElementById(id);
let last = [];
let timer = 0;

async function refresh() {
  clearTimeout(timer);
  const query = dag === null ? "" : `?dag_id=${encodeURIComponent(dag)}`;
  let answered = null;
  try {
    const answer = await fetch(`api/streams${query}`);
    if (answer.status === 401) trouble("Your session is over. Load the page again to log in.");
    else if (!answer.ok) trouble(`Airflow answers with an error (${answer.status}). What is shown may be old.`);
    else answered = await answer.json();
  } catch {
    trouble("Airflow does not answer. What is shown may be old.");
  }
  find("waiting").hidden = true;
  if (!document.hidden) timer = setTimeout(refresh, EVERY);
  if (answered === null) return;
  try {
    show(answered.streams, Date.parse(answered.at));
    trouble(null);
  } catch (error) {
    trouble(`This page has a fault: ${error.message}. What is shown may be old.`);
    throw error;
  }
}

function trouble(text) {
  const place = find("trouble");
  place.hidden = text === null;
  if (text !== null && place.textContent !== text) place.textContent = text;
}

const identity = (stream) => `${stream.dag_id}-${stream.task_id}-${stream.map_index}`;

function show(streams, now) {
  last = [...streams].sort(byNeed);
  const there = new Set(last.map(identity));
  for (const [id, each] of cards) {
    if (there.has(id)) continue;
    each.element.remove();
    cards.delete(id);
  }
  last.forEach((stream, index) => {
    const id = identity(stream);
    if (!cards.has(id)) cards.set(id, card(id));
    const shown = cards.get(id);
    shown.update(stream, now);
    // Only cards that changed place are moved, so that the focus stays.
    const before = find("list").children[index];
    if (before !== shown.element) find("list").insertBefore(shown.element, before ?? null);
  });
  const summary = last.length ? [plural(last.length, "stream", "streams"), ...counted(last)] : [];
  find("summary").replaceChildren(...summary);
  find("filter").hidden = last.length <= MANY;
  find("empty").hidden = last.length > 0;
  if (!last.length && !find("empty").hasChildNodes()) find("empty").append(...(dag === null ? empty() : noStream()));
  filter();
}

function filter() {
  const wanted = find("filter").hidden ? "" : find("filter").querySelector("input").value.trim().toLowerCase();
  for (const stream of last) {
    const text = `${stream.name} ${stream.dag_id} ${condition(stream, Date.now()).word}`.toLowerCase();
    cards.get(identity(stream)).element.hidden = !text.includes(wanted);
  }
}

followTheme();
place(find("all"), "plugin/streams");
find("all").hidden = dag === null;
document.body.classList.toggle("of-one", dag !== null);
find("filter").querySelector("input").addEventListener("input", filter);
document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : refresh()));
refresh();
