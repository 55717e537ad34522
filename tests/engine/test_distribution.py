"""Draws have the probabilities they should, and no random number knows of another."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checks import chi_square
from localspec.engine.distribution import Distribution, draw_from_logits
from localspec.engine.noise import Stream, noise_key, uniform, uniforms

PROBS = np.array([0.31, 0.25, 0.17, 0.12, 0.08, 0.04, 0.02, 0.01])
IDS = np.array([900, 3, 77, 12, 4000, 5, 250, 1], np.int32)


def key(position: int, seed: int = 1, stream: Stream = Stream.TARGET, step: int = 0) -> int:
    return noise_key(seed, stream, position, step)


# --- distributions ----------------------------------------------------------------------------------------------------


def test_from_logits_is_the_softmax() -> None:
    logits = np.array([2.0, -1.0, 0.5, -np.inf], np.float32)
    p = Distribution.from_logits(IDS[:4], logits)
    weights = np.exp(logits.astype(np.float64))
    assert p.probs == pytest.approx(weights / weights.sum())
    assert p.probs.dtype == np.float64
    assert p.probs.sum() == pytest.approx(1.0, abs=1e-15)
    assert (p.mode(), p.of(77), p.of(12), p.of(8)) == (900, p.probs[2], 0.0, 0.0)
    shifted = Distribution.from_logits(IDS[:4], logits + np.float32(4096))
    assert shifted.probs == pytest.approx(p.probs, rel=1e-3)


def test_logits_are_left_alone() -> None:
    """They are a view of llama.cpp's memory."""
    logits = np.array([2.0, -1.0, 0.5], np.float64)
    Distribution.from_logits(IDS[:3], logits)
    draw_from_logits(IDS[:3], logits, 5)
    assert logits.tolist() == [2.0, -1.0, 0.5]


def test_draws_have_the_probabilities() -> None:
    """Chi-square over 40,000 positions, p > 1e-4, through both ways to draw."""
    p = Distribution(IDS, PROBS)
    draws = np.array([p.draw(key(position)) for position in range(40_000)])
    counts = np.array([(draws == token).sum() for token in IDS])
    statistic, bound = chi_square(counts, PROBS * counts.sum())
    assert counts.sum() == 40_000
    assert statistic < bound
    logits = np.log(PROBS) + 3.0
    assert all(draw_from_logits(IDS, logits, key(position)) == draws[position] for position in range(5000))


def test_pairs_of_draws_are_independent() -> None:
    """Neighboring positions, neighboring seeds, two streams and two steps: chi-square of the joint of two draws."""
    p = Distribution(IDS[:4], PROBS[:4] / PROBS[:4].sum())
    place = {int(token): index for index, token in enumerate(p.ids)}
    neighbors = {
        "position": lambda n: (key(2 * n), key(2 * n + 1)),
        "seed": lambda n: (key(n, seed=10), key(n, seed=11)),
        "stream": lambda n: (key(n), key(n, stream=Stream.DRAFT)),
        "step": lambda n: (key(n, step=4), key(n, step=5)),
    }
    for name, pair in neighbors.items():
        counts = np.zeros((4, 4), np.int64)
        for n in range(15_000):
            one, other = pair(n)
            counts[place[p.draw(one)], place[p.draw(other)]] += 1
        statistic, bound = chi_square(counts.ravel(), (np.outer(p.probs, p.probs) * 15_000).ravel())
        assert statistic < bound, name


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 60), position=st.integers(0, 10**6))
def test_the_order_of_candidates_does_not_matter(seed: int, size: int, position: int) -> None:
    """Nor do candidates that lose: without any of them the same token wins."""
    rng = np.random.default_rng(seed)
    ids = rng.choice(150_000, size, replace=False).astype(np.int32)
    probs = rng.dirichlet(np.ones(size))
    drawn = Distribution(ids, probs).draw(key(position))
    order = rng.permutation(size)
    assert Distribution(ids[order], probs[order]).draw(key(position)) == drawn
    keep = rng.random(size) < 0.5
    keep |= ids == drawn
    assert Distribution(ids[keep], probs[keep] / probs[keep].sum()).draw(key(position)) == drawn


def test_impossible_candidates_are_never_drawn() -> None:
    p = Distribution(IDS, np.array([0.5, 0, 0.5, 0, 0, 0, 0, 0]))
    assert {p.draw(key(position)) for position in range(500)} == {900, 77}
    logits = np.array([1.0, -np.inf, 1.0, -np.inf])
    assert {draw_from_logits(IDS[:4], logits, key(position)) for position in range(500)} == {900, 77}


def test_similar_distributions_mostly_draw_the_same() -> None:
    """At least (1 - TV) / (1 + TV) of the time: what makes a coupled draft worth having."""
    rng = np.random.default_rng(1)
    for distance in (0.02, 0.1, 0.3):
        p = Distribution(IDS, PROBS)
        other = np.roll(PROBS, 3)
        q = Distribution(IDS, (1 - distance) * PROBS + distance * other)
        tv = float(abs(p.probs - q.probs).sum()) / 2
        positions = rng.integers(0, 10**9, 4000)
        agreed = np.mean([p.draw(key(int(n))) == q.draw(key(int(n))) for n in positions])
        assert agreed > (1 - tv) / (1 + tv) - 0.02


# --- noise ------------------------------------------------------------------------------------------------------------


def test_uniforms_lie_between_zero_and_one() -> None:
    """And fill the interval evenly: chi-square over 100 bins, extremes near the ends, mean and variance."""
    u = uniforms(key(3), np.arange(200_000, dtype=np.int32))
    assert 0.0 < u.min() < 1e-4
    assert 1 - 1e-4 < u.max() < 1.0
    counts = np.histogram(u, 100, (0, 1))[0]
    statistic, bound = chi_square(counts, np.full(100, 2000.0))
    assert statistic < bound
    assert u.mean() == pytest.approx(0.5, abs=0.003)
    assert u.var() == pytest.approx(1 / 12, abs=0.001)


def test_single_uniforms_too() -> None:
    """One for each position; the smallest and largest possible ones are inside the interval."""
    u = np.array([uniform(key(position)) for position in range(50_000)])
    statistic, bound = chi_square(np.histogram(u, 50, (0, 1))[0], np.full(50, 1000.0))
    assert statistic < bound
    assert 0.0 < 0.5 * 2.0**-53 < 1.0 and ((1 << 53) - 1 + 0.5) * 2.0**-53 <= 1.0
    assert u.min() > 0.0 and u.max() < 1.0


def test_a_token_has_its_number_whoever_else_runs() -> None:
    ids = np.array([5, 150_000, 0, 77, 2**31 - 1], np.int32)
    together = uniforms(key(9), ids)
    for index, token in enumerate(ids):
        assert uniforms(key(9), np.array([token])) == together[index]
        assert uniforms(key(9), np.array([token], np.int64)) == together[index]


def test_streams_are_not_correlated() -> None:
    """Fields of neighboring keys of every kind over the same ids: correlation within four deviations of none."""
    ids = np.arange(30_000, dtype=np.int32)
    keys = {
        "target": key(100),
        "next position": key(101),
        "next seed": key(100, seed=2),
        "next step": key(100, step=1),
        **{stream.name: key(100, stream=stream) for stream in Stream if stream is not Stream.TARGET},
        "shifted": key(100) + 1,
    }
    fields = {name: uniforms(value, ids) for name, value in keys.items()}
    for (one, a), (other, b) in itertools.combinations(fields.items(), 2):
        assert abs(np.corrcoef(a, b)[0, 1]) < 4 / 30_000**0.5, f"{one} and {other}"
        assert abs(np.corrcoef(a[1:], b[:-1])[0, 1]) < 4 / 30_000**0.5, f"{one} and {other}, one id on"


def test_keys_do_not_collide() -> None:
    """Over seeds, streams, steps and positions, close ones and far ones."""
    values = [0, 1, 2, 3, 63, 64, 2**16, 2**31, 2**32 - 1]
    keys = {noise_key(seed, stream, a, b) for seed in values for stream in Stream for a in values for b in values}
    assert len(keys) == len(values) ** 3 * len(Stream)
    assert all(0 <= value < 2**64 for value in keys)


def test_noise_is_the_same_everywhere() -> None:
    """Texts are a function of the seed on every machine and in every version: these numbers may not change."""
    assert noise_key(1, Stream.TARGET, 2, 3) == GOLDEN_KEY
    assert uniform(GOLDEN_KEY) == GOLDEN_UNIFORM
    assert uniforms(GOLDEN_KEY, np.array([0, 1, 49_151], np.int32)).tolist() == GOLDEN_UNIFORMS


GOLDEN_KEY = 6_302_964_282_712_783_656
GOLDEN_UNIFORM = 0.8771887216007691
GOLDEN_UNIFORMS = [0.6016853279531974, 0.8771887216007691, 0.48461383185567153]
