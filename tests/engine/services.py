"""Services for tests of the process that hosts them. Importing this is cheap: every child does it."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator

from localspec.engine.errors import ContextFullError, UserError
from localspec.engine.process import Link


class OddError(Exception):
    """An error that the other end may not know."""


class PickyError(UserError):
    """The same, for a person."""

    def __init__(self, one: str, other: str) -> None:
        super().__init__(f"{one} {other}")


class Talker:
    """Says what it is asked to."""

    def __init__(self, link: Link, *words: str) -> None:
        self.link = link
        for word in words:
            link.send(word)

    def count(self, to: int) -> Iterator[int]:
        yield from range(to)

    def both(self) -> Iterator[str]:
        self.link.send("sent")
        yield "yielded"
        self.link.send("sent again")

    def hold(self) -> Iterator[str]:
        stopped = threading.Event()
        with self.link.stop.ending(stopped.set):
            yield "holding"
            stopped.wait()
        yield "stopped"

    def late(self) -> Iterator[bool]:
        """Looks up only when it has been stopped already."""
        while not self.link.stop.asked:
            time.sleep(0.001)
        yield True

    def stopping(self) -> Iterator[bool]:
        yield self.link.stop.asked

    def stubborn(self) -> Iterator[str]:
        yield "never ends"
        while True:
            time.sleep(0.01)

    def fail(self, kind: str) -> Iterator[int]:
        yield 1
        raise {
            "user": ContextFullError("Too long; say less."),
            "picky": PickyError("Say", "less."),
            "builtin": ValueError("odd number"),
            "odd": OddError("very odd"),
        }[kind]

    def print(self, words: str) -> Iterator[None]:
        os.write(1, f"{words} on 1\n".encode())
        os.write(2, f"{words} on 2\n".encode())
        print(words, "by Python", file=sys.stderr, flush=True)
        yield None

    def abort(self) -> Iterator[int]:
        yield 1
        os.abort()

    def idle(self, unwanted: Callable[[], bool]) -> None:
        os.write(1, b"idle\n")
        while not unwanted():
            time.sleep(0.001)
        os.write(1, b"unwanted\n")

    def close(self) -> None:
        os.write(1, b"closed\n")


def refuse(link: Link) -> Talker:
    link.send("begun")
    raise UserError("There is no such file; give another.")


def never_ready(link: Link) -> Talker:
    link.send("begun")
    while not link.stop.asked:
        time.sleep(0.01)
    raise RuntimeError("given up")
