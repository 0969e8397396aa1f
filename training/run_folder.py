"""The folder that a training leaves: made once, never overwritten, with its own log."""

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from logging.handlers import MemoryHandler
from pathlib import Path
from typing import Any

import yaml

from data.tokenizer import Tokenizer

RUNS = Path("runs")


def new_folder(corpus: str, model: str, name: str | None) -> Path:
    """runs/corpus/model/name, which must not exist yet; the name is the time if none is given.

    Nothing is created. Raises ValueError if the folder exists.
    """
    parent = RUNS / corpus / model
    if name is None:
        time = datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
        names = [time, *(f"{time}-{n}" for n in range(2, 1000))]
        return next(parent / name for name in names if not (parent / name).exists())
    folder = parent / name
    if folder.exists():
        raise ValueError(
            f"{folder} exists and is not overwritten: give another name=, "
            f"or go on with resume={folder}"
        )
    return folder


def write(
    folder: Path,
    config: Mapping[str, Any],
    overrides: Sequence[str],
    tokenizers: tuple[Tokenizer, Tokenizer],
) -> None:
    """Makes the folder: resolved settings, overrides, vocabularies, room for checkpoints."""
    folder.mkdir(parents=True)
    (folder / "checkpoints").mkdir()
    (folder / "tokenizers").mkdir()
    for side, tokenizer in zip(("src", "tgt"), tokenizers, strict=True):
        (folder / "tokenizers" / f"{side}.model").write_bytes(tokenizer.model)
    # the settings come last: a folder that has them is whole
    write_settings(folder, list(overrides), "overrides")
    write_settings(folder, dict(config), "config")


def write_settings(folder: Path, content: Any, name: str) -> None:
    """Writes folder/NAME.yaml all or nothing."""
    temporary = folder / f".{name}.tmp"
    text = yaml.safe_dump(content, allow_unicode=True, sort_keys=False)
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, folder / f"{name}.yaml")


class RunLog:
    """Remembers what is logged until the run folder is there, then writes it all to train.log."""

    def __init__(self) -> None:
        self._memory = MemoryHandler(capacity=10_000, flushLevel=logging.CRITICAL + 1)

    def begin(self, folder: Path) -> None:
        """Writes what was logged so far, and all that follows, to folder/train.log."""
        handler = logging.FileHandler(folder / "train.log", encoding="utf-8")
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        self._memory.setTarget(handler)
        self._memory.flush()
        self._memory.capacity = 1

    @classmethod
    @contextmanager
    def listening(cls) -> Iterator["RunLog"]:
        """A log that listens while the context lasts: jobs of a sweep share one process."""
        log = cls()
        logging.getLogger().addHandler(log._memory)
        try:
            yield log
        finally:
            logging.getLogger().removeHandler(log._memory)
            log._memory.close()
            if log._memory.target is not None:
                log._memory.target.close()
