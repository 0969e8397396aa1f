"use strict";

/* The data of the page: weights unpacked, labels, and the matrix of a layer and head. */

const MEAN = "mean"; // stands for a head: the mean of all
const FIGURES = 3; // decimals of a weight

/** The weights of a view as whole parts of 1 / precision: what pack() of attention_page.py packs. */
async function unpack(text) {
  const packed = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const count = bytes.length / 2;
  return Uint16Array.from({ length: count }, (_, i) => bytes[i] + 256 * bytes[count + i]);
}

/** Weights between queries (rows) and keys (columns). */
class Matrix {
  constructor(rows, columns, weights) {
    Object.assign(this, { rows, columns, weights });
  }

  at(row, column) {
    return this.weights[row * this.columns + column];
  }

  /** What one word gives (a query) or gets (a key), for each word of the other side. */
  of({ side, index }) {
    return side === "q"
      ? Array.from({ length: this.columns }, (_, column) => this.at(index, column))
      : Array.from({ length: this.rows }, (_, row) => this.at(row, index));
  }
}

/** All the attention of one run on one sentence. */
class Attention {
  static async of(view, precision) {
    return new Attention(view, await unpack(view.weights), precision);
  }

  constructor(view, parts, precision) {
    Object.assign(this, { target: view.target, axes: view.axes, parts, precision });
    this.maps = view.maps.map((map) => ({ ...map }));
    let start = 0;
    for (const map of this.maps) {
      map.start = {};
      for (const unit of ["words", "pieces"]) {
        map.start[unit] = start;
        const [rows, columns] = this.shape(map, unit);
        start += map.layers * map.heads * rows * columns;
      }
    }
    if (start !== parts.length) throw new Error("the weights do not fit their labels");
  }

  /** The map of this name, or the first. */
  map(name) {
    return this.maps.find((map) => map.name === name) ?? this.maps[0];
  }

  /** The axis of a side: its heading, words, pieces, and of each piece the word that owns it. */
  axis(map, side) {
    return this.axes[side === "q" ? map.queries : map.keys];
  }

  shape(map, unit) {
    return [this.axis(map, "q")[unit].length, this.axis(map, "k")[unit].length];
  }

  /** The matrix of a layer (from 1 on) and a head (from 1 on, or MEAN). */
  matrix(map, unit, layer, head) {
    const [rows, columns] = this.shape(map, unit);
    const size = rows * columns;
    const heads = head === MEAN ? [...Array(map.heads).keys()] : [head - 1];
    const weights = new Float64Array(size);
    for (const one of heads) {
      const start = map.start[unit] + ((layer - 1) * map.heads + one) * size;
      for (let i = 0; i < size; i++) weights[i] += this.parts[start + i];
    }
    const whole = this.precision * heads.length;
    return new Matrix(rows, columns, weights.map((sum) => sum / whole));
  }
}
