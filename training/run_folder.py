"""The folder that a training leaves: made once, never overwritten, with its own log."""

import errno
import fcntl
import logging
import os
import secrets
import shutil
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from logging.handlers import MemoryHandler
from pathlib import Path
from typing import Any

import yaml
from torch.utils.tensorboard import SummaryWriter

from data.text import write_whole
from data.tokenizer import Tokenizer

RUNS = Path("runs")

log = logging.getLogger(__name__)


def place(settings: Mapping[str, Any]) -> tuple[str, str, str | None]:
    """The corpus, model and name by which a training's folder is called."""
    name = settings["name"]
    return (
        settings["chosen"]["data"],
        settings["chosen"]["model"],
        None if name is None else str(name),
    )


def new_folder(corpus: str, model: str, name: str | None) -> Path:
    """runs/corpus/model/name, which must not exist yet; the name is the time if none is given.

    Nothing is created. Raises ValueError if the folder exists, or if the name cannot be a folder's.
    """
    parent = RUNS / corpus / model
    if name is None:
        time = datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
        names = [time, *(f"{time}-{n}" for n in range(2, 1000))]
        return next(parent / name for name in names if not (parent / name).exists())
    if not name.strip(". ") or "/" in name or "\0" in name:
        raise ValueError(f"name={name}: must be the name of one folder in {parent}")
    folder = parent / name
    if folder.exists():
        raise ValueError(
            f"{folder} exists and is not overwritten: give another name=, "
            f"or go on with resume={folder}"
        )
    return folder


def write(
    corpus: str,
    model: str,
    name: str | None,
    config: Mapping[str, Any],
    overrides: Sequence[str],
    tokenizers: tuple[Tokenizer, Tokenizer],
) -> Path:
    """Makes the `new_folder`: resolved settings, overrides, vocabularies, room for checkpoints.

    It is made under another name and comes whole or not at all; of two trainings that want the same
    one, one gets it.
    """
    parent = new_folder(corpus, model, name).parent
    parent.mkdir(parents=True, exist_ok=True)
    making = parent / f".{secrets.token_hex(8)}.tmp"
    try:
        with _told(parent):
            for part in (making, making / "checkpoints", making / "tokenizers"):
                part.mkdir()
            for side, tokenizer in zip(("src", "tgt"), tokenizers, strict=True):
                (making / "tokenizers" / f"{side}.model").write_bytes(tokenizer.model)
        write_settings(making, list(overrides), "overrides")
        write_settings(making, dict(config), "config")
        while True:
            folder = new_folder(corpus, model, name)
            if _renamed(making, folder):
                return folder
    except BaseException:
        shutil.rmtree(making, ignore_errors=True)
        raise


def _renamed(old: Path, new: Path) -> bool:
    """Renames a folder; gives whether it could: another training may have been first."""
    try:
        old.rename(new)
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
            return False
        raise
    return True


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Holds the run folder for this process while the context lasts; ValueError if another has it.

    The system gives it back when the process ends, however it ends. Where the file system knows no
    locks, a warning says so.
    """
    with (folder / ".lock").open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise ValueError(
                f"{folder} is being trained by another process ({file.read().strip()}); "
                "wait for its end or stop it"
            ) from None
        except OSError as error:
            log.warning(
                "%s cannot be locked (%s): see that no other process trains it", folder, error
            )
        file.truncate(0)
        with suppress(OSError):  # a full disk; it is only for the message above
            file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
            file.flush()
        yield


@contextmanager
def curves(folder: Path, first_step: int) -> Iterator[SummaryWriter]:
    """A run's writer for TensorBoard, which forgets what it has of first_step and later.

    What a full disk refuses is an OSError of the next call, not a traceback of the writer's thread.
    """
    before = threading.excepthook
    threading.excepthook = lambda args: (
        None if isinstance(args.exc_value, OSError) else before(args)
    )
    with _told(folder):
        writer = SummaryWriter(str(folder), purge_step=first_step)
    try:
        yield writer
    finally:
        with suppress(OSError):
            writer.close()
        threading.excepthook = before


def write_settings(folder: Path, content: Any, name: str) -> None:
    """Writes folder/NAME.yaml all or nothing."""
    text = yaml.safe_dump(content, allow_unicode=True, sort_keys=False)
    write_whole(folder / f"{name}.yaml", text)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Says where something could not be written."""
    try:
        yield
    except OSError as error:
        raise OSError(f"{path}: could not be written ({error.strerror or error})") from error


class RunLog:
    """Remembers what is logged until the run folder is there, then writes it all to train.log."""

    def __init__(self) -> None:
        self._memory = MemoryHandler(capacity=10_000, flushLevel=logging.CRITICAL + 1)

    def begin(self, folder: Path) -> None:
        """Writes what was logged so far, and all that follows, to folder/train.log."""
        handler = logging.FileHandler(folder / "train.log", encoding="utf-8")
        # a full disk is told once, by the checkpoint that fails, not by every line of the log
        handler.handleError = lambda record: None
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
                with suppress(OSError):
                    log._memory.target.close()
