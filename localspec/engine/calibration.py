"""Acceptance rates learned while they are used: what a drafter believes, corrected by what became of its drafts."""

from collections.abc import Hashable


class Rate:
    """A share between 0 and 1 that starts as a prior and follows what is observed, old observations fading.

    The prior counts like `weight` observations (a Beta prior's mean).
    """

    __slots__ = ("_hits", "_prior", "_trials", "_weight")

    def __init__(self, prior: float, weight: float) -> None:
        self._prior, self._weight = prior, weight
        self._hits = self._trials = 0.0

    @property
    def mean(self) -> float:
        """The share as believed now."""
        return (self._hits + self._prior * self._weight) / (self._trials + self._weight)

    def learn(self, hit: float, memory: float) -> None:
        """One more observation; every older one counts `memory` times what it did."""
        self._hits = self._hits * memory + hit
        self._trials = self._trials * memory + 1.0


class RateTable:
    """Rates by a key of features. A key that has not been seen yet starts from a prior of its own."""

    def __init__(self, weight: float = 6.0, memory: float = 0.985) -> None:
        self._weight, self._memory = weight, memory
        self._rates: dict[Hashable, Rate] = {}

    def mean(self, key: Hashable, prior: float) -> float:
        """The rate of a key, `prior` while nothing is known of it."""
        rate = self._rates.get(key)
        return prior if rate is None else rate.mean

    def learn(self, key: Hashable, prior: float, hit: float) -> None:
        """One more observation of a key."""
        rate = self._rates.get(key)
        if rate is None:
            rate = self._rates[key] = Rate(prior, self._weight)
        rate.learn(hit, self._memory)
