// All runs: a table to sort, to filter and to choose from.
import {badge, compareLink, el, emptyState, get, keep, kMostCompared, runLink} from "./dom.js";
import * as format from "./format.js";
import {Table} from "./table.js";

export function progressBar(value, label) {
  if (!format.known(value)) return null;
  const done = Math.round(value * 100);
  return el("progress", {max: 100, value: done, "aria-label": label || "Progress", title: `${done} %`});
}

function nameCell(run) {
  return [el("a", {href: runLink(run.id), title: run.name}, format.shortened(run.name)),
    run.experiment ? el("span", {class: "tag"}, run.experiment) : null,
    run.warnings ? el("span", {class: "tag warn", title: "Some of its files are damaged"}, "⚠") : null].filter((part) => part);
}

const kColumns = [
  {name: "name", title: "Run", text: true, value: (run) => run.name, cell: nameCell},
  {name: "state", title: "State", text: true, value: (run) => ["running", "broken", "ended"].indexOf(run.state),
    cell: (run) => [badge(run.state, run.stop_reason), run.state === "running" ? progressBar(run.progress, `Progress of ${run.name}`) : null].filter((part) => part)},
  {name: "model", title: "Model", text: true, value: (run) => run.model, cell: (run) => run.model || "–"},
  {name: "dataset", title: "Data", text: true, minor: true, value: (run) => run.dataset, cell: (run) => run.dataset || "–"},
  {name: "how", title: "How", text: true, value: (run) => run.how, cell: (run) => run.how || "–"},
  {name: "workers", title: "Workers", minor: true, value: (run) => run.workers, cell: (run) => format.count(run.workers)},
  {name: "batch", title: "Batch", minor: true, value: (run) => run.batch, cell: (run) => format.count(run.batch)},
  {name: "accuracy", title: "Accuracy", value: (run) => run.accuracy, cell: (run) => format.share(run.accuracy)},
  {name: "loss", title: "Loss", minor: true, value: (run) => run.loss, cell: (run) => format.loss(run.loss)},
  {name: "steps", title: "Steps", minor: true, value: (run) => run.steps, cell: (run) => format.count(run.steps)},
  {name: "seconds", title: "Time", value: (run) => run.seconds, cell: (run) => format.seconds(run.seconds)},
  {name: "rate", title: "Examples/s", minor: true, value: (run) => run.examples_per_second, cell: (run) => format.rate(run.examples_per_second)},
  {name: "changed", title: "Changed", aging: true, value: (run) => run.changed,
    cell: (run) => el("time", {title: format.moment(run.changed)}, format.ago(run.changed))},
];

// Returns whether every word of the filter occurs in the row.
function passes(run, words, state) {
  if (state && run.state !== state) return false;
  const text = [run.name, run.experiment, run.model, run.dataset, run.how, run.stop_reason, `batch=${run.batch}`,
    `workers=${run.workers}`, run.state].join(" ").toLowerCase();
  return words.every((word) => text.includes(word));
}

export function runsView(place, route) {
  const chosen = new Set((route.query.get("chosen") || "").split(",").filter((id) => id).map(decodeURIComponent).slice(0, kMostCompared));
  const state = {q: route.query.get("q") || "", state: route.query.get("state") || ""};
  const [sortName, sortWay] = (route.query.get("sort") || "changed-down").split("-");
  let runs = [];

  const remember = () => {
    const query = new URLSearchParams();
    if (state.q) query.set("q", state.q);
    if (state.state) query.set("state", state.state);
    if (table.sort.name !== "changed" || !table.sort.down) query.set("sort", `${table.sort.name}-${table.sort.down ? "down" : "up"}`);
    if (chosen.size > 0) query.set("chosen", [...chosen].map(encodeURIComponent).join(","));
    route.change(query);
  };
  const compare = el("a", {class: "button", "data-action": "compare"});
  const drawCompare = () => {
    compare.textContent = chosen.size > 0 ? `Compare ${chosen.size}${chosen.size < kMostCompared ? "" : " (the most possible)"}` : "Choose runs to compare";
    if (chosen.size > 0) { compare.setAttribute("href", compareLink([...chosen])); compare.classList.add("primary"); }
    else { compare.removeAttribute("href"); compare.classList.remove("primary"); }
    compare.setAttribute("aria-disabled", chosen.size > 0 ? "false" : "true");
  };
  const table = new Table({columns: kColumns, key: (run) => run.id, sort: {name: sortName, down: sortWay !== "up"}, chosen,
    most: kMostCompared, onSort: remember, onChoose: () => { remember(); drawCompare(); }, label: "Runs"});
  const search = el("input", {type: "search", placeholder: "Filter: lenet async batch=64", "aria-label": "Filter runs", value: state.q,
    oninput: () => { state.q = search.value; remember(); draw(); }});
  const states = el("select", {"aria-label": "State", onchange: () => { state.state = states.value; remember(); draw(); }},
    [["", "All states"], ["running", "Training"], ["ended", "Ended"], ["broken", "Broken off"]].map(([value, text]) =>
      el("option", {value, selected: value === state.state}, text)));
  const counts = el("span", {class: "soft", "aria-live": "polite"});
  const tools = el("div", {class: "toolbar"}, search, states, compare, counts);
  const none = el("div");
  const card = el("div", {class: "card flush"}, table.element);
  place.append(el("h1", {}, "Runs"), tools, none, card);
  drawCompare();
  const aging = setInterval(() => table.update(table.rows), 60000);

  function draw(answer) {
    const shown = runs.filter((run) => passes(run, state.q.toLowerCase().split(/\s+/).filter((word) => word), state.state));
    const training = runs.filter((run) => run.state === "running").length;
    counts.textContent = `${shown.length === runs.length ? runs.length : `${shown.length} of ${runs.length}`} run${runs.length === 1 ? "" : "s"}` +
      (training ? `, ${training} training` : "");
    table.update(shown);
    card.hidden = shown.length === 0;
    tools.hidden = runs.length === 0;
    const why = runs.length === 0 ? {empty: true, folder: answer?.folder} : {empty: false, hidden: shown.length === 0};
    keep(none, why, (value) => value.empty
      ? emptyState("No runs yet", `No run is in ${value.folder} yet. This command starts one; the page shows it while it trains.`, "lockstep train lenet")
      : value.hidden ? emptyState("No run matches the filter", "Remove a word, or choose all states.") : null);
  }

  return {
    title: "Runs",
    async load() {
      const answer = await get("api/runs");
      runs = answer.runs;
      const there = new Set(runs.map((run) => run.id));
      for (const id of chosen) if (!there.has(id)) chosen.delete(id);
      drawCompare();
      draw(answer);
    },
    concerns: (change) => change.runs.size > 0,
    close: () => clearInterval(aging),
  };
}
