"""The acceptance rule at work on random numbers: what it lets through, and how many tokens a step yields.

The rule is the engine's own (`engine.acceptance`) and so are the random numbers (`engine.noise`): a stream each for drawing
drafts, for accepting them and for replacing them, as in an answer.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from localspec.engine.acceptance import acceptance_probability, accepts, overlap, residual
from localspec.engine.distribution import Distribution
from localspec.engine.noise import Stream, noise_key, uniforms
from localspec.measure.theory import chi_square, chi_square_tail

P = (0.40, 0.25, 0.15, 0.10, 0.07, 0.03)
"""A target's distribution over six tokens."""
Q = (0.10, 0.10, 0.30, 0.30, 0.10, 0.10)
"""A deliberately bad draft's."""

_AT_ONCE = 1_000_000
"""Draws that are in memory together."""
_ONE_BY_ONE = 1000


@dataclass(frozen=True, slots=True)
class RuleCheck:
    """What the acceptance rule has let through."""

    p: tuple[float, ...]
    q: tuple[float, ...]
    samples: int
    residual: tuple[float, ...]
    """What a refused token is replaced from."""
    emitted: tuple[int, ...]
    """How often each token left."""
    accepted: int
    one_by_one: int
    """Draws that the engine's functions for a single token decided again."""
    alike: int
    """How many of these they decided the same way."""

    @property
    def frequencies(self) -> tuple[float, ...]:
        """Shares of the emitted tokens, to compare with p."""
        return tuple(count / self.samples for count in self.emitted)

    @property
    def acceptance(self) -> float:
        """Share of the drafted tokens that were accepted."""
        return self.accepted / self.samples

    @property
    def expected_acceptance(self) -> float:
        """The sum of min(p, q)."""
        return overlap(_distribution(self.p), _distribution(self.q))

    @property
    def acceptance_error(self) -> float:
        """Standard error of `acceptance`."""
        expected = self.expected_acceptance
        return math.sqrt(expected * (1.0 - expected) / self.samples)

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the chi-square test."""
        return sum(share > 0.0 for share in self.p) - 1

    @property
    def chi_square(self) -> float:
        """Pearson's statistic of the emitted tokens against p."""
        return chi_square(self.emitted, [share * self.samples for share in self.p])

    @property
    def by_chance(self) -> float:
        """How likely frequencies are at least this far from p although p is what they come from."""
        return chi_square_tail(self.chi_square, self.freedom)


def check_rule(samples: int, seed: int, p: Sequence[float] = P, q: Sequence[float] = Q) -> RuleCheck:
    """Draft `samples` tokens from q, accept or replace each, and count what leaves. `p`, `q`: over the same tokens."""
    target, draft = _distribution(p), _distribution(q)
    rest = residual(target, draft)
    thresholds = _thresholds(target, draft)
    emitted, accepted, alike = np.zeros(len(p), np.int64), 0, 0
    for numbers in _chunks(samples):
        drafted = _picked(draft, _uniforms(seed, Stream.DRAFT, numbers))
        chances, replacing = (_uniforms(seed, stream, numbers) for stream in (Stream.ACCEPT, Stream.RESIDUAL))
        kept = chances < thresholds[drafted]
        tokens = np.where(kept, drafted, _picked(rest, replacing))
        emitted += np.bincount(tokens, minlength=len(p))
        accepted += int(kept.sum())
        if numbers[0] == 0:
            rows = list(zip(drafted[:_ONE_BY_ONE], chances, replacing, tokens, strict=False))
            alike = sum(_decide(target, draft, int(x), float(u), float(v)) == int(out) for x, u, v, out in rows)
    full = np.zeros(len(p))
    full[rest.ids] = rest.probs
    return RuleCheck(
        tuple(p),
        tuple(q),
        samples,
        tuple(map(float, full)),
        tuple(map(int, emitted)),
        accepted,
        min(samples, _ONE_BY_ONE),
        alike,
    )


def _decide(p: Distribution, q: Distribution, drafted: int, u: float, v: float) -> int:
    """The token that leaves, decided as in an answer: one token, one call."""
    return drafted if accepts(p, q, drafted, u) else residual(p, q).pick(v)


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of many steps."""

    value: float
    error: float
    """Standard error."""


def simulate_steps(alpha: float, lengths: Sequence[int], steps: int, seed: int) -> dict[int, Mean]:
    """Tokens per step by draft length, over `steps` steps in which every drafted token has the acceptance `alpha`.

    p and q are two coins that lean to opposite sides as far as makes the sum of min(p, q) alpha. The draft of a shorter
    length is the beginning of the longest one's.
    """
    lean = (1.0 - alpha) / 2.0
    target, draft = _distribution((0.5 + lean, 0.5 - lean)), _distribution((0.5 - lean, 0.5 + lean))
    thresholds = _thresholds(target, draft)
    longest = max(lengths)
    sums = dict.fromkeys(lengths, (0.0, 0.0))
    for numbers in _chunks(steps, _AT_ONCE // longest):
        places = (numbers[:, None] * longest + np.arange(longest)).ravel()
        drafted = _picked(draft, _uniforms(seed, Stream.DRAFT, places))
        kept = (_uniforms(seed, Stream.ACCEPT, places) < thresholds[drafted]).reshape(-1, longest)
        runs = np.where(kept.all(axis=1), longest, kept.argmin(axis=1))
        for length, (total, squares) in sums.items():
            tokens = np.minimum(runs, length) + 1.0
            sums[length] = (total + float(tokens.sum()), squares + float((tokens**2).sum()))
    return {length: _mean(total, squares, steps) for length, (total, squares) in sums.items()}


def _mean(total: float, squares: float, count: int) -> Mean:
    mean = total / count
    return Mean(mean, math.sqrt(max(0.0, squares / count - mean**2) / count))


def _distribution(shares: Sequence[float]) -> Distribution:
    return Distribution(np.arange(len(shares), dtype=np.int32), np.asarray(shares, np.float64))


def _thresholds(p: Distribution, q: Distribution) -> NDArray[np.float64]:
    """The engine's acceptance probability of each token that can be drafted, by its id; 0 for the others."""
    return np.array([acceptance_probability(p, q, int(token)) if q.of(int(token)) else 0.0 for token in q.ids])


def _picked(distribution: Distribution, u: NDArray[np.float64]) -> NDArray[np.int32]:
    """`distribution.pick` of many uniform numbers at once."""
    places = distribution.probs.cumsum().searchsorted(u, "right")
    return distribution.ids[np.minimum(places, distribution.ids.size - 1)]


def _uniforms(seed: int, stream: Stream, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
    return uniforms(noise_key(seed, stream, 0), numbers)


def _chunks(count: int, size: int = _AT_ONCE) -> Iterator[NDArray[np.int64]]:
    """0 to `count`, in pieces."""
    for start in range(0, count, size):
        yield np.arange(start, min(count, start + size))
