"""Scores a model's attention as word alignment against gold links.

python -m scripts.score_alignments RUN ... [--each] [--method argmax|bidirectional|...]
python -m scripts.score_alignments RUN --reverse RUN2     RUN2 was trained with data.reverse=true
python -m scripts.score_alignments RUN ... --gold FILE [--text FILE] [--one-based]

The model is made to produce the gold targets (forced decoding). Gold links come from the run's
corpus (data=grammar has them), or from a file: Pharaoh lines ("0-0 1p2") with a file of tokenised
text beside them ("source words ||| target words"), or JSON lines with words and links.
docs/alignments.md says what is measured.
"""

import argparse
import json
import logging
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, islice, product
from pathlib import Path

import numpy as np
from tqdm import tqdm

from cli import command, number_or
from data.corpus import normalise
from data.text import read_lines, write_whole
from decoding.results import write_results
from decoding.run import Run
from decoding.translator import ALIGNMENT, Attention, Translator, attentive
from evaluation import gold, links
from evaluation.alignment import MEAN, select, word_alignment, word_shares, words
from evaluation.alignment_scores import DIAGONAL, Looked, Record, Row, both_ways, tally
from evaluation.gold import AlignedText
from evaluation.tables import alignment_table, text_table
from evaluation.worth import ATTENTION, EVIDENCE, difference, weighed, without_each
from scripts.options import add_checkpoint, add_device

ALL = "all"  # instead of a number: a row for each layer or head
CHUNK = 100  # sentences whose attention is held at a time

log = logging.getLogger(__name__)

Pair = tuple[str, str, tuple[list[str], list[str]]]  # source, target, the words of each


@command
def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_intermixed_args(arguments)
    check(options)
    supplied = read_files(options.gold, options.text, options.one_based) if options.gold else None
    runs = [Run(folder) for folder in options.runs]
    draw = partial(links.draw_links, method=options.method, threshold=options.threshold)
    records: list[Record] = []
    for run in runs:
        translator = attentive(run, options.device, options.checkpoint)
        text = supplied or read_corpus(run, options.split)
        if supplied and run.corpus().reverse:
            text = supplied.reversed()
        looked = looks(run, translator, text, options)
        if options.reverse:
            other = reversing(run, options)
            backwards = attentive(other, options.device, options.checkpoint)
            back = looks(other, backwards, text.reversed(), options)
            records += tally(both_ways(looked, back, draw), text)
        else:
            found = ({row: draw(matrix) for row, matrix in one.items()} for one in looked)
            records += tally(found, text)
    # the diagonal comes last, and once for runs on the same text
    records.sort(key=lambda record: record["run"] == DIAGONAL.run)
    records = [record for i, record in enumerate(records) if record not in records[:i]]
    header, rows = alignment_table(records, gold.published(supplied) if supplied else {})
    if options.json:
        write_whole(options.json, json.dumps(records, indent=2, ensure_ascii=False) + "\n")
    if options.results:
        used = [*runs, Run(options.reverse)] if options.reverse else runs
        write_results(options.results, header, rows, records, used)
    print(text_table(header, rows))
    print("\n".join(notes(runs, supplied, records, options)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.score_alignments", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run folders")
    parser.add_argument(
        "--layer",
        type=number_or(MEAN, ALL),
        help="a number from 1, mean, or all: a row for each (default: the model's own)",
    )
    parser.add_argument(
        "--head",
        type=number_or(MEAN, ALL),
        help="a number from 1, mean, or all: a row for each (default: mean)",
    )
    parser.add_argument(
        "--shift", action="store_true", help="word i has the attention of the next step (Shift-Att)"
    )
    parser.add_argument(
        "--each", action="store_true", help="all layers and heads, each with and without --shift"
    )
    parser.add_argument(
        "--evidence",
        choices=EVIDENCE,
        default=ATTENTION,
        help="where the model looks, what a word is worth to it, or both, as mean or product",
    )
    parser.add_argument("--method", choices=links.METHODS, default="argmax", help="(argmax)")
    parser.add_argument("--threshold", type=float, default=0.3, help="least weight of a link (0.3)")
    parser.add_argument(
        "--reverse", type=Path, metavar="RUN2", help="translates back: both are symmetrised"
    )
    parser.add_argument("--split", default="test", help="of the run's corpus (default: test)")
    parser.add_argument("--gold", type=Path, metavar="FILE", help="gold links instead")
    parser.add_argument("--text", type=Path, metavar="FILE", help="words: source ||| target")
    parser.add_argument("--one-based", action="store_true", help="links in --gold count from 1")
    add_checkpoint(parser)
    add_device(parser)
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="writes a list of records; rates are shares of 1"
    )
    parser.add_argument("--results", type=Path, help="writes table, numbers, origin: FILE.json")
    return parser


def check(options: argparse.Namespace) -> None:
    """Refuses options that contradict each other or make no sense."""
    if options.gold is None and (options.text or options.one_based):
        raise ValueError("--text and --one-based say more of --gold FILE, which is not given")
    if not 0 < options.threshold <= 1:
        raise ValueError(f"--threshold is above 0 and at most 1, not {options.threshold:g}")
    if options.evidence != ATTENTION and (options.shift or options.each):
        raise ValueError("--shift and --each are for attention alone, not for other --evidence")
    if options.reverse and (
        len(options.runs) > 1 or options.each or ALL in (options.layer, options.head)
    ):
        raise ValueError("--reverse goes with one RUN and one layer and head: no --each, no all")


def read_corpus(run: Run, split: str) -> AlignedText:
    """A split of the run's corpus with its gold links, over the words of `words`."""
    corpus = run.corpus().load(split)
    if corpus.links is None:
        raise ValueError(
            f"the corpus of {run.name} has no gold alignments; train on data=grammar, or give "
            "--gold FILE"
        )
    pairs = [(words(s), words(t)) for s, t in zip(corpus.src, corpus.tgt, strict=True)]
    found = gold.read_gold(corpus.links, lengths=gold.lengths(pairs), name=f"links of {split}")
    return AlignedText(corpus.src, corpus.tgt, pairs, found)


def read_files(path: Path, text: Path | None, one_based: bool) -> AlignedText:
    """Gold links and their words, normalised as the model reads them."""
    return gold.read(
        list(read_lines(path)),
        read_lines(text) if text else None,
        normalise,
        one_based=one_based,
        names=(str(path), str(text)),
    )


def reversing(run: Run, options: argparse.Namespace) -> Run:
    """The run of --reverse; ValueError if it does not translate the other way than `run`."""
    other = Run(options.reverse)
    if run.corpus().reverse == other.corpus().reverse:
        raise ValueError(
            f"{other.name} translates in the same direction as {run.name}: --reverse is for a run "
            "trained with data.reverse=true"
        )
    return other


def rows_of(run: Run, attention: Attention, options: argparse.Namespace) -> list[Row]:
    """What is asked for of a model that attends like this."""
    weights = attention.maps[ALIGNMENT].weights
    own = {"layer": run.alignment_layer(len(weights)), "head": MEAN}
    asked = []
    for name, there in zip(own, weights.shape, strict=False):
        chosen = getattr(options, name) or (ALL if options.each else own[name])
        each = [*range(1, there + 1), *([MEAN] if there > 1 else [])]
        asked.append(each if chosen == ALL else [chosen])
    method = options.method + (f" {options.threshold:g}" if options.method == "threshold" else "")
    if options.evidence != ATTENTION:
        method += f", {options.evidence}"
    rows = [
        Row(run.name, method + (" shifted" if shift else ""), layer, head, shift)
        for layer, head in product(*asked)
        for shift in ((False, True) if options.each else (options.shift,))
        # heads of the same number in different layers have nothing in common
        if layer != MEAN or head == MEAN or len(asked[1]) == 1
    ]
    for row in rows:
        select(weights, row.layer, row.head)  # refuses what the model does not have
    return rows


def looks(
    run: Run, translator: Translator, text: AlignedText, options: argparse.Namespace
) -> Iterator[Looked]:
    """Each sentence's attention between words, a chunk of sentences in memory at a time.

    With other --evidence, what speaks for a link stands in its place.
    """
    rows: list[Row] = []
    left_out = []
    for start in tqdm(range(0, len(text.gold), CHUNK), run.name, leave=False, disable=None):
        part = slice(start, start + CHUNK)
        pairs = list(zip(text.sources[part], text.targets[part], text.words[part], strict=True))
        attended = translator.attention(text.sources[part], text.targets[part], start + 1)
        found: list[Looked] = []
        for attention, (_, _, (src, tgt)) in zip(attended, pairs, strict=True):
            rows = rows or rows_of(run, attention, options)
            try:
                found.append(matrices(attention, src, tgt, rows))
            except ValueError as error:  # a source longer than the model reads
                left_out.append(error)
                found.append({})
        if options.evidence != ATTENTION:
            seen = [i for i, one in enumerate(found) if one]
            worth = differences(translator, [pairs[i] for i in seen], [attended[i] for i in seen])
            for i, of_words in zip(seen, worth, strict=True):
                found[i] = {
                    row: weighed(matrix, of_words, options.evidence)
                    for row, matrix in found[i].items()
                }
        yield from found
    if left_out:
        log.warning("%d sentences left out; the first: %s", len(left_out), left_out[0])


def differences(
    translator: Translator, pairs: Sequence[Pair], attended: Sequence[Attention]
) -> Iterator[np.ndarray]:
    """What each source word is worth to each target word: (target words, source words)."""
    variants = [[source, *without_each(source, src)] for source, _, (src, _) in pairs]
    targets = [target for _, target, (src, _) in pairs for _ in range(len(src) + 1)]
    log_probs = iter(translator.log_probs(list(chain(*variants)), targets))
    for (_, _, (src, tgt)), attention in zip(pairs, attended, strict=True):
        whole, *without = islice(log_probs, len(src) + 1)
        shares = word_shares(attention.tgt_pieces, tgt)[1][:, : len(tgt)]  # "</s>" is no word
        yield difference(whole, without, shares)


def matrices(
    attention: Attention, src: list[str], tgt: list[str], rows: Sequence[Row]
) -> dict[Row, np.ndarray]:
    """Attention between words, (target words, source words), in each row's part of the model."""
    weights, found = attention.maps[ALIGNMENT].weights, dict.fromkeys(rows)
    for shift in {row.shift for row in rows}:
        part = [row for row in rows if row.shift == shift]
        merged = word_alignment(
            np.stack([select(weights, row.layer, row.head) for row in part]),
            attention.src_pieces,
            attention.tgt_pieces,
            src_words=src,
            tgt_words=tgt,
            shift=shift,
        )
        found |= zip(part, merged.matrix, strict=True)
    return found


def notes(
    runs: Sequence[Run],
    supplied: AlignedText | None,
    records: Sequence[Record],
    options: argparse.Namespace,
) -> Iterator[str]:
    """What a reader of the table has to know, and what to do next."""
    if supplied:
        sentences, sure, possible = supplied.size()
        corpora = ", ".join(sorted({run.config["chosen"]["data"] for run in runs}))
        yield (
            f"gold: {options.gold}, {sentences:,} sentences, {sure:,} sure and {possible:,} only "
            f"possible links; out of domain: the models were trained on {corpora}"
        )
        if gold.published(supplied):
            yield gold.PUBLISHED_BY
    measured = [one for one in records if one["layer"] and one["aer"] is not None]
    best = min(measured, key=lambda one: one["aer"], default=None)
    if best:
        folder = {run.name: run.folder for run in runs}.get(best["run"], options.reverse)
        place = f"--layer {best['layer']} --head {best['head']}"
        yield f'see it: python -m scripts.plot_alignments {folder} {place} --source "..."'


if __name__ == "__main__":
    main()
