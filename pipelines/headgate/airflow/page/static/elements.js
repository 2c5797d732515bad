// Elements from plain values. Names and texts come from files and events: they are only ever text.

export function make(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") made.className = value;
    else if (name in made) made[name] = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

const marks = new WeakMap(); // what each element showed when it was put in its place

/** Replaces only elements that changed, so that a focus, a selection and a tooltip stay. */
export function replace(place, content) {
  content.forEach((made, index) => {
    const [there, mark] = [place.children[index], made.outerHTML];
    if (there === made || marks.get(there) === mark) return;
    const scrolls = there?.className === "scroll" && made.className === "scroll";
    if (scrolls) there.replaceChildren(...made.children); // so that its position stays
    else if (there) there.replaceWith(made);
    else place.append(made);
    marks.set(scrolls ? there : made, mark);
  });
  while (place.children.length > content.length) place.lastElementChild.remove();
}

/** Rows of text as a table; columns of numbers are right-aligned where `numbers` says so. */
export function table(headers, rows, numbers = []) {
  const side = (index) => (numbers.includes(index) ? "number" : null);
  const head = make("tr", {}, ...headers.map((h, i) => make("th", { scope: "col", class: side(i) }, h)));
  const body = rows.map((row) =>
    make("tr", {}, ...row.map((value, i) => make("td", { class: side(i) }, value))),
  );
  return make("div", { class: "scroll" }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...body)));
}
