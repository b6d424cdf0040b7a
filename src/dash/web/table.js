// A table that its headings sort, with boxes to choose rows. Rows are known by their key. Columns: {name, title, text
// (left), value(row) to sort by, csv(row) if another value belongs in a file, cell(row), minor (not on phones), label,
// aging (tells how long ago)}. At most `most` rows can be chosen.
import {el, morph} from "./dom.js";

const kFirstRows = 200;

export class Table {
  constructor({columns, key, sort, chosen, most = Infinity, onSort, onChoose, label}) {
    Object.assign(this, {columns, key, chosen, most, onSort, onChoose});
    this.sort = sort;  // {name, down}
    this.rows = [];
    this.drawn = new Map();
    this.all = false;
    this.body = el("tbody");
    this.head = el("tr");
    this.more = el("p", {class: "more", hidden: true});
    this.element = el("div", {}, el("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": label},
      el("table", {class: "data list", "aria-label": label}, el("thead", {}, this.head), this.body)), this.more);
    this.drawHead();
  }

  drawHead() {
    const heading = (column) => {
      const current = column.name === this.sort.name;
      const order = current ? (this.sort.down ? "descending" : "ascending") : null;
      return el("th", {scope: "col", class: this.classOf(column), "aria-sort": order, "data-column": column.name},
        el("button", {type: "button", onclick: () => this.sortBy(column.name)}, column.title,
          el("span", {class: "arrow", "aria-hidden": "true"}, current ? (this.sort.down ? "▼" : "▲") : "")));
    };
    const focused = this.head.contains(document.activeElement) ? document.activeElement.closest("th").dataset.column : null;
    this.head.replaceChildren(...(this.chosen ? [el("th", {class: "box"}, el("span", {class: "hidden-text"}, "Choose"))] : []),
      ...this.columns.map(heading));
    if (focused) this.head.querySelector(`[data-column="${focused}"] button`)?.focus();
  }

  classOf(column) { return [column.text ? "text" : "", column.minor ? "minor" : "", `c-${column.name}`].join(" ").trim(); }

  sortBy(name) {
    const column = this.columns.find((one) => one.name === name);
    this.sort = {name, down: this.sort.name === name ? !this.sort.down : !column.text};
    this.drawHead();
    this.update(this.rows);
    this.onSort?.(this.sort);
  }

  sorted(rows) {
    const column = this.columns.find((one) => one.name === this.sort.name) || this.columns[0];
    const sign = this.sort.down ? -1 : 1;
    const missing = (value) => value === null || value === undefined || value === "" || Number.isNaN(value);
    return rows.map((row) => [column.value(row), row]).sort(([a, rowA], [b, rowB]) => {
      if (missing(a) || missing(b)) return missing(a) - missing(b);  // unknown values last, in either order
      const order = typeof a === "string" ? a.localeCompare(b, "en", {numeric: true}) : a - b;
      return sign * order || this.key(rowA).localeCompare(this.key(rowB), "en", {numeric: true});
    }).map(([, row]) => row);
  }

  // Returns the rows as CSV, in their order, with unrounded values. A text that a spreadsheet would take for a formula is
  // quoted by an apostrophe.
  csv() {
    const cell = (value) => {
      let text = value === null || value === undefined ? "" : String(value);
      if (typeof value === "string" && /^[=+@\-]/.test(text) && !Number.isFinite(Number(text))) text = `'${text}`;
      return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    const lines = [this.columns.map((column) => column.name), ...this.sorted(this.rows).map((row) =>
      this.columns.map((column) => (column.csv || column.value)(row)))];
    return lines.map((line) => `${line.map(cell).join(",")}\n`).join("");
  }

  drawRow(row) {
    const id = this.key(row);
    const box = this.chosen ? el("td", {class: "box"}, el("input", {
      type: "checkbox", checked: this.chosen.has(id), "aria-label": `Choose ${id}`,
      onchange: (event) => { this.chosen[event.target.checked ? "add" : "delete"](id); this.limit(); this.onChoose?.(); },
    })) : null;
    return el("tr", {"data-key": id}, box, this.columns.map((column) =>
      el("td", {class: this.classOf(column), "data-label": column.label || column.title}, column.cell(row))));
  }

  redraw(element, row) {
    [...this.drawRow(row).children].forEach((cell, i) => {
      if (!cell.classList.contains("box")) morph(element.children[i], cell);
    });
    return element;
  }

  // Updates cells that tell how long ago something was: they change even if the data does not.
  age(element, row) {
    this.columns.forEach((column, i) => {
      if (column.aging) morph(element.children[i + (this.chosen ? 1 : 0)].firstChild, column.cell(row));
    });
    return element;
  }

  limit() {
    const full = this.chosen && this.chosen.size >= this.most;
    for (const box of this.body.querySelectorAll("td.box input")) {
      box.disabled = full && !box.checked;
      box.title = box.disabled ? `At most ${this.most} runs can be compared` : "";
    }
  }

  update(rows) {
    this.rows = rows;
    const ordered = this.sorted(rows);
    const shown = this.all ? ordered : ordered.slice(0, kFirstRows);
    const kept = new Map();
    const elements = shown.map((row) => {
      const text = JSON.stringify(row);
      const before = this.drawn.get(this.key(row));
      if (before?.text === text) this.age(before.element, row);
      const entry = before?.text === text ? before : {text, element: before ? this.redraw(before.element, row) : this.drawRow(row)};
      kept.set(this.key(row), entry);
      return entry.element;
    });
    this.drawn = kept;
    const same = elements.length === this.body.children.length && elements.every((one, i) => one === this.body.children[i]);
    if (!same) {
      const focused = this.body.contains(document.activeElement) ? document.activeElement : null;
      this.body.replaceChildren(...elements);
      if (focused?.isConnected) focused.focus();
    }
    this.limit();
    this.more.hidden = shown.length === ordered.length;
    this.more.replaceChildren(`The first ${shown.length} of ${ordered.length}. `,
      el("button", {type: "button", onclick: () => { this.all = true; this.update(this.rows); }}, "Show all"));
  }
}
