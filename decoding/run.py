"""A run folder, read back: its settings, corpus, vocabularies and checkpoints.

The folder is all that evaluation needs; it may have been moved or renamed.
"""

from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from hydra.utils import instantiate

from data.corpus import Corpus
from data.tokenizer import Tokenizer


class Run:
    """The folder that one training left."""

    def __init__(self, folder: str | Path) -> None:
        """Raises FileNotFoundError if the folder is not a run's."""
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise FileNotFoundError(f"{folder}: no such run folder")
        if not (self.folder / "config.yaml").is_file():
            raise FileNotFoundError(f"{folder}: not a run folder (it has no config.yaml)")

    @cached_property
    def config(self) -> dict[str, Any]:
        """The resolved settings of the training."""
        text = (self.folder / "config.yaml").read_text(encoding="utf-8")
        try:
            return yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ValueError(f"{self.folder}/config.yaml: not YAML ({error})") from error

    @property
    def name(self) -> str:
        """corpus/model/name, whatever the folder is called now."""
        chosen = self.config["chosen"]
        return f"{chosen['data']}/{chosen['model']}/{self.folder.resolve().name}"

    def corpus(self) -> Corpus:
        """The corpus that the run was trained on."""
        return instantiate(self.config["data"])

    def tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        """The source and target vocabularies."""
        folder = self.folder / "tokenizers"
        return Tokenizer.load(folder / "src.model"), Tokenizer.load(folder / "tgt.model")

    def checkpoint(self, name: str) -> Path:
        """The file that `best`, `last` or a path means; FileNotFoundError says what is there."""
        folder = self.folder / "checkpoints"
        for path in (folder / f"{name}.pt", folder / name, Path(name)):
            if path.is_file():
                return path
        there = ", ".join(sorted(path.stem for path in folder.glob("*.pt"))) or "none yet"
        raise FileNotFoundError(f"{self.folder}: no checkpoint {name!r} (there: {there})")
