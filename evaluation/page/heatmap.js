/* The matrix of weights with a label at every row and column. */

const CELL = { least: 13, most: 30 }; // pixels
const LEGEND = [0.01, 0.05, 0.1, 0.25, 0.5, 1];

class HeatMap {
  /** on: hover(word, cell) and select(word), with null for none. */
  constructor(root, on) {
    this.root = root;
    this.scroll = root.querySelector(".scroll");
    this.grid = root.querySelector(".grid");
    this.canvas = root.querySelector("canvas");
    const legend = root.querySelector(".legend");
    for (const weight of LEGEND) {
      const swatch = make("i");
      swatch.style.setProperty("--weight", strength(weight));
      legend.append(make("span", {}, swatch, String(weight)));
    }
    this.canvas.addEventListener("pointermove", (event) => {
      const cell = this.cellAt(event);
      if (event.pointerType === "mouse") on.hover({ side: "q", index: cell.row }, cell);
    });
    this.canvas.addEventListener("pointerleave", () => on.hover(null, null));
    this.canvas.addEventListener("click", (event) => {
      on.select({ side: "q", index: this.cellAt(event).row }, this.cellAt(event));
    });
    new ResizeObserver(() => this.resize()).observe(root);
  }

  cellAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const within = (place, count) => Math.min(Math.max(Math.floor(place), 0), count - 1);
    return {
      row: within(((event.clientY - box.top) / box.height) * this.matrix.rows, this.matrix.rows),
      column: within(
        ((event.clientX - box.left) / box.width) * this.matrix.columns,
        this.matrix.columns,
      ),
    };
  }

  /** New words; q and k are the axes of queries and keys. */
  build(q, k, unit) {
    const labels = (axis) => axis[unit].map((text) => make("span", { title: text }, ...label(text)));
    this.grid.querySelector(".across").replaceChildren(...labels(k));
    this.grid.querySelector(".down").replaceChildren(...labels(q));
    this.canvas.setAttribute(
      "aria-label",
      `matrix of weights: ${q[unit].length} rows, ${q.heading}; ` +
        `${k[unit].length} columns, ${k.heading}`,
    );
  }

  draw(matrix, active, cell) {
    if (matrix !== this.matrix) {
      this.matrix = matrix;
      this.resize(true);
    }
    const marked = { q: cell?.row, k: cell?.column };
    if (active) marked[active.side] = active.index;
    for (const [side, name, labels] of [["q", ".row", ".down"], ["k", ".column", ".across"]]) {
      const mark = this.grid.querySelector(name);
      mark.hidden = marked[side] === undefined;
      mark.style.setProperty("--at", marked[side] ?? 0);
      [...this.grid.querySelector(labels).children].forEach((word, i) => {
        word.classList.toggle("active", i === marked[side]);
      });
    }
  }

  /** Fits the cells to the room there is, and paints them if that changes anything. */
  resize(changed = false) {
    if (!this.matrix || !this.root.clientWidth) return;
    const { rows, columns } = this.matrix;
    const room = this.root.clientWidth - this.grid.querySelector(".down").offsetWidth - 2;
    const size = Math.min(Math.max(Math.floor(room / columns), CELL.least), CELL.most);
    if (!changed && size === this.size) return;
    this.size = size;
    this.grid.style.setProperty("--cell", `${size}px`);
    this.scroll.tabIndex = columns * size > room ? 0 : -1; // what scrolls can have the focus
    const scale = window.devicePixelRatio || 1;
    this.canvas.width = columns * size * scale;
    this.canvas.height = rows * size * scale;
    this.canvas.style.width = `${columns * size}px`;
    this.canvas.style.height = `${rows * size}px`;
    const context = this.canvas.getContext("2d");
    context.scale(scale, scale);
    context.fillStyle = `rgb(${inkOf(this.canvas)})`;
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++) {
        context.globalAlpha = strength(this.matrix.at(row, column));
        context.fillRect(column * size, row * size, size - 1, size - 1);
      }
    }
  }
}
