// lockstepChart(element, spec) draws a chart (docs/formats.md) into an element and returns {update, destroy, blob}.
// Legend entries hide series (with Shift: show only one). Hovering or the arrow keys show values, dragging zooms, a
// double click or Escape resets. Adjustable charts have a logarithmic axis and smoothing to choose.
const lockstepChart = (() => {
  "use strict";
  const {html, svg} = lockstepDom;
  const {known, valueText, scale, extent, roomy, smoothed} = lockstepScale;
  const {Pointing, isDiscrete, categories} = lockstepPointing;
  const draw = lockstepDraw;
  const kMarkLevels = 4;
  const kLongestCategory = 32;
  const kBetween = 12;  // categories closer than this are written at an angle
  let made = 0;

  const kTurns = [[35, 20], [90, 12]];  // angles of long categories, and how far apart they must then be
  const kMarkLetter = 6.2;

  // Returns the width of a text of 12 pixels in the font of an element.
  const pen = html("canvas").getContext("2d");
  function textRoom(text, element) {
    pen.font = `12px ${getComputedStyle(element).fontFamily}`;
    return pen.measureText(text).width * 1.03 + 1;
  }
  // Cuts the ends of intervals that go further beyond the curves than half of what the curves themselves reach: intervals
  // of few repeats would make them flat.
  function within([low, high], bands, log) {
    if (log || !(high > low)) return bands;
    const air = (high - low) / 2;
    return bands.filter(known).map((value) => Math.max(low - air, Math.min(high + air, value)));
  }
  const shorten = (text, most) => text.length > most ? text.slice(0, most - 1) + "…" : text;

  class Chart extends Pointing {
    constructor(element, spec) {
      super();
      this.element = element;
      this.number = ++made;
      this.hidden = new Set();
      this.zoom = null;
      this.place = -1;
      this.width = 0;
      this.log = null;  // whether the reader has chosen a logarithmic y axis; null: as the chart says
      this.smoothing = 0;
      this.build();
      this.update(spec);
      this.observer = new ResizeObserver(() => {
        if (Math.abs(this.frame.clientWidth - this.width) > 1) this.render();
      });
      this.observer.observe(this.frame);
    }

    build() {
      this.title = html("h3");
      this.text = html("p", {class: "chart-text"});
      this.select = html("select", {"aria-label": "Which to show", onchange: () => this.choose(this.select.value)});
      this.chosenText = html("span", {class: "chart-chosen"});
      this.choice = html("label", {class: "chart-choice"}, "Shown: ", this.select, this.chosenText);
      this.smoothText = html("output", {}, "off");
      this.logButton = html("button", {type: "button", class: "small", title: "Logarithmic y axis", onclick: () => {
        this.log = !this.isLog();
        this.render();
      }}, "log");
      this.adjust = html("div", {class: "chart-choice chart-adjust"}, this.logButton, html("label", {}, "Smoothing ", html("input", {
        type: "range", min: 0, max: 0.98, step: 0.02, value: 0, "aria-label": "Smoothing", oninput: (event) => this.smooth(Number(event.target.value))}), " ", this.smoothText));
      this.legend = html("div", {class: "legend", role: "group", "aria-label": "Series"});
      this.tip = html("div", {class: "chart-tip", role: "status", hidden: true});
      this.frame = html("div", {class: "chart-frame"}, this.tip);
      this.table = html("details", {class: "chart-data", ontoggle: () => this.fillTable()}, html("summary", {}, "Data"));
      const save = (type) => this.forSaving((figure) => lockstepSave.save(figure, this.heading(), this.spec.id, type));
      this.reset = html("button", {type: "button", class: "small", title: "Show the whole chart again", onclick: () => this.setZoom(null)}, "Reset zoom");
      this.reset.hidden = true;
      this.buttons = html("div", {class: "chart-buttons"}, this.reset, lockstepSave.menu(save));
      this.figure = html("figure", {class: "chart"},
        html("figcaption", {}, html("div", {}, this.title, this.text, this.choice), this.buttons), this.adjust, this.legend, this.frame, this.table);
      this.element.replaceChildren(this.figure);
    }

    // Calls `save` with a figure in the chosen width and font: this one, or another, drawn for this purpose.
    async forSaving(save) {
      const {width, font} = lockstepSave.look;
      if (!width && !font) return save(this.figure);
      const {hidden, zoom, log, smoothing} = this;
      const place = html("div", {class: "off-screen", style: `width:${width ? width - 32 : this.frame.clientWidth}px${font ? `;--sans:${font}` : ""}`});
      document.body.append(place);
      const other = new Chart(place, {...this.spec, choices: []});
      try {
        Object.assign(other, {hidden, zoom, log, smoothing});
        other.drawLegend();
        other.render();
        return await save(other.figure);
      } finally {
        other.destroy();
        place.remove();
      }
    }

    update(spec) {
      this.given = {x: {}, y: {}, y2: {}, marks: [], rows: [], spans: [], ...spec};
      const {choice: name = "", series, marks, rows, spans} = this.given;
      this.choices = [{name, series, marks, rows, spans}, ...(this.given.choices || [])];
      this.drawChoices();
      this.show(this.choices.find((choice) => choice.name === this.chosen) || this.choices[0]);
    }

    // Switches to other data of the chart: another repeat of the run.
    choose(name) {
      this.setZoom(null);
      this.show(this.choices.find((choice) => choice.name === name));
    }

    drawChoices() {
      const names = this.choices.map((choice) => choice.name).sort((a, b) => a.localeCompare(b, "en", {numeric: true}));
      this.choice.hidden = !names[0];
      this.select.hidden = names.length < 2;
      this.select.replaceChildren(...names.map((name) => html("option", {value: name}, name)));
    }

    show({name, ...data}) {
      this.chosen = this.select.value = name;
      this.chosenText.textContent = this.select.hidden ? name : `${name}, one of ${this.choices.length}`;
      this.spec = {...this.given, ...data};
      this.series = draw.seriesOf(this.spec);
      this.title.textContent = this.spec.title || "";
      this.text.textContent = this.spec.text || "";
      this.text.hidden = !this.spec.text;
      this.adjust.hidden = !this.spec.adjustable;
      if (this.spec.id) this.figure.id = this.spec.id;
      this.figure.dataset.kind = this.spec.kind;
      this.drawLegend();
      if (this.table.open) this.fillTable();
      this.render();
    }

    isLog() { return this.log ?? Boolean(this.given.y.log); }

    smooth(share) {
      this.smoothing = share;
      this.smoothText.textContent = share > 0 ? share.toFixed(2) : "off";
      this.render();
    }

    heading() {
      return this.chosen ? `${this.spec.title} (${this.chosen})` : this.spec.title;
    }

    destroy() {
      this.observer.disconnect();
      this.element.replaceChildren();
    }

    drawLegend() {
      const names = new Set(this.series.map((series) => series.name));
      for (const name of this.hidden) if (!names.has(name)) this.hidden.delete(name);
      this.legend.hidden = this.series.length < 2 && !this.series.some((series) => series.spans);
      const focused = this.legend.contains(document.activeElement) ? document.activeElement.dataset.series : null;
      this.legend.replaceChildren(...this.series.map((series) => html("button", {
        type: "button", "aria-pressed": this.hidden.has(series.name) ? "false" : "true", "data-series": series.name,
        title: "Hide or show; with Shift: only this one", onclick: (event) => this.toggle(series.name, event.shiftKey),
      }, draw.swatch(series, this.spec.kind), html("span", {}, series.name), series.same ? html("span", {class: "same"}, `same as ${series.same}`) : null)));
      if (focused !== null) [...this.legend.children].find((button) => button.dataset.series === focused)?.focus();
    }

    toggle(name, alone) {
      if (alone) {
        const only = this.series.every((series) => (series.name === name) !== this.hidden.has(series.name));
        this.hidden = new Set(only ? [] : this.series.map((series) => series.name).filter((other) => other !== name));
      } else if (!this.hidden.delete(name)) {
        this.hidden.add(name);
      }
      this.drawLegend();
      this.render();
    }

    setZoom(zoom) {
      this.zoom = zoom;
      this.reset.hidden = !zoom;
      this.hideHover();
      this.render();
    }

    // ---- layout

    xDomain() {
      if (this.zoom) return this.zoom;
      const {spec} = this;
      if (isDiscrete(spec)) return [-0.5, Math.max(categories(spec).length, 1) - 0.5];
      if (spec.kind === "timeline") {
        const [, high] = extent([...spec.spans.map((span) => span.to), ...spec.marks.map((mark) => mark.x), ...(spec.x.shows || [])]);
        return [Math.min(0, extent(spec.spans.map((span) => span.from))[0]), high];
      }
      const all = extent([...this.series.flatMap((series) => series.x), ...(spec.x.shows || [])], spec.x.log);
      if (all[0] === all[1] && !spec.x.log && all[0] > 0) return [0, 2 * all[0]];
      if (all[0] === all[1]) return roomy(all, {log: spec.x.log});
      if (!spec.x.log && !spec.x.at_values && all[0] > 0 && all[0] < 0.3 * all[1]) all[0] = 0;  // round numbers from the start
      if (this.xValues().length > 24 || all[0] === 0) return all;
      const air = spec.x.log ? (all[1] / all[0]) ** 0.04 : (all[1] - all[0]) * 0.04;
      return spec.x.log ? [all[0] / air, all[1] * air] : [all[0] - air, all[1] + air];
    }

    yDomain(shown, axis, [from, to]) {
      const values = [], bands = [];
      const sums = new Map();
      for (const series of shown) {
        series.x.forEach((x, i) => {
          if (!known(x) || x < from || x > to || !known(series.y[i])) return;
          if (this.spec.kind === "stack") sums.set(x, (sums.get(x) || 0) + Math.max(0, series.y[i]));
          else values.push((series.raw ?? series.y)[i]), bands.push(series.low?.[i] ?? null, series.high?.[i] ?? null);
        });
      }
      values.push(...(this.spec.kind === "line" ? within(extent(values, axis.log), bands, axis.log) : bands));
      values.push(...sums.values());
      if (!this.zoom && this.hidden.size === 0) values.push(...(axis.shows || []));
      const zero = this.spec.kind === "stack" || this.spec.kind === "bar" || ["s", "percent", "B", "B/s"].includes(axis.unit);
      const most = axis.unit === "share" ? 1 : axis.unit === "percent" ? 100 : Infinity;
      return roomy(extent(values, axis.log), {log: axis.log, zero, most});
    }

    ticks(axis, domain, count, whole = false) {
      return (axis.log ? lockstepScale.logTicks : lockstepScale.linearTicks)(domain[0], domain[1], count, axis.unit, whole);
    }

    xValues() {
      return [...new Set(this.series.filter((series) => !this.hidden.has(series.name)).flatMap((series) => series.x))]
        .filter(known).sort((a, b) => a - b);
    }

    // Computes what drawing needs: sizes, scales, ticks.
    layout() {
      const {spec} = this;
      spec.y = {...spec.y, log: this.isLog()};
      this.logButton.setAttribute("aria-pressed", spec.y.log ? "true" : "false");
      const drawn = this.series.filter((series) => !this.hidden.has(series.name));
      const shown = this.smoothing === 0 || spec.kind !== "line" ? drawn : drawn.map((series) =>
        ({...series, raw: series.y, y: smoothed(series.y, this.smoothing), low: null, high: null}));
      const width = this.width = Math.max(this.frame.clientWidth, 240);
      const first = shown.filter((series) => !series.second_axis), second = shown.filter((series) => series.second_axis);
      const view = {spec, shown, width, second: second.length > 0};
      const xDomain = this.xDomain();
      const timeline = spec.kind === "timeline";
      const plotHeight = timeline ? Math.max(60, spec.rows.length * 34) : Math.max(190, Math.min(320, width * 0.44));
      const count = Math.max(6, Math.floor(plotHeight / 34));
      view.yTicks = timeline ? [] : this.ticks(spec.y, view.yDomain = this.yDomain(first, spec.y, xDomain), count);
      view.y2Ticks = view.second ? this.ticks(spec.y2, view.y2Domain = this.yDomain(second, spec.y2, xDomain), count) : [];
      const rows = timeline ? spec.rows.map((row) => ({text: shorten(row, 22)})) : [];
      const room = (list) => list.reduce((most, tick) => Math.max(most, this.textRoom(tick.text)), 0);
      view.left = Math.max(24, room(timeline ? rows : view.yTicks) + 12, this.turnedRoom(width));
      view.right = view.second ? room(view.y2Ticks) + 14 : 16;
      view.w = width - view.left - view.right;
      view.slot = view.w / Math.max(1, categories(spec).length);
      this.placeX(view, xDomain);
      this.placeMarks(view);
      view.top = ((spec.y.label && !timeline) || view.second ? 26 : 10) + view.markLevels * 13;
      view.bottom = view.tickRoom + (spec.x.label ? 22 : 4);
      view.h = plotHeight;
      view.height = view.top + view.h + view.bottom;
      if (timeline) {
        view.row = view.h / Math.max(1, spec.rows.length);
        view.rowPlace = (row) => view.top + (row + 0.5) * view.row;
      } else {
        view.sy = scale(view.yDomain, [view.top + view.h, view.top], spec.y.log);
      }
      if (view.second) view.sy2 = scale(view.y2Domain, [view.top + view.h, view.top], spec.y2.log);
      return view;
    }

    // Returns the room that long aslant categories need on the left.
    turnedRoom(width) {
      const names = categories(this.spec);
      if (!names.length) return 0;
      const first = this.textRoom(shorten(names[0], kLongestCategory)), slot = (width - 60) / names.length;
      return slot >= kTurns[0][1] && first > slot - kBetween ? first * 0.84 - slot / 2 + 4 : 0;
    }

    textRoom(text) { return textRoom(text, this.frame); }

    // Places the names of marks on levels, so that none lies over another. A name without a place is left out.
    placeMarks(view) {
      const ends = [];
      view.marks = [];
      for (const mark of this.spec.marks) {
        const x = view.sx(mark.x);
        if (!known(mark.x) || x < view.left - 1 || x > view.left + view.w + 1) continue;
        const text = shorten(mark.label, 32), room = text.length * kMarkLetter + 8;
        const leftwards = x + room > view.width;
        const [from, to] = leftwards ? [x - room, x] : [x, x + room];
        let level = 0;
        while (level < kMarkLevels && ends[level] > from) ++level;
        const named = level < kMarkLevels && from >= 0;
        if (named) ends[level] = to;
        view.marks.push({x, level: named ? level : 0, text: named ? text : "", leftwards});
      }
      view.markLevels = ends.length;
    }

    placeX(view, domain) {
      const {spec} = this;
      const names = categories(spec);
      view.sx = scale(domain, [view.left, view.left + view.w], !isDiscrete(spec) && spec.x.log);
      view.tickRoom = 22;
      view.turned = 0;
      if (names.length) {
        view.xTicks = names.map((text, value) => ({value, text: shorten(text, kLongestCategory)}));
        const longest = Math.max(...view.xTicks.map((tick) => this.textRoom(tick.text)));
        if (longest <= view.slot - kBetween) return;
        view.turned = (kTurns.find(([, apart]) => view.slot >= apart) || kTurns.at(-1))[0];
        const every = Math.ceil(kTurns.at(-1)[1] / view.slot);  // upright, and still too many: some are left out
        view.xTicks = view.xTicks.filter((_, i) => i % every === 0);
        view.tickRoom = view.turned === 90 ? longest + 18 : longest * 0.58 + 22;
        return;
      }
      const values = this.xValues().filter((value) => value >= domain[0] && value <= domain[1]);
      view.xTicks = spec.x.at_values && values.length > 0 && values.length <= 10
        ? lockstepScale.valueTicks(values, spec.x.unit, view.sx, view.width)
        : this.ticks(spec.x, domain, Math.max(3, Math.floor(view.w / 72)), values.every(Number.isInteger));
    }

    // ---- drawing

    render() {
      if (!this.frame.clientWidth) return;
      const view = this.view = this.layout();
      const clip = `clip-${this.number}`;
      // Keeps the element, so that a drag in progress survives an update.
      const plot = this.plot ??= this.makePlot();
      plot.setAttribute("viewBox", `0 0 ${view.width} ${view.height}`);
      plot.setAttribute("aria-label", this.describe());
      const inside = svg("g", {"clip-path": `url(#${clip})`});
      if (this.spec.kind === "bar") inside.append(...draw.bars(view));
      else if (this.spec.kind === "stack") inside.append(...draw.stacks(view));
      else if (this.spec.kind === "timeline") inside.append(...draw.spans(view));
      else inside.append(...view.shown.map((series) => draw.line(view, series)));
      this.hover = svg("g", {class: "hover"});
      plot.replaceChildren(svg("desc", {}, this.describe()),
        svg("clipPath", {id: clip}, svg("rect", {x: view.left - 5, y: view.top - 6, width: view.w + 10, height: view.h + 6})),
        this.grid(view), this.axes(view), inside, this.marks(view), this.hover);
      if (!this.hasData(view)) plot.append(svg("text", {class: "nothing", x: view.left + view.w / 2, y: view.top + view.h / 2, "text-anchor": "middle"}, "No data"));
      if (this.drag) this.drawDrag();
    }

    makePlot() {
      const plot = svg("svg", {
        class: "plot", role: "img", tabindex: 0,
        onpointermove: (event) => this.moved(event), onpointerleave: () => this.hideHover(), onpointerdown: (event) => this.pressed(event),
        onpointerup: (event) => this.released(event), onpointercancel: () => this.endDrag(), ondblclick: () => this.setZoom(null),
        onkeydown: (event) => this.key(event), onblur: () => this.hideHover(),
      });
      this.frame.prepend(plot);
      return plot;
    }

    hasData(view) {
      return view.shown.some((series) => (series.spans ? series.spans.length : series.y.some(known)));
    }

    describe() {
      const names = this.series.map((series) => series.name).filter(Boolean);
      const axes = [this.spec.y.label, this.spec.y2.label].filter(Boolean).join(" and ");
      return [this.heading(), axes && `${axes} over ${this.spec.x.label || "x"}`, names.length && `Series: ${names.join(", ")}`]
        .filter(Boolean).join(". ") + ".";
    }

    grid(view) {
      const group = svg("g", {class: "grid"});
      for (const tick of view.yTicks) group.append(svg("path", {d: `M${view.left} ${view.sy(tick.value).toFixed(1)}h${view.w}`}));
      if (this.spec.kind === "timeline") {
        this.spec.rows.forEach((_, row) => group.append(svg("path", {d: `M${view.left} ${view.rowPlace(row)}h${view.w}`})));
      }
      return group;
    }

    axes(view) {
      const {spec} = this;
      const bottom = view.top + view.h;
      const group = svg("g", {class: "axes"}, svg("path", {class: "axis", d: `M${view.left} ${bottom}h${view.w}`}));
      const text = (x, y, anchor, content, kind) => group.append(svg("text", {x: x.toFixed(1), y: y.toFixed(1), "text-anchor": anchor, class: kind}, content));
      for (const tick of view.yTicks) text(view.left - 8, view.sy(tick.value) + 4, "end", tick.text, "tick");
      for (const tick of view.y2Ticks) text(view.left + view.w + 8, view.sy2(tick.value) + 4, "start", tick.text, "tick");
      if (spec.kind === "timeline") spec.rows.forEach((row, i) => text(view.left - 8, view.rowPlace(i) + 4, "end", shorten(row, 22), "tick"));
      for (const tick of view.xTicks) {
        const x = view.sx(tick.value);
        if (!view.turned) {
          const half = this.textRoom(tick.text) / 2;  // the last number may reach beyond the plot, but not out of the drawing
          text(Math.max(half, Math.min(view.width - half, x)), bottom + 18, "middle", tick.text, "tick");
          continue;
        }
        group.append(svg("text", {class: "tick", "text-anchor": "end", transform: `translate(${(x + 4).toFixed(1)} ${bottom + (view.turned === 90 ? 8 : 14)}) rotate(-${view.turned})`}, tick.text));
      }
      if (spec.kind !== "timeline" && spec.y.label) text(2, 13, "start", spec.y.label, "label");
      if (view.second) text(view.width - 2, 13, "end", spec.y2.label, "label");
      if (spec.x.label) text(view.left + view.w / 2, view.height - 5, "middle", spec.x.label, "label");
      return group;
    }

    marks(view) {
      const group = svg("g", {class: "marks"});
      for (const {x, level, text, leftwards} of view.marks) {
        const y = view.top - 4 - level * 13;
        group.append(svg("path", {d: `M${x.toFixed(1)} ${y}V${view.top + view.h}`}));
        if (text) group.append(svg("text", {x: (x + (leftwards ? -4 : 4)).toFixed(1), y, "text-anchor": leftwards ? "end" : "start"}, text));
      }
      return group;
    }

    // ---- the data as a table

    fillTable() {
      if (!this.table.open) return;
      const {spec} = this;
      const row = (tag, cells) => html("tr", {}, cells.map((cell) => html(tag, {}, cell)));
      let head, body;
      if (spec.kind === "timeline") {
        head = ["", "what", "from", "to"];
        body = spec.spans.map((span) => [spec.rows[span.row] ?? "", span.name, valueText(span.from, spec.x.unit), valueText(span.to, spec.x.unit)]);
      } else {
        const places = this.series.map((series) => new Map(series.x.map((x, i) => [x, i])));
        const xs = [...new Set(this.series.flatMap((series) => series.x))].filter(known).sort((a, b) => a - b);
        head = [spec.x.label || "", ...this.series.map((series) => series.name)];
        body = xs.map((x) => [categories(spec)[x] ?? valueText(x, spec.x.unit), ...this.series.map((series, s) =>
          places[s].has(x) ? this.valueWithRange(series, places[s].get(x)) : "")]);
      }
      const table = html("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": `Data of ${spec.title}`}, html("table", {class: "data", "aria-label": `Data of ${spec.title}`}, html("thead", {}, row("th", head)), html("tbody", {}, body.map((cells) => row("td", cells)))));
      this.table.replaceChildren(this.table.firstElementChild, table);
    }
  }

  return (element, spec) => {
    const chart = new Chart(element, spec);
    return {
      update: (next) => chart.update(next),
      destroy: () => chart.destroy(),
      blob: (type) => lockstepSave.blob(chart.figure, chart.heading(), type),
    };
  };
})();
