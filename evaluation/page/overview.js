/* Small pictures of all layers and heads of a map, each of which chooses its own. */

class Overview {
  /** pick(layer, head) is called with what is chosen. */
  constructor(root, pick) {
    this.root = root;
    this.pick = pick;
    root.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.columns, ArrowDown: this.columns };
    const at = this.buttons.findIndex(({ button }) => button === event.target);
    const next = this.buttons[at + steps[event.key]];
    if (!next) return;
    event.preventDefault();
    next.button.focus();
    this.pick(next.layer, next.head);
  }

  build(attention, map, unit) {
    const heads = headsOf(map);
    this.columns = heads.length;
    this.root.hidden = map.layers * map.heads === 1;
    this.root.style.setProperty("--heads", this.columns);
    const top = heads.map((head) => make("span", { className: "name" }, String(head)));
    const corner = make("span", { className: "name corner" }, "head");
    this.root.replaceChildren(corner, ...top);
    this.buttons = [];
    for (let layer = 1; layer <= map.layers; layer++) {
      this.root.append(make("span", { className: "name" }, `layer ${layer}`));
      for (const head of heads) this.root.append(this.button(attention, map, unit, layer, head));
    }
  }

  button(attention, map, unit, layer, head) {
    const canvas = make("canvas");
    const name = head === MEAN ? `layer ${layer}, mean of heads` : `layer ${layer}, head ${head}`;
    const button = make("button", { type: "button", title: name }, canvas);
    button.setAttribute("aria-label", name);
    button.addEventListener("click", () => this.pick(layer, head));
    this.buttons.push({ button, canvas, layer, head });
    this.root.append(button); // the ink is known only of what is on the page
    paintPixels(canvas, attention.matrix(map, unit, layer, head));
    return button;
  }

  mark(layer, head) {
    for (const one of this.buttons) {
      const chosen = one.layer === layer && one.head === head;
      one.button.setAttribute("aria-pressed", chosen);
      one.button.tabIndex = chosen ? 0 : -1; // from there the arrow keys lead to the others
    }
  }
}

/** The heads of a map that can be chosen: of several, also their mean. */
function headsOf(map) {
  const heads = Array.from({ length: map.heads }, (_, i) => i + 1);
  return map.heads > 1 ? [MEAN, ...heads] : heads;
}
