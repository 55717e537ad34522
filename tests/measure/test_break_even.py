"""From which acceptance on drafting pays, by a cost curve."""

from __future__ import annotations

import pytest

from localspec.engine.costs import CostCurve
from localspec.measure.break_even import best_lengths, least_acceptance, least_for_copies, least_for_drafts


@pytest.mark.parametrize(
    ("passes", "length", "least"),
    [(1.3, 1, 0.3), (1.75, 2, 0.5), (1.0, 4, 0.0), (2.0, 1, None), (5.0, 4, None), (4.9999, 4, 1.0)],
)
def test_the_least_acceptance_of_a_step(passes: float, length: int, least: float | None) -> None:
    """1 + a = 1.3; 1 + a + a * a = 1.75; a pass of five that costs five plain ones never pays."""
    assert least_acceptance(passes, length) == pytest.approx(least, abs=1e-4)


def test_a_cliff_is_seen_in_the_copies() -> None:
    """Where two tokens cost as much as three plain passes, and nine hardly more, only long copies pay."""
    curve = CostCurve.measured({1: 10.0, 2: 30.0, 3: 30.5, 5: 31.0, 9: 32.0, 17: 33.0, 33: 35.0})
    least = least_for_copies(curve.ms)
    assert (least[1], least[2]) == (None, None)
    assert least[4] == pytest.approx(0.77, abs=0.02)
    assert least[32] is not None
    assert least[32] < 0.75


def test_a_draft_model_must_win_back_its_own_time() -> None:
    """On a flat curve one drafted token at a fifth of a plain step pays from 0.2 on; at the price of a plain one never."""
    assert least_for_drafts(lambda _width: 10.0, 2.0, 8) == pytest.approx((0.2, 1), abs=1e-6)
    assert least_for_drafts(lambda _width: 10.0, 10.0, 8) is None


def test_longer_drafts_are_best_where_more_is_accepted() -> None:
    """Never shorter as acceptance rises, and plain decoding where nothing is gained."""
    found = best_lengths(lambda width: 10.0 + 0.5 * width, 1.0, 32)
    lengths = [best.length for best in found]
    assert lengths == sorted(lengths)
    assert lengths[0] < lengths[-1]
    assert all(best.speedup > 1 for best in found)
    never = best_lengths(lambda width: 10.0 * width, 1.0, 32)
    assert {(best.length, best.speedup) for best in never} == {(0, 1.0)}
