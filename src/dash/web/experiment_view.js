// One experiment: its progress, its runs, its report.
import {badge, compareLink, el, get, keep, kMostCompared, marked, notice, runLink} from "./dom.js";
import {reportLink, stateBar, stateOf} from "./experiments_view.js";
import * as format from "./format.js";
import {Table} from "./table.js";

const kStates = ["running", "failed", "planned", "done"];

function head(experiment) {
  const all = experiment.planned + experiment.running + experiment.done + experiment.failed;
  return [
    el("p", {class: "crumbs"}, el("a", {href: "#/experiments"}, "All experiments")),
    el("div", {class: "title"}, el("h1", {}, experiment.title || experiment.name), badge(stateOf(experiment)), reportLink(experiment)),
    el("p", {class: "soft"}, [`${experiment.name}${experiment.scale ? `, ${experiment.scale}` : ""}`,
      `${experiment.done} of ${all} runs done`, experiment.host, experiment.processor].filter((part) => part).join(" · ")),
    stateBar(experiment),
    experiment.about ? el("p", {class: "soft"}, marked(experiment.about)) : null,
    experiment.command ? el("pre", {}, el("code", {}, experiment.command)) : null,
  ];
}

function columnsFor(runs) {
  const names = [...new Set(runs.flatMap((run) => run.varied.map(([name]) => name)))];
  const varied = (run, name) => run.varied.find(([one]) => one === name)?.[1] ?? "";
  const sortable = (text) => text !== "" && Number.isFinite(Number(text)) ? Number(text) : text;
  const setting = (name) => ({name: `v-${name}`, title: name, text: true, minor: true,
    value: (run) => String(sortable(varied(run, name))), cell: (run) => varied(run, name) || "–"});
  const text = (name, title, value) => ({name, title, text: true, value, cell: (run) => value(run) || "–"});
  const figure = (name, title, value, show, minor) => ({name, title, minor, value, cell: (run) => show(value(run))});
  return [
    {name: "key", title: "Run", text: true, value: (run) => run.key,
      cell: (run) => run.run ? el("a", {href: runLink(run.run), title: run.key}, format.shortened(run.key)) : format.shortened(run.key)},
    {name: "state", title: "State", text: true, value: (run) => kStates.indexOf(run.state), cell: (run) => badge(run.state, run.reason)},
    ...(runs.some((run) => run.label) ? [text("label", "Case", (run) => run.label)] : []),
    // The main results before the settings, so that narrow windows show them.
    figure("accuracy", "Accuracy", (run) => run.accuracy, format.share),
    figure("seconds", "Time", (run) => run.seconds, format.seconds),
    ...(new Set(runs.map((run) => run.group)).size > 1 ? [text("group", "Group", (run) => run.group)] : []),
    ...names.map(setting),
    figure("repeat", "Repeat", (run) => run.repeat, format.count, true),
    figure("loss", "Loss", (run) => run.loss, format.loss, true),
    figure("rate", "Examples/s", (run) => run.examples_per_second, format.rate, true),
  ];
}

export function experimentView(place, route) {
  const top = el("div");
  const failures = el("div");
  const tools = el("div", {class: "toolbar"});
  const list = el("div", {class: "card flush"});
  const chosen = new Set();
  let table = null;
  let shape = "";
  const compare = el("a", {class: "button"}, "Choose runs to compare");
  tools.append(compare);
  place.append(top, failures, el("section", {class: "tight"}, el("h2", {}, "Runs"), tools, list));

  const drawCompare = (runs) => {
    const ids = runs.filter((run) => run.run && chosen.has(run.key)).map((run) => run.run);
    compare.textContent = ids.length ? `Compare ${ids.length}` : "Choose runs to compare";
    compare.classList.toggle("primary", ids.length > 0);
    if (ids.length) compare.setAttribute("href", compareLink(ids));
    else compare.removeAttribute("href");
  };

  return {
    title: "Experiment",
    what: route.id,
    async load() {
      const {runs, ...rest} = await get(`api/experiment/${encodeURIComponent(route.id)}`);
      document.title = `${rest.title || rest.name} · Lockstep`;
      keep(top, rest, head);
      keep(failures, runs.filter((run) => run.state === "failed").map((run) => [run.key, run.reason]),
        (failed) => failed.slice(0, 20).map(([key, reason]) => notice("bad", el("b", {}, key), `: ${reason || "failed"}`)));
      const columns = columnsFor(runs);
      const now = JSON.stringify(columns.map((column) => column.name));
      if (now !== shape) {
        shape = now;
        table = new Table({columns, key: (run) => run.key, sort: table?.sort || {name: "state", down: false}, chosen,
          most: kMostCompared, onChoose: () => drawCompare(table.rows), label: "Runs of the experiment"});
        list.replaceChildren(table.element);
      }
      table.update(runs);
      drawCompare(runs);
    },
    concerns: (change) => change.lab,
  };
}
