"""A toy language pair for tests: words become other words, "big" moves behind its noun."""

import random
from pathlib import Path

WORDS = {"the": "le", "cat": "chat", "dog": "chien", "sees": "voit", "hears": "entend",
         "bird": "merle", "and": "et", "sleeps": "dort"}  # fmt: skip


def pairs(count: int, seed: int = 0, longest: int = 8) -> list[tuple[str, str]]:
    """Sentences of 2 to `longest` words with their translations."""
    draw = random.Random(seed)
    result = []
    for _ in range(count):
        src, tgt = [], []
        while len(src) < draw.randint(2, longest):
            word = draw.choice(list(WORDS))
            if word in ("cat", "dog", "bird") and draw.random() < 0.3:
                src += ["big", word]
                tgt += [WORDS[word], "gros"]
            else:
                src.append(word)
                tgt.append(WORDS[word])
        result.append((" ".join(src), " ".join(tgt)))
    return result


def write(folder: Path, **splits: list[tuple[str, str]]) -> list[str]:
    """Writes each split to folder; the overrides that make data=files read them."""
    overrides = ["data=files"]
    for split, rows in splits.items():
        for side, column in (("src", 0), ("tgt", 1)):
            path = folder / f"{split}.{side}"
            path.write_text("".join(f"{row[column]}\n" for row in rows), encoding="utf-8")
            overrides.append(f"data.{split}_{side}={path}")
    return overrides
