"""Drawing keeps to its share of the time."""

from __future__ import annotations

import pytest

from localspec.tui.pace import Pace


def drawings(cost: float, seconds: float = 10.0, tick: float = 0.066) -> tuple[int, float]:
    """How often is drawn in so many seconds of ticks, and the share of the time that takes, when one drawing costs
    `cost` seconds."""
    now = spent = 0.0
    pace = Pace(lambda: now, lambda: spent, 0.12)
    count = 0
    while now < seconds:
        now += tick
        if pace.due():
            count += 1
            spent += cost
            now += cost
    return count, spent / now


def test_cheap_drawing_is_done_at_every_tick():
    assert drawings(0.002)[0] == pytest.approx(10.0 / 0.068, abs=2)


def test_dear_drawing_is_done_less_often():
    count, share = drawings(0.02)
    assert share <= 0.125
    assert 40 < count < 75


def test_nobody_waits_much_longer_than_two_fifths_of_a_second():
    count, _ = drawings(0.2)
    assert count >= 10.0 / (0.2 + 0.4 + 0.066) - 1
