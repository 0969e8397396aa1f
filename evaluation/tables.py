"""Results as plain-text tables, which are Markdown as they stand."""

from collections.abc import Mapping, Sequence

NOT_AVAILABLE = "n/a"


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with its columns aligned, the first to the left and the others to the right."""
    lines = [list(header), *map(list, rows)]
    widths = [max(3, *(len(line[i]) for line in lines)) for i in range(len(header))]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    body = [
        [line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True))]
        for line in lines
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in [body[0], rule, *body[1:]])


def number(value: float | None, digits: int = 1) -> str:
    """The value rounded, or "n/a" where there is none."""
    return NOT_AVAILABLE if value is None else f"{value:.{digits}f}"


def span(bucket: Mapping) -> str:
    """A bucket of source lengths as people write it: 11–20, or 51+."""
    return f"{bucket['from']}+" if bucket["to"] is None else f"{bucket['from']}–{bucket['to']}"


Table = tuple[list[str], list[list[str]]]  # header, rows


def comparison_table(runs: Mapping[str, Mapping]) -> Table:
    """BLEU of several systems on the same sentences, overall and by source length.

    runs: for each name what scores.json holds, with the number of "parameters" where known.
    BLEU has half the width of its 95 % interval beside it; the last row counts the sentences.
    `long_to_short` (evaluation.bleu) is a column where any system has it.
    """
    by_length = same_buckets({name: scores["by_length"] for name, scores in runs.items()})
    header = ["model", "parameters", "BLEU", *(f"{span(bucket)} words" for bucket in by_length)]
    ratios = {name: scores.get("long_to_short") for name, scores in runs.items()}
    rated = any(ratio is not None for ratio in ratios.values())
    rows = []
    for name, scores in runs.items():
        low, high = scores["bleu"]["ci95"]
        parameters = scores.get("parameters")
        bleu = f"{scores['bleu']['score']:.1f} ± {(high - low) / 2:.1f}"
        lengths = [number(bucket["bleu"]) for bucket in scores["by_length"]]
        ratio = [number(ratios[name], 2)] if rated else []
        rows.append([name, f"{parameters:,}" if parameters else "", bleu, *lengths, *ratio])
    counts = [str(bucket["sentences"]) for bucket in by_length]
    rows.append(["sentences", "", str(sum(map(int, counts))), *counts, *[""] * rated])
    return [*header, *["41+ / 11–20"] * rated], rows


def alignment_table(records: Sequence[Mapping], published: Mapping[str, float]) -> Table:
    """Word alignments scored against gold links, rates in per cent, the least error in bold.

    records: as of scripts.score_alignments; published: error rates of others, in per cent.
    """
    rates = {"aer": "AER %", "precision": "precision %", "recall": "recall %"}
    rates |= {"aer_crossing": "AER % crossing", "aer_diagonal": "AER % the rest"}
    least = min((one["aer"] for one in records if one["aer"] is not None), default=None)
    rows = []
    for one in records:
        cells = [number(None if one[rate] is None else 100 * one[rate]) for rate in rates]
        if one["aer"] is not None and one["aer"] == least and len(records) > 2:
            cells[0] = f"**{cells[0]}**"
        place = ["" if one[name] is None else str(one[name]) for name in ("layer", "head")]
        counts = [f"{one[name]:,}" for name in ("links", "sentences")]
        rows.append([one["run"], *place, one["setting"], *cells, *counts])
    for name, rate in published.items():
        rows.append(["(published)", "", "", name, number(rate), *[""] * (len(rates) + 1)])
    return ["run", "layer", "head", "setting", *rates.values(), "links", "sentences"], rows


def same_buckets(curves: Mapping[str, Sequence[Mapping]]) -> Sequence[Mapping]:
    """The buckets that all curves share; ValueError if edges or numbers of sentences differ."""
    if not curves:
        raise ValueError("there are no scores to compare")
    (first, buckets), *others = curves.items()
    keys = ("from", "to", "sentences")
    for name, other in others:
        if [[b[k] for k in keys] for b in other] != [[b[k] for k in keys] for b in buckets]:
            raise ValueError(f"{first} and {name} were not scored on the same buckets of sentences")
    return buckets
