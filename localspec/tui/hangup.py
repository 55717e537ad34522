"""Leaving when the terminal is gone, or when the system asks for it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable

_PATIENCE_SECONDS = 3.0
"""So long saving may take: a screen that nobody reads any more can block whoever draws on it."""
_UNKNOWN = 0x20 | 0x08
"""POLLNVAL and POLLERR: this descriptor cannot be watched, as on systems that cannot poll a terminal."""


def leave_with_the_terminal() -> None:
    """End the program, as a hangup does, when its terminal goes away.

    The system sends the signal only to the terminal's own session: a program that was started in another one would draw on
    for ever, into nothing.
    """
    if hasattr(select, "poll") and hasattr(signal, "SIGHUP"):
        threading.Thread(target=_wait, name="localspec-hangup", daemon=True).start()


def save_before_leaving(save: Callable[[], None], leave: Callable[[], None]) -> None:
    """Have `save` called, on the running loop, before a hangup ends the program, and `leave` when it is asked to end."""
    loop = asyncio.get_running_loop()

    def hang_up() -> None:
        try:
            save()
        finally:
            loop.remove_signal_handler(signal.SIGHUP)
            os.kill(os.getpid(), signal.SIGHUP)

    # Windows has no hangups, and its loops take no handlers.
    with contextlib.suppress(NotImplementedError, AttributeError, RuntimeError, ValueError):
        loop.add_signal_handler(signal.SIGHUP, hang_up)
        loop.add_signal_handler(signal.SIGTERM, leave)


def _wait() -> None:
    with contextlib.suppress(OSError, ValueError):
        poll = select.poll()
        # Asked for nothing, it still reports that the other end has been closed.
        poll.register(sys.__stdin__ or 0, 0)
        while True:
            events = [event for _, event in poll.poll()]
            if any(event & select.POLLHUP for event in events):
                break
            if any(event & _UNKNOWN for event in events):
                return
        os.kill(os.getpid(), signal.SIGHUP)
        time.sleep(_PATIENCE_SECONDS)
        os._exit(128 + signal.SIGHUP)
