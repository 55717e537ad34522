"""The acceptance rule on a million random numbers, and steps made of it."""

from __future__ import annotations

import numpy as np
import pytest

from localspec.engine.distribution import Distribution
from localspec.engine.noise import Stream
from localspec.measure import theory_simulation
from localspec.measure.theory import tokens_per_step
from localspec.measure.theory_simulation import P, Q, RuleCheck, check_rule, simulate_steps

MILLION = 1_000_000
STEPS = 200_000
UNLIKELY = 1e-4


@pytest.fixture(scope="module")
def rule() -> RuleCheck:
    """A million tokens drafted from the bad draft."""
    return check_rule(MILLION, seed=0)


def test_the_published_pair_of_distributions() -> None:
    """p and q of the article."""
    assert P == (0.40, 0.25, 0.15, 0.10, 0.07, 0.03)
    assert Q == (0.10, 0.10, 0.30, 0.30, 0.10, 0.10)


def test_what_leaves_comes_from_p(rule: RuleCheck) -> None:
    """Frequencies to three decimals as the article has them, and as near to p as chance allows."""
    assert sum(rule.emitted) == MILLION
    assert rule.frequencies == pytest.approx(P, abs=1.5e-3)
    expected = MILLION * np.array(P)
    assert rule.chi_square == pytest.approx(((np.array(rule.emitted) - expected) ** 2 / expected).sum())
    assert rule.freedom == 5
    assert rule.by_chance > UNLIKELY


def test_the_acceptance_is_the_overlap(rule: RuleCheck) -> None:
    """.550, the sum of min(p, q) by hand: .10 + .10 + .15 + .10 + .07 + .03."""
    assert rule.expected_acceptance == pytest.approx(0.55)
    assert round(rule.acceptance, 3) == pytest.approx(0.55, abs=0.001)
    assert abs(rule.acceptance - 0.55) < 4 * rule.acceptance_error
    assert rule.acceptance_error == pytest.approx((0.55 * 0.45 / MILLION) ** 0.5)


def test_the_residual_by_hand(rule: RuleCheck) -> None:
    """max(0, p - q) is (.30, .15, 0, 0, 0, 0), and (2/3, 1/3, 0, 0, 0, 0) renormalized."""
    assert rule.residual == pytest.approx((2 / 3, 1 / 3, 0, 0, 0, 0))


def test_the_engine_decides_alike_one_by_one(rule: RuleCheck) -> None:
    """What is computed for all at once is what an answer computes token for token."""
    assert (rule.one_by_one, rule.alike) == (1000, 1000)


def test_a_seed_gives_its_figures_again() -> None:
    """And another seed others."""
    once, again, other = check_rule(5000, 1), check_rule(5000, 1), check_rule(5000, 2)
    assert once == again != other
    assert (
        simulate_steps(0.7, (2,), 1000, 1) == simulate_steps(0.7, (2,), 1000, 1) != simulate_steps(0.7, (2,), 1000, 2)
    )


def test_pieces_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """However much is in memory at once."""
    whole, steps = check_rule(5000, 3), simulate_steps(0.8, (2, 4), 3000, 3)
    monkeypatch.setattr(theory_simulation, "_AT_ONCE", 1024)
    monkeypatch.setattr(theory_simulation._chunks, "__defaults__", (1024,))
    assert check_rule(5000, 3) == whole
    for length, mean in simulate_steps(0.8, (2, 4), 3000, 3).items():
        assert mean.value == pytest.approx(steps[length].value, rel=1e-12)


@pytest.mark.parametrize("alpha", [0.6, 0.8, 0.9])
def test_simulated_steps_agree_with_the_formula(alpha: float) -> None:
    """Within the article's .01 for k = 2, 4 and 8, and within what chance allows."""
    for length, mean in simulate_steps(alpha, (2, 4, 8), STEPS, seed=0).items():
        assert mean.value == pytest.approx(tokens_per_step(alpha, length), abs=0.01)
        assert abs(mean.value - tokens_per_step(alpha, length)) < 4 * mean.error


def test_standard_errors_by_hand() -> None:
    """With k = 1 a step yields 1 or 2 tokens: the error is that of a coin."""
    mean = simulate_steps(0.6, (1,), 10_000, seed=4)[1]
    share = mean.value - 1.0
    assert mean.error == pytest.approx((share * (1.0 - share) / 10_000) ** 0.5)


@pytest.mark.parametrize(("alpha", "tokens"), [(0.0, 1.0), (1.0, 6.0)])
def test_nothing_and_everything_accepted(alpha: float, tokens: float) -> None:
    """Plain decoding's one token, and the whole draft with one more."""
    mean = simulate_steps(alpha, (5,), 1000, seed=0)[5]
    assert (mean.value, mean.error) == (tokens, 0.0)


def accept_by_difference(p: Distribution, q: Distribution, token: int) -> float:
    """A wrong rule: min(1, p) in the place of min(1, p / q)."""
    return p.of(token)


def keep_p(p: Distribution, q: Distribution) -> Distribution:
    """A wrong replacement: p itself in the place of the residual."""
    return p


@pytest.mark.parametrize(("name", "wrong"), [("acceptance_probability", accept_by_difference), ("residual", keep_p)])
def test_a_wrong_rule_is_found_out(name: str, wrong: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the frequencies, which are then not p's."""
    monkeypatch.setattr(theory_simulation, name, wrong)
    assert check_rule(100_000, 0).by_chance < UNLIKELY


def test_shared_random_numbers_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drafting and accepting with the same numbers is no rejection sampling."""
    own = theory_simulation._uniforms

    def shared(seed: int, _stream: Stream, numbers: np.ndarray) -> np.ndarray:
        return own(seed, Stream.DRAFT, numbers)

    monkeypatch.setattr(theory_simulation, "_uniforms", shared)
    assert check_rule(100_000, 0).by_chance < UNLIKELY


def test_a_faulty_engine_is_found_out_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were the rule for one token another one, the two would differ."""
    monkeypatch.setattr(theory_simulation, "accepts", lambda p, q, token, u: u < p.of(token))
    check = check_rule(5000, 0)
    assert check.alike < check.one_by_one
