"""The page to look into attention with: its numbers by hand, and itself in a real browser."""

import base64
import json
import re
import shutil
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import architectures
import numpy as np
import pytest
import torch
import toy
import yaml
from playwright.sync_api import Browser, Page, sync_playwright

from data.tokenizer import learn
from decoding.run import GROUPS, Run
from decoding.translator import Attention, Translator, search_with
from evaluation.alignment import merge_words, word_shares
from evaluation.attention_page import Pair, Shown, attention_page, axis, pack, view
from models import checkpoint
from scripts import view_attention

# --- by hand ------------------------------------------------------------------------------------

HOUSE = Pair(["▁the", "▁red", "▁house", "</s>"], ["▁la", "▁mai", "son", "▁rouge", "</s>"])
CROSS = np.array(
    [
        [0.8, 0.0, 0.1, 0.1],
        [0.1, 0.1, 0.7, 0.1],
        [0.1, 0.2, 0.6, 0.1],
        [0.1, 0.8, 0.0, 0.1],
        [0.0, 0.0, 0.0, 1.0],
    ]
)[None, None]
CAUSAL = np.array(
    [
        [1.0, 0.0, 0.0, 0.0, 0.0],
        [0.4, 0.6, 0.0, 0.0, 0.0],
        [0.2, 0.4, 0.4, 0.0, 0.0],
        [0.1, 0.2, 0.3, 0.4, 0.0],
        [0.1, 0.1, 0.2, 0.4, 0.2],
    ]
)[None, None]


def test_the_beginning_and_the_end_are_words_of_their_own() -> None:
    found, shares = word_shares(["<s>", "▁mai", "son", "▁", "rouge", "</s>"])
    assert found == ["<s>", "maison", "rouge", "</s>"]
    np.testing.assert_array_equal(shares.argmax(1), [0, 1, 1, 2, 2, 3])
    np.testing.assert_array_equal(shares.sum(1), 1)
    assert word_shares(["</s>"])[0] == ["</s>"] and word_shares(["<s>"])[0] == ["<s>"]
    assert word_shares(["▁<", "/", "s", ">", "</s>"])[0] == ["<", "/", "s", ">", "</s>"]


def test_words_get_the_sum_over_pieces_looked_at_and_the_mean_over_pieces_that_look() -> None:
    written, read = axis("target", "queries", HOUSE), axis("target", "keys", HOUSE)
    assert written.words == ["la", "maison", "rouge", "</s>"]
    assert read.words == ["<s>", "la", "maison", "rouge"]
    np.testing.assert_allclose(
        merge_words(CAUSAL, written.shares, read.shares)[0, 0],
        [[1, 0, 0, 0], [0.3, 0.5, 0.2, 0], [0.1, 0.2, 0.7, 0], [0.1, 0.1, 0.6, 0.2]],
    )


def test_queries_are_called_by_what_they_write_and_keys_by_what_was_read() -> None:
    assert axis("target", "queries", HOUSE).pieces == ["▁la", "▁mai", "son", "▁rouge", "</s>"]
    assert axis("target", "keys", HOUSE).pieces == ["<s>", "▁la", "▁mai", "son", "▁rouge"]
    assert axis("source", "keys", HOUSE)[:3] == axis("source", "queries", HOUSE)[:3]
    both = axis("both", "keys", HOUSE)
    assert both.words == ["the", "red", "house", "</s>", "<s>", "la", "maison", "rouge"]
    assert both.shares.shape == (9, 8) and both.shares[8].argmax() == 7
    with pytest.raises(ValueError, match="not 'left'"):
        axis("left", "keys", HOUSE)


def unpacked(text: str) -> np.ndarray:

    low, high = np.frombuffer(zlib.decompress(base64.b64decode(text)), np.uint8).reshape(2, -1)
    return (low + 256.0 * high) / 1000


def test_weights_are_packed_to_the_nearest_thousandth() -> None:
    weights = np.random.default_rng(0).dirichlet(np.ones(7), size=(2, 3))
    read = unpacked(pack([weights, np.array([0.0, 1.0])]))
    assert np.abs(read[:-2] - weights.ravel()).max() <= 0.0005
    assert read[-2:].tolist() == [0.0, 1.0]


def test_a_view_holds_words_and_pieces_of_each_map_in_turn() -> None:
    maps = {"alignment": (CROSS, "target", "source"), "self": (CAUSAL, "target", "target")}
    found = view("la maison rouge", HOUSE, maps)
    assert [m["title"] for m in found["maps"]] == ["cross-attention", "self"]
    assert found["axes"]["target queries"]["owner"] == [0, 1, 1, 2, 3]
    merged = [[0.8, 0, 0.1, 0.1], [0.1, 0.15, 0.65, 0.1], [0.1, 0.8, 0, 0.1], [0, 0, 0, 1]]
    numbers = unpacked(found["weights"])
    assert numbers.size == 4 * 4 + 5 * 4 + 4 * 4 + 5 * 5
    np.testing.assert_allclose(numbers[:16], np.ravel(merged))
    np.testing.assert_allclose(numbers[16:36], CROSS.ravel())
    only = view("la maison rouge", HOUSE, {"alignment": (CROSS, "target", "source")})
    assert only["maps"][0]["title"] == "alignment"
    with pytest.raises(ValueError, match=r"alignment: weights of shape .* do not fit 5 queries"):
        view("", HOUSE, {"alignment": (CROSS[..., :3], "target", "source")})


def test_words_are_those_of_the_sentence_where_pieces_are_unknown() -> None:
    pair = Pair(["▁the", "▁", "<unk>", "</s>"], ["</s>"], ["the", "ça"], [])
    assert axis("source", "keys", pair).words == ["the", "ça", "</s>"]
    assert axis("target", "queries", pair).words == ["</s>"]


# --- the file -----------------------------------------------------------------------------------

HOSTILE = (
    '</script><script>boom()</script><b>bold</b> <!-- {{data}} {{style}} \\u003c & "it\'s" -->'
)
DEMO = Shown("toy/transformer/a", "best", "given target", 1)


def house_view(target: str = "la maison rouge") -> dict[str, Any]:
    return view(target, HOUSE, {"alignment": (CROSS, "target", "source")})


class Elements(HTMLParser):
    """The elements of a page, and what its data script holds."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.data = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][1].get("id") == "data" and not self.data:
            self.data = data


def test_hostile_text_stays_text() -> None:
    page = attention_page([Shown(HOSTILE, HOSTILE, "x")], [HOSTILE], [[house_view(HOSTILE)]])
    calm = attention_page([DEMO], ["a"], [[house_view("b")]])
    parsed, expected = Elements(), Elements()
    parsed.feed(page)
    expected.feed(calm)
    assert [tag for tag, _ in parsed.tags] == [tag for tag, _ in expected.tags]
    data = json.loads(parsed.data)
    assert data["sentences"][0]["source"] == data["runs"][0]["name"] == HOSTILE


def test_the_page_is_one_file_that_names_no_other() -> None:
    page = attention_page([DEMO], ["the red house"], [[house_view()]])
    parsed = Elements()
    parsed.feed(page)
    assert not any({"src", "href", "srcset"} & attributes.keys() for _, attributes in parsed.tags)
    assert not re.search(r"@import|url\(|https?://(?!www\.w3\.org/2000/svg)", page)
    assert "default-src 'none'" in page
    assert len(page) < 60_000


def test_a_page_over_its_limit_is_refused_and_what_fits_is_told_exactly() -> None:
    views = [[house_view()]] * 30
    sources = [f"the red house {number:02d}" for number in range(30)]

    def build(count: int, limit: float) -> str:
        return attention_page([DEMO], sources[:count], views[:count], limit)

    limit = len(build(17, 2.0)) / 1e6 + 0.0003
    with pytest.raises(ValueError, match="the first 17 of 30 sentences would fit") as error:
        build(30, limit)
    assert "--limit" in str(error.value)
    assert len(build(17, limit).encode()) <= limit * 1e6
    with pytest.raises(ValueError, match="the first 17 of 18"):
        build(18, limit)
    with pytest.raises(ValueError, match="not one sentence would fit"):
        build(1, 0.01)


# --- the command --------------------------------------------------------------------------------

SOURCE, TARGET = "the big cat sees the bird and hears dogs", "le chat gros voit le merle et entend"


def make_run(folder: Path, name: str, **options: Any) -> Path:
    """A run folder with an untrained small model over subwords of the toy language."""
    settings = architectures.config(name, **options)
    texts = zip(*toy.pairs(60), strict=True)
    tokenizers = [learn(text, type="bpe", size=40) for text in texts]
    torch.manual_seed(1)
    model = checkpoint.build(settings, *(tokenizer.size for tokenizer in tokenizers))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.4)  # so that heads differ clearly
    for part in ("tokenizers", "checkpoints"):
        (folder / part).mkdir(parents=True)
    for side, tokenizer in zip(("src", "tgt"), tokenizers, strict=True):
        (folder / "tokenizers" / f"{side}.model").write_bytes(tokenizer.model)
    content = {
        "model": settings,
        "vocabularies": [tokenizer.size for tokenizer in tokenizers],
        "digests": [tokenizer.digest for tokenizer in tokenizers],
        "weights": model.state_dict(),
    }
    checkpoint.save(folder / "checkpoints" / "best.pt", content)
    config = {group: {} for group in GROUPS}
    config |= {"chosen": {"data": "toy", "model": name}, "model": settings}
    (folder / "config.yaml").write_text(yaml.dump(config), encoding="utf-8")
    return folder


class Runs(dict):
    """A run of each architecture, made when it is asked for."""

    def __missing__(self, name: str) -> Path:
        self[name] = make_run(self["folder"] / name / "a", name)
        return self[name]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(folder=tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def written(runs: Runs, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Writes a page by the command, once for the same arguments; its path."""
    done: dict[tuple[str, ...], Path] = {}

    def write(*arguments: str) -> Path:
        if arguments not in done:
            done[arguments] = tmp_path_factory.mktemp("page") / "page.html"
            named = [str(runs[a]) if a in architectures.NAMES else a for a in arguments]
            view_attention.main([*named, "--output", str(done[arguments])])
        return done[arguments]

    return write


def failure(capsys: pytest.CaptureFixture, *arguments: object) -> str:
    with pytest.raises(SystemExit) as ended:
        view_attention.main([str(argument) for argument in arguments])
    assert ended.value.code == 1
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("error: ")
    return lines[0]


def data_of(path: Path) -> dict[str, Any]:
    parsed = Elements()
    parsed.feed(path.read_text(encoding="utf-8"))
    return json.loads(parsed.data)


def test_the_own_translation_is_shown_as_the_search_found_it(
    runs: Runs, capsys: pytest.CaptureFixture
) -> None:
    view_attention.main([str(runs["bahdanau"]), "--source", SOURCE, "--beam", "2"])
    output = runs["bahdanau"] / "figures" / "attention.html"
    assert capsys.readouterr().out.startswith(f"open {output} in a browser")
    translator = Translator.from_run(Run(runs["bahdanau"]), "cpu")
    (own,) = translator.translate([SOURCE], search_with(2, 1.0))
    data = data_of(output)
    assert data["runs"][0]["targets"] == "own translation, beam of 2"
    shown = data["sentences"][0]["views"][0]
    assert shown["target"] == own.text
    assert shown["axes"]["target queries"]["pieces"] == [*own.pieces, "</s>"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--source", "a", "RUN", "RUN"], "at most two runs"),
        ([], "which sentence?"),
        (["--source", "a", "--source", " "], "source 2 is blank"),
        (["--source", "a", "--target", ""], "target 1 is blank"),
        (["--source", "a", "--target", "b", "--target", "c"], "2 targets do not fit 1 sources"),
        (["--sources", "nowhere.en"], "nowhere.en"),
        (["--source", "a", "--limit", "0"], "--limit must be above 0"),
        (["--source", "a", "--limit", "nan"], "--limit must be above 0"),
        (["--source", "a", "--beam-size", "0"], "beam_size must be at least 1"),
        (["--source", "a", "--output", "."], "a folder"),
        (["--source", "a", "--limit", "0.001"], "more than 0.001: not one sentence would fit"),
        (["--source", "cat " * 1001], "source 1 has 1001 tokens, more than the 1000"),
        (["--source", "a", "--target", "chat " * 1001], "target 1 has 1001 tokens"),
        (["--source", "a"] * 201, "at most 200"),
    ],
)
def test_what_cannot_be_shown_is_said_in_one_line(
    runs: Runs, arguments: list[str], message: str, capsys: pytest.CaptureFixture
) -> None:
    run = str(runs["transformer"])
    assert message in failure(capsys, run, *(run if a == "RUN" else a for a in arguments))


def test_a_model_without_attention_is_named(runs: Runs, capsys: pytest.CaptureFixture) -> None:
    message = failure(capsys, runs["transformer"], runs["rnn"], "--source", "a")
    assert "toy/rnn/a has no attention" in message


# --- in the browser -----------------------------------------------------------------------------

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
QUIET = ("no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-sync")
QUIET += ("disable-background-networking", "disable-component-update")
ONE = ("transformer", "--source", SOURCE, "--target", TARGET)
TWO = ("transformer", "bahdanau", "--source", SOURCE, "--source", "the cat", "--beam", "1")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed here, so the page is not tried in a browser")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=CHROMIUM, args=[f"--{option}" for option in QUIET]
        )
        yield started
        started.close()


class Tabs:
    """A tab without and one with a touch screen, which tests use in turn, and what it told."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        self.requests: list[str] = []
        self.complaints: list[str] = []

    @cache  # noqa: B019
    def tab(self, touch: bool) -> Page:
        page = self.browser.new_context(has_touch=touch).new_page()
        page.set_default_timeout(20_000)
        page.on("request", lambda request: self.requests.append(request.url.split("#")[0]))
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        return page


@pytest.fixture(scope="module")
def tabs(browser: Browser) -> Tabs:
    return Tabs(browser)


@pytest.fixture
def opened(tabs: Tabs) -> Iterator[Callable[..., Page]]:
    """Opens a page anew; at the end nothing else was asked for, and nothing was complained of."""
    tabs.requests.clear()
    tabs.complaints.clear()
    own = set()

    def open_page(
        path: Path, fragment: str = "", *, width: int = 1280, theme: Any = None, touch: bool = False
    ) -> Page:
        page = tabs.tab(touch)
        page.goto("about:blank")
        page.mouse.move(0, 0)
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=theme or "light")
        own.add(path.as_uri())
        page.goto(path.as_uri() + fragment)
        page.wait_for_selector("html[data-ready]")
        return page

    yield open_page
    assert tabs.complaints == []
    assert own <= set(tabs.requests) <= own | {"about:blank"}


def labels(page: Page, side: str, panel: int = 0) -> list[str]:
    words = page.locator(".panel").nth(panel).locator(f"[data-side={side}] .text")
    return words.all_text_contents()


def weights(page: Page, side: str, panel: int = 0) -> list[str]:
    words = page.locator(".panel").nth(panel).locator(f"[data-side={side}] .weight")
    return words.all_text_contents()


def word(page: Page, side: str, text: str, panel: int = 0) -> Any:
    words = page.locator(".panel").nth(panel).locator(f"[data-side={side}] .word")
    return words.nth(labels(page, side, panel).index(text))


def picture(page: Page) -> tuple[str, str]:
    """What is drawn: the lines, and the matrix."""
    return page.evaluate(
        "[document.querySelector('.columns svg').innerHTML,"
        " document.querySelector('.cells canvas').toDataURL()]"
    )


def attention_of(run: Path) -> Attention:
    return Translator.from_run(Run(run), "cpu").attention([SOURCE], [TARGET])[0]


def merged(weights: np.ndarray, queries: list[str], keys: list[str]) -> np.ndarray:
    """Between words, another way than the page's: pieces from "▁" to "▁" are a word here."""

    def starts(pieces: list[str]) -> list[int]:
        return [i for i, p in enumerate(pieces) if p.startswith(("▁", "<s>", "</s>"))]

    summed = np.add.reduceat(weights, starts(keys), axis=1)
    rows = np.split(summed, starts(queries)[1:])
    return np.array([row.mean(0) for row in rows])


EVERY_WEIGHT = """
([layers, heads]) => {
  const set = (name, value) => {
    const select = document.querySelector(`.${name} select`);
    select.value = value;
    select.dispatchEvent(new Event('change'));
  };
  const some = ({ word }) => word.index % 4 < 1; // each costs time
  const words = [...document.querySelectorAll('[data-side=q] .word')].filter(some);
  const rows = () => words.map((word) => {
    word.focus({ preventScroll: true });
    return [...document.querySelectorAll('[data-side=k] .weight')].map((w) => +w.textContent);
  });
  return layers.map((layer) => heads.map((head) => {
    set('layer', layer);
    set('head', head);
    return rows();
  }));
}
"""


@pytest.mark.parametrize("name", architectures.NAMES)
def test_the_numbers_shown_are_the_models_for_every_map_layer_and_head(
    name: str, runs: Runs, written: Callable[..., Path], opened: Callable[..., Page]
) -> None:
    translator = Translator.from_run(Run(runs[name]), "cpu")
    if not translator.has_attention:
        return  # test_a_model_without_attention_is_named
    page = opened(written(name, *ONE[1:]))
    (found,) = translator.attention([SOURCE], [TARGET])
    source = {"queries": found.src_pieces, "keys": found.src_pieces}
    target = {"queries": found.tgt_pieces, "keys": ["<s>", *found.tgt_pieces[:-1]]}
    both = {role: source[role] + target[role] for role in source}
    pieces = {"source": source, "target": target, "both": both}
    for unit in ("words", "subwords"):
        page.get_by_label(unit, exact=True).check()
        for map_name, (weights, queries, keys) in found.maps.items():
            if len(found.maps) > 1:
                page.locator(f".maps input[value='{map_name}']").check()
            layers, heads = weights.shape[:2]
            chosen = ["mean", *range(1, heads + 1)] if heads > 1 else [1]
            shown = page.evaluate(EVERY_WEIGHT, [list(range(1, layers + 1)), chosen])
            for layer, of_layer in enumerate(shown):
                for head, numbers in zip(chosen, of_layer, strict=True):
                    mean = head == "mean"
                    expected = weights[layer].mean(0) if mean else weights[layer, head - 1]
                    if unit == "words":
                        named = pieces[queries]["queries"], pieces[keys]["keys"]
                        expected = merged(expected, *named)
                        assert len(expected) < len(named[0]), "no word has several pieces here"
                    precision = 0.001 if mean else 0.0005
                    np.testing.assert_allclose(
                        numbers, expected[::4], rtol=0, atol=precision + 1e-6
                    )


def test_at_first_the_page_shows_what_align_gives(
    runs: Runs, written: Callable[..., Path], opened: Callable[..., Page]
) -> None:
    page = opened(written(*ONE))
    (aligned,) = Translator.from_run(Run(runs["transformer"]), "cpu").align([SOURCE], [TARGET])
    expected = merged(aligned.weights, aligned.tgt_pieces, aligned.src_pieces)
    word(page, "q", "voit").hover()
    row = labels(page, "q").index("voit")
    np.testing.assert_allclose([float(w) for w in weights(page, "k")], expected[row], atol=0.0011)
    where = page.locator(".where").inner_text()
    for part in ("best", "cross-attention", "layer 2 of 2", "mean of 2 heads", "given target"):
        assert part in where
    assert page.locator("h2").inner_text() == "toy/transformer/a"
    assert "</s>, the end of a sentence, is kept" in page.locator("footer").inner_text()


def test_each_selector_and_each_small_picture_changes_what_is_drawn(
    written: Callable[..., Path], opened: Callable[..., Page]
) -> None:
    page = opened(written(*ONE))
    seen = [picture(page)]

    def changed() -> None:
        lines, cells = picture(page)
        assert all(lines != before[0] and cells != before[1] for before in seen)
        seen.append((lines, cells))

    small = page.locator(".overview button")
    pixels = small.evaluate_all("all => all.map((b) => b.firstChild.toDataURL())")
    assert len(pixels) == len(set(pixels)) == 2 * 3
    page.locator(".head select").select_option("1")
    changed()
    page.locator(".layer select").select_option("1")
    changed()
    page.get_by_role("button", name="layer 1, head 2").click()
    changed()
    assert page.locator(".head select").input_value() == "2"
    assert small.evaluate_all("all => all.map((b) => b.ariaPressed)").count("true") == 1
    page.keyboard.press("ArrowDown")
    changed()
    assert "layer 2 of 2 · head 2" in page.locator(".where").inner_text()
    page.keyboard.press("ArrowUp")
    page.get_by_label("encoder self-attention").check()
    changed()
    assert labels(page, "q") == labels(page, "k") == [*SOURCE.split(), "</s>"]
    page.get_by_label("decoder self-attention").check()
    changed()
    assert labels(page, "k") == ["<s>", *TARGET.split()]
    assert labels(page, "q") == [*TARGET.split(), "</s>"]
    assert "decoder self-attention · layer 1 of 2 · head 2" in page.locator(".where").inner_text()
    for line in page.locator(".columns path").all():  # a word is written from words before it
        assert int(line.get_attribute("data-k")) <= int(line.get_attribute("data-q"))
    page.get_by_label("subwords").check()
    changed()
    assert len(labels(page, "q")) > len(TARGET.split()) + 1


def test_a_recurrent_model_has_one_picture_and_no_needless_selectors(
    written: Callable[..., Path], opened: Callable[..., Page]
) -> None:
    page = opened(written("bahdanau", *ONE[1:]))
    assert "alignment · layer 1 of 1 · head 1 of 1" in page.locator(".where").inner_text()
    for hidden in (".overview", ".layer", ".head", "#run", "#sentences"):
        assert not page.locator(hidden).is_visible()


def test_pointing_shows_a_words_lines_and_numbers_and_leaving_shows_all_again(
    written: Callable[..., Path], opened: Callable[..., Page]
) -> None:
    page = opened(written(*ONE))
    everything = picture(page)[0]
    word(page, "q", "merle").hover()
    row = labels(page, "q").index("merle")
    lines = page.locator(".columns path")
    numbers = dict(enumerate(weights(page, "k")))
    assert {line.get_attribute("data-q") for line in lines.all()} == {str(row)}
    drawn = {int(line.get_attribute("data-k")): line for line in lines.all()}
    assert all(line.get_attribute("data-weight") == numbers[k] for k, line in drawn.items())
    assert all(float(number) < 0.002 for k, number in numbers.items() if k not in drawn)
    order = sorted(drawn, key=lambda k: float(numbers[k]))
    for scale in ("stroke-width", "stroke-opacity"):
        of = [float(drawn[k].get_attribute(scale)) for k in order]
        assert of == sorted(of) and of[-1] > of[0]
    told = page.locator(".readout").inner_text()
    assert re.match(rf"merle looks at {labels(page, 'k')[order[-1]]} {numbers[order[-1]]} ·", told)
    assert set(weights(page, "q")) == {""}
    word(page, "k", "sees").hover()
    assert page.locator(".readout").inner_text().startswith("sees is looked at by ")
    assert set(weights(page, "k")) == {""} and "" not in weights(page, "q")
    page.locator("h1").hover()
    assert picture(page)[0] == everything and set(weights(page, "k")) == {""}


def test_pointing_at_a_cell_tells_its_weight_and_a_click_chooses_its_row(
    written: Callable[..., Path], opened: Callable[..., Page]
) -> None:
    page = opened(written(*ONE))
    canvas = page.locator(".cells canvas")
    box = canvas.bounding_box()
    rows, columns = len(labels(page, "q")), len(labels(page, "k"))
    at = {"x": box["width"] * 3.5 / columns, "y": box["height"] * 2.5 / rows}
    canvas.hover(position=at)
    number = weights(page, "k")[3]
    assert page.locator(".readout").inner_text() == f"{TARGET.split()[2]} looks at sees {number}"
    marked = page.locator(".down .active, .across .active").all_inner_texts()
    assert sorted(marked) == sorted(["sees", TARGET.split()[2]])
    canvas.click(position=at)
    page.locator("h1").hover()
    assert page.locator(".word.active").inner_text() == TARGET.split()[2]


def test_a_tap_chooses_a_word_and_a_second_tap_lets_it_go(
    written: Callable[..., Path], opened: Callable[..., Page]
) -> None:
    page = opened(written(*ONE), width=360, touch=True)
    word(page, "q", "voit").tap()
    assert page.locator(".word.active").inner_text() == "voit"
    assert "" not in weights(page, "k")
    word(page, "k", "bird").tap()
    assert page.locator(".readout").inner_text().startswith("bird is looked at by")
    word(page, "k", "bird").tap()
    assert page.locator(".word.active").count() == 0
    assert page.locator(".readout").inner_text().startswith("Point at a word")


def test_every_control_is_reached_by_the_keyboard_and_shows_that_it_is(
    written: Callable[..., Path], opened: Callable[..., Page]
) -> None:
    page = opened(written(*TWO))
    reached = []
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement === document.body"):
            break
        reached.append(
            page.evaluate(
                """() => {
                const e = document.activeElement;
                const shown = e.matches('[type=radio]') ? e.nextElementSibling : e;
                const outline = getComputedStyle(shown);
                const name = e.ariaLabel ?? e.labels?.[0]?.textContent ?? e.textContent;
                return [e.tagName + ' ' + name.trim().split(' ')[0],
                        outline.outlineStyle !== 'none' && parseFloat(outline.outlineWidth) >= 2];
                }"""
            )
        )
    names = [name for name, _ in reached]
    assert all(seen for _, seen in reached), [name for name, seen in reached if not seen]
    for name in ("BUTTON dark", "SELECT Sentence", "BUTTON next", "INPUT words", "INPUT both"):
        assert name in names
    for name in ("INPUT cross-attention", "SELECT Layer", "SELECT Head", "INPUT alignment"):
        assert name in names
    # of the small pictures and of each column of words one: the arrow keys lead to the others
    assert names.count("BUTTON layer") == 1
    assert len(names) == 5 + 3 + 1 + 2 + 1 + 2


def test_arrow_keys_go_through_words_and_along_the_strongest_line(
    written: Callable[..., Path], opened: Callable[..., Page]
) -> None:
    page = opened(written(*ONE))
    word(page, "q", "le").focus()

    def focused() -> tuple[str, str]:
        """The side and the label; what has the focus is what is shown."""
        side, text, active = page.evaluate(
            "(() => { const e = document.activeElement;"
            " return [e.parentElement.dataset.side, e.querySelector('.text').textContent,"
            " e.matches('.active[aria-pressed=true]')]; })()"
        )
        assert active and page.locator(".word.active").count() == 1
        return side, text

    words = [*TARGET.split(), "</s>"]
    for expected in words[1:]:
        page.keyboard.press("ArrowDown")
        assert focused() == ("q", expected)
    page.keyboard.press("ArrowDown")
    assert focused() == ("q", "</s>")
    page.keyboard.press("ArrowUp")
    assert focused() == ("q", words[-2])
    numbers = weights(page, "k")
    page.keyboard.press("ArrowRight")
    assert focused() == ("k", labels(page, "k")[numbers.index(max(numbers))])
    numbers = weights(page, "q")
    page.keyboard.press("ArrowLeft")
    assert focused() == ("q", labels(page, "q")[numbers.index(max(numbers))])
    page.keyboard.press("Home")
    assert focused() == ("q", words[0])
    page.keyboard.press("End")
    assert focused() == ("q", "</s>")
    page.keyboard.press("Enter")
    assert page.locator(".word.active").count() == 0
    page.keyboard.press("Space")
    assert focused() == ("q", "</s>")
    page.keyboard.press("Escape")
    assert page.locator(".word.active").count() == 0


def shown(page: Page) -> list[Any]:
    """All that the page shows of what was chosen."""
    checked = page.locator("input:checked").evaluate_all("all => all.map((i) => i.value)")
    selects = page.locator("select").evaluate_all("all => all.map((s) => s.value)")
    texts = page.locator(".where, .readout, #source, .word.active").all_inner_texts()
    visible = [panel.is_visible() for panel in page.locator(".panel").all()]
    theme = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return [checked, selects, texts, visible, theme, picture(page)]


def test_the_address_brings_everything_back_in_a_new_page(
    written: Callable[..., Path], opened: Callable[..., Page]
) -> None:
    path = written(*TWO)
    page = opened(path)
    page.locator("#sentence").select_option("2")
    page.get_by_label("subwords").check()
    page.get_by_label("encoder self-attention").check()
    page.locator(".head select").first.select_option("2")
    page.locator(".layer select").first.select_option("1")
    page.locator(".panel").nth(0).locator("[data-side=k] .word").nth(1).click()
    page.locator(".panel").nth(1).locator("[data-side=q] .word").nth(0).click()
    page.get_by_role("button", name="dark theme").click()
    page.locator("h1").hover()
    page.wait_for_url(lambda url: "word2=q1" in url and "theme=dark" in url)
    fragment = page.evaluate("location.hash")
    for part in ("sentence=2", "show=subwords", "run=both", "layer=1", "head=2", "word=k2"):
        assert part in fragment
    before = shown(page)
    assert shown(opened(path, fragment)) == before
    only = opened(path, fragment.replace("run=both", "run=2"))
    assert [panel.is_visible() for panel in only.locator(".panel").all()] == [False, True]
    only.evaluate(f"location.hash = {fragment!r}")  # typed into the address of an open page
    only.locator(".panel").first.wait_for()
    assert shown(only) == before


def test_an_address_that_makes_no_sense_shows_the_page_as_at_first(
    written: Callable[..., Path], opened: Callable[..., Page]
) -> None:
    path = written(*ONE)
    nonsense = "#sentence=9&show=letters&run=7&theme=red&map=__proto__&layer=-1&head=1.5e9&word=q99"
    assert shown(opened(path, nonsense)) == shown(opened(path))
    assert shown(opened(path, "#%%%&word=k0&layer=NaN&head=")) == shown(opened(path))


def test_a_chosen_word_stays_chosen_between_words_and_subwords(
    written: Callable[..., Path], opened: Callable[..., Page]
) -> None:
    page = opened(written(*ONE))
    word(page, "q", "gros").click()
    page.get_by_label("subwords").check()
    first = page.locator(".word.active").inner_text()
    assert first.startswith("▁g") and "▁gros".startswith(first)
    page.get_by_label("words", exact=True).check()
    assert page.locator(".word.active .text").inner_text() == "gros"
    page.get_by_label("decoder self-attention").check()  # it looks there, too
    assert page.locator(".word.active .text").inner_text() == "gros"
    page.get_by_label("encoder self-attention").check()
    assert page.locator(".word.active").count() == 0


def test_two_runs_stand_side_by_side_each_with_its_own_choice(
    runs: Runs, written: Callable[..., Path], opened: Callable[..., Page]
) -> None:
    page = opened(written(*TWO), width=1400)
    left, right = page.locator(".panel").all()
    assert [p.locator("h2").inner_text() for p in (left, right)] == [
        "toy/transformer/a",
        "toy/bahdanau/a",
    ]
    boxes = [panel.bounding_box() for panel in (left, right)]
    assert boxes[0]["y"] == boxes[1]["y"] and boxes[0]["x"] + boxes[0]["width"] < boxes[1]["x"]
    before = right.inner_html()
    left.locator(".layer select").select_option("1")
    left.locator(".word").first.click()
    page.locator("h1").hover()
    assert right.inner_html() == before
    for panel, name in ((left, "transformer"), (right, "bahdanau")):
        translator = Translator.from_run(Run(runs[name]), "cpu")
        (own,) = translator.translate(["the cat"], search_with(1, 1.0))
        page.locator("#sentence").select_option("2")
        assert panel.locator(".target .text").inner_text() == (own.text or "(empty)")
        assert page.locator("#source").inner_text() == "the cat"
    page.get_by_role("button", name="previous sentence").click()
    assert page.locator("#source").inner_text() == SOURCE
    assert page.get_by_role("button", name="previous sentence").is_disabled()
    page.locator("#run input[value='2']").check()
    assert not left.is_visible() and right.is_visible()


def test_a_run_may_stand_beside_itself(
    written: Callable[..., Path], opened: Callable[..., Page]
) -> None:
    page = opened(written("transformer", *ONE), "#head=1&head2=2&layer2=1")
    where = page.locator(".where").all_inner_texts()
    assert "layer 2 of 2 · head 1" in where[0] and "layer 1 of 2 · head 2" in where[1]


def test_positions_of_source_and_target_in_one_map_need_no_change(
    tmp_path: Path, opened: Callable[..., Page]
) -> None:
    causal = np.tril(np.ones((9, 9)))
    causal = (causal / causal.sum(1, keepdims=True))[None, None].repeat(3, axis=1)
    found = view("la maison rouge", HOUSE, {"self-attention": (causal, "both", "both")})
    path = tmp_path / "both.html"
    path.write_text(attention_page([DEMO], ["the red house"], [[found]]), encoding="utf-8")
    page = opened(path, "#head=3")
    source, target = ["the", "red", "house", "</s>"], ["la", "maison", "rouge"]
    assert labels(page, "q") == [*source, *target, "</s>"]
    assert labels(page, "k") == [*source, "<s>", *target]
    word(page, "q", "la").click()
    assert weights(page, "k") == [*["0.200"] * 5, *["0.000"] * 3]
    word(page, "k", "<s>").click()
    assert weights(page, "q") == [*["0.000"] * 4, "0.200", "0.155", "0.125", "0.111"]


def test_hostile_text_is_shown_as_text_and_runs_nothing(
    tmp_path: Path, opened: Callable[..., Page]
) -> None:
    pieces = ["▁</script><b>", "</s>"]
    pair = Pair(pieces, pieces, ["</script><b>"], ["</script><b>"])
    found = view(HOSTILE, pair, {"alignment": (np.full((1, 1, 2, 2), 0.5), "target", "source")})
    path = tmp_path / "hostile.html"
    path.write_text(
        attention_page([Shown(HOSTILE, HOSTILE, HOSTILE)], [HOSTILE], [[found]]), encoding="utf-8"
    )
    page = opened(path)
    assert page.locator("#source").inner_text() == HOSTILE
    assert page.locator(".target .text").inner_text() == HOSTILE
    assert HOSTILE in page.title()
    word(page, "q", "</script><b>").click()
    readout = "</script><b> looks at </script><b> 0.500 · </s> 0.500"
    assert page.locator(".readout").inner_text().startswith(readout)
    assert page.locator("main b b, main script, #source *").count() == 0


def test_nothing_to_translate_still_gives_a_page(
    tmp_path: Path, opened: Callable[..., Page]
) -> None:
    pair = Pair(["▁a", "</s>"], ["</s>"], ["a"], [])
    maps = {
        "alignment": (np.array([[[[0.25, 0.75]]]]), "target", "source"),
        "decoder self-attention": (np.ones((1, 1, 1, 1)), "target", "target"),
    }
    path = tmp_path / "empty.html"
    path.write_text(attention_page([DEMO], ["a"], [[view("", pair, maps)]]), encoding="utf-8")
    page = opened(path, "#word=q1")
    assert page.locator(".target .text").inner_text() == "(empty)"
    assert weights(page, "k") == ["0.250", "0.750"]
    page.get_by_label("decoder self-attention").check()
    assert (labels(page, "q"), labels(page, "k")) == (["</s>"], ["<s>"])


LONG = "the big cat and the bird hears a" + " dog" * 42 + " " + "x" * 90


@pytest.mark.parametrize("width", [360, 700, 1280])
def test_neither_a_phone_nor_a_wide_screen_scrolls_sideways(
    width: int, written: Callable[..., Path], opened: Callable[..., Page]
) -> None:
    path = written("transformer", "bahdanau", "--source", LONG, "--target", LONG)
    for fragment in ("#word=k51", "#show=subwords&word=q3&map=decoder+self-attention"):
        page = opened(path, fragment, width=width, touch=True)
        assert page.evaluate("document.documentElement.scrollWidth") == width
        beyond = page.evaluate(
            "(width) => [...document.querySelectorAll('body *')].filter((e) => e.checkVisibility()"
            " && !e.matches('.scroll *, .overview *, legend, option')"
            " && e.getBoundingClientRect().right > width).map((e) => e.outerHTML.slice(0, 80))",
            width,
        )
        assert beyond == []
    low = page.evaluate(
        "[...document.querySelectorAll('button, select, .choice label')]"
        ".filter((e) => e.checkVisibility() && e.getBoundingClientRect().height < 24)"
        ".map((e) => e.outerHTML.slice(0, 80))"
    )
    assert low == []  # WCAG 2.2, 2.5.8: at least 24 pixels for a finger
    lines = page.locator(".columns svg").first.bounding_box()
    assert lines["width"] >= 40


CONTRASTS = """
() => {
  const context = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const rgba = (color) => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = color;
    context.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, under) => top.slice(0, 3).map((c, i) => c * top[3] + under[i] * (1 - top[3]));
  const ground = (element) => {
    const own = rgba(getComputedStyle(element).backgroundColor);
    return own[3] === 1 ? own.slice(0, 3) : over(own, ground(element.parentElement));
  };
  const light = (rgb) => {
    const [r, g, b] = rgb.map((c) => c / 255)
      .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const texts = [...document.querySelectorAll('body *')].filter((e) => e.checkVisibility()
    && !e.matches(':disabled, .space') && !e.closest('option, legend')
    && [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()));
  return texts.map((e) => {
    const under = ground(e);
    const [a, b] = [light(over(rgba(getComputedStyle(e).color), under)), light(under)];
    return [e.className + ' ' + e.textContent.slice(0, 20), (Math.max(a, b) + 0.05) /
      (Math.min(a, b) + 0.05)];
  });
}
"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_stands_out_from_its_ground_in_both_themes(
    theme: str, written: Callable[..., Path], opened: Callable[..., Page]
) -> None:
    other = {"light": "dark", "dark": "light"}[theme]
    page = opened(written(*ONE), "#word=q2&head=1", theme=theme)
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    for word_side in ("q", "k"):
        page.locator(f"[data-side={word_side}] .word").nth(2).click()
        contrasts = page.evaluate(CONTRASTS)
        assert len(contrasts) > 60
        assert [low for low in contrasts if low[1] < 4.5] == []  # WCAG 2.2, 1.4.3
    drawn = picture(page)
    page.get_by_role("button", name=f"{other} theme").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != ground
    assert picture(page)[1] != drawn[1], "the matrix is painted in the colours of the theme"
    assert [low for low in page.evaluate(CONTRASTS) if low[1] < 4.5] == []
    drawn = picture(page)
    opposite = opened(written(*ONE), "#word=k3&head=1", theme=other)
    assert picture(opposite)[1] == drawn[1]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colour_is_one_hue_whose_lightness_tells_the_weight(
    theme: str, tmp_path: Path, opened: Callable[..., Page]
) -> None:
    row = np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0])
    pieces = ["▁a"] * 9 + ["</s>"]
    maps = {"alignment": (row[None, None, None].repeat(10, axis=2), "target", "source")}
    path = tmp_path / "scale.html"
    page_text = attention_page([DEMO], ["a " * 9], [[view("a", Pair(pieces, pieces), maps)]])
    path.write_text(page_text, encoding="utf-8")
    page = opened(path, theme=theme)
    alphas, inks = page.evaluate(
        """() => {
        const canvas = document.querySelector('.cells canvas');
        const size = canvas.width / 10;
        const row = canvas.getContext('2d').getImageData(0, size / 2, canvas.width, 1).data;
        const pixels = Array.from({ length: 10 }, (_, i) =>
          [...row.slice(4 * (i + 0.5) * size, 4 * (i + 0.5) * size + 4)]);
        return [pixels.map((p) => p[3]), pixels.map((p) => p.slice(0, 3))];
        }"""
    )
    np.testing.assert_allclose(alphas, 255 * row**0.7, atol=1)
    assert np.abs(np.subtract(inks[4:], inks[-1])).max() <= 4  # the same ink, more or less of it
