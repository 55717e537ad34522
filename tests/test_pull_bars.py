"""What people see of a download."""

from __future__ import annotations

import io

import pyte
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from localspec.durations import clock
from localspec.pull_bars import Lines, Speed, TerminalBars


class Clock:
    """Time that a test lets pass."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Terminal:
    """Bars, and the screen they are drawn on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, columns: int = 100) -> None:
        monkeypatch.setenv("COLUMNS", str(columns))
        self.clock, self._written = Clock(), io.StringIO()
        self.bars = TerminalBars(self._written, self.clock)
        self._columns = columns

    def rows(self) -> list[str]:
        screen = pyte.Screen(self._columns, 24)
        pyte.Stream(screen).feed(self._written.getvalue().replace("\n", "\r\n"))
        return [row.rstrip() for row in screen.display if row.strip()]


def test_a_bar_tells_how_far_how_fast_and_how_long(monkeypatch):
    """The speed is that of the last seconds."""
    terminal = Terminal(monkeypatch)
    terminal.bars.show("a.gguf", 0, 4_000_000_000)
    assert terminal.rows() == [f"a.gguf [{'.' * 20}]   0%  0 kB of 4.0 GB"]
    terminal.clock.now = 2.0
    terminal.bars.show("a.gguf", 1_000_000_000, 4_000_000_000)
    assert terminal.rows() == [f"a.gguf [{'#' * 5}{'.' * 15}]  25%  1.0 GB of 4.0 GB  500 MB/s  0:06 left"]


def test_each_file_has_its_line_and_a_note_comes_below(monkeypatch):
    """The note goes away when something moves."""
    terminal = Terminal(monkeypatch)
    terminal.bars.show("a.gguf", 10, 100)
    terminal.bars.show("b.gguf", 50, 100)
    terminal.bars.note("The hub is out of order.")
    rows = terminal.rows()
    assert [row.split()[0] for row in rows] == ["a.gguf", "b.gguf", "The"]
    terminal.bars.show("b.gguf", 60, 100)
    assert [row.split()[0] for row in terminal.rows()] == ["a.gguf", "b.gguf"]
    terminal.bars.end()
    assert len(terminal.rows()) == 2


@pytest.mark.parametrize("columns", [20, 30, 50, 60, 80, 200])
def test_a_bar_never_wraps(monkeypatch, columns):
    """A line that wraps would be drawn in the wrong place the next time."""
    terminal = Terminal(monkeypatch, columns)
    for name in ("a-rather-long-name-of-a-model-Q4_K_M-00001-of-00002.gguf", "很长的模型名字" * 9 + ".gguf"):
        for done in range(0, 101, 10):
            terminal.clock.now += 1
            terminal.bars.show(name, done * 10**8, 10**10)
    assert len(terminal.rows()) == 2


def test_a_name_cannot_command_the_terminal(monkeypatch):
    """Names come from the hub."""
    terminal = Terminal(monkeypatch)
    terminal.bars.show("a\x1b[2J\n.gguf", 10, 100)
    assert terminal.rows()[0].startswith("a\\x1b[2J\\n.gguf [")


def test_lines_come_for_every_tenth():
    """Elsewhere than on a terminal; not one for every piece."""
    told: list[str] = []
    lines = Lines(told.append)
    for done in range(1001):
        lines.show("a.gguf", done * 1000, 1_000_000)
    lines.note("The hub is out of order.")
    assert len(told) == 12
    assert told[:2] == ["a.gguf: 0 %, 0 kB of 1.0 MB", "a.gguf: 10 %, 100 kB of 1.0 MB"]
    assert told[-2:] == ["a.gguf: 100 %, 1.0 MB of 1.0 MB", "The hub is out of order."]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.floats(0.5, 5), min_size=2, max_size=20))
def test_a_steady_speed_is_told_as_it_is(steps):
    """Whenever it is looked at."""
    speed, now = Speed(), 0.0
    for passed in steps:
        now += passed
        speed.at(now, int(now * 1000))
    assert speed.bytes_per_second == pytest.approx(1000, abs=2)


def test_a_download_that_begins_anew_has_no_negative_speed():
    """The old bytes do not count."""
    speed = Speed()
    speed.at(0.0, 1000)
    speed.at(1.0, 0)
    speed.at(2.0, 500)
    assert speed.bytes_per_second == 500


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (61.4, "1:01"), (59.6, "1:00"), (3723, "1:02:03")])
def test_times_are_written_as_clocks_do(seconds, text):
    """Minutes and seconds, with hours where there are any."""
    assert clock(seconds) == text


def test_more_files_than_the_terminal_has_lines_are_drawn_in_place(monkeypatch):
    """Those that are whole make room for those that move."""
    monkeypatch.setenv("LINES", "24")
    terminal = Terminal(monkeypatch)
    for number in range(60):
        for done in (10, 100):
            terminal.bars.show(f"part-{number:02}.gguf", done, 100)
    terminal.bars.show("last.gguf", 10, 100)
    terminal.bars.end()
    rows = terminal.rows()
    assert len(rows) == 22
    assert rows[-1].startswith("last.gguf [")
    assert len({row.split()[0] for row in rows}) == 22
