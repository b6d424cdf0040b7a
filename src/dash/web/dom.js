// Elements, and requests to the server. Text is always set as text: names come from files and are not trusted.
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

export class Gone extends Error {}

// Returns the server's answer at an address. Throws Gone if there is nothing (any more).
export async function get(path) {
  const answer = await fetch(path, {headers: {Accept: "application/json"}});
  if (answer.ok) return answer.json();
  const reason = (await answer.text()).trim();
  throw answer.status === 404 ? new Gone(reason) : new Error(reason || `status ${answer.status}`);
}

// Returns a command whose words are not broken: `--resume` must not end a line after its hyphens.
export const command = (text) => el("code", {}, text.split(" ").map((word, i) => [i > 0 ? " " : null, el("span", {class: "word"}, word)]).flat());

// Returns a text of the program with flags and the parts between backticks as code, with the page's sign for
// microseconds, and with numbers that stay with their unit.
export const marked = (text) => text.replace(/(\d) us\b/g, "$1 µs").replace(/(\d) (%|[kMGT]?B(?:\/s)?|[mµ]?s|min|[kMGT]bit\/s)(?![\w])/g, "$1\u00a0$2")
  .split(/(`[^`]*`|--[a-z][a-z-]*)/).map((part) => (/^(`|--[a-z])/.test(part) ? command(part.replaceAll("`", "")) : part));

export const runLink = (id) => `#/run/${encodeURIComponent(id)}`;
export const kMostCompared = 16;  // the server refuses more
export const compareLink = (ids) => `#/compare/${ids.map(encodeURIComponent).join(",")}`;

const kStates = {
  running: ["live", "training"], ended: ["good", "ended"], broken: ["bad", "broken off"], done: ["good", "done"],
  failed: ["bad", "failed"], planned: ["", "planned"], alive: ["good", "alive"], silent: ["warn", "silent"],
  starting: ["", "starting"], interrupted: ["warn", "interrupted"], error: ["bad", "error"], "non-finite loss": ["bad", "non-finite loss"],
  unfinished: ["warn", "unfinished"], stopped: ["", "stopped"], lost: ["bad", "lost"], cut: ["bad", "cut off"],
};

// The badge of a run: how it ended counts, too.
export function runBadge({state, stop_reason}) {
  if (state === "ended" && ["interrupted", "error", "non-finite loss"].includes(stop_reason)) return badge(stop_reason);
  return badge(state, stop_reason);
}

export function badge(state, title) {
  const [kind, text] = kStates[state] || ["", state || "?"];
  return el("span", {class: `badge ${kind}`, "data-state": state, title}, el("i", {class: "dot"}), text);
}

export function notice(kind, ...content) { return el("div", {class: `notice ${kind}`, role: "note"}, ...content); }

export function emptyState(title, text, command) {
  return el("div", {class: "empty card"}, el("h2", {}, title), el("p", {class: "soft"}, text),
    command ? el("pre", {}, el("code", {}, command)) : null);
}

// Changes existing elements into those newly drawn and keeps the unchanged ones: focus, selection and an open <details>
// stay, and a link does not vanish between press and release of a button. Listeners must be outside.
export function morph(before, after) {
  if (before.nodeName !== after.nodeName) { before.replaceWith(after); return; }
  if (before.nodeType === Node.TEXT_NODE) {
    if (before.data !== after.data) before.data = after.data;
    return;
  }
  for (const {name} of [...before.attributes]) if (!after.hasAttribute(name) && name !== "open") before.removeAttribute(name);
  for (const {name, value} of after.attributes) if (before.getAttribute(name) !== value) before.setAttribute(name, value);
  morphChildren(before, [...after.childNodes]);
}

export function morphChildren(element, drawn) {
  const there = [...element.childNodes];
  drawn.forEach((child, i) => { if (i < there.length) morph(there[i], child); else element.append(child); });
  there.slice(drawn.length).forEach((child) => child.remove());
}

// Redraws a part of the page when its data has changed.
const shown = new WeakMap();
export function keep(element, value, draw) {
  const text = JSON.stringify(value);
  if (shown.get(element) === text) return;
  shown.set(element, text);
  morphChildren(element, [draw(value)].flat().filter((child) => child));
}

// Saves text as a file.
export function saveText(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], {type: `${type};charset=utf-8`}));
  el("a", {href: url, download: name}).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

// A row of buttons, one of which is chosen.
export function choice(label, options, chosen, choose) {
  const group = el("div", {class: "choice", role: "group", "aria-label": label});
  const draw = (current) => group.replaceChildren(...options.map(([value, text]) => el("button", {
    type: "button", "aria-pressed": value === current ? "true" : "false", "data-value": value,
    onclick: () => { draw(value); group.querySelector(`[data-value="${value}"]`).focus(); choose(value); },
  }, text)));
  draw(chosen);
  return group;
}
