// Several runs side by side: overlaid curves, results, and the settings that differ.
import {choice, compareLink, el, emptyState, get, keep, kMostCompared, notice, runBadge, runLink} from "./dom.js";
import * as format from "./format.js";
import {LiveCharts} from "./live_charts.js";
import {kOver} from "./run_view.js";

// [title, value, text, better: 1 more, -1 less, 0 neither]
const kResults = [
  ["Accuracy", (run) => run.results.accuracy, format.share, 1], ["Best accuracy", (run) => run.results.best_accuracy, format.share, 1],
  ["Loss", (run) => run.results.loss, format.loss, -1], ["Training loss", (run) => run.results.train_loss, format.loss, -1],
  ["Time", (run) => run.results.seconds, format.seconds, -1], ["Steps", (run) => run.results.steps, format.count, 0],
  ["Examples/s", (run) => run.results.examples_per_second, format.rate, 1], ["Time of a step", (run) => run.results.seconds_per_step, format.seconds, -1],
  ["Workers", (run) => run.workers, format.count, 0],
];

function heading(runs) {
  return el("thead", {}, el("tr", {}, el("th", {scope: "col"}, ""), runs.map((run) => el("th", {scope: "col"}, el("a", {href: runLink(run.id)}, run.name)))));
}

function resultsTable(runs) {
  const row = ([title, value, text, better]) => {
    const values = runs.map(value);
    const sorted = values.filter(format.known).sort((a, b) => better * (b - a));
    const best = better && sorted.length > 1 && sorted[0] !== sorted.at(-1) ? sorted[0] : null;
    return el("tr", {}, el("th", {scope: "row", class: "text"}, title), values.map((one) =>
      el("td", {class: best !== null && one === best ? "best" : ""}, text(one))));
  };
  return el("div", {class: "card flush"}, el("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "Results"},
    el("table", {class: "data", "aria-label": "Results"}, heading(runs), el("tbody", {},
      el("tr", {}, el("th", {scope: "row", class: "text"}, "State"), runs.map((run) => el("td", {}, runBadge(run)))),
      kResults.filter(([, value]) => runs.some((run) => format.known(value(run)))).map(row)))));
}

function settingsTable({runs, settings}) {
  if (runs.length < 2) return el("p", {class: "soft"}, "Choose another run to see what differs.");
  if (settings.length === 0) return el("p", {class: "soft"}, "The runs have the same settings.");
  return el("div", {class: "card flush"}, el("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "Settings that differ"},
    el("table", {class: "data", "aria-label": "Settings that differ"}, heading(runs), el("tbody", {},
      settings.map((row) => el("tr", {"data-setting": row.name}, el("th", {scope: "row", class: "text"}, el("code", {}, row.name)),
        row.values.map((value) => el("td", {}, value === "" ? "–" : el("code", {}, value)))))))));
}

export function compareView(place, route) {
  const ids = route.id.split(",").filter((id) => id).map(decodeURIComponent);
  let over = kOver.some(([value]) => value === route.query.get("over")) ? route.query.get("over") : "step";
  const chips = el("div", {class: "toolbar chips"});
  const missing = el("div");
  const results = el("div");
  const settings = el("div");
  const curves = el("div", {class: "cards curves"});
  const charts = new LiveCharts();
  const add = el("select", {"aria-label": "Add a run", onfocus: () => loadOthers().catch(() => {}), onchange: () => { if (add.value) location.hash = compareLink([...ids, add.value]); }});
  const pick = choice("Curves over", kOver, over, (value) => {
    over = value;
    route.change(new URLSearchParams(over === "step" ? "" : {over}));
    charts.clear();
    load();
  });
  const parts = [];
  place.append(el("p", {class: "crumbs"}, el("a", {href: "#/runs"}, "All runs")), el("h1", {}, "Compare"), chips, missing);
  if (ids.length === 0) place.append(emptyState("No runs chosen", "Tick runs in the list of runs to compare them."));
  else parts.push(el("section", {class: "tight"}, el("div", {class: "toolbar spread"}, el("h2", {}, "Curves"), pick), curves),
    el("section", {}, el("h2", {}, "Results"), results), el("section", {}, el("h2", {}, "Settings that differ"), settings));
  place.append(...parts);
  chips.append(...ids.map((id) => el("span", {class: "chip"}, el("a", {href: runLink(id)}, id),
    ids.length > 1 ? el("a", {class: "off", href: compareLink(ids.filter((other) => other !== id)), "aria-label": `Leave out ${id}`, title: "Leave out"}, "×") : null)), add);

  let others = false;
  async function loadOthers() {
    const all = await get("api/runs");
    others = true;
    add.disabled = ids.length >= kMostCompared;
    keep(add, all.runs.filter((run) => !ids.includes(run.id)).sort((a, b) => b.changed - a.changed).map((run) => run.id),
      (others) => [el("option", {value: ""}, ids.length < kMostCompared ? "Add a run…" : `At most ${kMostCompared} runs`), ...others.map((id) => el("option", {value: id}, id))]);
  }

  async function load() {
    if (!others) await loadOthers();
    if (ids.length === 0) return;
    const asked = over;
    const answer = await get(`api/compare?runs=${ids.map(encodeURIComponent).join(",")}&over=${asked}`);
    if (asked !== over) return;
    for (const part of parts) part.hidden = answer.table.runs.length === 0;
    charts.update(answer.curves.charts, {curves});
    keep(missing, answer.missing, (list) => list.map((id) => notice("warn", `${id} does not exist (any more).`)));
    keep(results, answer.table.runs, resultsTable);
    keep(settings, answer.table, settingsTable);
  }

  return {title: "Compare", load, concerns: (change) => ids.some((id) => change.runs.has(id)), close: () => charts.clear()};
}
