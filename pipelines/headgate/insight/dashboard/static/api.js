// Questions to the server.

const root = document.documentElement;
export const BASE = root.dataset.base;

export const joined = (...parts) => parts.map(encodeURIComponent).join("/");
export const at = (...parts) => `${BASE}/${joined(...parts)}`;

/** A question without an answer. `passes` says that the same question may soon have one. */
export class Refused extends Error {
  constructor(message, remedy, passes) {
    super(message);
    Object.assign(this, { remedy, passes });
  }
}

function unanswered(error) {
  if (error.name === "AbortError") throw error;
  throw new Refused("the dashboard does not answer", "see whether it still runs", true);
}

/** The answer of an address under `api`. Raises Refused, or AbortError if `signal` says so. */
export async function ask(address, query = "", signal = undefined) {
  const answer = await fetch(`${BASE}/api/${address}${query ? `?${query}` : ""}`, { signal, credentials: "same-origin" }).catch(unanswered);
  if (answer.status === 401) {
    // Without a login of its own, it is Airflow's, which has a page above this one, or a proxy's.
    const remedy = root.dataset.homeTitle ? "log in to Airflow again" : "load this page again to log in";
    if (root.dataset.login !== "yes") throw new Refused("the session has ended", remedy, true);
    location.reload(); // the server leads to the login
    return new Promise(() => {});
  }
  const said = await answer.json().catch((error) => (answer.ok ? unanswered(error) : null)); // it may break off
  if (answer.ok) return said;
  throw new Refused(said?.error?.message ?? `the server answered ${answer.status}`, said?.error?.remedy ?? "", answer.status >= 500);
}
