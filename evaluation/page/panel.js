/* A run's panel: what is chosen of its attention, and the pictures of that. */

const MOST_NAMED = 6; // words in the sentence that says where a word looks
const LONG = 20; // a matrix of more columns gets more room

class Panel {
  /** changed() is called when the reader has chosen something else. */
  constructor(run, number, changed) {
    this.run = run;
    this.number = number;
    this.changed = changed;
    this.choice = { map: null, layer: null, head: null, word: null };
    this.hovered = { word: null, cell: null };
    const template = document.getElementById("panel");
    this.root = template.content.cloneNode(true).firstElementChild;
    this.root.setAttribute("aria-label", `run ${number}: ${run.name}`);
    this.find("h2").textContent = run.name;
    const on = {
      hover: (word, cell = null) => this.hover(word, cell),
      select: (word, cell = null) => this.select(word, cell),
    };
    this.columns = new Columns(this.find(".columns"), on);
    this.heat = new HeatMap(this.find(".heat"), on);
    this.overview = new Overview(this.find(".overview"), (layer, head) => {
      this.choose({ layer, head });
    });
    for (const name of ["layer", "head"]) {
      const select = this.find(`.${name} select`);
      select.addEventListener("change", () => {
        this.choose({ [name]: select.value === MEAN ? MEAN : Number(select.value) });
      });
    }
  }

  find(selector) {
    return this.root.querySelector(selector);
  }

  /** Shows a sentence's attention in words or pieces, as far as it can with what was chosen. */
  show(attention, unit) {
    Object.assign(this, { attention, unit });
    this.hovered = { word: null, cell: null };
    this.settle();
    const map = this.map();
    const axes = [attention.axis(map, "q"), attention.axis(map, "k")];
    this.find(".target .text").textContent = attention.target || "(empty)";
    this.fillControls(map);
    this.columns.build(...axes, unit);
    this.heat.build(...axes, unit);
    this.overview.build(attention, map, unit);
    this.find(".pictures").classList.toggle("long", axes[1][unit].length > LONG);
    this.update();
  }

  map() {
    return this.attention.map(this.choice.map);
  }

  /** Puts what cannot be shown back to what is shown at first. */
  settle() {
    const { choice } = this;
    const map = this.map();
    choice.map = map.name;
    if (!(choice.layer >= 1 && choice.layer <= map.layers)) {
      const preferred = map.name === "alignment" ? this.run.layer : null;
      choice.layer = preferred <= map.layers ? preferred || map.layers : map.layers;
    }
    if (!headsOf(map).includes(choice.head)) choice.head = headsOf(map)[0];
    const { word } = choice;
    const labels = word && this.attention.axis(map, word.side)[this.unit];
    if (word && !(word.index >= 0 && word.index < labels.length)) choice.word = null;
  }

  fillControls(map) {
    const titles = this.attention.maps.map(({ name, title }) => [name, title]);
    fillChoice(this.find(".maps"), `map${this.number}`, titles, map.name, (name) => {
      this.choose({ map: name, word: this.wordIn(this.attention.map(name)) });
    });
    const layers = Array.from({ length: map.layers }, (_, i) => [i + 1, String(i + 1)]);
    const heads = headsOf(map).map((head) => [head, head === MEAN ? "mean of all" : String(head)]);
    fillSelect(this.find(".layer select"), layers, this.choice.layer);
    fillSelect(this.find(".head select"), heads, this.choice.head);
    this.find(".layer").hidden = map.layers === 1;
    this.find(".head").hidden = map.heads === 1;
  }

  /** The chosen word, if it stands in another map as well. */
  wordIn(other) {
    const { word } = this.choice;
    const axes = word && [this.map(), other].map((map) => this.attention.axis(map, word.side));
    return axes && axes[0] === axes[1] ? word : null;
  }

  /** The chosen word in the other unit: the word that a piece is of, or its first piece. */
  wordAs(unit) {
    const { word } = this.choice;
    if (!word || unit === this.unit) return word;
    const { owner } = this.attention.axis(this.map(), word.side);
    const index = unit === "words" ? owner[word.index] : owner.indexOf(word.index);
    return index < 0 ? null : { ...word, index };
  }

  choose(changes) {
    const map = this.choice.map;
    Object.assign(this.choice, changes);
    if (this.choice.map !== map) {
      this.show(this.attention, this.unit);
      this.find(".maps input:checked").focus();
    } else {
      this.update();
    }
    this.changed();
  }

  hover(word, cell) {
    this.hovered = { word, cell };
    this.highlight();
  }

  select(word, cell) {
    this.choice.word = word;
    this.hovered = { word: null, cell };
    this.highlight();
    this.changed();
  }

  /** Draws the chosen layer and head. */
  update() {
    const { layer, head } = this.choice;
    const map = this.map();
    this.matrix = this.attention.matrix(map, this.unit, layer, head);
    this.find(".layer select").value = layer;
    this.find(".head select").value = head;
    this.find(".where").textContent = [
      `checkpoint ${this.run.checkpoint}`,
      map.title,
      `layer ${layer} of ${map.layers}`,
      head === MEAN ? `mean of ${map.heads} heads` : `head ${head} of ${map.heads}`,
      this.run.targets,
    ].join(" · ");
    this.overview.mark(layer, head);
    this.highlight();
  }

  /** Draws what is pointed at, or else what is chosen, or else everything. */
  highlight() {
    const { word, cell } = this.hovered;
    const active = word ?? this.choice.word;
    this.columns.draw(this.matrix, active, this.choice.word);
    this.heat.draw(this.matrix, active, cell);
    this.find(".readout").replaceChildren(...this.told(active, cell));
  }

  /** Where the active word looks, in words. */
  told(active, cell) {
    if (!active) return ["Point at a word, tap it, or reach it with Tab, to see where it looks."];
    const map = this.map();
    const labels = (side) => this.attention.axis(map, side)[this.unit];
    const name = (text) => make("b", {}, ...label(text));
    const value = (weight) => make("span", { className: "value" }, number(weight));
    const verb = active.side === "q" ? " looks at " : " is looked at by ";
    const others = labels(active.side === "q" ? "k" : "q");
    const weights = this.matrix.of(active);
    const order = cell
      ? [cell.column]
      : [...weights.keys()].sort((a, b) => weights[b] - weights[a]).slice(0, MOST_NAMED);
    const items = order
      .filter((i) => cell || weights[i] >= 0.5 / 10 ** FIGURES)
      .map((i) => make("span", { className: "item" }, name(others[i]), " ", value(weights[i])))
      .flatMap((item, i) => (i ? [" · ", item] : [item]));
    const subject = make("span", { className: "item" }, name(labels(active.side)[active.index]));
    return [subject, verb, ...(items.length ? items : ["nothing"])];
  }

  /** Paints again, in the colours of another theme. */
  repaint() {
    this.overview.build(this.attention, this.map(), this.unit);
    this.heat.matrix = null;
    this.update();
  }
}
