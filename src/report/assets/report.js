// Draws the charts of a report from the data within its page, and saves its tables as files.
(() => {
  "use strict";
  if (matchMedia("(max-width: 1179px)").matches) document.querySelector(".side details").open = false;
  for (const spec of JSON.parse(document.getElementById("charts").textContent)) {
    lockstepChart(document.querySelector(`[data-chart="${CSS.escape(spec.id)}"]`), spec);
  }
  const kinds = [["csv", "CSV"], ["md", "Markdown"], ["tex", "LaTeX"]];
  for (const [id, texts] of Object.entries(JSON.parse(document.getElementById("tables-as-text").textContent))) {
    document.querySelector(`[data-table="${CSS.escape(id)}"]`)?.append(...kinds.map(([kind, name]) =>
      lockstepDom.html("button", {type: "button", class: "small", "aria-label": `Save as ${name}`, onclick: () =>
        lockstepSave.saveFile(`${id}.${kind}`, new Blob([texts[kind]], {type: "text/plain;charset=utf-8"}))}, name)));
  }
})();
