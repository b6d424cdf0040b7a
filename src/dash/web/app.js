// The page: shows the view that the address after # names, and keeps it up to date by a stream of events.
import {el, emptyState, notice, Gone} from "./dom.js";
import {runsView} from "./runs_view.js";
import {runView} from "./run_view.js";
import {compareView} from "./compare_view.js";
import {experimentsView} from "./experiments_view.js";
import {experimentView} from "./experiment_view.js";
import {clusterView} from "./cluster_view.js";

// Makes a view from a place and a route {id, query, change(query)}; a view is {title, load(ids), concerns(change),
// close()}. `ids` are the runs that changed since the last load; without them, everything is loaded.
const kViews = {
  runs: runsView, run: runView, compare: compareView, experiments: experimentsView, experiment: experimentView, cluster: clusterView,
};
const kTab = {run: "runs", compare: "runs", experiment: "experiments"};

const main = document.getElementById("view");
const live = document.getElementById("live");
let current = null;
let shownAddress = "";

function parseHash() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/");
  return {name: kViews[name] ? name : "runs", id: rest.join("/"), query: new URLSearchParams(query || "")};
}

// Loads one at a time: changes during a load cause one more load at its end. The view's place stays hidden until it has
// something to show.
class Shown {
  constructor(view, place, problems) {
    Object.assign(this, {view, place, problems});
    this.busy = false;
    this.closed = false;
    this.asked = null;  // what to load next: a set of changed runs, "all", or nothing
    place.hidden = true;
    setTimeout(() => { if (place.hidden && !this.closed && !problems.firstChild) problems.replaceChildren(el("p", {class: "loading"}, "Loading…")); }, 150);
  }

  async load(ids = "all") {
    this.asked = ids === "all" || this.asked === "all" ? "all" : new Set([...(this.asked || []), ...ids]);
    if (this.busy) return;
    this.busy = true;
    while (this.asked && !this.closed) {
      const now = this.asked;
      this.asked = null;
      try {
        await this.view.load(now === "all" || this.place.hidden ? null : now);
        if (this.closed) break;
        this.place.hidden = false;
        this.problems.replaceChildren();
      } catch (error) {
        if (!this.closed) this.say(error);
      }
    }
    this.busy = false;
  }

  say(error) {
    const silent = error instanceof TypeError;  // fetch throws TypeError if no server answers
    const link = el("a", {href: "#/runs"}, "All runs");
    if (error instanceof Gone && this.place.hidden) {
      const what = this.view.title === "Experiment" ? "No such experiment" : "No such run";
      this.problems.replaceChildren(el("h1", {}, what), el("p", {class: "soft"}, `“${this.view.what ?? this.view.title}” does not exist (any more). `, link));
      return;
    }
    const text = error instanceof Gone ? "It does not exist any more." : silent ? "The server does not answer." : error.message;
    this.problems.replaceChildren(notice(error instanceof Gone ? "warn" : "bad", text, " ", link));
  }

  close() {
    this.closed = true;
    this.view.close?.();
  }
}

function show() {
  const route = parseHash();
  const address = `${route.name}/${route.id}`;
  if (current && address === shownAddress) return;  // the view itself changed its query
  current?.close();
  shownAddress = address;
  const problems = el("div", {"aria-live": "polite"});
  const place = el("div");
  main.replaceChildren(problems, place);
  route.change = (query) => {
    const text = query.toString();
    history.replaceState(null, "", `#/${route.name}${route.id ? `/${route.id}` : ""}${text ? `?${text}` : ""}`);
  };
  let view;
  try {
    view = kViews[route.name](place, route);
  } catch (error) {
    place.replaceChildren(emptyState("This address is damaged", String(error.message || error)));
    view = {title: "Lockstep", load: async () => {}, concerns: () => false};
  }
  document.title = `${view.title} · Lockstep`;
  for (const link of document.querySelectorAll(".bar nav a")) {
    if (link.dataset.view === (kTab[route.name] || route.name)) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  scrollTo(0, 0);
  current = new Shown(view, place, problems);
  current.load();
}

function listen() {
  const source = new EventSource("events");
  const say = (kind, text) => { live.className = `badge ${kind}`; live.textContent = text; };
  source.addEventListener("hello", () => { say("good", "live"); current?.load(); });
  source.addEventListener("change", (event) => {
    const change = JSON.parse(event.data);
    if (current?.view.concerns({runs: new Set(change.runs), lab: change.lab})) current.load(change.runs);
  });
  source.addEventListener("error", () => {
    say("warn", "not connected");
    if (source.readyState === EventSource.CLOSED) setTimeout(listen, 3000);
  });
  addEventListener("pagehide", () => source.close(), {once: true});
}

addEventListener("hashchange", show);
addEventListener("keydown", (event) => {
  if (event.key !== "/" || /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName)) return;
  const search = document.querySelector("input[type=search]");
  if (search) { event.preventDefault(); search.focus(); }
});
show();
listen();
