"""The sums over an answer: never a division by nothing, and no step counted that had no pass."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localspec.engine.step import NO_DRAFTER, Finish, Step, Totals

EMPTY = Step((), "", NO_DRAFTER, 0, 0, 0, 0.0, 0.0, 0.0, 0.0)
SOME = Step((1, 2, 3), "abc", "lookup", 4, 2, 5, 1.0, 10.0, 2.0, 0.5)
times = st.floats(0, 1e4)
counts = st.integers(0, 32)


def rates(totals: Totals) -> list[float | None]:
    """Everything that is a quotient."""
    return [totals.tokens_per_step, totals.acceptance_rate, totals.ms_per_token, totals.host_ms_per_step]


def test_before_the_first_step() -> None:
    totals = Totals()
    assert rates(totals) == [None] * 4
    assert (totals.decode_seconds, totals.finish) == (0.0, None)


def test_an_interruption_is_no_step() -> None:
    """It has no pass; its reason counts."""
    totals = Totals()
    totals.add(replace(EMPTY, finish=Finish.INTERRUPTED))
    assert rates(totals) == [None] * 4
    assert (totals.steps, totals.by_drafter, totals.finish) == (0, {}, Finish.INTERRUPTED)


def test_sums_by_hand() -> None:
    totals = Totals()
    totals.add(SOME)
    totals.add(replace(EMPTY, tokens=(9,), width=1, verify_ms=5.0))
    totals.add(replace(SOME, drafter="draft", drafted=2, accepted=2, draft_ms=4.0, sample_ms=0.5, finish=Finish.STOP))
    assert (totals.tokens, totals.steps, totals.drafted, totals.accepted) == (7, 3, 6, 4)
    assert totals.tokens_per_step == pytest.approx(7 / 3)
    assert totals.acceptance_rate == pytest.approx(4 / 6)
    assert totals.decode_seconds == pytest.approx((5.0 + 25.0 + 2.5 + 1.0) / 1000)
    assert totals.ms_per_token == pytest.approx(33.5 / 7)
    assert totals.host_ms_per_step == 1.0
    assert {name: (of.steps, of.drafted, of.accepted) for name, of in totals.by_drafter.items()} == {
        "lookup": (1, 4, 2),
        "none": (1, 0, 0),
        "draft": (1, 2, 2),
    }
    assert totals.finish is Finish.STOP


def test_host_time_is_all_but_the_evaluations() -> None:
    assert SOME.host_ms == 2.5


@st.composite
def any_step(draw: st.DrawFn) -> Step:
    """A step as the loop makes them: no more accepted than drafted, and perhaps drafted by several."""
    drafted = draw(counts)
    names = st.sampled_from(["draft", "lookup"])
    return Step(
        tokens=tuple(draw(st.lists(st.integers(0, 9), max_size=5))),
        text="",
        drafter=draw(names) if drafted else NO_DRAFTER,
        drafted=drafted,
        accepted=draw(st.integers(0, drafted)),
        width=draw(counts),
        draft_ms=draw(times),
        verify_ms=draw(times),
        sample_ms=draw(times),
        policy_ms=draw(times),
        finish=draw(st.sampled_from([None, *Finish])),
        sources=tuple(draw(st.lists(names, min_size=drafted, max_size=drafted))) if draw(st.booleans()) else (),
    )


def test_each_source_has_its_own_tokens() -> None:
    """Of a draft by two, the accepted ones are its first; the step is that of whoever began."""
    totals = Totals()
    totals.add(replace(SOME, drafter="draft", sources=("draft", "lookup", "lookup", "draft"), accepted=2))
    assert {name: (of.steps, of.drafted, of.accepted) for name, of in totals.by_drafter.items()} == {
        "draft": (1, 2, 1),
        "lookup": (0, 2, 1),
    }


@given(steps=st.lists(any_step(), max_size=8))
def test_any_steps(steps: list[Step]) -> None:
    """Rates are numbers or None, sums are those of the steps with a pass."""
    totals = Totals()
    for step in steps:
        totals.add(step)
        assert all(rate is None or (math.isfinite(rate) and rate >= 0) for rate in rates(totals))
    counted = [step for step in steps if step.width]
    assert totals.tokens == sum(len(step.tokens) for step in counted)
    assert totals.steps == len(counted) == sum(of.steps for of in totals.by_drafter.values())
    assert totals.drafted == sum(of.drafted for of in totals.by_drafter.values())
    assert totals.accepted == sum(of.accepted for of in totals.by_drafter.values())
    assert totals.finish is next((step.finish for step in reversed(steps) if step.finish), None)
