// Commits, as the server tells of them.

import { BASE } from "./api.js";

const AGAIN_AFTER = 3_000; // milliseconds

/** Calls `refresh`, and again after each commit to a table for which `concerns(pipeline, path)` holds,
    or in a while if it returned false. Without `pipelines`, all are followed. While a refresh runs,
    no other begins; the last commit is never missed. Returns after the first refresh. */
export async function follow(pipelines, concerns, refresh) {
  const query = new URLSearchParams(pipelines.map((each) => ["pipeline", each]));
  let told = {}; // the versions that the page shows
  let running = false;
  let again = false;
  let source;
  let connects;
  let tries;
  const run = async () => {
    if (running) {
      again = true;
      return;
    }
    running = true;
    clearTimeout(tries);
    let isDone;
    try {
      do {
        again = false;
        isDone = await refresh();
      } while (again);
    } finally {
      running = false;
    }
    if (isDone === false) {
      told = {};
      tries = setTimeout(run, AGAIN_AFTER);
    }
  };
  const hear = (event) => {
    let matters = false;
    for (const [pipeline, tables] of Object.entries(JSON.parse(event.data))) {
      for (const [path, version] of Object.entries(tables)) {
        const key = `${pipeline}/${path}`;
        matters ||= told[key] !== version && concerns(pipeline, path);
        told[key] = version;
      }
    }
    if (matters) run();
  };
  const live = document.getElementById("live");
  const show = (is) => {
    live.textContent = is ? "live" : "connecting …";
    live.classList.toggle("on", is);
  };
  const connect = () => {
    source = new EventSource(`${BASE}/api/events?${query}`);
    source.addEventListener("commits", hear);
    source.addEventListener("open", () => show(true));
    source.addEventListener("error", () => {
      show(false);
      // A browser connects again by itself, but not after an answer such as 401 or 502. A refresh
      // then leads to the login, or shows what is wrong.
      if (source.readyState === EventSource.CLOSED) {
        told = {}; // so the first event of the next connection refreshes the page
        connects = setTimeout(() => (connect(), run()), AGAIN_AFTER);
      }
    });
  };
  const leave = () => {
    clearTimeout(connects);
    clearTimeout(tries);
    source?.close();
    show(false);
  };
  await run();
  // A browser has only six connections to a server: a tab that nobody sees needs none.
  document.addEventListener("visibilitychange", () => (leave(), document.hidden || connect()));
  addEventListener("pagehide", leave);
  if (!document.hidden) connect();
  return run;
}
