// Charts that stay while their data grows, with their zoom and hidden series.
import {el} from "./dom.js";

export class LiveCharts {
  constructor() { this.charts = new Map(); }

  // places: group -> element; entries come from the server: {group, chart}.
  update(entries, places) {
    const seen = new Set();
    for (const {group, chart} of entries) {
      const place = places[group];
      if (!place) continue;
      const key = `${group}/${chart.id}`;
      seen.add(key);
      const there = this.charts.get(key);
      if (there) {
        const text = JSON.stringify(chart);
        if (there.text !== text) there.chart.update(chart);
        there.text = text;
        continue;
      }
      const box = el("div", {class: "card", "data-chart": chart.id});
      place.append(box);
      this.charts.set(key, {box, text: JSON.stringify(chart), chart: lockstepChart(box, chart)});
    }
    for (const [key, there] of this.charts) {
      if (!seen.has(key)) this.remove(key, there);
    }
  }

  remove(key, {box, chart}) {
    chart.destroy();
    box.remove();
    this.charts.delete(key);
  }

  clear() { for (const [key, there] of this.charts) this.remove(key, there); }

  // Removes the charts of one group, for instance when their axis changes.
  clearGroup(group) {
    for (const [key, there] of this.charts) if (key.startsWith(`${group}/`)) this.remove(key, there);
  }
}
