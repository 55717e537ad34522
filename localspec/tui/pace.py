"""How often to draw what grows: as often as it looks smooth, but seldom enough to leave the processor to the engine."""

from __future__ import annotations

import time
from collections.abc import Callable

_SHARE = 0.12
"""Of the time, the most that drawing may take."""
_LONGEST_SECONDS = 0.25
"""A reader is never kept waiting longer, whatever drawing costs."""


class Pace:
    """Asked at every tick."""

    def __init__(
        self, clock: Callable[[], float] = time.perf_counter, spent: Callable[[], float] = time.thread_time
    ) -> None:
        """`clock`: seconds. `spent`: seconds that this thread, which draws, has kept a processor busy."""
        self._clock, self._spent = clock, spent
        self._drawn_at, self._spent_before = clock(), spent()

    def due(self) -> bool:
        """Whether to draw now: what was spent since the last time has become a small share of the time."""
        now, spent = self._clock(), self._spent()
        waited = now - self._drawn_at
        if waited < _LONGEST_SECONDS and spent - self._spent_before > _SHARE * waited:
            return False
        self._drawn_at, self._spent_before = now, spent
        return True
