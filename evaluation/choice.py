"""Which sentences a page of alignments shows: those of a paper, or those that a rule chooses.

The rule, so that none is picked by hand: of the sentences that can be read at a glance and were
translated well by every model, those in which most content words change places between the
languages, going by the links on which all models agree. A diagonal could not be told from attention
where nothing changes places, and what one model alone links may be its mistake.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from sacrebleu.metrics import CHRF

from evaluation.alignment import words
from evaluation.links import argmax_links

READABLE = range(6, 17)  # words of a source and of its reference
WELL = 70.0  # chrF of a good translation
SPARE = 4  # where few are that good, the best so many times as many as wanted are chosen from
SHORTEST = 4  # letters of a content word: shorter ones are mostly articles and prepositions

# Figure 3 of Bahdanau, Cho and Bengio 2015 (arXiv 1409.0473), with the translations printed there.
FIGURE_3 = (
    (
        "The agreement on the European Economic Area was signed in August 1992.",
        "L'accord sur la zone économique européenne a été signé en août 1992.",
    ),
    (
        "It should be noted that the marine environment is the least known of environments.",
        "Il convient de noter que l'environnement marin est le moins connu de l'environnement.",
    ),
    (
        "Destruction of the equipment means that Syria can no longer produce new chemical weapons.",
        "La destruction de l'équipement signifie que la Syrie ne peut plus produire de nouvelles"
        " armes chimiques.",
    ),
    (
        '"This will change my future with my family," the man said.',
        '"Cela va changer mon avenir avec ma famille", a dit l\'homme.',
    ),
)


def well_translated(
    sources: Sequence[str],
    references: Sequence[Sequence[str]],
    systems: Sequence[Sequence[str]],
    count: int,
) -> dict[int, float]:
    """The sentences to choose from: {number: least chrF of any system}, in the order given.

    Those of READABLE length, each source once, of which every system's chrF is at least WELL; where
    there are not SPARE * count of these, the best SPARE * count. systems: each one's translations.
    """
    metric, found, seen = CHRF(), {}, set()
    for number, (source, *given) in enumerate(zip(sources, *references, strict=True)):
        readable = all(len(words(text)) in READABLE for text in (source, given[0]))
        if readable and source not in seen:
            seen.add(source)
            lines = [system[number] for system in systems]
            found[number] = min(metric.sentence_score(line, given).score for line in lines)
    good = {number: chrf for number, chrf in found.items() if chrf >= WELL}
    if len(good) >= SPARE * count:
        return good
    best = sorted(found, key=lambda number: (-found[number], number))[: SPARE * count]
    return {number: found[number] for number in sorted(best)}


def crossings(
    src_words: Sequence[str], tgt_words: Sequence[str], matrices: Sequence[np.ndarray]
) -> int:
    """How many pairs of links cross, of those between content words on which all models agree.

    matrices: each model's attention, (target words, source words). A target word's link is to the
    source word that it attends to most; two cross where the order of their words is not the same.
    """
    agreed = set.intersection(*map(argmax_links, matrices))
    content = [(i, j) for i, j in agreed if min(len(src_words[i]), len(tgt_words[j])) >= SHORTEST]
    return sum((i - k) * (j - m) < 0 for (i, j), (k, m) in combinations(content, 2))


def most_reordered(chrf: Mapping[int, float], crossing: Mapping[int, int], count: int) -> list[int]:
    """The sentences with most crossing links; of equals the better translated, then the earlier."""
    return sorted(chrf, key=lambda number: (-crossing[number], -chrf[number], number))[:count]
