// The columns of the list of runs: the usual ones, and one for each key that a filter knows.
import {el, get, keep, runBadge, runLink} from "./dom.js";
import * as format from "./format.js";

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

// `csv` is the value in a CSV file, where it is not the one to sort by.
const kColumns = [
  {name: "name", title: "Run", text: true, value: (run) => run.name, cell: nameCell},
  {name: "state", title: "State", text: true, value: (run) => ["running", "broken", "ended"].indexOf(run.state), csv: (run) => run.state,
    cell: (run) => [runBadge(run), run.state === "running" ? progressBar(run.progress, `Progress of ${run.name}`) : null].filter((part) => part)},
  {name: "model", title: "Model", text: true, value: (run) => run.model, cell: (run) => run.model || "–"},
  {name: "dataset", title: "Data", text: true, minor: true, value: (run) => run.dataset, cell: (run) => run.dataset || "–"},
  {name: "how", title: "How", text: true, value: (run) => run.how, cell: (run) => run.how || "–"},
  {name: "workers", title: "Workers", minor: true, value: (run) => run.workers, cell: (run) => format.count(run.workers)},
  {name: "batch", title: "Batch", minor: true, value: (run) => run.batch, cell: (run) => format.count(run.batch)},
  {name: "accuracy", title: "Accuracy", value: (run) => run.accuracy, cell: (run) => format.share(run.accuracy)},
  {name: "loss", title: "Loss", minor: true, value: (run) => run.loss, cell: (run) => format.loss(run.loss)},
  {name: "steps", title: "Steps", minor: true, value: (run) => run.steps, cell: (run) => format.count(run.steps)},
  {name: "seconds", title: "Time", value: (run) => run.seconds, cell: (run) => format.seconds(run.seconds)},
  {name: "speed", title: "Examples/s", minor: true, value: (run) => run.examples_per_second, cell: (run) => format.rate(run.examples_per_second)},
  {name: "changed", title: "Changed", aging: true, value: (run) => run.changed, csv: (run) => new Date(run.changed * 1000).toISOString(),
    cell: (run) => el("time", {title: format.moment(run.changed)}, format.ago(run.changed))},
];
export const kUsual = kColumns.map((column) => column.name);

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

// Returns the column of a key: `known` comes from the server, {key, title, kind, help}.
function keyColumn(name, known) {
  const value = (run) => run.values?.[known?.key ?? name] ?? "";
  const show = {share: format.share, number: format.number}[known?.kind];
  return {name, title: capital(known?.title ?? name), text: !show, minor: true, value,
    cell: (run) => value(run) === "" ? "–" : show && typeof value(run) === "number" ? show(value(run)) : String(value(run))};
}

// Returns the columns of these names, and the keys that the server must add to each row for them.
export const extraKeys = (names) => names.filter((name) => !kUsual.includes(name));
export function columnsOf(names, described) {
  const extra = extraKeys(names);
  return names.map((name) => kColumns.find((column) => column.name === name) || keyColumn(name, described[extra.indexOf(name)]));
}

// The menu that chooses columns; `change(names)` is called with the names, the run's name first.
export function columnMenu(names, change) {
  const list = el("div", {class: "menu-list"});
  const keys = el("datalist", {id: "keys"});
  const add = el("input", {type: "text", list: "keys", placeholder: "Add a key or setting", "aria-label": "Add a column", onchange: () => {
    const name = add.value.trim();
    add.value = "";
    if (name && !names.includes(name)) set([...names, name]);
  }});
  const draw = () => {
    const all = [...kUsual.slice(1), ...extraKeys(names)];
    list.replaceChildren(...all.map((name) => el("label", {}, el("input", {type: "checkbox", checked: names.includes(name), "data-column": name,
      onchange: (event) => set(event.target.checked ? [...names, name] : names.filter((other) => other !== name))}),
    kColumns.find((column) => column.name === name)?.title ?? name)));
  };
  const set = (next) => {
    // The usual order, then the added ones.
    names = [...kUsual.filter((name) => name === "name" || next.includes(name)), ...extraKeys(next)];
    draw();
    change(names);
  };
  draw();
  const menu = el("details", {class: "menu", ontoggle: () => menu.open && get("api/keys").then((answer) =>
    keep(keys, answer.keys, (some) => some.map(({key, title, help}) => el("option", {value: key}, help === "setting" ? help : `${title}: ${help}`)))).catch(() => {})},
  el("summary", {class: "button"}, "Columns"), el("div", {class: "menu-box card"}, list, add, keys,
    el("button", {type: "button", class: "small", onclick: () => set(kUsual)}, "The usual columns")));
  menu.addEventListener("keydown", (event) => { if (event.key === "Escape") { menu.open = false; menu.querySelector("summary").focus(); } });
  return menu;
}
