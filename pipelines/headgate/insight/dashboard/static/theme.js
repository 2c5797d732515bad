// Before the first paint: the theme that was chosen, or the system's.
(() => {
  const kept = (() => {
    try {
      return localStorage.getItem("headgate-theme");
    } catch {
      return null;
    }
  })();
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
})();
