// A part of a page whose content is asked for again and again.

import { at } from "./api.js";
import { h, note, redraw } from "./dom.js";
import { later } from "./live.js";

/** `shown` is the choice whose answer is there, such as a page of rows; `wanted` the one that is
    asked for. After an error that does not pass, the shown one is wanted again. */
export class Part {
  constructor(choice = {}) {
    this.trouble = h("div", {});
    this.choose(choice);
  }

  choose(choice) {
    this.shown = this.wanted = choice;
  }

  want(change) {
    this.wanted = { ...this.wanted, ...change };
  }

  /** Calls `fill` with a signal for its questions and with `wanted`; a call ends the one before it,
      so an older answer never replaces a newer one. An error is shown in `trouble`; if it may pass,
      the page is refreshed later. */
  async fill(fill) {
    this.asked?.abort();
    const asked = (this.asked = new AbortController());
    const wanted = this.wanted;
    try {
      await fill(asked.signal, wanted);
      if (asked.signal.aborted) return;
      this.shown = wanted;
      redraw(this.trouble, null, () => []);
    } catch (error) {
      if (asked.signal.aborted) return;
      redraw(this.trouble, [error.message, error.remedy], () => [note("bad", error.message, error.remedy ?? "")]);
      if (error.passes) later();
      else this.wanted = this.shown;
    }
  }
}

/** The refresh of a page, which `build` makes and returns once its first question has an answer.
    Until then, it is asked again in a while, and `main` shows the error. */
export function built(main, build) {
  const first = new Part();
  let refresh;
  return async () => {
    if (!refresh) await first.fill(async () => (refresh = await build()));
    if (refresh) return refresh();
    later(); // whatever the error is: a file of a dashboard may be corrected
    if (!first.trouble.isConnected) main.replaceChildren(first.trouble, h("p", {}, h("a", { href: at() }, "All pipelines")));
  };
}
