"""How often to draw what grows: as often as it looks smooth, but seldom enough to leave the processor to the engine."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

_SHARE = 0.06 if (os.cpu_count() or 1) <= 4 else 0.2
"""Of the time, the most that drawing may take. Where every core computes, each stop of one is waited for by all: on two cores
drawing for an eighth of the time made the model a quarter slower."""
_LONGEST_SECONDS = 0.4
"""A reader is never kept waiting longer, whatever drawing costs."""


class Pace:
    """Asked at every tick."""

    def __init__(
        self,
        clock: Callable[[], float] = time.perf_counter,
        spent: Callable[[], float] = time.thread_time,
        share: float = _SHARE,
    ) -> None:
        """`clock`: seconds. `spent`: seconds that this thread, which draws, has kept a processor busy."""
        self._clock, self._spent, self._share = clock, spent, share
        self._drawn_at, self._spent_before = clock(), spent()

    def due(self) -> bool:
        """Whether to draw now: what was spent since the last time has become a small share of the time."""
        now, spent = self._clock(), self._spent()
        waited = now - self._drawn_at
        if waited < _LONGEST_SECONDS and spent - self._spent_before > self._share * waited:
            return False
        self._drawn_at, self._spent_before = now, spent
        return True
