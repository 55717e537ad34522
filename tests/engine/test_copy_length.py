"""How much of a copy to verify at once: certain copies whole, doubtful ones only where trying is cheap."""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate
from operator import mul

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localspec.engine.copy_length import best_length, lengths
from localspec.measure.profiles import PROFILES

chances = st.lists(st.floats(0.05, 1.0), min_size=1, max_size=32)


def survival(acceptances: list[float]) -> list[float]:
    """Chance of each token and all before it."""
    return list(accumulate(acceptances, mul))


def extra(profile: str, count: int) -> dict[int, float]:
    """What passes take beyond a plain step on a device."""
    return {length: PROFILES[profile].target_ms(1 + length) - 1.0 for length in lengths(count)}


@pytest.mark.parametrize("profile", sorted(set(PROFILES) - {"cpu"}))
def test_a_certain_copy_is_taken_whole(profile: str) -> None:
    """Where passes are flat beyond a width, as far as it goes."""
    assert best_length([1.0] * 32, extra(profile, 32))[0] == 32


def test_the_end_of_a_copy_is_drafted_where_it_beats_plain_steps() -> None:
    """Twelve certain tokens cost eight plain steps on Metal: nothing better comes behind them. Four come in pairs."""
    assert best_length([0.99] * 12, extra("metal", 12))[0] == 12
    assert best_length([0.99] * 4, extra("metal", 4))[0] == 1


def test_in_doubt_a_dear_device_waits_and_a_cheap_one_tries() -> None:
    """A copy that may be none: three of four."""
    doubtful = survival([0.75, 0.85, 0.93, *[0.98] * 29])
    assert best_length(doubtful, extra("metal", 32))[0] == 0
    assert best_length(doubtful, extra("cuda", 32))[0] >= 15
    confirmed = survival([0.97, *[0.98] * 31])
    assert best_length(confirmed, extra("metal", 32))[0] == 32


@settings(max_examples=200, deadline=None)
@given(acceptances=chances, profile=st.sampled_from(sorted(PROFILES)))
def test_never_worse_than_waiting(acceptances: list[float], profile: str) -> None:
    """A length that is tried, with a gain; or none, and no gain."""
    length, gain = best_length(survival(acceptances), extra(profile, len(acceptances)))
    assert (length == 0 and gain == 0.0) or (length in lengths(len(acceptances)) and gain > 0.0)


@settings(max_examples=200, deadline=None)
@given(acceptances=st.lists(st.floats(0.05, 1.0), min_size=1, max_size=12), profile=st.sampled_from(sorted(PROFILES)))
def test_close_to_the_best_of_all_plans(acceptances: list[float], profile: str) -> None:
    """Every plan of drafting and waiting, by the definition: tokens of each step less its time, until the copy breaks."""
    target_ms, count = PROFILES[profile].target_ms, len(acceptances)

    def value(start: int, length: int) -> float:
        total, reached = 0.0, 1.0
        for acceptance in acceptances[start : start + length]:
            reached *= acceptance
            total += reached
        onward = start + length
        if onward < count:
            reached *= acceptances[onward]
        return total - (target_ms(1 + length) - 1.0) + reached * best(onward + 1)

    @lru_cache(None)
    def best(start: int) -> float:
        return max((value(start, length) for length in range(count - start + 1)), default=0.0)

    chosen, _ = best_length(survival(acceptances), extra(profile, count))
    assert value(0, chosen) >= best(0) - max(0.25, 0.1 * abs(best(0)))
