// One run: its figures, curves, phases, what limited it, its roles and settings.
import {badge, choice, command, compareLink, el, get, keep, marked, notice, runBadge} from "./dom.js";
import * as format from "./format.js";
import {LiveCharts} from "./live_charts.js";
import {progressBar} from "./columns.js";
import {Pictures} from "./pictures.js";

export const kOver = [["step", "Steps"], ["epoch", "Epochs"], ["seconds", "Time"]];

function headline(run) {
  const workers = run.workers > 1 ? `${run.workers} workers` : "";
  const servers = run.servers > 0 ? `${run.servers} server${run.servers > 1 ? "s" : ""}` : "";
  const parts = [`${run.model || "?"} on ${run.dataset || "?"}`, run.how, [workers, servers].filter((part) => part).join(", "),
    format.known(run.batch) ? `batch ${run.batch}` : "", format.known(run.parameters) ? `${format.rate(run.parameters)} parameters` : ""];
  return [
    el("p", {class: "crumbs"}, el("a", {href: "#/runs"}, "All runs")),
    el("div", {class: "title"}, el("h1", {}, run.name), runBadge(run),
      run.state === "running" ? progressBar(run.progress) : null,
      format.known(run.seconds_left) ? el("span", {class: "soft small number", "data-figure": "time left"}, `about ${format.seconds(run.seconds_left)} left`) : null,
      run.stop_reason && run.stop_reason !== "interrupted" ? el("span", {class: "soft small"}, `stopped by: ${run.stop_reason}`) : null),
    el("p", {class: "soft"}, parts.filter((part) => part).join(" · ")),
  ];
}

function tiles({results, learning_rate}) {
  const tile = (label, value, note) => el("div", {class: "tile", "data-figure": label}, el("b", {}, value), el("span", {}, label),
    note ? el("span", {class: "faint"}, note) : null);
  const best = format.known(results.best_accuracy) && results.best_accuracy !== results.accuracy ? `best ${format.share(results.best_accuracy)}` : "";
  const unlabelled = !format.known(results.accuracy) && format.known(results.loss);  // an autoencoder has no accuracy
  return el("div", {class: "tiles"},
    unlabelled ? null : tile("accuracy on test data", format.share(results.accuracy), best), tile("loss on test data", format.loss(results.loss)),
    tile("training loss", format.loss(results.train_loss), format.known(learning_rate) ? `learning rate ${format.number(learning_rate)}` : ""), tile("time", format.seconds(results.seconds)),
    tile("steps", format.count(results.steps), format.known(results.epoch) ? `epoch ${format.count(results.epoch)}` : ""),
    tile("examples/s", format.rate(results.examples_per_second), format.known(results.seconds_per_step) ? `${format.seconds(results.seconds_per_step)} a step` : ""));
}

function why(value) {
  const evidence = value.evidence.filter((row) => row.text);
  return el("div", {class: "card why"}, el("h2", {}, "What limited it"), el("p", {class: "lead"}, marked(value.headline)),
    value.sentences.length ? el("p", {class: "soft"}, marked(value.sentences.join(" "))) : null,
    el("div", {class: "split"},
      evidence.length ? el("div", {}, el("h3", {}, "Evidence"), el("dl", {class: "facts"},
        evidence.map((row) => [el("dt", {}, row.what), el("dd", {class: "number"}, marked(row.text))]).flat())) : null,
      value.suggestions.length ? el("div", {}, el("h3", {}, "To try"), el("ul", {}, value.suggestions.map((text) => el("li", {}, marked(text))))) : null));
}

function rolesTable(roles) {
  const columns = [
    ["Role", (role) => role.role, "text"], ["Node", (role) => role.node || "–", "text"], ["State", (role) => badge(role.state), "text"],
    ["Steps", (role) => format.count(role.iterations ?? role.step)], ["CPU", (role) => format.percent(role.cpu_percent)],
    ["Memory", (role) => format.bytes(role.memory)], ["Received", (role) => format.speed(role.received)], ["Sent", (role) => format.speed(role.sent)],
    ["Waited", (role) => format.roughShare(role.wait_share)], ["Staleness", (role) => format.number(role.staleness)],
    ["Restarts", (role) => format.count(role.restarts)], ["Finished", (role) => format.seconds(role.finished)],
  ].filter(([title, value]) => ["Role", "State"].includes(title) || roles.some((role) => value(role) !== "–"));
  return el("div", {class: "card flush"}, el("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "Roles"},
    el("table", {class: "data", "aria-label": "Roles"},
      el("thead", {}, el("tr", {}, columns.map(([title, , kind]) => el("th", {scope: "col", class: kind || ""}, title)))),
      el("tbody", {}, roles.map((role) => el("tr", {"data-role": role.role}, columns.map(([, value, kind]) => el("td", {class: kind || ""}, value(role)))))))));
}

export function faultList(faults) {
  return el("ul", {class: "faults"}, faults.map((fault) => el("li", {}, el("b", {class: "number"}, format.seconds(fault.seconds)), " ", fault.fault)));
}

function settings(list) {
  const given = list.filter(([, value]) => value !== "");
  return el("details", {class: "card"}, el("summary", {}, el("h2", {}, "Settings"), el("span", {class: "soft"}, `${given.length}`)),
    el("dl", {class: "facts columns"}, given.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, el("code", {}, value))))));
}

// Tells how to resume a run that ended before its plan. A run of the lab is made again by its experiment.
function goOn({folder, experiment, checkpoint}) {
  if (experiment) return [command("lockstep lab run"), ` with the file of ${experiment} repeats it.`];
  const quoted = /^[\w./=~+-]+$/.test(folder) && !folder.startsWith("-") ? folder : `'${folder.replaceAll("'", "'\\''")}'`;
  return checkpoint ? [command(`lockstep train --resume ${quoted}`), " resumes it from its newest checkpoint."] : ["It has no checkpoint to resume from."];
}

export function runView(place, route) {
  const id = decodeURIComponent(route.id);
  let over = kOver.some(([value]) => value === route.query.get("over")) ? route.query.get("over") : "step";
  const parts = Object.fromEntries(["head", "tiles", "notes", "why", "faults", "roles", "settings", "pictures"].map((name) => [name, el("div")]));
  const groups = {curves: el("div", {class: "cards curves"}), time: el("div", {class: "cards"}), usage: el("div", {class: "cards"})};
  const charts = new LiveCharts();
  const pick = choice("Curves over", kOver, over, (value) => {
    over = value;
    route.change(new URLSearchParams(over === "step" ? "" : {over}));
    charts.clearGroup("curves");
    loadCharts();
  });
  const section = (title, ...content) => el("section", {}, el("h2", {}, title), ...content);
  const pictures = new Pictures(parts.pictures, id);
  const time = section("Time", groups.time);
  const usage = section("What it used", groups.usage);
  const empty = el("p", {class: "soft"}, "No points yet: the first appear with the first line of the log.");
  place.append(parts.head, parts.notes, parts.tiles,
    el("section", {class: "tight"}, el("div", {class: "toolbar spread"}, el("h2", {}, "Curves"), pick), empty, groups.curves),
    parts.pictures, parts.why, time, el("section", {}, el("h2", {}, "Roles"), parts.roles, parts.faults), usage,
    el("section", {}, parts.settings, el("p", {}, el("a", {href: compareLink([id])}, "Compare with other runs"))));

  async function loadCharts() {
    const asked = over;
    const {charts: list} = await get(`api/run/${encodeURIComponent(id)}/charts?over=${asked}`);
    if (asked !== over) return;
    charts.update(list, groups);
    const has = (group) => list.some((entry) => entry.group === group);
    empty.hidden = has("curves");
    time.hidden = !has("time");
    usage.hidden = !has("usage");
  }

  return {
    title: id,
    async load() {
      const [run] = await Promise.all([get(`api/run/${encodeURIComponent(id)}`), loadCharts()]);
      const {model, dataset, how, workers, servers, batch, parameters, name, state, stop_reason, progress, seconds_left, results, learning_rate} = run;
      keep(parts.head, {model, dataset, how, workers, servers, batch, parameters, name, state, stop_reason, progress, seconds_left}, headline);
      keep(parts.tiles, {results, learning_rate}, tiles);
      pictures.update(run.pictures);
      keep(parts.notes, [run.warnings, run.went_on, state, stop_reason, run.folder, run.experiment, run.checkpoint], ([warnings, wentOn]) => [
        state === "broken" ? notice("bad", "The run broke off: no process is training it, and it has no summary. ", ...goOn(run)) : null,
        state === "ended" && stop_reason === "interrupted" ? notice("warn", "The run was interrupted before its end. ", ...goOn(run)) : null,
        wentOn ? notice("warn", "The run was resumed after its summary was written; the figures come from its logs.") : null,
        ...warnings.map((text) => notice("warn", text)),
      ].filter((part) => part));
      keep(parts.why, run.why, why);
      keep(parts.roles, run.roles, rolesTable);
      keep(parts.faults, run.faults, (faults) => faults.length ? el("div", {class: "card"}, el("h3", {}, "Faults on schedule"), faultList(faults)) : null);
      keep(parts.settings, run.settings, settings);
    },
    concerns: (change) => change.runs.has(id),
    close: () => charts.clear(),
  };
}
