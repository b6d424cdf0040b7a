// Draws the inside of a plot: lines with bands and markers, bars, stacks, timelines. Each function takes a view
// (scales, size, visible series) and returns SVG elements. Colours are CSS variables of the page.
const lockstepDraw = (() => {
  "use strict";
  const {svg} = lockstepDom;
  const {known} = lockstepScale;
  const kColors = 8;
  const kShapes = ["circle", "square", "triangle", "diamond", "down", "cross"];

  // The series as drawn, each with its colour, shape and position. A timeline has one series per name of its spans.
  function seriesOf(spec) {
    let list = (spec.series || []).map((series) => ({...series}));
    if (spec.kind === "timeline") {
      const names = [...new Set(spec.spans.map((span) => span.name))];
      list = names.map((name) => ({...list.find((series) => series.name === name), name, x: [], y: [],
                                   spans: spec.spans.filter((span) => span.name === name)}));
    }
    let next = 0;
    const used = new Map();
    list.forEach((series, order) => {
      series.order = order;
      series.same = twinOf(list, order);
      series.tint = series.color >= 0 ? series.color : next++;
      series.shape = series.tint + (used.get(series.tint) || 0);
      used.set(series.tint, (used.get(series.tint) || 0) + 1);
    });
    return list;
  }

  // Returns the name of the first series before this one with the same points; undefined if there is none.
  function twinOf(list, order) {
    const {x, y, second_axis: second, spans} = list[order];
    if (spans || !y.some(known)) return undefined;
    const equal = (a, b) => a.length === b.length && a.every((value, i) => value === b[i]);
    return list.slice(0, order).find((other) => !other.second_axis === !second && equal(other.x, x) && equal(other.y, y))?.name;
  }

  const color = (index) => `--c: var(--series-${((index % kColors) + kColors) % kColors})`;
  const at = (number) => Math.round(number * 100) / 100;

  function markerPath(shape, x, y, r) {
    const p = (dx, dy) => `${at(x + dx * r)} ${at(y + dy * r)}`;
    switch (kShapes[shape % kShapes.length]) {
      case "square": return `M${p(-0.9, -0.9)}L${p(0.9, -0.9)}L${p(0.9, 0.9)}L${p(-0.9, 0.9)}Z`;
      case "triangle": return `M${p(0, -1.2)}L${p(1.1, 0.8)}L${p(-1.1, 0.8)}Z`;
      case "diamond": return `M${p(0, -1.3)}L${p(1.2, 0)}L${p(0, 1.3)}L${p(-1.2, 0)}Z`;
      case "down": return `M${p(0, 1.2)}L${p(1.1, -0.8)}L${p(-1.1, -0.8)}Z`;
      case "cross": return `M${p(-1.1, -0.4)}L${p(-0.4, -0.4)}L${p(-0.4, -1.1)}L${p(0.4, -1.1)}L${p(0.4, -0.4)}` +
        `L${p(1.1, -0.4)}L${p(1.1, 0.4)}L${p(0.4, 0.4)}L${p(0.4, 1.1)}L${p(-0.4, 1.1)}L${p(-0.4, 0.4)}L${p(-1.1, 0.4)}Z`;
      default: return `M${p(-1, 0)}A${at(r)} ${at(r)} 0 1 1 ${p(1, 0)}A${at(r)} ${at(r)} 0 1 1 ${p(-1, 0)}Z`;
    }
  }

  // Returns the parts of a series between gaps, as positions.
  function pieces(series, sx, sy, value) {
    const result = [];
    let piece = null;
    series.x.forEach((x, i) => {
      const y = value(i);
      const drawn = known(x) && known(y) && (!sx.log || x > 0) && (!sy.log || y > 0);
      if (!drawn) {
        piece = null;
        return;
      }
      if (!piece) result.push(piece = []);
      piece.push([at(sx(x)), at(sy(y)), i]);
    });
    return result;
  }

  const join = (points) => points.map(([x, y]) => `${x} ${y}`).join("L");

  function band(series, sx, sy) {
    if (!series.low || !series.high || !series.low.length) return null;
    const floor = (value) => sy.log && !(value > 0) ? sy.domain[0] : value;
    const parts = pieces(series, sx, sy, (i) => known(series.low[i]) && known(series.high[i]) ? series.y[i] : null);
    const path = parts.filter((piece) => piece.length > 1).map((piece) => {
      const high = piece.map(([x, , i]) => [x, at(sy(series.high[i]))]);
      const low = piece.map(([x, , i]) => [x, at(sy(floor(series.low[i])))]).reverse();
      return `M${join(high)}L${join(low)}Z`;
    }).join("");
    return path ? svg("path", {class: "band", d: path}) : null;
  }

  // Returns all points of a short series. Of a long one, returns a few at positions of its own, to tell it from others.
  function markedPoints(points, order, alone) {
    if (points.length <= 24) return points;
    if (alone) return [];
    const every = Math.ceil(points.length / 6);
    return points.filter((_, i) => i % every === Math.floor(every * (0.3 + 0.11 * order)) % every);
  }

  function line(view, series) {
    const sx = view.sx, sy = series.second_axis ? view.sy2 : view.sy;
    const parts = pieces(series, sx, sy, (i) => series.y[i]);
    const raw = series.raw ? pieces(series, sx, sy, (i) => series.raw[i]) : [];
    const points = parts.flat();
    const few = points.length <= 24;
    const marks = markedPoints(points, series.order, view.shown.length < 2)
      .map(([x, y]) => markerPath(series.shape, x, y, few ? 3.6 : 3.2)).join("");
    return svg("g", {class: "series" + (series.dashed ? " dashed" : series.same ? " same" : ""), style: color(series.tint), "data-series": series.name},
      band(series, sx, sy),
      raw.length ? svg("path", {class: "raw", d: raw.map((piece) => "M" + join(piece)).join("")}) : null,
      svg("path", {class: "line", d: parts.map((piece) => "M" + join(piece)).join("")}),
      marks ? svg("path", {class: "markers", d: marks}) : null);
  }

  function bar(series, x, width, from, to) {
    const top = Math.min(from, to), height = Math.max(Math.abs(to - from), 0.5);
    const r = Math.min(2.5, width / 2, height);
    const d = to <= from
      ? `M${at(x)} ${at(top + height)}V${at(top + r)}q0 ${-at(r)} ${at(r)} ${-at(r)}h${at(width - 2 * r)}q${at(r)} 0 ${at(r)} ${at(r)}V${at(top + height)}Z`
      : `M${at(x)} ${at(top)}h${at(width)}v${at(height)}h${-at(width)}Z`;
    return svg("path", {class: "bar", d, fill: series.dashed ? "none" : null});
  }

  function whisker(x, low, high) {
    const w = 4;
    return svg("path", {class: "whisker", d: `M${at(x)} ${at(low)}V${at(high)}M${at(x - w)} ${at(low)}h${2 * w}M${at(x - w)} ${at(high)}h${2 * w}`});
  }

  // Places the bars of a group: its left edge relative to the middle, and the width of a bar.
  function grouping(view, count) {
    const step = view.slot * 0.78;
    const gap = count > 1 && step / count > 6 ? 2 : 0;
    const width = Math.max(1, Math.min(54, step / count - gap));
    return {width, pitch: width + gap, left: -((width + gap) * count - gap) / 2};
  }

  // Returns the values of a series in the unit of the axis, which names it.
  function barTexts(series, unit, most) {
    const {factor} = lockstepScale.unitScale(unit, most);
    return series.y.map((value) => known(value) ? lockstepScale.valueText(Number((value * factor).toPrecision(3)), "") : "");
  }

  function bars(view) {
    const {width, pitch, left} = grouping(view, view.shown.length);
    const many = view.spec.x.categories.length * view.shown.length > 16;
    return view.shown.map((series, place) => {
      const sy = series.second_axis ? view.sy2 : view.sy;
      const base = sy(sy.log ? sy.domain[0] : Math.max(0, sy.domain[0]));
      const unit = (series.second_axis ? view.spec.y2 : view.spec.y).unit;
      const texts = barTexts(series, unit, sy.domain[1]);
      const labels = !many && Math.max(...texts.map((text) => text.length)) * 6.4 <= Math.max(width, pitch);
      const group = svg("g", {class: "series" + (series.dashed ? " dashed" : ""), style: color(series.tint), "data-series": series.name});
      series.x.forEach((x, i) => {
        if (!known(series.y[i]) || (sy.log && series.y[i] <= 0)) return;
        const begin = view.sx(x) + left + place * pitch;
        const end = sy(series.y[i]);
        group.append(bar(series, begin, width, base, end));
        const spread = series.low && known(series.low[i]) && known(series.high[i]) && series.high[i] > series.low[i];
        if (spread) group.append(whisker(begin + width / 2, sy(Math.max(series.low[i], sy.domain[0])), sy(series.high[i])));
        if (labels) {
          const top = spread ? Math.min(end, sy(series.high[i])) : end;
          group.append(svg("text", {class: "value", x: at(begin + width / 2), y: at(top - 5), "text-anchor": "middle"},
            texts[i]));
        }
      });
      return group;
    });
  }

  function stacks(view) {
    const width = Math.max(2, Math.min(72, view.slot * 0.62));
    const tops = new Map();
    return view.shown.map((series) => {
      const group = svg("g", {class: "series stack", style: color(series.tint), "data-series": series.name});
      series.x.forEach((x, i) => {
        if (!known(series.y[i]) || series.y[i] <= 0) return;
        const from = tops.get(x) || 0;
        tops.set(x, from + series.y[i]);
        const top = view.sy(from + series.y[i]);
        group.append(svg("rect", {class: "bar", x: at(view.sx(x) - width / 2), y: at(top), width: at(width),
                                  height: at(Math.max(0, view.sy(from) - top))}));
      });
      return group;
    });
  }

  function spans(view) {
    const height = Math.min(22, view.row * 0.62);
    return view.shown.map((series) => svg("g", {class: "series spans", style: color(series.tint), "data-series": series.name},
      series.spans.map((span) => {
        const from = view.sx(span.from), to = view.sx(span.to);
        return svg("rect", {class: "bar", x: at(from), y: at(view.rowPlace(span.row) - height / 2), width: at(Math.max(to - from, 1.5)),
                            height: at(height), rx: 3});
      })));
  }

  // Draws the sample of a series for a legend or a tooltip.
  function swatch(series, kind) {
    const solid = kind === "bar" || kind === "stack" || kind === "timeline";
    return svg("svg", {class: "swatch", width: 22, height: 12, viewBox: "0 0 22 12", "aria-hidden": "true"},
      svg("g", {class: "series" + (series.dashed ? " dashed" : ""), style: color(series.tint)}, solid
        ? svg("rect", {class: "bar", x: 4, y: 1, width: 14, height: 10, rx: 2.5})
        : [svg("path", {class: "line", d: "M1 6L21 6"}),
           svg("path", {class: "markers", d: markerPath(series.shape, 11, 6, 3.4)})]));
  }

  return {line, bars, stacks, spans, swatch, markerPath, color, seriesOf};
})();
