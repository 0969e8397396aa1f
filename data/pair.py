"""A pair of sentences, and what counts as a word in its links."""

import re
from typing import NamedTuple

# The same rule as evaluation.alignment.words.
WORD = re.compile(r"'s\b|[^\W_]+(?:-[^\W_]+)*(?:'(?=\w)(?!s\b))?|[^\w\s]|_")


class Pair(NamedTuple):
    """One sentence and its translation, as read."""

    src: str
    tgt: str
    link: str | None = None  # gold word alignment in Pharaoh format
    extra_references: tuple[str, ...] = ()
