// Returns what is wrong with the looks of this page, as sentences: what runs out of the window, the card or the drawing,
// text over text, too little contrast, targets that are hard to hit, headings of nothing, numbers that are none.
"use strict";
const kTolerance = 1.5;    // pixels
const kSmallestTarget = 24;  // WCAG 2.2, 2.5.8
const faults = new Set();
const name = (one) => {
  const text = (one.textContent || one.getAttribute("aria-label") || one.value || "").trim().replace(/\s+/g, " ");
  const place = one.closest("[data-chart], [id], [data-figure]");
  const where = place && place !== one ? ` in ${place.dataset.chart || place.id || place.dataset.figure}` : "";
  return `<${one.tagName.toLowerCase()}${one.getAttribute("class") ? ` class="${one.getAttribute("class")}"` : ""}> “${text.slice(0, 50)}”${where}`;
};
const visible = (one) => one.checkVisibility({checkOpacity: true, checkVisibilityCSS: true}) && one.getBoundingClientRect().width > 1;

// ---- what is written where

const written = [];  // {element, box, part}: a line of a text, in pixels of the window
for (const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT); walker.nextNode();) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || element.closest("svg, script, style, noscript, select, datalist, .off-screen, .hidden-text, .skip") || !visible(element)) continue;
  const range = document.createRange();
  range.selectNodeContents(walker.currentNode);
  for (const box of range.getClientRects()) if (box.width > 1) written.push({element, box});
}

// ---- nothing runs out

const wider = document.documentElement.scrollWidth - document.documentElement.clientWidth;
if (wider > 0) faults.add(`the page is ${wider} pixels wider than the window`);

const scrolls = (one) => ["auto", "scroll"].includes(getComputedStyle(one).overflowX);
for (const {element, box} of written) {
  for (let one = element; one && one !== document.body && !scrolls(one); one = one.parentElement) {
    if (!one.matches(".card, .tile, td, th, button, .button, .badge, .chip, .node")) continue;
    const around = one.getBoundingClientRect();
    if (box.right > around.right + kTolerance || box.left < around.left - kTolerance) faults.add(`${name(element)} runs out of ${name(one)}`);
    break;
  }
}
for (const table of document.querySelectorAll(":not(.all-columns) > .scroll > table.list")) {
  const beyond = table.parentElement.scrollWidth - table.parentElement.clientWidth;
  if (beyond > 0) faults.add(`the table of ${table.querySelectorAll("tbody tr").length} rows is ${beyond} pixels wider than its place`);
}
for (const badge of document.querySelectorAll("td .badge, td .tag, td button")) {
  const around = badge.closest("td").getBoundingClientRect(), box = badge.getBoundingClientRect();
  if (visible(badge) && (box.right > around.right + kTolerance || box.left < around.left - kTolerance)) faults.add(`${name(badge)} runs out of its cell`);
}

// ---- nothing lies over a text

// Returns the corners of an SVG text; its font's box is higher than its letters.
function corners(text) {
  const {x, y, width, height} = text.getBBox();
  const matrix = text.getScreenCTM();
  return [[x, y + 0.2 * height], [x + width, y + 0.2 * height], [x + width, y + 0.85 * height], [x, y + 0.85 * height]]
    .map(([a, b]) => new DOMPoint(a, b).matrixTransform(matrix));
}

// Whether two convex shapes overlap by more than a pixel: no axis across an edge of them parts them.
function overlap(a, b) {
  return [a, b].every((shape) => shape.every((point, i) => {
    const next = shape[(i + 1) % shape.length];
    const across = [next.y - point.y, point.x - next.x], length = Math.hypot(...across) || 1;
    const span = (points) => points.map((one) => (one.x * across[0] + one.y * across[1]) / length);
    const [one, other] = [span(a), span(b)];
    return Math.min(Math.max(...one), Math.max(...other)) - Math.max(Math.min(...one), Math.min(...other)) > 1;
  }));
}

for (const plot of document.querySelectorAll("svg.plot")) {
  if (!visible(plot)) continue;
  const frame = plot.getBoundingClientRect();
  const texts = [...plot.querySelectorAll("text")].filter((text) => text.textContent.trim()).map((text) => ({text, shape: corners(text)}));
  texts.forEach(({text, shape}, i) => {
    const out = Math.max(...shape.map((point) => Math.max(frame.left - point.x, point.x - frame.right, frame.top - point.y, point.y - frame.bottom)));
    if (out > kTolerance) faults.add(`${name(text)} is cut by ${Math.round(out)} pixels`);
    for (const other of texts.slice(i + 1)) {
      if (overlap(shape, other.shape)) faults.add(`${name(text)} lies over “${other.text.textContent}”`);
      const line = Math.abs(other.shape[2].y - shape[2].y) < 1 || Math.abs(other.shape[2].x - shape[2].x) < 1;
      const ticks = [text, other.text].every((one) => one.classList.contains("tick"));
      if (ticks && line && text.textContent === other.text.textContent) faults.add(`${name(text)} stands twice at an axis`);
    }
  });
}

// Only text in the flow of the page: menus and the bar on top may cover something.
const floats = (one) => one.closest(".bar, .menu-box, .chart-tip, .chart-look-box, thead");
const flowing = written.filter(({element}) => !floats(element)).sort((a, b) => a.box.top - b.box.top);
flowing.forEach(({element, box}, i) => {
  for (let k = i + 1; k < flowing.length && flowing[k].box.top < box.bottom; ++k) {
    const {element: other, box: under} = flowing[k];
    const across = Math.min(box.right, under.right) - Math.max(box.left, under.left);
    const high = Math.min(box.bottom, under.bottom) - Math.max(box.top, under.top);
    if (across > 2 && high > 0.4 * Math.min(box.height, under.height)) faults.add(`${name(element)} lies over ${name(other)}`);
  }
});

// ---- contrast

const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
canvas.canvas.width = canvas.canvas.height = 1;
const colours = new Map();
function parsed(colour) {  // red, green, blue, and opacity up to 1
  if (!colours.has(colour)) {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    colours.set(colour, [r, g, b, a / 255]);
  }
  return colours.get(colour);
}
const over = ([r, g, b, a], under) => [r, g, b].map((part, i) => part * a + under[i] * (1 - a));
function behind(one) {
  const layers = [];
  for (; one; one = one.parentElement) {
    const colour = parsed(getComputedStyle(one).backgroundColor);
    if (colour[3] > 0) layers.push(colour);
    if (colour[3] === 1) break;
  }
  return layers.reduceRight((under, layer) => over(layer, under), [255, 255, 255]);
}
const luminance = (colour) => [0.2126, 0.7152, 0.0722].reduce((sum, weight, i) => {
  const part = colour[i] / 255;
  return sum + weight * (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
}, 0);
function contrast(one, colour) {
  const back = behind(one.closest("svg")?.parentElement ?? one);
  const [light, dark] = [luminance(over(parsed(colour), back)), luminance(back)].sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
}
const inPlots = [...document.querySelectorAll("svg.plot text")].filter(visible);
for (const one of new Set([...written.map(({element}) => element), ...inPlots])) {
  const style = getComputedStyle(one);
  const size = parseFloat(style.fontSize);
  const least = size >= 24 || (size >= 18.6 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
  const found = contrast(one, one.tagName === "text" ? style.fill : style.color);
  if (found < least - 0.005 && !one.closest(":disabled, [aria-disabled=true]")) faults.add(`${name(one)} has a contrast of ${found.toFixed(2)}, not ${least}`);
}

// ---- targets: large enough, or alone (WCAG 2.2, 2.5.8)

const targets = [...document.querySelectorAll("button, a[href], input, select, summary")]
  .filter((one) => visible(one) && getComputedStyle(one).display !== "inline" && !one.closest("label, .skip, .off-screen"))
  .map((one) => ({one, box: one.getBoundingClientRect()}));
const distance = (x, y, box) => Math.hypot(Math.max(box.left - x, 0, x - box.right), Math.max(box.top - y, 0, y - box.bottom));
for (const {one, box} of targets) {
  if (Math.min(box.width, box.height) >= kSmallestTarget - 0.5) continue;
  const [x, y] = [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
  const near = targets.find((other) => other.one !== one && !other.one.contains(one) && !one.contains(other.one) && distance(x, y, other.box) < kSmallestTarget / 2);
  if (near) faults.add(`${name(one)} is ${Math.round(box.width)} × ${Math.round(box.height)} pixels, close to ${name(near.one)}`);
}

// ---- headings and numbers

for (const heading of document.querySelectorAll("h1, h2, h3, h4")) {
  if (visible(heading.parentElement) && heading.checkVisibility() && !heading.textContent.trim() && heading.getBoundingClientRect().height > 0) faults.add(`an empty ${name(heading)}`);
}
for (const section of document.querySelectorAll("section")) {
  if (!visible(section)) continue;
  const words = written.filter(({element}) => section.contains(element) && !element.closest("h2, h3"));
  if (!words.length && !section.querySelector("svg, img")) faults.add(`${name(section)} has a heading and nothing else`);
}
for (const one of new Set([...written.map(({element}) => element), ...inPlots])) {
  if (!one.closest("pre, code") && /\b(NaN|undefined|null|-?Infinity|inf|nan)\b|\[object /.test(one.textContent) && one.children.length === 0) faults.add(`${name(one)} is no number`);
}
return [...faults];
