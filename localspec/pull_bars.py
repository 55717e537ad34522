"""How far downloads are: a bar for each file on a terminal, and lines elsewhere."""

from __future__ import annotations

import math
import os
import shutil
import sys
import time
import unicodedata
from collections import deque
from collections.abc import Callable
from typing import Protocol, TextIO

from localspec.console import one_line, say
from localspec.durations import clock
from localspec.engine.rates import ratio
from localspec.engine.rates import share as share_of
from localspec.hub.download import megabytes

_WINDOW_SECONDS = 10.0
_BAR_COLUMNS = 20
_SHARE = 0.1


class Bars(Protocol):
    """Shows how far files are."""

    def show(self, file: str, done: int, total: int) -> None:
        """So many bytes of a file are here."""

    def note(self, sentence: str) -> None:
        """Something waits, for this reason."""

    def end(self) -> None:
        """Nothing more comes."""


def bars(quiet: bool) -> Bars:
    """Bars on a terminal that can go back a line, else lines; nothing if `quiet`."""
    stream = sys.stderr
    if quiet or stream is None:
        return _Nothing()
    if stream.isatty() and os.environ.get("TERM") != "dumb":
        return TerminalBars(stream)
    return Lines()


class _Nothing:
    def show(self, file: str, done: int, total: int) -> None:
        pass

    def note(self, sentence: str) -> None:
        pass

    def end(self) -> None:
        pass


class Lines:
    """A line for every tenth of a file."""

    def __init__(self, tell: Callable[[str], None] = say) -> None:
        self._tell, self._told = tell, dict[str, int]()

    def show(self, file: str, done: int, total: int) -> None:
        """Told when another tenth is here."""
        tenths = int(share_of(done, total) / _SHARE + 1e-9)
        if tenths != self._told.get(file):
            self._told[file] = tenths
            self._tell(f"{file}: {tenths * 10} %, {megabytes(done)} of {megabytes(total)}")

    def note(self, sentence: str) -> None:
        """Told at once."""
        self._tell(sentence)

    def end(self) -> None:
        """Nothing to put away."""


class TerminalBars:
    """A line with a bar for each file, drawn over and over in place. `clock` gives seconds."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._clock = stream, clock
        self._files: dict[str, tuple[int, int]] = {}
        self._speeds: dict[str, Speed] = {}
        self._note = ""
        self._drawn = 0

    def show(self, file: str, done: int, total: int) -> None:
        """Draw the file's bar anew."""
        self._files[file] = (done, total)
        self._speeds.setdefault(file, Speed()).at(self._clock(), done)
        self._note = ""
        self._draw()

    def note(self, sentence: str) -> None:
        """Shown below the bars until something moves."""
        self._note = sentence
        self._draw()

    def end(self) -> None:
        """Leave the bars as they are, and go on below them."""
        self._note = ""
        if self._files:
            self._draw()

    def _draw(self) -> None:
        columns, rows = shutil.get_terminal_size()
        columns -= 1
        # Nothing can be drawn anew once it has left the screen: of many files those that still move are shown.
        whole = [file for file, (done, total) in self._files.items() if done >= total]
        hidden = set(whole[: max(0, len(self._files) - max(1, rows - 2))])
        lines = [self._line(file, columns) for file in self._files if file not in hidden]
        if self._note:
            lines.append(_cut(one_line(self._note), columns))
        back = f"\x1b[{self._drawn}A\r" if self._drawn else "\r"
        self._drawn = len(lines)
        try:
            self._stream.write(back + "".join(f"\x1b[K{line}\n" for line in lines) + "\x1b[J")
            self._stream.flush()
        except OSError:
            self._files.clear()

    def _line(self, file: str, columns: int) -> str:
        done, total = self._files[file]
        share = share_of(done, total)
        filled = int(share * _BAR_COLUMNS)
        figures = f"{share:4.0%}  {megabytes(done)} of {megabytes(total)}{self._rest(file, done, total)}"
        bar = f"[{'#' * filled}{'.' * (_BAR_COLUMNS - filled)}]"
        room = columns - len(bar) - len(figures) - 2
        if room < 8:
            bar, room = "", columns - len(figures) - 2
        name = one_line(file)
        name = name if _cut(name, room) == name else f"{_cut(name, room - 1)}…"
        return _cut(f"{name} {bar} {figures}", columns)

    def _rest(self, file: str, done: int, total: int) -> str:
        speed = self._speeds[file].bytes_per_second
        if done >= total or not speed:
            return ""
        return f"  {megabytes(int(speed))}/s  {clock(ratio(total - done, speed) or math.inf)} left"


def _cut(text: str, columns: int) -> str:
    """As much of `text` as fits: Chinese characters and their like are two columns wide."""
    for place, character in enumerate(text):
        columns -= 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if columns < 0:
            return text[:place]
    return text


class Speed:
    """Bytes per second over the last seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def at(self, now: float, done: int) -> None:
        """So many bytes were here at `now`."""
        if self._seen and done < self._seen[-1][1]:
            self._seen.clear()
        self._seen.append((now, done))
        while now - self._seen[0][0] > _WINDOW_SECONDS and len(self._seen) > 2:
            self._seen.popleft()

    @property
    def bytes_per_second(self) -> float:
        """0 as long as nobody can tell."""
        (first, before), (last, after) = self._seen[0], self._seen[-1]
        return ratio(after - before, last - first) or 0.0
