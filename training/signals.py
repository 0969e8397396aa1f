"""Signals that ask a training to stop: it finishes what it does, saves, and ends."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # Ctrl-C, kill, a closed terminal


class Stop(Exception):
    """Training was asked to stop (Ctrl-C, SIGTERM); its state has been saved."""

    def __init__(self, signal_number: int) -> None:
        super().__init__()
        self.signal_number = signal_number


@contextmanager
def stop_signals() -> Iterator[list[int]]:
    """A list that Ctrl-C, SIGTERM and SIGHUP fill; a second Ctrl-C interrupts at once.

    Some programs pass a signal on to processes that have had it already: within a second it is the
    same. Only a main thread may handle signals; in another the list stays empty.
    """
    received: list[int] = []
    first = 0.0

    def note(number: int, _: Any) -> None:
        nonlocal first
        if not received:
            first = time.monotonic()
            with suppress(OSError):  # no logging: it may be what the signal has interrupted
                os.write(
                    sys.stderr.fileno(),
                    b"\nstopping after this step; Ctrl-C again: at once, without saving\n",
                )
        elif number == signal.SIGINT and time.monotonic() - first > 1:
            raise KeyboardInterrupt
        received.append(number)

    if threading.current_thread() is not threading.main_thread():
        yield received
        return
    before = {number: signal.getsignal(number) for number in STOPPING}
    handled = [number for number, handler in before.items() if handler is not signal.SIG_IGN]
    for number in handled:
        signal.signal(number, note)
    try:
        yield received
    finally:
        for number in handled:
            signal.signal(number, before[number])
