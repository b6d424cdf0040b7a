// The nodes of the runs that train now, with their load and state.
import {badge, el, emptyState, get, keep, runLink} from "./dom.js";
import * as format from "./format.js";
import {faultList} from "./run_view.js";

const kSvg = "http://www.w3.org/2000/svg";

// Draws about the last minute of a share in percent.
function spark(values, label) {
  const points = values.map((value, i) => [i, value]).filter(([, value]) => value !== null);
  const picture = document.createElementNS(kSvg, "svg");
  picture.setAttribute("class", "spark");
  picture.setAttribute("viewBox", "0 0 60 20");
  picture.setAttribute("preserveAspectRatio", "none");
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", label);
  const most = Math.max(100, ...points.map(([, value]) => value));
  const at = ([i, value]) => `${(60 - values.length + i + 1).toFixed(1)},${(19.5 - (value / most) * 19).toFixed(2)}`;
  if (points.length > 1) {
    const line = points.map(at).join(" L");
    for (const [name, path] of [["fill", `M${line} L${at(points.at(-1)).split(",")[0]},20 L${at(points[0]).split(",")[0]},20 Z`], ["line", `M${line}`]]) {
      const shape = document.createElementNS(kSvg, "path");
      shape.setAttribute("d", path);
      shape.setAttribute("class", name);
      picture.append(shape);
    }
  }
  return picture;
}

// `scarce`: a full bar is bad.
function meter(label, text, value, scarce) {
  const width = format.known(value) ? Math.min(100, Math.max(0, value)) : 0;
  const kind = !scarce || width < 70 ? "" : width < 90 ? "middle" : "high";
  return el("div", {class: "meter"}, el("span", {class: "soft"}, label), el("b", {class: "number"}, text),
    format.known(value) ? el("div", {class: "track", "aria-hidden": "true"}, el("div", {class: `level ${kind}`, style: `width:${width}%`})) : null);
}

function roleRow(role) {
  const figures = [format.known(role.step) ? `step ${format.count(role.step)}` : "", format.known(role.loss) ? `loss ${format.loss(role.loss)}` : "",
    format.known(role.cpu_percent) ? `CPU ${format.percent(role.cpu_percent)}` : "", format.known(role.memory) ? format.bytes(role.memory) : ""];
  const quiet = role.state === "silent" ? `for ${format.seconds(role.quiet)}` : "";
  return el("li", {"data-role": role.role}, el("div", {}, el("b", {}, role.role), badge(role.state, quiet), quiet ? el("span", {class: "small soft"}, quiet) : null),
    el("span", {class: "small soft number"}, figures.filter((part) => part).map((part) => part.replaceAll(" ", "\u00a0")).join(" · ")));
}

function nodeCard(node) {
  const about = [node.address, format.known(node.cores) ? `${format.number(node.cores)} core${node.cores === 1 ? "" : "s"}` : ""].filter((part) => part);
  const memory = format.known(node.memory_limit) ? (100 * node.memory) / node.memory_limit : null;
  return el("article", {class: "card node", "data-node": node.node},
    el("div", {class: "title"}, el("h3", {}, node.node), badge(node.state)),
    about.length ? el("p", {class: "small soft"}, about.join(" · ")) : null,
    spark(node.history, `CPU of ${node.node} over the last minute`),
    meter("CPU", format.percent(node.cpu_percent), node.cpu_percent),
    meter("Memory", format.bytes(node.memory) + (memory === null ? "" : ` of ${format.bytes(node.memory_limit)}`), memory, true),
    el("div", {class: "meter"}, el("span", {class: "soft"}, "Network"), el("b", {class: "number"}, `↓ ${format.speed(node.received)}  ↑ ${format.speed(node.sent)}`)),
    el("ul", {class: "roles"}, node.roles.map(roleRow)));
}

function runSection(run) {
  return el("section", {class: "tight", "data-run": run.run},
    el("div", {class: "title"}, el("h2", {}, el("a", {href: runLink(run.run)}, run.name)),
      el("span", {class: "soft number"}, `${run.model} on ${run.dataset} · step ${format.count(run.steps)} · ${format.seconds(run.seconds)}`)),
    run.faults.length ? el("div", {class: "card"}, el("h3", {}, "Faults on schedule"), faultList(run.faults)) : null,
    el("div", {class: "cards nodes"}, run.nodes.map(nodeCard)));
}

export function clusterView(place) {
  const content = el("div");
  place.append(el("h1", {}, "Cluster"), content);
  let closed = false;
  const view = {
    title: "Cluster",
    async load() {
      const {runs} = await get("api/nodes");
      keep(content, runs, (list) => list.length ? list.map(runSection)
        : emptyState("No run is training", "While a run trains, this page shows its nodes, their load, and whether each role is alive.", "lockstep train lenet --workers 2 --ps 1"));
    },
    concerns: (change) => change.runs.size > 0,
    close: () => { closed = true; clearInterval(timer); },
  };
  // A silent role writes nothing, so no event reports it.
  const timer = setInterval(() => { if (!closed && !document.hidden) view.load().catch(() => {}); }, 3000);
  return view;
}
