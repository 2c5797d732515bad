// Which page this is, and what all pages share.

import { at, BASE } from "./api.js";
import { board } from "./board.js";
import { redrawAll } from "./chart.js";
import { h, note } from "./dom.js";
import { gold } from "./gold.js";
import { ledger } from "./ledger.js";
import { overview } from "./overview.js";
import { late, quarantine, rejected } from "./refused.js";

const PAGES = { gold, late, quarantine, rejected, ledger, board };
const root = document.documentElement;

function theme() {
  const button = document.getElementById("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => root.dataset.theme === "dark";
  const say = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `Switch to the ${isDark() ? "light" : "dark"} theme`);
  };
  button.addEventListener("click", () => {
    root.dataset.theme = root.dataset.chosen = isDark() ? "light" : "dark";
    try {
      localStorage.setItem("headgate-theme", root.dataset.theme);
    } catch {
      // The choice lasts as long as the page.
    }
    say();
    redrawAll();
  });
  dark.addEventListener("change", () => (say(), redrawAll()));
  say();
}

function places(parts) {
  const [kind, pipeline, table] = parts;
  const found = [];
  if (kind === "board") found.push(h("span", {}, "dashboard"), h("span", {}, pipeline));
  else if (kind) found.push(h("a", { href: at() }, pipeline), h("span", {}, kind === "gold" ? table : table ? `${kind} ${table}` : kind));
  document.getElementById("places").replaceChildren(...found);
  document.title = kind ? `${[table ?? pipeline, kind === "gold" ? "" : kind].filter(Boolean).join(" · ")} · Headgate` : "Headgate";
}

function extras() {
  const { login, homeTitle, homeAddress } = root.dataset;
  document.getElementById("leave").hidden = login !== "yes";
  const home = document.getElementById("home");
  if (homeTitle) {
    home.textContent = homeTitle;
    home.href = homeAddress;
    home.hidden = false;
  }
}

async function start() {
  const parts = location.pathname.slice(BASE.length).split("/").filter(Boolean).map(decodeURIComponent);
  const main = document.getElementById("main");
  theme();
  extras();
  places(parts);
  try {
    const [kind, ...names] = parts;
    await (kind ? PAGES[kind](main, ...names) : overview(main));
  } catch (error) {
    main.replaceChildren(note("bad", error.message));
    throw error;
  }
  root.dataset.ready = "yes";
}

start();
