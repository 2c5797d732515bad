// Airflow shows this page in a frame of the same origin, which may neither navigate the window nor
// open another one. So links are followed by the outer document, and its theme is ours.

const outer = (() => {
  try {
    return window.parent !== window && window.parent.document ? window.parent : null;
  } catch {
    return null; // framed by a page of another origin
  }
})();

const dark = window.matchMedia("(prefers-color-scheme: dark)");

function isDark() {
  const marks = outer ? outer.document.documentElement.classList : null;
  if (marks && (marks.contains("dark") || marks.contains("light"))) return marks.contains("dark");
  return dark.matches;
}

export function followTheme() {
  const root = document.documentElement;
  const apply = () => {
    root.classList.toggle("dark", isDark());
    root.classList.toggle("framed", outer !== null);
  };
  apply();
  dark.addEventListener("change", apply);
  if (outer) {
    const marks = { attributes: true, attributeFilter: ["class"] };
    new MutationObserver(apply).observe(outer.document.documentElement, marks);
  }
}

/** Where Airflow is: it may have a path of its own behind a proxy. */
export const airflow = new URL("..", window.location.href).href;

/** A link to a place in Airflow, such as `dags/shop__stream`. */
export function place(link, path) {
  link.href = airflow + path;
  link.onclick = (event) => {
    if (!outer) return;
    event.preventDefault();
    const there = outer.document.createElement("a");
    there.href = link.href;
    if (event.ctrlKey || event.metaKey || event.shiftKey) there.target = "_blank";
    there.click();
  };
  return link;
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // not over https: the text is there to be selected
  }
}
