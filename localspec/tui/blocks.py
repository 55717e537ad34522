"""Small drawings of block characters: columns that grow upwards, and bars that grow to the right."""

from collections.abc import Sequence

from localspec.engine.rates import share

_HEIGHTS = " ▁▂▃▄▅▆▇█"
_WIDTHS = " ▏▎▍▌▋▊▉█"
_EIGHTHS = 8


def columns(values: Sequence[float], top: float, rows: int = 1) -> list[str]:
    """One column for each value, `rows` lines high, the topmost line first.

    0 is empty, `top` and above are full; whatever is above 0 is at least an eighth of a line.
    """
    heights = [_parts(value, top, rows * _EIGHTHS) for value in values]
    below = [_EIGHTHS * row for row in reversed(range(rows))]
    return ["".join(_HEIGHTS[min(_EIGHTHS, max(0, height - floor))] for height in heights) for floor in below]


def bar(share: float, cells: int) -> str:
    """A bar over `share` (0 to 1) of so many cells, as long as it needs to be; above 0 it is at least an eighth of a cell."""
    whole, rest = divmod(_parts(share, 1.0, cells * _EIGHTHS), _EIGHTHS)
    return _WIDTHS[-1] * whole + (_WIDTHS[rest] if rest else "")


def gauge(share: float, cells: int) -> tuple[str, str]:
    """A thin line of so many cells: the part up to `share` (0 to 1), and the rest."""
    halves = _parts(share, 1.0, 2 * cells)
    reached = "━" * (halves // 2) + "╸" * (halves % 2)
    return reached, "─" * (cells - len(reached))


def _parts(value: float, top: float, most: int) -> int:
    if not (value > 0 and top > 0):
        return 0
    return min(most, max(1, round(most * share(value, top))))
