"""BLEU as published for Multi30k: on lowercased text in Moses' tokens.

Lowercase, normalise punctuation, tokenise, as that corpus' published files were made (Elliott et
al. 2016; suffix lc.norm.tok); then BLEU of the tokens as they stand. Such numbers are some points
higher than BLEU of plain text and compare with nothing but their like.
"""

from collections.abc import Sequence

from sacrebleu.metrics import BLEU
from sacremoses import MosesPunctNormalizer, MosesTokenizer


def tokens(lines: Sequence[str], language: str) -> list[str]:
    """Each line lowercased, its punctuation normalised, its tokens between spaces."""
    normalizer, tokenizer = MosesPunctNormalizer(language), MosesTokenizer(language)
    return [
        tokenizer.tokenize(normalizer.normalize(line.lower()), escape=False, return_str=True)
        for line in lines
    ]


def moses_bleu(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], language: str
) -> dict[str, float | str]:
    """Its score and signature; references: one list per reference, as for sacreBLEU."""
    bleu = BLEU(tokenize="none", force=True)  # force: it is told that the text has tokens already
    score = bleu.corpus_score(
        tokens(hypotheses, language), [tokens(reference, language) for reference in references]
    )
    return {
        "score": score.score,
        "signature": f"{bleu.get_signature()}|text:lc.norm.tok",
    }
