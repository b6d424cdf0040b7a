// The experiments of the lab, with their progress.
import {badge, el, emptyState, get, keep, notice} from "./dom.js";
import * as format from "./format.js";

// Draws planned, running, done and failed runs as one bar.
export function stateBar(experiment) {
  const {planned, running, done, failed} = experiment;
  const all = planned + running + done + failed;
  const part = (kind, count) => count ? el("span", {class: kind, style: `flex-grow:${count}`, title: `${count} ${kind}`}) : null;
  return el("div", {class: "statebar", role: "img", "aria-label": `${done} of ${all} runs done, ${failed} failed, ${running} running`},
    part("done", done), part("failed", failed), part("running", running), part("planned", planned));
}

export function stateOf({planned, running, done, failed}) {
  if (running > 0) return "running";
  if (planned > 0) return done + failed > 0 ? "unfinished" : "planned";
  return failed > 0 ? "failed" : "done";
}

export const reportLink = (experiment) => experiment.report
  ? el("a", {class: "button", href: `report/${encodeURIComponent(experiment.folder)}`, target: "_blank", rel: "noopener"}, "Report") : null;

function card(experiment) {
  const all = experiment.planned + experiment.running + experiment.done + experiment.failed;
  return el("article", {class: "card", "data-experiment": experiment.folder},
    el("div", {class: "title"}, el("h2", {}, el("a", {href: `#/experiment/${experiment.id}`}, experiment.title || experiment.name)), badge(stateOf(experiment))),
    el("p", {class: "soft small"}, `${experiment.name}${experiment.scale ? `, ${experiment.scale}` : ""} · started ${format.ago(experiment.started)}`),
    stateBar(experiment),
    el("div", {class: "toolbar spread"}, el("span", {class: "soft small number"},
      `${experiment.done} of ${all} runs done${experiment.failed ? `, ${experiment.failed} failed` : ""}${experiment.running ? `, ${experiment.running} running` : ""}`),
    reportLink(experiment)));
}

export function experimentsView(place) {
  const content = el("div");
  place.append(el("h1", {}, "Experiments"), content);
  return {
    title: "Experiments",
    async load() {
      const answer = await get("api/experiments");
      keep(content, answer, ({experiments, notice: problem, folder}) => [
        problem ? notice("bad", `The lab cannot be read: ${problem}`) : null,
        experiments.length ? el("div", {class: "cards"}, experiments.map(card)) : problem ? null
          : emptyState("No experiments yet", `There is no lab in ${folder} yet. This command makes one and writes a report at the end.`, "lockstep lab run experiments/study-3.yaml --scale quick"),
      ]);
    },
    concerns: (change) => change.lab,
  };
}
