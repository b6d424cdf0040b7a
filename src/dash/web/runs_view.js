// All runs: a table to filter, to sort and to choose from. The server filters, with the words of `lockstep runs`; after
// the first load, only runs that changed are asked for.
import {compareLink, el, emptyState, get, keep, kMostCompared, notice, saveText} from "./dom.js";
import {columnMenu, columnsOf, extraKeys, kUsual} from "./columns.js";
import {Table} from "./table.js";

const kMostAsked = 100;  // more changed runs than these: the whole list
const kPatience = 200;   // milliseconds between the last key and the question

const encoded = (list) => list.map(encodeURIComponent).join(",");
const decoded = (text) => (text || "").split(",").filter((part) => part).map(decodeURIComponent);

export function runsView(place, route) {
  const chosen = new Set(decoded(route.query.get("chosen")).slice(0, kMostCompared));
  const state = {q: route.query.get("q") || "", state: route.query.get("state") || ""};
  const [sortName, sortWay] = (route.query.get("sort") || "changed-down").split("-");
  let names = route.query.has("columns") ? ["name", ...decoded(route.query.get("columns")).filter((name) => name !== "name")] : kUsual;
  let runs = new Map();
  let table = null;
  let shape = "";
  let timer = 0;
  let asked = 0;  // number of the newest question

  const remember = () => {
    const query = new URLSearchParams();
    if (state.q) query.set("q", state.q);
    if (state.state) query.set("state", state.state);
    if (names.join() !== kUsual.join()) query.set("columns", encoded(names.slice(1)));
    if (table.sort.name !== "changed" || !table.sort.down) query.set("sort", `${table.sort.name}-${table.sort.down ? "down" : "up"}`);
    if (chosen.size > 0) query.set("chosen", encoded([...chosen]));
    route.change(query);
  };
  const compare = el("a", {class: "button", "data-action": "compare"});
  const drawCompare = () => {
    compare.textContent = chosen.size > 0 ? `Compare ${chosen.size}${chosen.size < kMostCompared ? "" : " (the most possible)"}` : "Choose runs to compare";
    if (chosen.size > 0) { compare.setAttribute("href", compareLink([...chosen])); compare.classList.add("primary"); }
    else { compare.removeAttribute("href"); compare.classList.remove("primary"); }
    compare.setAttribute("aria-disabled", chosen.size > 0 ? "false" : "true");
  };
  const askSoon = (wait) => { clearTimeout(timer); timer = setTimeout(() => load(null).catch(() => {}), wait); };
  const search = el("input", {type: "search", placeholder: "Filter: model=lenet accuracy>95% async", "aria-label": "Filter runs", value: state.q, spellcheck: "false",
    title: "KEY=VALUE, with = != < <= > >=; keys are those of `lockstep runs --help` and all settings. Words are searched in names.",
    oninput: () => { state.q = search.value; remember(); askSoon(kPatience); }});
  const states = el("select", {"aria-label": "State", onchange: () => { state.state = states.value; remember(); askSoon(0); }},
    [["", "All states"], ["running", "Training"], ["ended", "Ended"], ["interrupted", "Interrupted"], ["broken", "Broken off"]].map(([value, text]) =>
      el("option", {value, selected: value === state.state}, text)));
  const menu = columnMenu(names, (next) => { names = next; draw({columns: []}); remember(); askSoon(0); });
  const csv = el("button", {type: "button", title: "Save these runs and columns as CSV", onclick: () => saveText("runs.csv", "text/csv", table.csv())}, "CSV");
  const counts = el("span", {class: "soft", "aria-live": "polite"});
  const tools = el("div", {class: "toolbar"}, search, states, menu, csv, compare, counts);
  const none = el("div");
  const card = el("div", {class: "card flush"});
  place.append(el("h1", {}, "Runs"), tools, none, card);
  drawCompare();
  const aging = setInterval(() => table?.update(table.rows), 60000);

  function drawTable(described) {
    const now = JSON.stringify([names, described]);
    if (table && now === shape) return;
    shape = now;
    const sort = table?.sort || {name: sortName, down: sortWay !== "up"};
    table = new Table({columns: columnsOf(names, described), key: (run) => run.id, sort, chosen, most: kMostCompared,
      onSort: remember, onChoose: () => { remember(); drawCompare(); }, label: "Runs"});
    table.element.classList.toggle("all-columns", names.join() !== kUsual.join());
    card.replaceChildren(table.element);
  }

  function draw(answer) {
    drawTable(answer.columns);
    const shown = [...runs.values()];
    if (answer.all !== undefined) {
      const {all, training, folder, problem} = answer;
      counts.textContent = `${shown.length === all ? all : `${shown.length} of ${all}`} run${all === 1 ? "" : "s"}${training ? `, ${training} training` : ""}`;
      tools.hidden = all === 0;
      keep(none, {empty: all === 0, folder, problem, hidden: shown.length === 0}, (value) => value.empty
        ? emptyState("No runs yet", `No run is in ${value.folder} yet. This command starts one; the page shows it while it trains.`, "lockstep train lenet")
        : value.problem ? notice("warn", value.problem.charAt(0).toUpperCase() + value.problem.slice(1))
          : value.hidden ? emptyState("No run matches the filter", "Remove a word, or choose all states.") : null);
    }
    table.update(shown);
    card.hidden = shown.length === 0;
  }

  // Takes over an answer about these runs, or about all.
  function take(answer, ids) {
    if (answer.problem) runs = new Map();
    if (!ids) runs = new Map();
    else for (const id of ids) runs.delete(id);
    for (const run of answer.runs) runs.set(run.id, run);
  }

  async function load(ids) {
    const some = ids && ids.size <= kMostAsked ? [...ids] : null;
    const number = ++asked;
    const filter = [state.q, state.state ? `state=${state.state}` : ""].join(" ").trim();
    const extra = extraKeys(names);
    const more = (extra.length ? `&columns=${encoded(extra)}` : "") + (some ? `&ids=${encoded(some)}` : "");
    const answer = await get(`api/runs?q=${encodeURIComponent(filter)}${more}`);
    if (number !== asked) return some ? askSoon(0) : undefined;  // the question has changed meanwhile
    take(answer, some);
    if (!some && !filter) {
      for (const id of chosen) if (!runs.has(id)) chosen.delete(id);
      drawCompare();
    } else if (some) {
      for (const id of answer.gone) chosen.delete(id);
      drawCompare();
    }
    draw(answer);
  }

  return {
    title: "Runs",
    load,
    concerns: (change) => change.runs.size > 0,
    close: () => { clearInterval(aging); clearTimeout(timer); },
  };
}
