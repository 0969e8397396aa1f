/* The page: which sentence, words or subwords, which runs; and the address that keeps it all. */

const UNITS = { words: "words", pieces: "subwords" }; // in the data, and for the reader
const BOTH = "both";
const WAIT = 120; // milliseconds: browsers allow only so many changes of the address

const page = JSON.parse(document.getElementById("data").textContent);
const state = { sentence: 1, unit: "words", run: BOTH, theme: null };
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const byId = (id) => document.getElementById(id);
let panels = [];
let attentions = []; // for each sentence, of each run
let pending = null;

/** What is chosen, as it stands in the address after #. */
function fragment() {
  const told = new URLSearchParams({ sentence: state.sentence, show: UNITS[state.unit] });
  if (panels.length > 1) told.set("run", state.run);
  if (state.theme) told.set("theme", state.theme);
  panels.forEach(({ choice }, i) => {
    const mark = i ? i + 1 : "";
    told.set(`map${mark}`, choice.map);
    told.set(`layer${mark}`, choice.layer);
    told.set(`head${mark}`, choice.head);
    if (choice.word) told.set(`word${mark}`, choice.word.side + (choice.word.index + 1));
  });
  return `#${told}`;
}

/** Takes from the address what it says and what exists; the rest is as at first. */
function readFragment() {
  const told = new URLSearchParams(location.hash.slice(1));
  const sentence = Number(told.get("sentence"));
  state.sentence = page.sentences[sentence - 1] ? sentence : 1;
  state.unit = told.get("show") === UNITS.pieces ? "pieces" : "words";
  const runs = [BOTH, ...page.runs.map((_, i) => String(i + 1))];
  state.run = runs.includes(told.get("run")) ? told.get("run") : BOTH;
  state.theme = ["light", "dark"].includes(told.get("theme")) ? told.get("theme") : null;
  panels.forEach((panel, i) => {
    const mark = i ? i + 1 : "";
    const head = told.get(`head${mark}`);
    const word = /^([qk])(\d+)$/.exec(told.get(`word${mark}`) ?? "");
    panel.choice = {
      map: told.get(`map${mark}`),
      layer: Math.trunc(Number(told.get(`layer${mark}`))),
      head: head === MEAN ? MEAN : Math.trunc(Number(head)),
      word: word && { side: word[1], index: Number(word[2]) - 1 },
    };
  });
}

function writeFragment() {
  clearTimeout(pending);
  pending = setTimeout(() => history.replaceState(null, "", fragment()), WAIT);
}

/** Shows the sentence and the runs that are chosen. */
function show() {
  byId("sentence").value = state.sentence;
  byId("previous").disabled = state.sentence === 1;
  byId("next").disabled = state.sentence === page.sentences.length;
  byId("source").textContent = page.sentences[state.sentence - 1].source;
  for (const name of ["unit", "run"]) {
    for (const input of byId(name).querySelectorAll("input")) {
      input.checked = input.value === state[name];
    }
  }
  panels.forEach((panel, i) => {
    panel.root.hidden = ![BOTH, String(i + 1)].includes(state.run);
    panel.show(attentions[state.sentence - 1][i], state.unit);
  });
  byId("panels").classList.toggle("two", panels.filter(({ root }) => !root.hidden).length > 1);
}

function change(changes) {
  for (const panel of panels) {
    if (changes.sentence) panel.choice.word = null;
    if (changes.unit) panel.choice.word = panel.wordAs(changes.unit);
  }
  Object.assign(state, changes);
  show();
  writeFragment();
}

function isDark() {
  return state.theme ? state.theme === "dark" : prefersDark.matches;
}

function showTheme() {
  document.documentElement.dataset.theme = state.theme ?? "";
  byId("theme").textContent = isDark() ? "☀ Light" : "☾ Dark";
  byId("theme").setAttribute("aria-label", isDark() ? "light theme" : "dark theme");
}

function repaint() {
  showTheme();
  for (const panel of panels) panel.repaint();
}

function fillControls() {
  const shortened = (text) => (text.length > 80 ? `${text.slice(0, 79)}…` : text);
  const sentences = page.sentences.map(({ source }, i) => [i + 1, `${i + 1}. ${shortened(source)}`]);
  fillSelect(byId("sentence"), sentences, state.sentence);
  byId("sentences").hidden = sentences.length === 1;
  fillChoice(byId("unit"), "unit", Object.entries(UNITS), state.unit, (unit) => change({ unit }));
  const runs = page.runs.map((run, i) => [String(i + 1), `${i + 1}: ${run.name}`]);
  fillChoice(byId("run"), "run", [[BOTH, "both"], ...runs], state.run, (run) => change({ run }));
  byId("run").hidden = page.runs.length === 1;
}

function listen() {
  byId("sentence").addEventListener("change", (event) => {
    change({ sentence: Number(event.target.value) });
  });
  for (const [id, step] of [["previous", -1], ["next", 1]]) {
    byId(id).addEventListener("click", () => change({ sentence: state.sentence + step }));
  }
  byId("theme").addEventListener("click", () => {
    state.theme = isDark() ? "light" : "dark";
    repaint();
    writeFragment();
  });
  prefersDark.addEventListener("change", repaint);
  addEventListener("hashchange", () => {
    readFragment();
    showTheme();
    show();
  });
}

async function start() {
  attentions = await Promise.all(page.sentences.map(({ views }) =>
    Promise.all(views.map((view) => Attention.of(view, page.precision)))));
  panels = page.runs.map((run, i) => new Panel(run, i + 1, writeFragment));
  byId("panels").replaceChildren(...panels.map(({ root }) => root));
  readFragment();
  fillControls();
  showTheme();
  show();
  listen();
  document.documentElement.dataset.ready = "yes";
}

start().catch((error) => {
  const advice = typeof DecompressionStream === "undefined" ? "this browser is too old" : error;
  byId("panels").replaceChildren(make("p", { className: "failure" }, `Nothing to see: ${advice}`));
});
