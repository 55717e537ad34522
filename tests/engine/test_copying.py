"""What a copy is worth, against every prefix tried one after the other; and when long copies are trusted."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localspec.engine.chain import Chain
from localspec.engine.copying import Copy
from localspec.engine.costs import CostCurve, Costs
from localspec.engine.drafters.base import Draft
from localspec.engine.drafters.lookup import Lookup
from localspec.engine.horizon import BINS, Horizon

CURVES: dict[str, Callable[[int], float]] = {
    "flat": lambda width: 1.0 + 0.05 * width,
    "linear": lambda width: 0.4 + 0.6 * width,
    "cliff": lambda width: 1.0 + 0.1 * width + (4.0 if width > 3 else 0.0),
}


def copy_of(acceptances: list[float], start: int = 0, trust: float = 1.0) -> Copy:
    """A copy whose tokens are accepted with these probabilities, one after the other."""
    survival, reached = [], 1.0
    for acceptance in acceptances:
        reached *= acceptance
        survival.append(reached)
    return Copy(Draft("lookup", tuple(range(len(acceptances))), tuple(survival)), start, trust)


def best_by_trying(acceptances, done, start, trust, reached, rate, cost, beyond) -> tuple[float, int]:
    """Every length, by the definition: tokens gained less the time they take."""
    best, length, gain, alive = 0.0, 0, 0.0, reached
    for more, acceptance in enumerate(acceptances[done:], start=1):
        alive *= acceptance
        survives = alive * (1.0 if more == 1 else trust)
        gain += survives
        n = start + done
        value = gain - rate * (cost(1 + n + more) - cost(1 + n)) + (beyond(n + more, survives) if beyond else 0.0)
        if value > best + 1e-12:
            best, length = value, more
    return best, length


@settings(max_examples=200, deadline=None)
@given(
    acceptances=st.lists(st.floats(0.3, 1.0), min_size=1, max_size=32),
    curve=st.sampled_from(sorted(CURVES)),
    trust=st.floats(0.0, 1.0),
    start=st.integers(0, 5),
    rate=st.floats(0.2, 3.0),
    with_model=st.booleans(),
    data=st.data(),
)
def test_gain_is_that_of_the_best_prefix(acceptances, curve, trust, start, rate, with_model, data):
    cost, beyond = CURVES[curve], (lambda n, s: 0.1 * s / (1 + n)) if with_model else None
    copy = copy_of(acceptances, start, trust)
    reached, done = 0.9, data.draw(st.integers(0, len(acceptances) - 1))
    for token in range(done):
        # Asked on the way, too: what is remembered must stay true.
        copy.gain(reached, rate, cost, beyond)
        reached *= copy.acceptance
        assert copy.follow(token)
    gain, length = copy.gain(reached, rate, cost, beyond)
    wanted, wanted_length = best_by_trying(acceptances, done, start, trust, reached, rate, cost, beyond)
    assert gain == pytest.approx(wanted, abs=1e-9)
    if wanted > 1e-6:
        tried = best_by_trying(acceptances[: done + length], done, start, trust, reached, rate, cost, beyond)[0]
        assert tried == pytest.approx(wanted, abs=1e-9), (length, wanted_length)


def test_a_copy_is_followed_only_while_the_draft_says_the_same():
    copy = copy_of([0.9, 0.8, 0.7])
    assert copy.follow(0)
    assert copy.acceptance == pytest.approx(0.8)
    assert not copy.follow(7)
    assert (copy.left, copy.token) == (2, 1)
    assert copy.follow(1)
    assert copy.follow(2)
    assert copy.left == 0
    assert not copy.follow(3)
    assert copy.gain(1.0, 1.0, CURVES["flat"], None) == (0.0, 0)


def test_what_a_look_can_end_in_is_what_going_on_is_worth():
    horizon = Horizon()
    horizon.solve(0.8, 0.1, [0.0, *(CURVES["flat"](width) for width in range(1, 34))], [1.0] * BINS)
    for n in (1, 5, 40):
        for survival in (0.0, 0.3, 0.77, 1.0):
            found = horizon.after_look(n, survival)
            assert [reached for reached, _ in found] == pytest.approx(
                [survival * (i + 0.5) / BINS for i in range(BINS)]
            )
            assert [value for _, value in found] == [horizon.beyond(n, reached) for reached, _ in found]


def chain_over(tokens: list[int]) -> Chain:
    lookup = Lookup()
    lookup.observe(tokens)
    chain = Chain(Costs(CostCurve.guessed()), lookup, None)
    chain.begin()
    return chain


def test_long_copies_are_silent_in_a_short_text_until_they_would_have_carried():
    chain = chain_over(list(range(100)))
    assert chain.trust == 0.0
    chain.proposed = Draft("lookup", tuple(range(20)), tuple(0.98 ** (i + 1) for i in range(20)))
    chain.follow(range(12))
    assert chain.trust == 0.0
    chain.rest()
    chain.follow(range(12, 20))
    chain.follow([99])
    assert 0.1 < chain.trust < 0.5


def test_a_document_is_half_trusted_at_once():
    assert chain_over(list(range(400))).trust == 0.5
