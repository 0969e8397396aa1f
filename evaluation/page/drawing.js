/* What all pictures share: the scale of colour, and making elements. */

/** How strong the colour of a weight is, from 0 to 1: small weights are lifted, order is kept. */
const strength = (weight) => weight ** 0.7;

const number = (weight) => weight.toFixed(FIGURES);

/** A new element with these properties and children; text is never read as HTML. */
function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/** The label of a word or piece; the mark of a space, which begins a word, stands back. */
function label(text) {
  return text.startsWith("▁")
    ? [make("span", { className: "space" }, "▁"), text.slice(1)]
    : [text];
}

/** Red, green and blue of the ink in which an element's weights are drawn. */
function inkOf(element) {
  return getComputedStyle(element).color.match(/\d+/g).slice(0, 3).map(Number);
}

/** A picture of the matrix with one pixel for each cell, which style enlarges. */
function paintPixels(canvas, matrix) {
  canvas.width = matrix.columns;
  canvas.height = matrix.rows;
  const image = new ImageData(matrix.columns, matrix.rows);
  const ink = inkOf(canvas);
  matrix.weights.forEach((weight, i) => {
    image.data.set([...ink, Math.round(255 * strength(weight))], 4 * i);
  });
  canvas.getContext("2d").putImageData(image, 0, 0);
}

/** Options of a choice in which one is always chosen: radio buttons, for their keys. */
function fillChoice(fieldset, name, options, chosen, pick) {
  fieldset.replaceChildren(fieldset.querySelector("legend"));
  for (const [value, text] of options) {
    const input = make("input", { type: "radio", name, value, checked: value === chosen });
    input.addEventListener("change", () => pick(value));
    fieldset.append(make("label", {}, input, make("span", {}, text)));
  }
}

function fillSelect(select, options, chosen) {
  select.replaceChildren(...options.map(([value, text]) => make("option", { value }, text)));
  select.value = chosen;
}
