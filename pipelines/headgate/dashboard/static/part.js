// A part of a page whose content is asked for again and again.

import { h, note } from "./dom.js";

export class Part {
  constructor() {
    this.trouble = h("div", {});
  }

  /** Calls `fill` with a signal for its questions; a call ends the one before it, so an older answer
      never replaces a newer one. An error is shown in `trouble`. */
  async fill(fill) {
    this.asked?.abort();
    const asked = (this.asked = new AbortController());
    try {
      await fill(asked.signal);
      if (!asked.signal.aborted) this.trouble.replaceChildren();
    } catch (error) {
      if (!asked.signal.aborted) this.trouble.replaceChildren(note("bad", error.message, error.remedy ?? ""));
    }
  }
}
