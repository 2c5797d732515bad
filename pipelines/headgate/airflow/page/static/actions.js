// Buttons. Each triggers a run of the stream's control DAG through Airflow's public API, as the user
// who is logged in; Airflow checks roles and keeps the logs.

import { make } from "./elements.js";
import { airflow, place } from "./shell.js";
import { moment } from "./format.js";

const ALIVE = "alive";
const DOWN = "down";

// Actions whose button is in the note that they belong to, and not in the card's row of buttons.
const OTHERS = [
  [
    "Release…",
    "release",
    null,
    "The run shows the rows under its required actions, and waits for an approval and a reason. Then readers see the held version, although it breaks rules.",
  ],
  [
    "Reject…",
    "reject",
    null,
    "The run shows the rows under its required actions, and waits for an approval and a reason. Then the replay or backfill is given up, and gold stays as readers see it.",
  ],
];

// The label, the control DAG's action, the state in which it is of use, and the text to confirm.
const ACTIONS = [
  ["Start", "start", DOWN],
  ["Savepoint", "savepoint", ALIVE],
  ["Restart", "restart", ALIVE, "The stream ends after its current batch, and starts again from there."],
  ["Stop", "stop", ALIVE, "The stream ends after its current batch. It stays stopped until somebody starts it."],
  [
    "Stop with savepoint",
    "stop with savepoint",
    ALIVE,
    "The stream ends after its current batch, and a savepoint is taken. It stays stopped until somebody starts it.",
  ],
  [
    "Restore…",
    "start from savepoint",
    null,
    "The stream ends after its current batch. The silver, gold, late and quarantine tables go back to the " +
      "savepoint. The records that bronze has read since are then processed again.",
  ],
  [
    "Take over",
    "take over",
    null,
    "A new driver starts. A driver that still runs, here or elsewhere, can commit nothing more.",
  ],
];
const OVER = ["success", "failed"];
const FOLLOW_EVERY = 2000; // milliseconds

const pause = (time) => new Promise((done) => setTimeout(done, time));

export function actions() {
  let stream = null;
  const messages = make("div", { class: "runs", role: "log" });
  const made = ([label, action, , consequence]) => {
    const button = make("button", { type: "button" }, label);
    button.addEventListener("click", async () => {
      if (button.getAttribute("aria-disabled") === "true") return;
      const wanted = await confirmed(stream, label.replace("…", ""), action, consequence);
      if (wanted) follow(stream, wanted, messages);
    });
    return button;
  };
  const buttons = ACTIONS.map((each) => ({ button: made(each), action: each[1], when: each[2] }));
  return {
    element: make("div", { class: "actions" }, ...buttons.map((each) => each.button)),
    messages,
    /** One more button for an action, such as `stop`, as things are now. */
    another(action) {
      const button = made([...ACTIONS, ...OTHERS].find((each) => each[1] === action));
      disable(button, whyNot(stream, action));
      return button;
    },
    update(newest) {
      stream = newest;
      for (const { button, action, when } of buttons) {
        const alive = newest.status?.is_alive;
        // If the state is unknown, every action is offered.
        button.hidden = when !== null && newest.status !== null && (when === ALIVE) !== alive;
        disable(button, whyNot(newest, action));
      }
    },
  };
}

/** Not `disabled`: then neither keyboard nor pointer would reach the reason. */
function disable(button, why) {
  button.setAttribute("aria-disabled", why !== null);
  button.title = why ?? "";
}

export function whyNot(stream, action) {
  const { control, tables } = stream;
  if (control.why_not !== null) return control.why_not;
  if (!control.actions.includes(action)) return `${control.dag_id} does not know this action.`;
  if (action !== "start from savepoint" || tables?.savepoints?.newest.length) return null;
  const unknown = !tables || tables.problems.savepoints !== undefined;
  return unknown ? "Its savepoints cannot be read now." : "It has no savepoint.";
}

/** The batch id, with several sources that of each. */
function batches(n) {
  const found = Object.entries(n);
  return found.map(([source, id]) => (found.length > 1 ? `${id} of ${source}` : id)).join(", ");
}

/** What to ask for, after a person has confirmed it where that is needed; null if they cancel. */
function confirmed(stream, label, action, consequence) {
  if (!consequence) return { action };
  const dialog = document.getElementById("confirm");
  const [choice, select] = [dialog.querySelector("#choice"), dialog.querySelector("select")];
  dialog.querySelector("#question").textContent = `${label} ${stream.name}?`;
  dialog.querySelector("#consequence").textContent = consequence;
  dialog.querySelector(".primary").textContent = label;
  choice.hidden = action !== "start from savepoint";
  select.replaceChildren();
  if (!choice.hidden) {
    for (const { id, created, n, note } of stream.tables.savepoints.newest) {
      const text = `${moment(created)}, batch ${batches(n)}${note ? `: ${note}` : ""}`;
      select.append(make("option", { value: id }, text));
    }
  }
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((decide) => {
    dialog.addEventListener(
      "close",
      () => {
        const savepoint = choice.hidden ? {} : { savepoint: select.value };
        decide(dialog.returnValue === "yes" ? { action, ...savepoint } : null);
      },
      { once: true },
    );
  });
}

/** Requests an action, and says on a line of its own what becomes of it. */
async function follow(stream, conf, messages) {
  const dag = encodeURIComponent(stream.control.dag_id);
  const runs = `${airflow}api/v2/dags/${dag}/dagRuns`;
  const said = make("span");
  const line = make("p", { class: "run" }, said);
  const tell = (tone, text) => {
    line.className = `run ${tone}`;
    said.textContent = `${conf.action}: ${text}`;
  };
  // Actions that are over make room for the next.
  for (const over of messages.querySelectorAll(".good, .bad")) over.remove();
  messages.append(line);
  try {
    tell("", "requested");
    const body = JSON.stringify({ logical_date: null, conf });
    const headers = { "Content-Type": "application/json" };
    let run = await asked(runs, { method: "POST", headers, body });
    const id = encodeURIComponent(run.dag_run_id);
    line.append(" · ", place(make("a", {}, "the run"), `dags/${dag}/runs/${id}`));
    tell("", run.state);
    while (!OVER.includes(run.state)) {
      await pause(FOLLOW_EVERY);
      try {
        run = await asked(`${runs}/${id}`);
        tell("", run.state);
      } catch (error) {
        // The run goes on, whatever keeps the page from reading its state.
        const isLast = error.cause >= 400 && error.cause < 500 && ![408, 429].includes(error.cause);
        tell(isLast ? "bad" : "warn", `its state cannot be read. ${isLast ? error.message : "This is tried again."}`);
        if (isLast) return;
      }
    }
    const done = run.state === "success";
    tell(done ? "good" : "bad", done ? "done" : "it failed; its log says why");
  } catch (error) {
    tell("bad", error.message);
  }
}

async function asked(address, request) {
  let answer;
  try {
    answer = await fetch(address, request);
  } catch {
    throw new Error("Airflow does not answer.");
  }
  const content = await answer.json().catch(() => ({}));
  if (answer.ok) return content;
  if (answer.status === 401) throw new Error("Your session is over: log in again.", { cause: 401 });
  if (answer.status === 403) throw new Error("You may not do that.", { cause: 403 });
  const why = typeof content.detail === "string" ? content.detail : JSON.stringify(content.detail ?? "");
  throw new Error(`Airflow refused (${answer.status}): ${why}`, { cause: answer.status });
}
