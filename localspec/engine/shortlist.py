"""The few tokens that a draft model could mean, weighed in plain Python.

A pass fills the processor's caches with weights, and after it every function of numpy costs ten to forty microseconds before
it begins. A draft model has a row after each of its tokens, so for its rows a handful of candidates is taken out with three
such functions, and the rest is arithmetic on short lists. What a draft model draws from need not be the target's shaping to
the last digit: acceptance is exact for whatever q the token was really drawn from.
"""

import math
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localspec.engine.distribution import Distribution
from localspec.engine.noise import uniform
from localspec.engine.sampling import Sampler, nonsense

_REACH, _CONFIDENCE_REACH = 5.0, 7.0
"""Tokens whose probability is less than e^-5 of the largest are not drafted, and those under e^-7 of it left out of the sum
when it is only asked how sure the model is."""
_MANY = 256
"""From this many candidates on, numpy is quicker after all."""


class Shortlist(Distribution):
    """A distribution over few tokens, the most probable one first."""

    __slots__ = ("_chances", "_tokens")

    _tokens: list[int]
    _chances: list[float]

    def __init__(self, tokens: list[int], weights: list[float]) -> None:
        """`weights`: in proportion to the probabilities, falling."""
        total = sum(weights)
        object.__setattr__(self, "_tokens", tokens)
        object.__setattr__(self, "_chances", [weight / total for weight in weights])

    @property
    def ids(self) -> NDArray[np.int32]:
        """The tokens as an array."""
        return np.array(self._tokens, np.int32)

    @property
    def probs(self) -> NDArray[np.float64]:
        """Their probabilities as an array."""
        return np.array(self._chances)

    @property
    def top(self) -> float:
        """The largest probability."""
        return self._chances[0]

    def of(self, token: int) -> float:
        """The probability of one token."""
        return self._chances[self._tokens.index(token)] if token in self._tokens else 0.0

    def mode(self) -> int:
        """The most probable token."""
        return self._tokens[0]

    def pick(self, u: float) -> int:
        """The token at `u`, as `Distribution.pick` finds it."""
        return next(
            (token for token, end in zip(self._tokens, accumulate(self._chances), strict=True) if u < end),
            self._tokens[-1],
        )

    def draw(self, key: int) -> int:
        """The token that the random field of `key` picks, as `Distribution.draw` does."""
        if len(self._tokens) == 1:
            return self._tokens[0]
        race = [
            math.log(uniform(key, token)) / chance for token, chance in zip(self._tokens, self._chances, strict=True)
        ]
        return self._tokens[race.index(max(race))]


class DraftSampler(Sampler):
    """The sampling settings of an answer, for the rows of a draft model."""

    def distribution(self, row: NDArray[np.float32]) -> Distribution:
        """What the draft model draws from: as the target's sampler shapes a row, but without its least likely tokens."""
        if self._penalizes or self.settings.greedy:
            return super().distribution(row)
        best = _largest(row)
        near = (row > best - _REACH).nonzero()[0]
        if near.size > _MANY:
            return super().distribution(row)
        pairs = sorted(zip(row.take(near).tolist(), near.tolist(), strict=True), reverse=True)
        return self._shortened(pairs)

    def _shortened(self, pairs: list[tuple[float, int]]) -> Shortlist:
        """Top-k, top-p, min-p and temperature, in the order of the target's chain. `pairs`: (logit, id), falling."""
        settings, best = self.settings, pairs[0][0]
        if settings.top_k:
            del pairs[settings.top_k :]
        if settings.top_p < 1.0:
            ends = list(accumulate(math.exp(logit - best) for logit, _ in pairs))
            enough = settings.top_p * ends[-1]
            del pairs[1 + next((index for index, end in enumerate(ends) if end >= enough), len(ends)) :]
        if settings.min_p > 0.0:
            least = best + math.log(settings.min_p)
            pairs = [pair for pair in pairs if pair[0] >= least] or pairs[:1]
        weights = [math.exp((logit - best) / settings.temperature) for logit, _ in pairs]
        return Shortlist([token for _, token in pairs], weights)


def top_probability(row: NDArray[Any]) -> float:
    """The softmax of the largest logit, without the tokens that are hardly possible. `row`: shape (V,)."""
    best = _largest(row)
    near = row[row > best - _CONFIDENCE_REACH]
    if near.size > _MANY:
        return 1.0 / float(np.exp(near - best).sum())
    return 1.0 / sum([math.exp(logit - best) for logit in near.tolist()])


def _largest(row: NDArray[Any]) -> float:
    best = row.item(row.argmax())
    if not math.isfinite(best):
        raise nonsense()
    return float(best)
