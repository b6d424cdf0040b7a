// Saves a chart as a file: SVG with its styles, title and legend inside, or the same as PNG; PDF by the browser's
// printing. A width and a font may be chosen; the chart is then drawn anew for them.
const lockstepSave = (() => {
  "use strict";
  const {html, svg} = lockstepDom;
  const kStyles = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "stroke-linecap",
                   "stroke-opacity", "opacity", "font-family", "font-size", "font-weight", "text-anchor", "shape-rendering"];

  function copyStyles(from, to) {
    const style = getComputedStyle(from);
    to.setAttribute("style", kStyles.map((name) => `${name}:${style.getPropertyValue(name)}`).join(";"));
    Array.from(from.children).forEach((child, i) => copyStyles(child, to.children[i]));
  }

  function styledCopy(element) {
    const copy = element.cloneNode(true);
    copyStyles(element, copy);
    return copy;
  }

  function textWidth(text, font) {
    const context = document.createElement("canvas").getContext("2d");
    context.font = font;
    return context.measureText(text).width;
  }

  // Returns the legend in rows, as an SVG group and its height.
  function legend(figure, width, colors, font) {
    const group = svg("g");
    let x = 0, y = 0;
    for (const button of figure.querySelectorAll(".legend button[aria-pressed=true]")) {
      const name = button.textContent;
      const need = 28 + textWidth(name, `12px ${font}`) + 18;
      if (x > 0 && x + need > width) {
        x = 0;
        y += 20;
      }
      const swatch = styledCopy(button.querySelector("svg"));
      for (const [key, value] of Object.entries({x, y: y - 10})) swatch.setAttribute(key, value);
      group.append(swatch, svg("text", {x: x + 28, y, style: `font:12px ${font};fill:${colors.text}`}, name));
      x += need;
    }
    return {group, height: group.children.length ? y + 20 : 0};
  }

  function document_of(figure, title) {
    const plot = figure.querySelector("svg.plot");
    const page = getComputedStyle(figure);
    const font = page.fontFamily.replace(/"/g, "'");
    const colors = {text: page.color, back: page.backgroundColor};
    const [, , width, height] = plot.getAttribute("viewBox").split(" ").map(Number);
    const parts = legend(figure, width - 32, colors, font);
    const top = 44 + parts.height;
    parts.group.setAttribute("transform", "translate(16 52)");
    const inner = styledCopy(plot);
    inner.querySelectorAll(".hover").forEach((element) => element.remove());
    for (const [key, value] of Object.entries({x: 16, y: top, width, height})) inner.setAttribute(key, value);
    const whole = svg("svg", {xmlns: lockstepDom.kSvg, width: width + 32, height: top + height + 12,
                              viewBox: `0 0 ${width + 32} ${top + height + 12}`},
      svg("title", {}, title),
      svg("rect", {width: "100%", height: "100%", fill: colors.back}),
      svg("text", {x: 16, y: 28, style: `font:600 15px ${font};fill:${colors.text}`}, title), parts.group, inner);
    return {text: new XMLSerializer().serializeToString(whole), element: whole, width: width + 32, height: top + height + 12};
  }

  function picture(url) {
    return new Promise((resolve, reject) => {
      const image = new Image();
      image.onload = () => resolve(image);
      image.onerror = () => reject(new Error("the chart could not be drawn as a picture"));
      image.src = url;
    });
  }

  async function blob(figure, title, type) {
    const whole = document_of(figure, title);
    const file = new Blob([whole.text], {type: "image/svg+xml;charset=utf-8"});
    if (type === "svg") return file;
    const image = await picture("data:image/svg+xml;charset=utf-8," + encodeURIComponent(whole.text));
    const canvas = document.createElement("canvas");
    canvas.width = whole.width * 2;
    canvas.height = whole.height * 2;
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  }

  function saveFile(name, file) {
    const url = URL.createObjectURL(file);
    const link = html("a", {href: url, download: name});
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  }

  // Prints only the chart, on a page of its size; the browser's dialog saves it as PDF, with its text as text.
  function print(figure, title, id) {
    const whole = document_of(figure, title);
    const frame = html("iframe", {title: "Chart to print", class: "print-frame"});
    document.body.append(frame);
    const inside = frame.contentDocument;
    inside.title = id || "chart";
    const style = inside.createElement("style");
    style.textContent = `@page { size: ${whole.width}px ${whole.height}px; margin: 0 } body { margin: 0 } svg { display: block }`;
    inside.head.append(style);
    inside.body.append(inside.importNode(whole.element, true));
    frame.contentWindow.addEventListener("afterprint", () => setTimeout(() => frame.remove(), 0));
    frame.contentWindow.print();
  }

  async function save(figure, title, id, type) {
    if (type === "pdf") print(figure, title, id);
    else saveFile(`${id || "chart"}.${type}`, await blob(figure, title, type));
  }

  // Width in pixels (96 to an inch) and font of saved charts, for all charts of the page; 0 and "": as on the page.
  const look = {width: 0, font: ""};

  // Returns the menu that saves a chart, with the width and the font for it; save(type) saves.
  function menu(save) {
    const button = (text, label, type) => html("button", {type: "button", class: "small", "aria-label": label, title: label, onclick: () => save(type)}, text);
    const width = html("input", {type: "number", min: 72, max: 600, step: 1, placeholder: "page", "aria-label": "Width in mm",
      oninput: () => { look.width = width.checkValidity() ? Number(width.value) / 25.4 * 96 : 0; }});
    const font = html("select", {"aria-label": "Font", onchange: () => { look.font = font.value; }},
      [["", "as on the page"], ["Helvetica, Arial, sans-serif", "Sans"], ["'Times New Roman', Times, serif", "Serif"], ["'Courier New', monospace", "Mono"]]
        .map(([value, text]) => html("option", {value}, text)));
    const shown = () => {
      width.value = look.width ? Math.round(look.width / 96 * 25.4) : "";
      font.value = look.font;
    };
    const box = html("details", {class: "chart-look", ontoggle: shown, onkeydown: (event) => { if (event.key === "Escape") box.open = false; }},
      html("summary", {class: "button small"}, "Save"),
      html("div", {class: "chart-look-box"}, html("div", {class: "toolbar"}, button("SVG", "Save as SVG", "svg"), button("PNG", "Save as PNG", "png"),
        button("PDF", "Save as PDF, by printing", "pdf")), html("label", {}, "Width in mm ", width), html("label", {}, "Font ", font)));
    box.addEventListener("focusout", (event) => { if (event.relatedTarget && !box.contains(event.relatedTarget)) box.open = false; });
    return box;
  }

  return {save, saveFile, blob, look, menu};
})();
