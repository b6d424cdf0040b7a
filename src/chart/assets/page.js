// The theme of a page: the system's, until the button with id "theme" chooses another. Menus close on a click elsewhere.
(() => {
  "use strict";
  const root = document.documentElement;
  const remember = (theme) => { try { localStorage.setItem("lockstep-theme", theme); } catch { /* a page without storage */ } };
  const recall = () => { try { return localStorage.getItem("lockstep-theme"); } catch { return null; } };
  const dark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const saved = recall();
  if (saved === "dark" || saved === "light") root.dataset.theme = saved;
  document.addEventListener("click", (event) => {
    if (!event.target.closest?.("#theme")) return;
    root.dataset.theme = dark() ? "light" : "dark";
    remember(root.dataset.theme);
  });
  document.addEventListener("pointerdown", (event) => {
    for (const menu of document.querySelectorAll("details.menu[open], details.chart-look[open]")) if (!menu.contains(event.target)) menu.open = false;
  });
})();
