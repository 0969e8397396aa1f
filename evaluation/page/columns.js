/* Two columns of words with lines between them: who looks at what. */

const SVG = "http://www.w3.org/2000/svg";
const FAINT = { one: 0.002, all: 0.01 }; // weights below are not drawn, for one word or for all

class Columns {
  /** on: hover(word) and select(word), with null for none. */
  constructor(root, on) {
    this.root = root;
    this.on = on;
    this.svg = root.querySelector("svg");
    this.groups = { q: root.querySelector("[data-side=q]"), k: root.querySelector("[data-side=k]") };
    for (const group of Object.values(this.groups)) this.listen(group);
  }

  /** New words; q and k are the axes of queries and keys. */
  build(q, k, unit) {
    const headings = this.root.querySelectorAll("h3");
    [q, k].forEach((axis, i) => (headings[i].textContent = axis.heading));
    this.words = {};
    for (const [side, axis, does] of [["q", q, "look"], ["k", k, "are looked at"]]) {
      this.words[side] = axis[unit].map((text, index) => this.button(side, index, text));
      this.groups[side].replaceChildren(...this.words[side]);
      this.groups[side].setAttribute("aria-label", `${axis.heading}: ${unit} that ${does}`);
    }
  }

  button(side, index, text) {
    const button = make("button", { type: "button", className: "word", title: text, tabIndex: -1 });
    button.append(make("span", { className: "text" }, ...label(text)));
    button.append(make("span", { className: "weight" }));
    button.dataset.index = index;
    button.word = { side, index };
    return button;
  }

  listen(group) {
    const wordOf = (event) => event.target.closest(".word")?.word ?? null;
    let before = null; // whether the word was chosen before the pointer gave it the focus
    group.addEventListener("pointerover", (event) => {
      if (event.pointerType === "mouse") this.on.hover(wordOf(event));
    });
    group.addEventListener("pointerleave", () => this.on.hover(null));
    group.addEventListener("pointerdown", (event) => {
      before = event.target.closest(".word")?.getAttribute("aria-pressed") ?? null;
    });
    group.addEventListener("focusin", (event) => this.on.select(wordOf(event)));
    group.addEventListener("click", (event) => {
      const button = event.target.closest(".word");
      if (!button) return;
      const chosen = (event.detail ? before : button.getAttribute("aria-pressed")) === "true";
      this.on.select(chosen ? null : button.word);
      before = null;
    });
    group.addEventListener("keydown", (event) => this.key(event, wordOf(event)));
  }

  key(event, word) {
    if (!word || event.altKey || event.ctrlKey || event.metaKey) return;
    const { side, index } = word;
    const last = this.words[side].length - 1;
    const along = { ArrowUp: index - 1, ArrowDown: index + 1, Home: 0, End: last }[event.key];
    if (along !== undefined) {
      this.words[side][Math.min(Math.max(along, 0), last)].focus();
    } else if (event.key === (side === "q" ? "ArrowRight" : "ArrowLeft")) {
      const weights = this.matrix.of(word);
      this.words[side === "q" ? "k" : "q"][weights.indexOf(Math.max(...weights))].focus();
    } else if (event.key === "Escape") {
      this.on.select(null);
    } else {
      return;
    }
    event.preventDefault();
  }

  /** Lines and numbers of the active word, or all lines; chosen: the word that stays. */
  draw(matrix, active, chosen) {
    this.matrix = matrix;
    const weights = active && matrix.of(active);
    this.root.dataset.active = active?.side ?? "";
    for (const [side, buttons] of Object.entries(this.words)) {
      const opposite = active && side !== active.side;
      const tabbed = chosen?.side === side ? chosen.index : 0;
      buttons.forEach((button, i) => {
        const isActive = Boolean(active) && side === active.side && i === active.index;
        button.classList.toggle("active", isActive);
        button.setAttribute("aria-pressed", chosen?.side === side && chosen.index === i);
        button.tabIndex = i === tabbed ? 0 : -1;
        button.style.setProperty("--weight", opposite ? strength(weights[i]) : 0);
        button.lastChild.textContent = opposite ? number(weights[i]) : "";
      });
    }
    this.drawLines(matrix, active);
  }

  drawLines(matrix, active) {
    const rows = Math.max(matrix.rows, matrix.columns);
    this.svg.setAttribute("viewBox", `0 0 100 ${rows}`);
    this.svg.style.setProperty("--rows", rows);
    this.svg.replaceChildren(...lines(matrix, active).map(([row, column, weight]) => {
      const [from, to] = [row + 0.5, column + 0.5];
      const path = document.createElementNS(SVG, "path");
      path.setAttribute("d", `M0 ${from}C45 ${from} 55 ${to} 100 ${to}`);
      path.setAttribute("stroke-opacity", strength(weight).toFixed(3));
      path.setAttribute("stroke-width", (0.6 + 6.4 * weight).toFixed(2));
      Object.assign(path.dataset, { q: row, k: column, weight: number(weight) });
      return path;
    }));
  }
}

/** [row, column, weight] of what is drawn, the strongest last and so on top. */
function lines(matrix, active) {
  const least = active ? FAINT.one : FAINT.all;
  const drawn = [];
  for (let row = 0; row < matrix.rows; row++) {
    for (let column = 0; column < matrix.columns; column++) {
      const weight = matrix.at(row, column);
      const meant = !active || active.index === (active.side === "q" ? row : column);
      if (meant && weight >= least) drawn.push([row, column, weight]);
    }
  }
  return drawn.sort((a, b) => a[2] - b[2]);
}
