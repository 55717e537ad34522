"""What going on with a draft is worth, by its length and its chance to be reached: optimal stopping, solved backwards.

At n drafted tokens that survive with probability s, one may stop, or pay for a look at the next token, learn how likely it is
to be accepted, and then take it or stop. Taking it adds s * a expected tokens and one position to the target's pass. W_n(s)
is the best that going on can add (Bellman's equation); it is solved for the present rate, costs and outlook, and solved anew
when these have moved.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

BINS = 12
"""Classes of acceptance that a look can end in; class i stands for (i + 1/2) / BINS."""
_GRID = 32
"""Steps of survival that are told apart."""
LONGEST = 33
_SAME = 0.01
"""Prices in tokens and chances that have moved by less are not worth solving it anew, a third of a millisecond's work."""

_acceptance = (np.arange(BINS) + 0.5) / BINS
_ACCEPTANCES: list[float] = _acceptance.tolist()
_survival = np.linspace(0.0, 1.0, _GRID + 1)
_gains = np.outer(_survival, _acceptance)
_places = _gains * _GRID
_below = np.minimum(_places.astype(np.int64), _GRID - 1)
_share = _places - _below


class Horizon:
    """W_n(s) for all n and s."""

    def __init__(self) -> None:
        self._values: list[list[float]] = [[0.0] * (_GRID + 1) for _ in range(LONGEST + 1)]
        self._solved_for: tuple[float, ...] = ()

    def solve(self, rate: float, look_ms: float, target_ms: Sequence[float], outlook: Sequence[float]) -> None:
        """`rate`: tokens per ms that time is worth. `look_ms`: the price of a look. `target_ms[w]`: time of a pass of width
        w, for w = 0 (unused), 1, ..., longest. `outlook`: weights of the classes of acceptance, shape (BINS,)."""
        total = sum(outlook)
        asked = (rate * look_ms, rate * target_ms[1], rate * target_ms[2], *(weight / total for weight in outlook))
        if self._solved_for and max(abs(a - b) for a, b in zip(asked, self._solved_for, strict=True)) < _SAME:
            return
        self._solved_for = asked
        chances = np.asarray(outlook) / total
        longest = len(target_ms) - 2
        value: NDArray[np.float64] = np.zeros(_GRID + 1)
        self._values = [value.tolist()] * (longest + 1)
        for n in range(longest - 1, -1, -1):
            onward = value[_below] * (1.0 - _share) + value[_below + 1] * _share
            take = _gains - rate * (target_ms[n + 2] - target_ms[n + 1]) + onward
            value = np.maximum(0.0, np.maximum(take, 0.0) @ chances - rate * look_ms)
            self._values[n] = value.tolist()

    def after_look(self, n: int, survival: float) -> list[tuple[float, float]]:
        """For each class of acceptance that a look can end in: s * a, and W_n(s * a)."""
        if n >= len(self._values):
            return [(survival * acceptance, 0.0) for acceptance in _ACCEPTANCES]
        row, found = self._values[n], []
        for acceptance in _ACCEPTANCES:
            reached = survival * acceptance
            place = reached * _GRID
            below = int(place)
            # No class stands for certainty: there is always a point above.
            found.append((reached, row[below] + (row[below + 1] - row[below]) * (place - below)))
        return found

    def beyond(self, n: int, survival: float) -> float:
        """W_n(s)."""
        if n >= len(self._values):
            return 0.0
        row, place = self._values[n], survival * _GRID
        below = min(int(place), _GRID - 1)
        return row[below] + (row[below + 1] - row[below]) * (place - below)
