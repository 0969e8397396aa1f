"""Attention as one HTML page to look into with a browser: no network, no library, one file.

What the page shows and how is in page/: a template, its style and its scripts, all put into one
file here. Weights travel as thousandths, packed; page/weights.js unpacks them.
"""

import base64
import html
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from evaluation.alignment import BEGIN, merge_words, word_shares

LIMIT = 2.0  # MB of a page that every telephone opens at once
PRECISION = 1_000  # weights are rounded to 1 / PRECISION
ALIGNMENT = "alignment"  # the name of the map from target to source that every model has

_FILES = Path(__file__).resolve().parent / "page"
_SCRIPTS = ("weights", "drawing", "columns", "heatmap", "overview", "panel", "page")

Maps = Mapping[str, tuple[np.ndarray, str, str]]  # name: weights, and what queries and keys are


class Shown(NamedTuple):
    """The run that a page shows, in the words of the reader."""

    name: str
    checkpoint: str
    targets: str  # where the targets come from: "given target", "own translation, beam 5"
    layer: int | None = None  # of ALIGNMENT, to begin with; counted from 1; None: the last


class Axis(NamedTuple):
    """The positions that a map's queries or keys are, in pieces and in words."""

    heading: str
    pieces: list[str]
    words: list[str]
    shares: np.ndarray  # (pieces, words): what share of a piece belongs to which word


class Pair(NamedTuple):
    """A source and a target, with the words of both where they are known: see word_alignment."""

    src_pieces: Sequence[str]  # the last one is "</s>"
    tgt_pieces: Sequence[str]  # the last one is "</s>"
    src_words: Sequence[str] | None = None
    tgt_words: Sequence[str] | None = None


def axis(kind: str, role: str, pair: Pair) -> Axis:
    """The positions of kind "source", "target" or "both" in the role of "queries" or "keys".

    A step of the decoder reads one token and writes the next. As a query it is called by the token
    that it writes, up to "</s>"; as a key, by the token that it has read, from "<s>" on.
    """
    if kind == "source":
        return Axis("source", list(pair.src_pieces), *word_shares(pair.src_pieces, pair.src_words))
    if kind == "target":
        reads = role == "keys"
        pieces = [BEGIN, *pair.tgt_pieces[:-1]] if reads else list(pair.tgt_pieces)
        heading = "target, read so far" if reads else "target, being written"
        return Axis(heading, pieces, *word_shares(pieces, pair.tgt_words))
    if kind != "both":
        raise ValueError(f"positions are of the source, the target, or both; not {kind!r}")
    first, second = axis("source", role, pair), axis("target", role, pair)
    shares = np.zeros((len(first.pieces + second.pieces), len(first.words + second.words)))
    shares[: len(first.pieces), : len(first.words)] = first.shares
    shares[len(first.pieces) :, len(first.words) :] = second.shares
    heading = f"{first.heading}, then {second.heading}"
    return Axis(heading, first.pieces + second.pieces, first.words + second.words, shares)


def view(target: str, pair: Pair, maps: Maps) -> dict[str, Any]:
    """What the page has to know of one run and one sentence pair.

    maps: for each name the weights (layers, heads, queries, keys) between pieces, and of what kind
    queries and keys are: "source", "target", or "both", the one after the other.
    """
    axes: dict[str, Axis] = {}
    described, arrays = [], []
    for name, (weights, queries, keys) in maps.items():
        q = axes.setdefault(f"{queries} queries", axis(queries, "queries", pair))
        k = axes.setdefault(f"{keys} keys", axis(keys, "keys", pair))
        weights = np.asarray(weights, dtype=np.float64)
        if weights.ndim != 4 or weights.shape[2:] != (len(q.pieces), len(k.pieces)):
            raise ValueError(
                f"{name}: weights of shape {weights.shape} do not fit {len(q.pieces)} queries and "
                f"{len(k.pieces)} keys"
            )
        described.append(
            {
                "name": name,
                "title": _title(name, maps),
                "layers": weights.shape[0],
                "heads": weights.shape[1],
                "queries": f"{queries} queries",
                "keys": f"{keys} keys",
            }
        )
        arrays += [merge_words(weights, q.shares, k.shares), weights]
    return {
        "target": target,
        "axes": {name: _described(found) for name, found in axes.items()},
        "maps": described,
        "weights": pack(arrays),  # of each map the words', then the pieces'
    }


def _title(name: str, maps: Maps) -> str:
    """What the field calls a map: beside a decoder's self-attention it is cross-attention."""
    decoder = any(queries == keys == "target" for _, queries, keys in maps.values())
    return "cross-attention" if name == ALIGNMENT and decoder else name


def _described(found: Axis) -> dict[str, Any]:
    owner = found.shares.argmax(1).tolist()  # the word that most of a piece belongs to
    return {"heading": found.heading, "words": found.words, "pieces": found.pieces, "owner": owner}


def pack(arrays: Sequence[np.ndarray]) -> str:
    """Weights from 0 to 1 as thousandths of 16 bits, all low bytes first, deflated, in base64."""
    flat = np.concatenate([np.ravel(array) for array in arrays])
    thousandths = np.rint(flat * PRECISION).astype("<u2")
    low_high = thousandths.view(np.uint8).reshape(-1, 2).T  # so parted they deflate better
    return base64.b64encode(zlib.compress(low_high.tobytes(), 9)).decode("ascii")


def attention_page(
    runs: Sequence[Shown],
    sources: Sequence[str],
    views: Sequence[Sequence[Mapping[str, Any]]],
    limit: float = LIMIT,
) -> str:
    """The page; views: for each source the view of each run.

    Raises ValueError if it has more than `limit` MB, and says how many of the sentences fit.
    """
    sentences = [
        {"source": source, "views": list(of_runs)}
        for source, of_runs in zip(sources, views, strict=True)
    ]
    data = {"runs": [run._asdict() for run in runs], "sentences": sentences}
    title = f"Attention · {' and '.join(dict.fromkeys(run.name for run in runs))}"
    page = _filled(title, _json({"precision": PRECISION} | data))
    size, most = len(page.encode()), limit * 1e6
    if size > most:
        sizes = np.cumsum([len(_json(sentence).encode()) for sentence in sentences])
        fit = int((size - sizes[-1] + sizes <= most).sum())
        raise ValueError(
            f"the page would have {size / 1e6:.1f} MB, more than {limit:g}: "
            + (f"the first {fit} of {len(sentences)} sentences" if fit else "not one sentence")
            + " would fit; give fewer or shorter ones, or allow more with --limit"
        )
    return page


def _json(value: Any) -> str:
    """JSON in which nothing can end the script element that holds it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _filled(title: str, data: str) -> str:
    """The template with title, style, data and scripts in their places, each filled once."""
    read = {name: (_FILES / name).read_text("utf-8") for name in ("page.html", "page.css")}
    parts = {
        "title": html.escape(title),
        "style": read["page.css"],
        "data": data,
        "script": "\n".join((_FILES / f"{name}.js").read_text("utf-8") for name in _SCRIPTS),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], read["page.html"])
