"""Checkpoints: weights with the settings that rebuild their model, written all or nothing."""

import os
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from hydra.errors import InstantiationException
from hydra.utils import instantiate
from omegaconf import DictConfig

from models.seq2seq import Seq2Seq


def build(config: dict[str, Any] | DictConfig, src_vocab: int, tgt_vocab: int) -> Seq2Seq:
    """The untrained model that a `model` config describes; ValueError for impossible sizes."""
    try:
        return instantiate(config, src_vocab=src_vocab, tgt_vocab=tgt_vocab)
    except InstantiationException as error:
        if isinstance(error.__cause__, ValueError | RuntimeError | TypeError):
            raise ValueError(f"model: {error.__cause__}") from error
        raise


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
            raise OSError(
                f"{path}: could not be written ({error}); an earlier checkpoint is untouched"
            ) from error
        raise


def load(path: Path) -> dict[str, Any]:
    """A checkpoint's content, on the CPU; FileNotFoundError or ValueError naming the file."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such checkpoint")
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (RuntimeError, OSError, EOFError, pickle.UnpicklingError, ValueError, KeyError) as error:
        raise ValueError(f"{path}: damaged, or not a checkpoint of this project") from error
    if (
        not isinstance(content, dict)
        or not {"model", "vocabularies", "digests", "weights"} <= content.keys()
    ):
        raise ValueError(f"{path}: not a checkpoint of this project")
    return content


def check_vocabularies(path: Path, content: dict[str, Any], digests: Sequence[str]) -> None:
    """Raises ValueError if a checkpoint was trained with other vocabularies than these."""
    if content["digests"] != list(digests):
        raise ValueError(f"{path}: trained with other vocabularies than those in its run folder")


def restore(paths: Sequence[Path], digests: Sequence[str]) -> Seq2Seq:
    """The trained model of a checkpoint, in evaluation mode; the mean weights of several.

    digests: of the source and target vocabularies that will be used with it. Raises ValueError if
    they are not those of training, or if the checkpoints are of different architectures.
    """
    contents = [load(path) for path in paths]
    first = contents[0]
    for path, content in zip(paths, contents, strict=True):
        check_vocabularies(path, content, digests)
        if content["model"] != first["model"]:
            raise ValueError(f"{path}: another architecture than {paths[0]}; cannot be averaged")
    model = build(first["model"], *first["vocabularies"])
    weights = {
        name: sum(content["weights"][name] for content in contents) / len(contents)
        for name in first["weights"]
    }
    model.load_state_dict(weights if len(contents) > 1 else first["weights"])
    return model.eval()
