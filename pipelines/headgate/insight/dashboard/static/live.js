// Commits, as the server tells of them.

import { BASE } from "./api.js";

const AGAIN_AFTER = 3_000; // milliseconds
const AT_MOST = 60_000;

/** To be called after a failure that may pass: the page that is followed is refreshed in a while. */
export let later = () => {};

/** Calls `refresh`, and again after each commit to a table for which `concerns(pipeline, path)` holds,
    when the page is shown again, and after `later`. Without `pipelines`, all are followed. While a
    refresh runs, no other begins; the last commit is never missed. Returns after the first refresh. */
export async function follow(pipelines, concerns, refresh) {
  const query = new URLSearchParams(pipelines.map((each) => ["pipeline", each]));
  let told = {}; // the versions that the page shows
  let running = false;
  let again = false;
  let failed = false;
  let pause = AGAIN_AFTER;
  let source;
  let tries;
  later = () => {
    failed = true;
    told = {}; // so the first event of the next connection refreshes the page
    clearTimeout(tries);
    if (!document.hidden) tries = setTimeout(retry, pause);
  };
  const retry = () => {
    pause = Math.min(2 * pause, AT_MOST);
    run();
  };
  const run = async () => {
    clearTimeout(tries);
    if (source?.readyState === EventSource.CLOSED && !document.hidden) connect();
    if (running) {
      again = true;
      return;
    }
    running = true;
    try {
      do {
        again = failed = false;
        await refresh();
      } while (again);
    } finally {
      running = false;
    }
    if (!failed && source?.readyState === EventSource.OPEN) pause = AGAIN_AFTER;
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
      if (source.readyState === EventSource.CLOSED) later();
      else pause = AGAIN_AFTER; // so whatever the server says once it is back is shown soon
    });
  };
  const leave = () => {
    clearTimeout(tries);
    source?.close();
    show(false);
  };
  await run();
  // A browser has only six connections to a server: a tab that nobody sees needs none.
  document.addEventListener("visibilitychange", () => {
    leave();
    if (document.hidden) return;
    connect();
    run();
  });
  addEventListener("pagehide", leave);
  if (!document.hidden) connect();
  return run;
}
