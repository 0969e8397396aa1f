"""Checkpoints: weights with the settings that rebuild their model, written all or nothing."""

import importlib
import os
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig, OmegaConf
from torch import Tensor

from models.seq2seq import Seq2Seq

MAX_NUMBER = 100_000  # of a model's settings: so many layers or units are a mistake or an attack
MAX_VOCABULARY = 1_000_000


def build(config: dict[str, Any] | DictConfig, src_vocab: int, tgt_vocab: int) -> Seq2Seq:
    """The untrained model that a `model` config describes; ValueError for impossible sizes.

    Only a class of models/ is ever called, since a checkpoint brings its config and may be
    anybody's: with `instantiate` it could call any function.
    """
    if isinstance(config, DictConfig):
        config = OmegaConf.to_container(config, resolve=True)  # type: ignore
    settings = {key: value for key, value in config.items() if key != "_target_"}
    try:
        for key, value in settings.items():
            size = type(value) is int and key != "dropout"  # a share, which may be 0
            if size and not 1 <= value <= MAX_NUMBER:
                raise ValueError(f"model.{key} must be from 1 to {MAX_NUMBER:,}, not {value}")
        architecture = _architecture(str(config.get("_target_")))
        return architecture(**settings, src_vocab=src_vocab, tgt_vocab=tgt_vocab)
    except (ValueError, RuntimeError, TypeError, ArithmeticError, MemoryError) as error:
        said = str(error)
        raise ValueError(said if said.startswith("model.") else f"model: {said}") from error


def _architecture(target: str) -> type[Seq2Seq]:
    """The class that "models.FILE.CLASS" names."""
    match = re.fullmatch(r"models\.(\w+)\.(\w+)", target, re.ASCII)
    if match and Path(__file__).with_name(f"{match[1]}.py").is_file():
        found = getattr(importlib.import_module(f"models.{match[1]}"), match[2], None)
        if isinstance(found, type) and issubclass(found, Seq2Seq):
            return found
    raise ValueError(f"_target_ {target!r} is not an architecture of models/")


def save(path: Path, content: dict[str, Any]) -> None:
    """Writes content to path all or nothing: an earlier file stays whole until the new one is."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            torch.save(content, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError | RuntimeError):
            # torch.save hides what the file system said behind an error of its own
            reason = error.__context__ if isinstance(error.__context__, OSError) else error
            raise OSError(
                f"{path}: could not be written ({reason}); an earlier checkpoint is untouched"
            ) from error
        raise


def clear_unfinished(folder: Path) -> None:
    """Deletes what a process that was killed while it saved has left in a folder of checkpoints."""
    for temporary in folder.glob(".*.tmp"):
        temporary.unlink()


def load(path: Path) -> dict[str, Any]:
    """A checkpoint's content, on the CPU; FileNotFoundError or ValueError naming the file."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such checkpoint")
    try:
        _check_whole(path)
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged file may raise anything
        raise ValueError(f"{path}: damaged, or not a checkpoint of this project") from error
    if not _is_checkpoint(content):
        raise ValueError(f"{path}: not a checkpoint of this project")
    return content


def _check_whole(path: Path) -> None:
    """Raises BadZipFile where bytes have changed: torch reads changed weights without a word."""
    with zipfile.ZipFile(path) as records:
        packed = any(record.compress_type != zipfile.ZIP_STORED for record in records.infolist())
        if packed or records.testzip():
            raise zipfile.BadZipFile


def _is_checkpoint(content: Any) -> bool:
    """Whether content has what every checkpoint has: settings, vocabularies, weights."""
    try:
        return (
            isinstance(content["model"], dict)
            and len(content["digests"]) == len(content["vocabularies"]) == 2
            and all(type(v) is int and 0 < v <= MAX_VOCABULARY for v in content["vocabularies"])
            and all(isinstance(weight, Tensor) for weight in content["weights"].values())
        )
    except (KeyError, TypeError, AttributeError, IndexError):
        return False


def check_vocabularies(path: Path, content: dict[str, Any], digests: Sequence[str]) -> None:
    """Raises ValueError if a checkpoint was trained with other vocabularies than these."""
    if content["digests"] != list(digests):
        raise ValueError(f"{path}: trained with other vocabularies than those in its run folder")


def restore(paths: Sequence[Path], digests: Sequence[str]) -> Seq2Seq:
    """The trained model of a checkpoint, in evaluation mode; the mean weights of several.

    digests: of the source and target vocabularies that will be used with it. Raises ValueError if
    they are not those of training, or if the checkpoints are of different architectures.
    """
    if not paths:
        raise ValueError("no checkpoint is named")
    contents = [load(path) for path in paths]
    first = contents[0]
    for path, content in zip(paths, contents, strict=True):
        check_vocabularies(path, content, digests)
        if content["model"] != first["model"]:
            raise ValueError(f"{path}: another architecture than {paths[0]}; cannot be averaged")
    model = build(first["model"], *first["vocabularies"])
    try:
        weights = {
            name: sum(content["weights"][name] for content in contents) / len(contents)
            for name in first["weights"]
        }
        model.load_state_dict(weights if len(contents) > 1 else first["weights"])
    except (RuntimeError, KeyError) as error:
        names = ", ".join(map(str, paths))
        raise ValueError(f"{names}: the weights do not fit the architecture") from error
    return model.eval()
