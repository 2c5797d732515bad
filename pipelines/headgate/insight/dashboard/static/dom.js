// Elements. Text is only ever text: no function here parses markup.

/** An element with attributes; `on…` are listeners, null and false leave an attribute out. */
export function h(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== null && value !== false && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((each) => each !== null && each !== undefined));
  return made;
}

export function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const drawn = new WeakMap(); // what an element shows, as text
const focusable = (place) => [...place.querySelectorAll("a[href], button, input, select, summary, [tabindex]")];
const nameOf = (each) =>
  JSON.stringify([each.closest("tr")?.dataset.name, each.closest("td")?.cellIndex, each.getAttribute("href") ?? each.getAttribute("aria-label") ?? each.title + each.textContent]);

/** Fills `place` with the elements that `make` returns for an answer. Does nothing if it shows this
    answer already. What is open stays open, and the focus stays. */
export function redraw(place, answer, make) {
  const text = JSON.stringify(answer);
  if (drawn.get(place) === text) return;
  const open = new Set([...place.querySelectorAll("details[open]")].map(nameOf));
  const at = focusable(place).indexOf(document.activeElement);
  const was = at < 0 ? null : nameOf(document.activeElement);
  place.replaceChildren(...make());
  drawn.set(place, text);
  for (const each of place.querySelectorAll("details")) each.open = open.has(nameOf(each));
  if (at < 0) return;
  const found = focusable(place);
  const same = [found[at], ...found].find((each) => each && nameOf(each) === was) ?? found[at] ?? found.at(-1);
  same?.focus({ preventScroll: true });
}

export function card(title, ...content) {
  return h("section", { class: "card" }, h("header", {}, h("h2", {}, title)), ...content);
}

export function note(tone, message, remedy = "") {
  const role = tone === "bad" ? "alert" : "status";
  return h("p", { class: `note ${tone}`, role }, message, remedy ? h("span", { class: "soft" }, remedy) : null);
}

export function tiles(entries) {
  return h(
    "dl",
    { class: "tiles" },
    entries.filter(Boolean).map(({ name, value, below, tone }) =>
      h("div", { class: "tile" }, h("dt", {}, name), h("dd", { class: tone ?? null }, value, below ? h("span", { class: "small" }, below) : null)),
    ),
  );
}

export function field(label, control) {
  return h("label", {}, label, control);
}

export function select(options, chosen, onchange) {
  return h(
    "select",
    { onchange: (event) => onchange(event.target.value) },
    options.map(([value, text]) => h("option", { value, selected: String(value) === String(chosen) }, text)),
  );
}
