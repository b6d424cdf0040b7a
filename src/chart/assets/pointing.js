// Pointing, dragging and keys on a chart (chart.js): shows values and zooms. Uses the chart's spec, the view of its
// last drawing, and its elements plot, hover, tip and frame.
const lockstepPointing = (() => {
  "use strict";
  const {html, svg} = lockstepDom;
  const {known, valueText} = lockstepScale;
  const draw = lockstepDraw;

  const isDiscrete = (spec) => spec.kind === "bar" || spec.kind === "stack" || categories(spec).length > 0;
  const categories = (spec) => (spec.x && spec.x.categories) || [];

  class Pointing {
    position(event) {
      const box = this.plot.getBoundingClientRect();
      const factor = this.view.width / box.width;
      return [(event.clientX - box.left) * factor, (event.clientY - box.top) * factor];
    }

    moved(event) {
      const [x, y] = this.position(event);
      if (this.drag) {
        this.drag.to = Math.max(this.view.left, Math.min(this.view.left + this.view.w, x));
        this.drawDrag();
        return;
      }
      if (x < this.view.left - 8 || x > this.view.left + this.view.w + 8) this.hideHover();
      else this.showAt(x, y);
    }

    pressed(event) {
      if (event.button !== 0 || isDiscrete(this.spec)) return;
      const [x] = this.position(event);
      if (x < this.view.left || x > this.view.left + this.view.w) return;
      this.drag = {from: x, to: x};
      try { this.plot.setPointerCapture(event.pointerId); } catch { /* a pointer that is gone already */ }
    }

    released(event) {
      const drag = this.drag;
      this.endDrag();
      if (!drag) return;
      const [from, to] = [Math.min(drag.from, drag.to), Math.max(drag.from, drag.to)];
      if (to - from >= 8) this.setZoom([this.view.sx.invert(from), this.view.sx.invert(to)]);
      else this.moved(event);
    }

    endDrag() {
      this.drag = null;
      this.hover.replaceChildren();
    }

    drawDrag() {
      const {from, to} = this.drag;
      this.tip.hidden = true;
      this.hover.replaceChildren(svg("rect", {class: "zoom", x: Math.min(from, to), y: this.view.top, width: Math.abs(to - from), height: this.view.h}));
    }

    key(event) {
      if (event.key === "Escape") return this.setZoom(null);
      if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return undefined;
      const xs = this.stops().filter((x) => x >= this.view.sx.domain[0] && x <= this.view.sx.domain[1]);
      if (!xs.length) return undefined;
      this.place = Math.max(0, Math.min(xs.length - 1, this.place + (event.key === "ArrowLeft" ? -1 : 1)));
      this.showAt(this.view.sx(xs[this.place]), this.view.top + 20);
      event.preventDefault();
      return undefined;
    }

    stops() {
      if (this.spec.kind === "timeline") return [...new Set(this.spec.spans.flatMap((span) => [span.from, span.to]))].sort((a, b) => a - b);
      return this.xValues();
    }

    hideHover() {
      this.tip.hidden = true;
      if (!this.drag) this.hover?.replaceChildren();
    }

    showAt(px, py) {
      if (this.spec.kind === "timeline") return this.showSpans(px, py);
      const {view} = this;
      const [from, to] = view.sx.domain;
      let best = null;
      for (const x of this.xValues()) {
        if (x < from || x > to) continue;
        if (best === null || Math.abs(view.sx(x) - px) < Math.abs(view.sx(best) - px)) best = x;
      }
      if (best === null) return this.hideHover();
      const rows = this.valuesAt(best);
      const x = view.sx(best);
      this.hover.replaceChildren(isDiscrete(this.spec)
        ? svg("rect", {class: "slot", x: x - view.slot / 2, y: view.top, width: view.slot, height: view.h})
        : svg("path", {class: "cross", d: `M${x.toFixed(1)} ${view.top}v${view.h}`}));
      if (this.spec.kind === "line") {
        for (const {series, i} of rows) {
          const sy = series.second_axis ? view.sy2 : view.sy;
          if (sy.log && series.y[i] <= 0) continue;
          this.hover.append(svg("circle", {class: "dot", style: draw.color(series.tint), cx: view.sx(series.x[i]).toFixed(1), cy: sy(series.y[i]).toFixed(1), r: 4.5}));
        }
      }
      const heading = categories(this.spec)[best] ?? [this.spec.x.unit ? "" : this.spec.x.label, valueText(best, this.spec.x.unit)].filter(Boolean).join(" ");
      return this.showTip(heading, rows.map(({series, i}) => [series, this.valueWithRange(series, i)]), x, py);
    }

    // Returns the point of each series nearest to x, if the series has one close by.
    valuesAt(x) {
      const {view} = this;
      const rows = [];
      for (const series of view.shown) {
        let best = -1;
        series.x.forEach((other, i) => {
          if (!known(other) || !known(series.y[i])) return;
          if (best < 0 || Math.abs(other - x) < Math.abs(series.x[best] - x)) best = i;
        });
        const near = isDiscrete(this.spec) ? 0.5 : 14;
        if (best >= 0 && Math.abs(view.sx(series.x[best]) - view.sx(x)) <= near) rows.push({series, i: best});
      }
      return rows;
    }

    valueWithRange(series, i) {
      const {unit} = series.second_axis ? this.spec.y2 : this.spec.y;
      const low = series.low?.[i], high = series.high?.[i];
      const range = known(low) && known(high) && high > low ? ` (${valueText(low, unit)} to ${valueText(high, unit)})` : "";
      return valueText(series.y[i], unit) + range;
    }

    showSpans(px, py) {
      const {view} = this;
      const row = Math.floor((py - view.top) / view.row);
      const x = view.sx.invert(px);
      const found = view.shown.flatMap((series) => series.spans.filter((span) => span.row === row && span.from <= x && span.to >= x).map((span) => [series, span]));
      this.hover.replaceChildren(svg("path", {class: "cross", d: `M${px.toFixed(1)} ${view.top}v${view.h}`}));
      const unit = this.spec.x.unit;
      const text = ({from, to}) => `${valueText(from, unit)} to ${valueText(to, unit)}, ${valueText(to - from, unit)}`;
      const heading = [this.spec.rows[row], valueText(x, unit)].filter(Boolean).join(", ");
      this.showTip(heading, found.map(([series, span]) => [series, text(span)]), px, py);
    }

    showTip(heading, rows, x, y) {
      this.tip.replaceChildren(html("strong", {}, heading), ...rows.map(([series, value]) =>
        html("div", {}, draw.swatch(series, this.spec.kind), html("span", {class: "tip-name"}, series.name), html("span", {class: "tip-value"}, value))));
      this.tip.hidden = false;
      const factor = this.plot.getBoundingClientRect().width / this.view.width;
      const room = this.frame.clientWidth;
      const wide = this.tip.offsetWidth;
      let left = x * factor + 14;
      if (left + wide > room) left = Math.max(0, x * factor - wide - 14);
      this.tip.style.left = `${Math.min(left, Math.max(0, room - wide))}px`;
      this.tip.style.top = `${Math.max(0, Math.min(y * factor - 20, this.plot.clientHeight - this.tip.offsetHeight))}px`;
    }
  }

  return {Pointing, isDiscrete, categories};
})();
