"""Step 2: Bahdanau's attention, a context vector for each word that is produced."""

from collections.abc import Sequence
from itertools import pairwise

import torch

from data.corpus import normalise
from data.grammar import FIGURE_3A
from data.tokenizer import PAD
from decoding.run import Run
from decoding.translator import Translator, search_with
from evaluation.alignment import WordAlignment, word_alignment, words
from evaluation.figures import alignment_figure
from evaluation.tables import text_table
from models.bahdanau import Bahdanau
from models.seq2seq import masked_softmax
from scripts.tour.page import Drawing, Part, Step, code, prose, text

SOURCE = torch.tensor([[4, 5, 6, 7, PAD, PAD]])  # four words and padding
TARGET = torch.tensor([[4, 5, 6]])
BAHDANAU = f"{Bahdanau.__module__}.{Bahdanau.__qualname__}"


def untrained() -> torch.Tensor:
    """The attention of a Bahdanau model before training: (target words, source positions)."""
    torch.manual_seed(0)
    model = Bahdanau(8, 8, embedding=16, hidden=16, cell="gru", dropout=0.0).eval()
    with torch.inference_mode():
        return model(SOURCE, SOURCE != PAD, TARGET).alignment[0]


def step(runs: Sequence[Run]) -> Step:
    return Step(
        "A context vector for each target word",
        [_equations(), _trained(runs)],
        [Bahdanau, masked_softmax, Translator.align, word_alignment],
    )


def _equations() -> Part:
    weights = untrained()
    header = ["attention of", *(f"word {n}" for n in range(1, 5)), "padding", "padding", "sum"]
    rows = [
        [f"step {i}", *(f"{w:.2f}" if w else "0" for w in row.tolist()), f"{row.sum().item():.2f}"]
        for i, row in enumerate(weights, 1)
    ]
    return Part(
        text(
            prose(
                """At each step i, Bahdanau's decoder asks which source words matter now. Its state
                s is compared with the annotation h_j of every source word, the vector kept for it.
                A softmax turns the scores into weights, and the mean of the annotations with these
                weights is the context vector of this step. Letters and numbers are the paper's:"""
            ),
            code(
                """
                e_ij   = v_a · tanh(W_a s_(i-1) + U_a h_j)     the score of word j        (A.1.2)
                α_ij   = exp(e_ij) / Σ_k exp(e_ik)             the attention on word j    (6)
                c_i    = Σ_j α_ij h_j                          the context of step i      (5)
                p(y_i) = g(y_(i-1), s_i, c_i)                  the next word              (4)
                """
            ),
            prose(
                """All of it can be differentiated, so that where to look is learnt from translated
                sentences alone: nobody tells the model which word translates which. Before any
                training it looks everywhere about alike. Each row sums to one, and padding gets
                exactly nothing:"""
            ),
            text_table(header, rows),
        )
    )


def _trained(runs: Sequence[Run]) -> Part:
    """A sentence's alignment by the first run that is Bahdanau's model."""
    chosen = [run for run in runs if run.config["model"].get("_target_") == BAHDANAU]
    if not chosen:
        return Part(
            prose("(No run of model=bahdanau was given, so no trained alignment is shown here.)"),
            from_runs=True,
        )
    run = chosen[0]
    translator = Translator.from_run(run, "cpu", "best")
    (translation,) = translator.translate([FIGURE_3A], search_with(5, 1.0))
    if not translation.text:
        raise ValueError(f"{run.folder}: translates {FIGURE_3A!r} to nothing; train it for longer")
    (found,) = translator.align([FIGURE_3A], [translation])
    aligned = word_alignment(
        found.weights,
        found.src_pieces,
        found.tgt_pieces,
        src_words=words(normalise(FIGURE_3A)),
        tgt_words=words(translation.text),
    )
    return Part(
        text(
            prose(
                f"""After training it has learnt where to look, as the figure shows. It is of the
                sentence of the paper's figure 3a, which the generated corpus leaves out.
                {run.name} translates it as "{translation.text}" """
            ),
            prose(jumps(aligned)),
        ),
        Drawing(
            "alignment",
            alignment_figure(aligned.matrix, aligned.src_words, aligned.tgt_words),
            f"Where {run.name} looks (columns) while it writes each French word (rows): black is "
            "0, white is 1.",
        ),
        from_runs=True,
    )


def jumps(aligned: WordAlignment) -> str:
    """Says where attention moves back in the source from one target word to the next."""
    looks = aligned.matrix.argmax(axis=1)
    moves = [
        f'from "{aligned.src_words[here]}" for "{aligned.tgt_words[i]}" back to '
        f'"{aligned.src_words[there]}" for "{aligned.tgt_words[i + 1]}"'
        for i, (here, there) in enumerate(pairwise(looks))
        if there < here
    ]
    if not moves:
        return "Down the French words, attention never moves back in the English sentence."
    return f"Down the French words, the most-read English word moves {', '.join(moves)}."
