// Commits, as the server tells of them.

import { BASE } from "./api.js";

/** Calls `refresh` after each commit to a table for which `concerns(pipeline, path)` holds. While a
    refresh runs, no other begins; the last commit is never missed. */
export function follow(pipelines, concerns, refresh) {
  const query = new URLSearchParams(pipelines.map((each) => ["pipeline", each]));
  const source = new EventSource(`${BASE}/api/events?${query}`);
  const told = {};
  let running = false;
  let again = false;
  const run = async () => {
    if (running) {
      again = true;
      return;
    }
    running = true;
    do {
      again = false;
      await refresh();
    } while (again);
    running = false;
  };
  source.addEventListener("commits", (event) => {
    let matters = false;
    for (const [pipeline, tables] of Object.entries(JSON.parse(event.data))) {
      for (const [path, version] of Object.entries(tables)) {
        const key = `${pipeline}/${path}`;
        matters ||= told[key] !== version && concerns(pipeline, path);
        told[key] = version;
      }
    }
    if (matters) run();
  });
  const live = document.getElementById("live");
  const show = (is) => {
    live.textContent = is ? "live" : "connecting …";
    live.classList.toggle("on", is);
  };
  source.addEventListener("open", () => show(true));
  source.addEventListener("error", () => show(false));
  addEventListener("pagehide", () => source.close());
  return run;
}
