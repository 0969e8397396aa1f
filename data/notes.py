"""What was said while something was made, kept to be said again whenever it is found ready."""

import json
import logging
from collections.abc import Iterable
from pathlib import Path

Said = list[tuple[int, str]]  # level and message

log = logging.getLogger(__name__)


class Listener(logging.Handler):
    """Notes down what this room says in a `with` block."""

    def __init__(self, said: Said) -> None:
        super().__init__()
        self.said = said

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append((record.levelno, record.getMessage()))

    def __enter__(self) -> None:
        logging.getLogger("data").addHandler(self)

    def __exit__(self, *_: object) -> None:
        logging.getLogger("data").removeHandler(self)


def say(said: Iterable[tuple[int, str]]) -> None:
    for level, message in said:
        log.log(level, "%s", message)


def read(path: Path) -> Said:
    """What was written to a JSON file; nothing where it is missing or damaged."""
    try:
        return [
            (int(level), str(message)) for level, message in json.loads(path.read_text("utf-8"))
        ]
    except (OSError, ValueError, TypeError, RecursionError):
        return []
