"""Rejection mode: the text has the target's distribution, and as many drafts are kept as can be."""

import numpy as np
import pytest

import checks
from checks import distribution
from localspec.engine.acceptance import acceptance_probability, accepts, overlap, residual
from localspec.engine.noise import Stream, noise_key, uniform, uniforms

P = (0.40, 0.25, 0.15, 0.10, 0.07, 0.03)
Q = (0.10, 0.10, 0.30, 0.30, 0.10, 0.10)


def test_residual_by_hand() -> None:
    """The two tokens that the draft underrates share the residual 2 to 1."""
    left = residual(distribution(P), distribution(Q))
    assert dict(zip(left.ids.tolist(), left.probs.tolist(), strict=True)) == pytest.approx({0: 2 / 3, 1: 1 / 3})


def test_residual_goes_by_token_id() -> None:
    """p and q list their candidates in different orders and not the same ones."""
    p = distribution(P, [5, 2, 0, 1, 4, 3])
    q = distribution(Q, [3, 0, 4, 5, 1, 2])
    left = residual(p, q)
    assert dict(zip(left.ids.tolist(), left.probs.tolist(), strict=True)) == pytest.approx({0: 2 / 3, 1: 1 / 3})
    disjoint = residual(distribution((0.5, 0.5)), checks.Distribution(np.array([7], np.int32), np.ones(1)))
    assert disjoint.probs.tolist() == [0.5, 0.5]


def test_residual_of_equal_distributions_is_the_distribution() -> None:
    """Rounding can ask for a residual that has no mass."""
    p = distribution(P)
    assert residual(p, p) is p


def test_acceptance_probability() -> None:
    """min(1, p / q), and a complaint about a token that q cannot have drawn."""
    p, q = distribution(P), distribution(Q)
    assert acceptance_probability(p, q, 0) == 1.0
    assert acceptance_probability(p, q, 2) == pytest.approx(0.5)
    only_zero = checks.Distribution(np.array([0], np.int32), np.ones(1))
    with pytest.raises(ValueError, match="cannot have been drawn"):
        acceptance_probability(p, only_zero, 3)


def test_a_million_samples() -> None:
    """Acceptance .550 and the target's frequencies to three decimals, with the functions the loop uses."""
    p, q = distribution(P), distribution(Q)
    assert overlap(p, q) == pytest.approx(0.55)
    n, accepted = 1_000_000, 0
    left = residual(p, q)
    counts = np.zeros(len(P))
    drafts = _draws(q, Stream.DRAFT, n)
    rest = _draws(left, Stream.RESIDUAL, n)
    acceptance = [acceptance_probability(p, q, token) for token in range(len(Q))]
    for sample in range(n):
        drafted = int(drafts[sample])
        kept = uniform(noise_key(1, Stream.ACCEPT, sample)) < acceptance[drafted]
        accepted += kept
        counts[drafted if kept else int(rest[sample])] += 1
    assert accepted / n == pytest.approx(0.550, abs=0.0015)
    assert counts / n == pytest.approx(P, abs=0.0015)


def _draws(source: checks.Distribution, stream: Stream, n: int) -> np.ndarray:
    """`Distribution.draw` for n positions at once: the same races, as one array."""
    keys = np.array([noise_key(1, stream, position) for position in range(n)], np.uint64)
    races = np.stack([np.log(_uniforms_of(keys, int(token))) for token in source.ids], axis=1) / source.probs
    drawn = source.ids[races.argmax(axis=1)]
    for position in range(0, n, 50_021):
        assert source.draw(int(keys[position])) == drawn[position]
    return drawn


def _uniforms_of(keys: np.ndarray, token: int) -> np.ndarray:
    """`uniforms` with one token and many keys: key + token * golden is all that the mixing function sees."""
    shifted = keys + np.uint64(token * 0x9E3779B97F4A7C15 & (1 << 64) - 1)
    # With the id 0, `uniforms` mixes its key and nothing else; keys take the place of ids here.
    inverse = np.uint64(pow(0x9E3779B97F4A7C15, -1, 1 << 64))
    return uniforms(0, shifted * inverse)


def test_joint_of_three_tokens() -> None:
    """100,000 texts through the real loop and the real draft model: chi-square of the joint, and its distance."""
    counts, expected = checks.joint_of_three(100_000)
    statistic, bound = checks.chi_square(counts, expected)
    assert statistic < bound
    assert float(abs(counts - expected).sum()) / 2 / counts.sum() < 0.012


def test_accepts_is_the_comparison_it_says() -> None:
    """A number under p / q keeps, one over it refuses."""
    p, q = distribution(P), distribution(Q)
    assert accepts(p, q, 2, 0.49)
    assert not accepts(p, q, 2, 0.51)
