"""Leaving when the terminal is gone."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading


def leave_with_the_terminal() -> None:
    """End the program, as a hangup does, when its terminal goes away.

    The system sends the signal only to the terminal's own session: a program that was started in another one would draw on
    for ever, into nothing. What a chat has is saved as it comes, so that there is nothing left to do.
    """
    if hasattr(select, "poll") and hasattr(signal, "SIGHUP"):
        threading.Thread(target=_wait, name="localspec-hangup", daemon=True).start()


def _wait() -> None:
    with contextlib.suppress(OSError, ValueError):
        poll = select.poll()
        # Asked for nothing, it still reports that the other end has been closed.
        poll.register(sys.__stdin__ or 0, 0)
        while not any(event & select.POLLHUP for _, event in poll.poll()):
            pass
        os.kill(os.getpid(), signal.SIGHUP)
