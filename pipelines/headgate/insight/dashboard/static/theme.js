// Before the first paint: the theme that was chosen, or the system's, which is followed.
(() => {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const follow = () => {
    if (!root.dataset.chosen) root.dataset.theme = dark.matches ? "dark" : "light";
  };
  try {
    const kept = localStorage.getItem("headgate-theme");
    if (kept === "light" || kept === "dark") root.dataset.theme = root.dataset.chosen = kept;
  } catch {
    // Nothing is kept.
  }
  follow();
  dark.addEventListener("change", follow);
})();
