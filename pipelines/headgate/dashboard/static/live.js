// Commits, as the server tells of them.

import { BASE } from "./api.js";

const AGAIN_AFTER = 3_000; // milliseconds

/** Calls `refresh` after each commit to a table for which `concerns(pipeline, path)` holds. While a
    refresh runs, no other begins; the last commit is never missed. */
export function follow(pipelines, concerns, refresh) {
  const query = new URLSearchParams(pipelines.map((each) => ["pipeline", each]));
  const told = {};
  let running = false;
  let again = false;
  const run = async () => {
    if (running) {
      again = true;
      return;
    }
    running = true;
    try {
      do {
        again = false;
        await refresh();
      } while (again);
    } finally {
      running = false;
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
  let source;
  let timer;
  let missed = false; // a refresh while the server was away has failed
  const connect = () => {
    source = new EventSource(`${BASE}/api/events?${query}`);
    source.addEventListener("commits", hear);
    source.addEventListener("open", () => {
      show(true);
      if (missed) run();
      missed = false;
    });
    source.addEventListener("error", () => {
      show(false);
      // A browser connects again by itself, but not after an answer such as 401 or 502. A refresh
      // then leads to the login, or shows what is wrong.
      if (source.readyState === EventSource.CLOSED) {
        missed = true;
        timer = setTimeout(() => (connect(), run()), AGAIN_AFTER);
      }
    });
  };
  connect();
  addEventListener("pagehide", () => (clearTimeout(timer), source.close()));
  return run;
}
