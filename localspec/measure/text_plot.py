"""Charts of plain characters, for a terminal. Lines have letters, so that nothing depends on colors."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from string import ascii_lowercase
from textwrap import wrap

from localspec.measure.charts import Chart, Line

_COLUMNS_OF_TERMINAL, _ROWS = 80, 15
_MOST_TICKS = 6
_COLORS = (34, 33, 32, 35, 36, 31)
"""ANSI foregrounds that can be told from each other, and from the text, on light and on dark."""
_INDENT = "  "


@dataclass(frozen=True, slots=True)
class Look:
    """What a terminal can show."""

    ascii_only: bool = False
    color: bool = False

    @property
    def pen(self) -> str:
        """Between two points."""
        return "." if self.ascii_only else "·"

    @property
    def corner(self) -> str:
        """Where the axes meet."""
        return "+" if self.ascii_only else "└"

    @property
    def across(self) -> str:
        """The axis below."""
        return "-" if self.ascii_only else "─"

    @property
    def up(self) -> str:
        """The axis at the left."""
        return "|" if self.ascii_only else "│"

    @property
    def tick(self) -> str:
        """The axis at the left, where there is a number."""
        return "+" if self.ascii_only else "┤"

    @property
    def level(self) -> str:
        """The line to compare with."""
        return "-" if self.ascii_only else "╌"


def draw(chart: Chart, look: Look, columns: int = _COLUMNS_OF_TERMINAL, rows: int = _ROWS) -> list[str]:
    """The chart in lines of at most `columns` characters. A chart without points is its title alone."""
    lines = [line for line in chart.lines if line.x]
    if not lines:
        return wrap(chart.title, columns)
    ticks = _ticks(*_bounds(chart))
    names = _names(ticks)
    margin = len(_INDENT) + max(map(len, names))
    grid = _Grid(chart, (ticks[0], ticks[-1]), columns - margin - 2, rows)
    named = {grid.row(tick): name for tick, name in zip(ticks, names, strict=True)}
    cells = grid.drawn(look)
    drawn = [*wrap(chart.title, columns), f"{_INDENT}{chart.y_label}"]
    for row in range(rows - 1, -1, -1):
        axis = look.tick if row in named else look.up
        drawn.append(f"{named.get(row, '').rjust(margin)} {axis}{_colored(cells[row], look)}".rstrip())
    drawn.append(f"{' ' * margin} {look.corner}{look.across * grid.columns}")
    drawn.append(f"{' ' * (margin + 2)}{grid.numbers()}".rstrip())
    drawn.append(f"{' ' * (margin + 2)}{chart.x_label.center(grid.columns)}".rstrip())
    return [*drawn, *_legend(chart, look, columns)]


class _Grid:
    """The area inside the axes; row 0 is the lowest."""

    def __init__(self, chart: Chart, bounds: tuple[float, float], columns: int, rows: int) -> None:
        self._chart, self._rows, self.columns = chart, rows, columns
        self._low, self._high = bounds
        places = sorted({x for line in chart.lines for x in line.x})
        self._places, self._left, self._right = places, places[0], places[-1]

    def row(self, y: float) -> int:
        """Where a value is."""
        return round((y - self._low) / (self._high - self._low) * (self._rows - 1))

    def column(self, x: float) -> int:
        """Where a place is; one place alone is in the middle."""
        if self._left == self._right:
            return self.columns // 2
        return round((x - self._left) / (self._right - self._left) * (self.columns - 1))

    def drawn(self, look: Look) -> list[list[tuple[str, int | None]]]:
        """Rows of characters, each with the number of its line, or None."""
        cells: list[list[tuple[str, int | None]]] = [[(" ", None)] * self.columns for _ in range(self._rows)]
        if self._chart.level:
            cells[self.row(self._chart.level[1])] = [(look.level, None)] * self.columns
        for number, line in enumerate(self._chart.lines):
            for column, row in self._between(line):
                cells[row][column] = (look.pen, number)
        # Points last: no line hides them.
        for number, line in enumerate(self._chart.lines):
            for x, y in zip(line.x, line.y, strict=True):
                cells[self.row(y)][self.column(x)] = (_letter(number), number)
        return cells

    def numbers(self) -> str:
        """The numbers below the axis, as many as there is room for."""
        written = ""
        for place in self._places:
            name = f"{place:g}"
            start = min(self.column(place), self.columns - len(name))
            if start >= len(written) + bool(written):
                written = written.ljust(start) + name
        return written

    def _between(self, line: Line) -> Iterator[tuple[int, int]]:
        for (x, y), (next_x, next_y) in pairwise(zip(line.x, line.y, strict=True)):
            start, end = self.column(x), self.column(next_x)
            for column in range(start + 1, end):
                yield column, self.row(y + (next_y - y) * (column - start) / (end - start))


def _letter(number: int) -> str:
    return ascii_lowercase[number % len(ascii_lowercase)]


def _bounds(chart: Chart) -> tuple[float, float]:
    values = [*(y for line in chart.lines for y in line.y), *chart.in_sight]
    if chart.level:
        values.append(chart.level[1])
    return min(values), max(values)


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers that enclose `low` and `high`, 1, 2 or 5 times a power of ten apart."""
    span = (high - low) or abs(high) or 1.0
    rough = span / (_MOST_TICKS - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    # Down to the round number below and up to the one above there may be one tick more.
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [number * step for number in range(first, max(last, first + 1) + 1)]


def _names(ticks: list[float]) -> list[str]:
    digits = max(0, -math.floor(math.log10(ticks[1] - ticks[0]) + 1e-9))
    return [f"{tick:.{digits}f}" for tick in ticks]


def _colored(cells: list[tuple[str, int | None]], look: Look) -> str:
    text = ""
    for character, number in cells:
        if number is None or not look.color:
            text += character
        else:
            text += f"\x1b[{_COLORS[number % len(_COLORS)]}m{character}\x1b[0m"
    return text


def _legend(chart: Chart, look: Look, columns: int) -> list[str]:
    entries = [f"{_letter(number)}: {line.label}" for number, line in enumerate(chart.lines)]
    if chart.level:
        entries.append(f"{look.level * 3} {chart.level[0]}")
    # Entries are not broken, their blanks do not count until they are.
    held = [entry.replace(" ", "\0") for entry in entries]
    return [f"{_INDENT}{part}".replace("\0", " ") for part in wrap(", ".join(held), columns - len(_INDENT)) if part]
