// Draws the charts of a report from the data within its page.
(() => {
  "use strict";
  if (matchMedia("(max-width: 1179px)").matches) document.querySelector(".side details").open = false;
  for (const spec of JSON.parse(document.getElementById("charts").textContent)) {
    lockstepChart(document.querySelector(`[data-chart="${CSS.escape(spec.id)}"]`), spec);
  }
})();
