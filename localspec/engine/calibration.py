"""Acceptance rates learned while they are used: what a drafter believes, corrected by what became of its drafts."""

from collections.abc import Hashable, Iterable


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


class NestedRates:
    """Rates by keys of which each refines the one before it. A cell is believed as far as it has been observed, and what is
    above it beyond that: every mean is smoothed toward the mean above with the weight of a few observations."""

    def __init__(
        self, known: Iterable[tuple[int, float, float]] = (), weight: float = 5.0, memory: float = 0.997
    ) -> None:
        """`known`: what was observed elsewhere, as key, hits and trials."""
        self._weight, self._memory = weight, memory
        self._cells: dict[int, list[float]] = {key: [hits, trials] for key, hits, trials in known}

    def mean(self, prior: float, *keys: int) -> float:
        """The rate of the last key; `prior` where nothing is known of any."""
        cells, weight = self._cells, self._weight
        for key in keys:
            cell = cells.get(key)
            if cell is not None:
                prior = (cell[0] + weight * prior) / (cell[1] + weight)
        return prior

    def learn(self, hit: float, *keys: int) -> None:
        """One more observation of every key."""
        cells, memory = self._cells, self._memory
        for key in keys:
            cell = cells.get(key)
            if cell is None:
                cells[key] = [hit, 1.0]
            else:
                cell[0] = cell[0] * memory + hit
                cell[1] = cell[1] * memory + 1.0

    @property
    def cells(self) -> dict[int, tuple[float, float]]:
        """Hits and trials by key, as they are remembered."""
        return {key: (hits, trials) for key, (hits, trials) in self._cells.items()}
