"""Step 8: several attentions side by side, each with a part of the numbers."""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from data.corpus import normalise
from decoding.run import Run
from decoding.translator import Attention, Translation, Translator, search_with
from evaluation.alignment import END, word_alignment, words
from evaluation.tables import text_table
from evaluation.tour_figures import Grid, grids_figure
from models.attention import MultiHeadAttention, attention
from models.seq2seq import ALIGNMENT
from scripts.tour.page import Drawing, Part, Step, code, prose, text
from scripts.tour.projections import project

HEADS = 2
# "look" becomes chercher before "for" and regarder before "at"; "will" asks for the future
AMBIGUOUS = "look"
SENTENCES = ("Julie will look for the king.", "Julie will look at the king.")


class Apart(NamedTuple):
    """Multi-head attention computed one head after the other."""

    contexts: list[Tensor]  # for each head (length, d_model / heads)
    weights: list[Tensor]  # for each head (length, length)
    joined: Tensor  # (length, d_model)
    output: Tensor  # (length, d_model)


@torch.no_grad()
def heads_apart(module: MultiHeadAttention, x: Tensor) -> Apart:
    """Each head by itself, with its own rows of the module's matrices; x: (length, d_model)."""
    everywhere = torch.ones(len(x), len(x), dtype=torch.bool)
    W_k, W_v = module.W_kv.weight.chunk(2)
    b_k, b_v = module.W_kv.bias.chunk(2)
    stored = ((module.W_q.weight, module.W_q.bias), (W_k, b_k), (W_v, b_v))
    contexts, weights = [], []
    for head in range(module.heads):
        query, keys, values = (
            nn.functional.linear(x, W.chunk(module.heads)[head], b.chunk(module.heads)[head])
            for W, b in stored
        )
        found, looked = attention(query, keys, values, everywhere)
        contexts.append(found)
        weights.append(looked)
    joined = torch.cat(contexts, dim=-1)
    return Apart(contexts, weights, joined, module.W_o(joined))


@torch.no_grad()
def as_torch(module: MultiHeadAttention) -> nn.MultiheadAttention:
    """torch's own multi-head attention with the same weights."""
    theirs = nn.MultiheadAttention(module.W_q.in_features, module.heads, batch_first=True)
    theirs.in_proj_weight.copy_(torch.cat([module.W_q.weight, module.W_kv.weight]))
    theirs.in_proj_bias.copy_(torch.cat([module.W_q.bias, module.W_kv.bias]))
    theirs.out_proj.load_state_dict(module.W_o.state_dict())
    return theirs


def divergence(p: np.ndarray, q: np.ndarray) -> float:
    """How different two distributions are: Jensen and Shannon's, 0 if alike, 1 if disjoint."""
    mean = (p + q) / 2
    return float(sum(d[d > 0] @ np.log2(d[d > 0] / mean[d > 0]) for d in (p, q)) / 2)


def most_different(weights: Sequence[np.ndarray]) -> tuple[int, int, int]:
    """The layer, and the two of its heads, whose distributions differ most over all sentences.

    weights: for each sentence (layers, heads, words), the words' weights summing to 1.
    """
    layers, heads = weights[0].shape[:2]
    pairs = [(n, a, b) for n in range(layers) for a, b in combinations(range(heads), 2)]
    return max(pairs, key=lambda p: sum(divergence(w[p[0], p[1]], w[p[0], p[2]]) for w in weights))


class Reading(NamedTuple):
    """Where each head looks while the word is produced that translates AMBIGUOUS."""

    tgt_word: str
    src_words: list[str]
    weights: np.ndarray  # (layers, heads, source words)


def read(source: str, translation: Translation, attention: Attention) -> Reading:
    """The heads' weights at the target word that AMBIGUOUS gets most attention from."""
    tgt_words, src_words = words(translation.text), words(normalise(source))
    found = attention.maps[ALIGNMENT].weights  # (layers, heads, target pieces, source pieces)
    by_words = np.array(
        [
            [
                word_alignment(
                    weights,
                    attention.src_pieces,
                    attention.tgt_pieces,
                    src_words=src_words,
                    tgt_words=tgt_words,
                    keep_end=True,
                ).matrix
                for weights in layer
            ]
            for layer in found
        ]
    )
    row = by_words.mean(axis=(0, 1))[:, src_words.index(AMBIGUOUS)].argmax()
    return Reading(tgt_words[row], [*src_words, END], by_words[:, :, row])


def look(run: Run) -> tuple[list[Translation], list[Reading]]:
    """The run's translations of SENTENCES, and how its heads read them."""
    translator = Translator.from_run(run, "cpu", "best")
    translations = translator.translate(SENTENCES, search_with(5, 1.0))
    for source, translation in zip(SENTENCES, translations, strict=True):
        if not translation.text:
            raise ValueError(f"{run.folder}: translates {source!r} to nothing; train it for longer")
    maps = translator.attention(SENTENCES, translations)
    return translations, list(map(read, SENTENCES, translations, maps))


def step(runs: Sequence[Run]) -> Step:
    return Step(
        "Several heads",
        [_in_steps(), _trained(runs), _end()],
        [MultiHeadAttention, attention, heads_apart, Translator.attention, most_different],
    )


def _in_steps() -> Part:
    x = project().x
    torch.manual_seed(0)
    module = MultiHeadAttention(x.size(1), HEADS)
    everywhere = torch.ones(len(x), len(x), dtype=torch.bool)
    with torch.no_grad():
        keys, values = module.keys_values(x.unsqueeze(0))
        output, weights = module(x.unsqueeze(0), (keys, values), everywhere)
        theirs, _ = as_torch(module)(x, x, x)
    apart = heads_apart(module, x)
    assert torch.allclose(output[0], apart.output, atol=1e-6)  # both of which the text says
    assert torch.allclose(output[0], theirs, atol=1e-6)
    rows = [
        ["words", "x", _shape(x.unsqueeze(0))],
        ["one projection, split", "keys, as queries and values", _shape(keys)],
        ["weights of each head", "softmax(Q Kᵀ / √d_k)", _shape(weights)],
        ["contexts of each head", "weights V", _shape(weights @ values)],
        ["heads joined", "side by side", _shape(apart.joined.unsqueeze(0))],
        ["output", "joined W_o", _shape(output)],
    ]
    return Part(
        text(
            prose(
                """One softmax gives each word one way to look, but a word may have to look for
                several things at once. So queries, keys and values are cut into parts, the heads,
                each with an attention of its own. Their contexts are put side by side and mixed by
                a last matrix."""
            ),
            code(
                """
                head_h = Attention(x W_q_h, x W_k_h, x W_v_h)
                output = [head_1 ... head_n] W_o
                """
            ),
            prose(f"The words of step 4 with {HEADS} heads:"),
            text_table(["", "computed as", "(sentences, heads, words, size)"], rows),
            prose(
                """One large projection that is split gives the same as each head with a small one
                of its own, and the same as `torch.nn.MultiheadAttention` with the same weights, but
                for rounding. All heads together cost about as much as one of full size."""
            ),
        )
    )


def _end() -> Part:
    return Part(
        prose(
            """This is the end of the road. In layers, each with a small network after its
            attention, it makes `models.transformer.Transformer`: the encoder looks at the source,
            the decoder at the target so far (step 7) and at the source (step 2)."""
        )
    )


def _shape(tensor: Tensor) -> str:
    return str(tuple(tensor.shape))


def _trained(runs: Sequence[Run]) -> Part:
    """Two heads at one word, by the first run whose model has several."""
    chosen = [run for run in runs if run.config["model"].get("heads", 1) >= 2]
    if not chosen:
        return Part(
            prose("(No run of model=transformer was given, so no trained heads are shown here.)"),
            from_runs=True,
        )
    run = chosen[0]
    translations, readings = look(run)
    layer, *heads = most_different([reading.weights for reading in readings])
    grids = [
        Grid(
            f'"{reading.tgt_word}"',
            reading.weights[layer, heads],
            [f"head {head + 1}" for head in heads],
            reading.src_words,
        )
        for reading in readings
    ]
    rows = [[src, tgt.text] for src, tgt in zip(SENTENCES, translations, strict=True)]
    return Part(
        text(
            prose(
                f"""What do trained heads do with it? "{AMBIGUOUS}" is ambiguous: in French it is
                "chercher" before "for" and "regarder" before "at", and its ending depends on
                "will"."""
            ),
            text_table(["", f"translated by {run.name}"], rows),
            prose(
                f"""Of all pairs of heads of a layer of the decoder, two differ most while the
                French verb is written, by the Jensen-Shannon divergence of their weights: heads
                {heads[0] + 1} and {heads[1] + 1} of layer {layer + 1}. """
                + " ".join(_says(reading, layer, heads) for reading in readings)
            ),
        ),
        Drawing(
            "heads",
            grids_figure(grids),
            "Where two heads look in the English sentence while the French verb is written (the "
            "mean over its pieces): black is 0, white is 1.",
        ),
        from_runs=True,
    )


def _says(reading: Reading, layer: int, heads: Sequence[int]) -> str:
    parts = []
    for head in heads:
        weights = reading.weights[layer, head]
        most = weights.argmax()
        parts.append(f'head {head + 1} looks at "{reading.src_words[most]}" ({weights[most]:.2f})')
    return f'For "{reading.tgt_word}", {" and ".join(parts)}.'
