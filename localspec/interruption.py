"""Ctrl-C while something is under way that can be stopped."""

import os
import signal
import socket
import threading
from collections.abc import Callable
from typing import Any, Protocol

from localspec.engine.stop import Stop
from localspec.program import EXIT_INTERRUPTED


class Stoppable(Protocol):
    """A person's wish to stop, which may come at any moment and from another thread."""

    @property
    def stop(self) -> Stop:
        """What is asked for then."""


class Interruption:
    """Inside `with`, the first Ctrl-C is a request: it stops what is under way and keeps what was made. The second one
    leaves the program at once, whatever it is doing.

    Python runs signal handlers between two steps of its own, so a handler would have to wait until llama.cpp has read a
    whole batch of the prompt. The number of a signal that arrives is written into a socket at once, though, and a thread
    of ours can read it there.
    """

    def __init__(self) -> None:
        self.stop = Stop()
        """Asked for from another thread."""
        self._leave: list[Callable[[], Any]] = []

    def __enter__(self) -> "Interruption":
        reader, writer = socket.socketpair()
        writer.setblocking(False)
        watcher = threading.Thread(target=self._watch, args=(reader,), name="localspec-interruption", daemon=True)
        watcher.start()
        descriptor = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        # Without a handler of Python's own nothing would be written; ours has nothing else to do.
        handler = signal.signal(signal.SIGINT, lambda _number, _frame: None)
        self._leave = [
            lambda: signal.signal(signal.SIGINT, handler),
            lambda: signal.set_wakeup_fd(descriptor),
            writer.close,
            watcher.join,
            reader.close,
        ]
        return self

    def __exit__(self, *_error: object) -> None:
        for undo in self._leave:
            undo()

    def _watch(self, reader: socket.socket) -> None:
        while number := reader.recv(1):
            if number[0] != signal.SIGINT:
                continue
            if self.stop.asked:
                os._exit(EXIT_INTERRUPTED)
            self.stop.ask()
