// The pictures that a run drew at its evaluations: the newest, and earlier ones by a slider over the steps.
import {el} from "./dom.js";
import * as format from "./format.js";

export class Pictures {
  constructor(place, id) {
    this.place = place;
    this.id = id;
    this.kinds = new Map();  // name -> {card, image, slider, text, list}
    place.hidden = true;
    place.append(el("section", {}, el("h2", {}, "Pictures"), this.cards = el("div", {class: "cards"})));
  }

  // list: {file, name, step}, by step within each name.
  update(list) {
    this.place.hidden = list.length === 0;
    for (const name of new Set(list.map((picture) => picture.name))) {
      const kind = this.kinds.get(name) || this.add(name);
      const newest = kind.list.length === 0 || Number(kind.slider.value) === kind.list.length - 1;
      kind.list = list.filter((picture) => picture.name === name);
      kind.slider.max = kind.list.length - 1;
      kind.slider.hidden = kind.list.length < 2;
      if (newest) kind.slider.value = kind.list.length - 1;
      this.show(kind);
    }
  }

  add(name) {
    const image = el("img", {class: "drawn", alt: ""});
    const text = el("span", {class: "soft small number"});
    const slider = el("input", {type: "range", min: 0, max: 0, step: 1, value: 0, "aria-label": `Step of ${name}`, oninput: () => this.show(kind)});
    const card = el("div", {class: "card", "data-picture": name}, el("div", {class: "title"}, el("h3", {}, name.charAt(0).toUpperCase() + name.slice(1)), text), image, slider);
    const kind = {name, card, image, slider, text, list: []};
    this.kinds.set(name, kind);
    this.cards.append(card);
    return kind;
  }

  show(kind) {
    const picture = kind.list[Math.min(Number(kind.slider.value), kind.list.length - 1)];
    const address = `picture/${encodeURIComponent(this.id)}/${encodeURIComponent(picture.file)}`;
    if (kind.image.getAttribute("src") !== address) kind.image.setAttribute("src", address);
    kind.image.alt = `${kind.name} after step ${picture.step}`;
    kind.text.textContent = `after step ${format.count(picture.step)}`;
  }
}
