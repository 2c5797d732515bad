// Questions to the server.

const root = document.documentElement;
export const BASE = root.dataset.base;

export const at = (...parts) => `${BASE}/${parts.map(encodeURIComponent).join("/")}`;

export class Refused extends Error {
  constructor(message, remedy) {
    super(message);
    this.remedy = remedy;
  }
}

/** The answer of an address under `api`. Raises Refused, or AbortError if `signal` says so. */
export async function ask(address, query = "", signal = undefined) {
  const answer = await fetch(`${BASE}/api/${address}${query ? `?${query}` : ""}`, { signal, credentials: "same-origin" });
  if (answer.status === 401) {
    location.reload(); // the session has ended: the server leads to the login
    return new Promise(() => {});
  }
  const said = await answer.json().catch(() => null);
  if (answer.ok && said) return said;
  throw new Refused(said?.error?.message ?? `the server answered ${answer.status}`, said?.error?.remedy ?? "");
}
