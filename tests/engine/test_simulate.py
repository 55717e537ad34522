"""A simulated clock: the tokens are the models' own, the times are somebody else's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from recorded import open_engine

from localspec.engine.engine import Engine, Options
from localspec.engine.sampling import Sampling
from localspec.engine.step import Step

TEXT = [*b"the cat sat on the mat and the cat sat on the hat and the cat"]
GREEDY = Sampling(temperature=0.0)


@pytest.fixture
def engine(target: Path, draft: Path) -> Iterator[Engine]:
    """A pair whose clock nobody else needs."""
    with open_engine(target, draft) as engine:
        yield engine


def target_ms(width: int) -> float:
    """Told apart from any real time."""
    return 1000.0 + 100.0 * width


def draft_ms(width: int) -> float:
    """The draft's."""
    return 10.0 + width


def steps(engine: Engine, drafter: str) -> list[Step]:
    """A short answer."""
    return list(engine.generate(TEXT, Options(GREEDY, drafter, draft_max=3, seed=0, max_tokens=30)))


def test_passes_take_what_they_are_said_to_take(engine: Engine) -> None:
    """By width, the draft's too; reading the prompt takes nothing; the text stays the same."""
    real = [step.tokens for step in steps(engine, "lookup") + steps(engine, "draft")]
    engine.simulate(target_ms, draft_ms)
    simulated = steps(engine, "lookup") + steps(engine, "draft")
    assert [step.tokens for step in simulated] == real
    assert engine.target_context.busy_seconds == pytest.approx(sum(target_ms(step.width) / 1000 for step in simulated))
    assert len({step.width for step in simulated}) > 1
    for step in simulated:
        assert step.verify_ms == pytest.approx(target_ms(step.width))
        # The first look catches up with one token, or with two after a draft that was accepted as a whole.
        looks = step.drafted if step.drafter == "draft" else 0
        assert step.draft_ms == pytest.approx(11.0 * looks, abs=1.01 if looks else 1e-9)


def test_the_costs_are_the_simulated_ones(engine: Engine) -> None:
    """From the beginning, for both models."""
    engine.simulate(target_ms, draft_ms)
    assert [engine.costs.target.ms(width) for width in (1, 7, 33)] == pytest.approx([1100.0, 1700.0, 4300.0])
    assert [engine.costs.draft_ms(width) for width in (1, 20)] == pytest.approx([11.0, 30.0])


def test_auto_does_the_same_every_time(engine: Engine) -> None:
    """Whatever the machine is doing, and whatever was timed before."""

    def what_it_does() -> list[tuple[tuple[int, ...], str, int, float, float]]:
        engine.simulate(target_ms, draft_ms)
        return [
            (step.tokens, step.drafter, step.width, step.verify_ms, step.draft_ms) for step in steps(engine, "auto")
        ]

    first = what_it_does()
    steps(engine, "draft")
    assert what_it_does() == first


def test_a_target_alone_can_be_simulated(target: Path) -> None:
    """The draft's times are not asked for."""
    with open_engine(target, None) as engine:
        engine.simulate(target_ms, draft_ms)
        assert all(step.draft_ms == 0.0 and step.verify_ms >= 1100.0 - 1e-6 for step in steps(engine, "lookup"))
        assert engine.costs.draft is None
