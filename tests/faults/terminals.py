"""A program in a pseudo-terminal that is its own, as a shell's foreground job has it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import termios
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pyte

WIDTH, HEIGHT = 90, 24
_LIMIT_SECONDS = 60


class Terminal:
    """The program, its modes, and what it has written."""

    def __init__(self, command: list[str], environment: Mapping[str, str]) -> None:
        self.main, self.side = pty.openpty()
        termios.tcsetwinsize(self.side, (HEIGHT, WIDTH))
        self.modes = termios.tcgetattr(self.side)
        side = self.side
        # Only the child itself can make this its controlling terminal.
        self.program = subprocess.Popen(
            command,
            stdin=side,
            stdout=side,
            stderr=side,
            env={**environment, "TERM": "xterm-256color", "COLUMNS": "", "LINES": ""},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(side, termios.TIOCSCTTY, 0),  # noqa: PLW1509
        )
        self.written = b""
        self._screen = pyte.Screen(WIDTH, HEIGHT)
        self._stream = pyte.ByteStream(self._screen)

    @property
    def shown(self) -> str:
        return "\n".join(self._screen.display)

    def type(self, keys: bytes) -> None:
        os.write(self.main, keys)

    def read(self, seconds: float) -> None:
        while select.select([self.main], [], [], seconds)[0]:
            try:
                piece = os.read(self.main, 65536)
            except OSError:
                return
            self.written += piece
            self._stream.feed(piece)
            seconds = 0.0

    def until(self, holds: Callable[[], object]) -> None:
        """Read until `holds`. The limit only keeps a broken test from hanging."""
        limit = time.monotonic() + _LIMIT_SECONDS
        while not holds():
            assert time.monotonic() < limit, f"this never came about; the screen:\n{self.shown}"
            self.read(0.02)

    def ended(self) -> int:
        """Read until the program has ended; its exit code as subprocess has it."""
        self.until(lambda: self.program.poll() is not None)
        self.read(0.1)
        return self.program.returncode

    def modes_left_on(self) -> list[str]:
        """Private modes that the program has switched on and nobody off (or the other way round for cursor and wrapping)."""
        last = dict(re.findall(rb"\x1b\[\?(\d+)([hl])", self.written))
        usually_on = {b"25", b"7"}
        left = [number for number, how in last.items() if (how == b"h") != (number in usually_on)]
        pushed, popped = len(re.findall(rb"\x1b\[>\d+u", self.written)), len(re.findall(rb"\x1b\[<u", self.written))
        return [number.decode() for number in sorted(left)] + ["keys"] * (pushed > popped)

    def close(self) -> None:
        for pid in [*descendants(self.program.pid), self.program.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.program.wait()
        os.close(self.main)
        os.close(self.side)


def children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def descendants(pid: int) -> list[int]:
    found = [
        int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdecimal() and _parent(folder) == pid
    ]
    return [*(inner for child in found for inner in descendants(child)), *found]


def _parent(folder: Path) -> int:
    try:
        return int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError):
        return 0


def state(pid: int) -> str:
    """As in /proc: "S" sleeps, "T" is stopped, "Z" has ended, "" is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""
