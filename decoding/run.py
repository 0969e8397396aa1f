"""A run folder, read back: its settings, corpus, vocabularies and checkpoints.

The folder is all that evaluation needs; it may have been moved or renamed. It may also be anybody's
or damaged: nothing that it names is called but a corpus of data/ and a model of models/.
"""

import importlib.util
import json
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from data.corpus import Corpus
from data.tokenizer import Tokenizer

GROUPS = ("chosen", "data", "tokenizer", "model", "training", "search")  # of every config.yaml
MAX_CONFIG_BYTES, MAX_BRACKETS, MAX_CONFIG_NODES = 1 << 16, 1_000, 10_000


def corpus_of(settings: Mapping[str, Any]) -> Corpus:
    """The corpus that a `data` config describes: a class of data/ with its keys; or ValueError."""
    target = str(settings.get("_target_"))
    match = re.fullmatch(r"data\.(\w+)\.(\w+)", target, re.ASCII)
    kind = None
    if match and importlib.util.find_spec(f"data.{match[1]}"):
        kind = getattr(importlib.import_module(f"data.{match[1]}"), match[2], None)
    if not (isinstance(kind, type) and issubclass(kind, Corpus)):
        raise ValueError(f"data: _target_ {target!r} is not a corpus of data/")
    try:
        return kind(**{key: value for key, value in settings.items() if key != "_target_"})
    except TypeError as error:  # a key too many, too few, or of another type
        raise ValueError(f"data: {error}") from error


class Run:
    """The folder that one training left."""

    def __init__(self, folder: str | Path) -> None:
        """Raises FileNotFoundError if the folder is not a run's."""
        self.folder = Path(str(folder))
        if not self.folder.is_dir():
            raise FileNotFoundError(f"{folder}: no such run folder")
        if not (self.folder / "config.yaml").is_file():
            raise FileNotFoundError(f"{folder}: not a run folder (it has no config.yaml)")

    @cached_property
    def config(self) -> dict[str, Any]:
        """The resolved settings of the training."""
        path = self.folder / "config.yaml"
        text = path.read_bytes() if path.stat().st_size <= MAX_CONFIG_BYTES else None
        # of brackets in brackets, PyYAML takes the square of their number in time
        if text is None or max(text.count(b"["), text.count(b"{")) > MAX_BRACKETS:
            raise ValueError(f"{path}: too large for the settings of a run")
        try:
            config = yaml.safe_load(text.decode("utf-8"))
        except Exception as error:  # of odd values PyYAML raises nearly anything
            raise ValueError(f"{path}: not YAML ({error})") from error
        _check(config, path)
        return config

    @cached_property
    def overrides(self) -> list[str]:
        """What stood on the command line of the training; nothing where that is not kept."""
        path = self.folder / "overrides.yaml"
        if not path.is_file() or path.stat().st_size > MAX_CONFIG_BYTES:
            return []
        try:
            return [str(line) for line in yaml.safe_load(path.read_text("utf-8")) or []]
        except Exception as error:  # of odd values PyYAML raises nearly anything
            raise ValueError(f"{path}: not a list of overrides") from error

    @cached_property
    def training(self) -> dict[str, Any]:
        """training.json: seconds, machine and versions; nothing of a run that has none."""
        try:
            content = json.loads((self.folder / "training.json").read_text("utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        return content if isinstance(content, dict) else {}

    @property
    def name(self) -> str:
        """corpus/model/name, whatever the folder is called now."""
        chosen = self.config["chosen"]
        return f"{chosen['data']}/{chosen['model']}/{self.folder.resolve().name}"

    def corpus(self) -> Corpus:
        """The corpus that the run was trained on."""
        return corpus_of(self.config["data"])

    def tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        """The source and target vocabularies."""
        folder = self.folder / "tokenizers"
        return Tokenizer.load(folder / "src.model"), Tokenizer.load(folder / "tgt.model")

    def alignment_layer(self, layers: int) -> int:
        """Which of so many layers that attend to the source is the alignment: set, or the last."""
        found = self.config["model"].get("alignment_layer", layers) if layers > 1 else 1
        if type(found) is not int or not 1 <= found <= layers:
            raise ValueError(
                f"{self.folder}/config.yaml: model.alignment_layer is a number from 1 to {layers}, "
                f"not {found!r}"
            )
        return found

    def checkpoint(self, name: str) -> Path:
        """The file that `best`, `last` or a path means; FileNotFoundError says what is there."""
        folder, name = self.folder / "checkpoints", str(name)
        for path in (folder / f"{name}.pt", folder / name, Path(name)):
            if path.is_file():
                return path
        there = ", ".join(sorted(path.stem for path in folder.glob("*.pt"))) or "none yet"
        raise FileNotFoundError(f"{self.folder}: no checkpoint {name!r} (there: {there})")

    def checkpoints(self, names: str | Sequence[str]) -> list[Path]:
        """The files of one name or of several; `kept` means all that training.keep has left."""
        found: list[Path] = []
        for name in [names] if isinstance(names, str) else names:
            kept = (self.folder / "checkpoints").glob("step_*.pt") if name == "kept" else ()
            in_order = sorted(kept, key=lambda path: (len(path.name), path.name))
            found += in_order or [self.checkpoint(name)]
        return found


def _check(config: Any, path: Path) -> None:
    """Refuses what is not the plain settings of a run."""
    if not isinstance(config, dict):
        raise ValueError(f"{path}: not the settings of a run")
    for group in GROUPS:
        if not isinstance(config.get(group), dict):
            raise ValueError(f"{path}: not the settings of a run (it has no group {group!r})")
    if not {"data", "model"} <= config["chosen"].keys():
        raise ValueError(f"{path}: not the settings of a run ('chosen' lacks data or model)")
    waiting, seen = [config], 0
    while waiting:
        node = waiting.pop()
        children = list(node.values()) if isinstance(node, dict) else node
        seen += len(children)
        if seen > MAX_CONFIG_NODES:  # aliases can make a small file endless
            raise ValueError(f"{path}: too large for the settings of a run")
        if isinstance(node, dict) and not all(isinstance(key, str) for key in node):
            raise ValueError(f"{path}: a key is not a text")
        waiting += [child for child in children if isinstance(child, dict | list)]
        for child in children:
            if isinstance(child, str) and "${" in child:
                raise ValueError(f"{path}: {child!r} is not resolved, as a run's settings are")
