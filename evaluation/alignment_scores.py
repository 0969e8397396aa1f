"""From attention between words to the table of alignment scores."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from evaluation import links
from evaluation.gold import AlignedText


class Row(NamedTuple):
    """What a row of the table is about."""

    run: str
    setting: str  # how links were drawn
    layer: int | str | None = None  # a number from 1, or "mean"; None: none in particular
    head: int | str | None = None
    shift: bool = False


Record = dict[str, Any]  # of the JSON file
DIAGONAL = Row("(none)", "diagonal")
Looked = dict[Row, np.ndarray]  # of a sentence: attention between words; empty if left out
Found = dict[Row, set[links.Link]]  # likewise
Draw = Callable[[np.ndarray], set[links.Link]]


def both_ways(
    forwards: Iterable[Looked], backwards: Iterable[Looked], draw: Draw
) -> Iterator[Found]:
    """Each sentence's links by a run, by one that translates back, and by both together.

    agreement: drawn from the geometric mean of the two, as Liang et al. (2006) multiply what two
    models think likely; the other combinations are symmetrise's.
    """
    for there, back in zip(forwards, backwards, strict=True):
        if not (there and back):
            yield {}
            continue
        ((first, here),) = there.items()
        ((second, turned),) = back.items()
        forward, backward = draw(here), links.transposed(draw(turned))
        found = {first: forward, second._replace(setting=f"{second.setting}, back"): backward}
        together = {how: links.symmetrise(forward, backward, how) for how in links.SYMMETRISATIONS}
        together["agreement"] = draw(np.sqrt(here * turned.T))
        for how, drawn in together.items():
            found[Row(f"{first.run} + {second.run}", f"{first.setting}, {how}")] = drawn
        yield found


def tally(sentences: Iterable[Found], text: AlignedText) -> list[Record]:
    """The scores of each row, and of the plain diagonal."""
    tallies: dict[Row, links.Tally] = {}
    for found, (src, tgt), sentence_gold in zip(sentences, text.words, text.gold, strict=True):
        if found:
            found[DIAGONAL] = links.diagonal_links(len(src), len(tgt))
        for row, drawn in found.items():
            tallies.setdefault(row, links.Tally()).add(drawn, sentence_gold)
    return [row._asdict() | counted.scores()._asdict() for row, counted in tallies.items()]
