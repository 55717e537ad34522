"""Copying from where a diff says the answer has come to in its source: what a place-aware lookup has to beat.

After every token the answer so far is aligned with a prefix of the source, and the source is copied from there. The
alignment is that of a diff (Myers, 1986: what is not common was taken out or put in) or that of the edit distance
(Levenshtein, 1966: a token may also stand for another). Published forms copy a fixed length; this one has what the engine's
own lookup has: survival by the length of the run so far, learned from every verified token, and lengths by cost.
"""

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from localspec.engine.calibration import RateTable
from localspec.engine.drafters.base import Draft
from localspec.engine.drafters.lookup import LONGEST_DRAFT

_LEAST_SURVIVAL = 0.05
_RUNS = (0, 1, 2, 3, 4, 6, 10, 20, 40, 80)
_PRIORS = (0.25, 0.45, 0.6, 0.7, 0.75, 0.85, 0.9, 0.95, 0.97, 0.98, 0.99)
"""Acceptance of the next token by the tokens that agree before it, while nothing is known."""


class Alignment:
    """The cheapest alignment of a growing text with some prefix of a source of m tokens."""

    def __init__(self, source: Sequence[int], substitution: int) -> None:
        """`substitution`: what one token in the place of another costs, where one put in or left out costs 1: 2 makes it a
        diff."""
        self._source = np.array(source, np.int64)
        self._substitution = substitution
        self._places = np.arange(len(source) + 1)
        self._costs: NDArray[np.int64] = self._places.copy()
        """By the length of the prefix, shape (m + 1,)."""
        self._runs: NDArray[np.int64] = np.zeros(len(source) + 1, np.int64)
        """Tokens before each place that are the end of the text, shape (m + 1,)."""

    def extend(self, tokens: Sequence[int]) -> None:
        """The text goes on; a few passes over the source per token."""
        for token in tokens:
            same = self._source == token
            put_in = self._costs + 1
            put_in[1:] = np.minimum(put_in[1:], self._costs[:-1] + np.where(same, 0, self._substitution))
            # Leaving out costs 1 a token, so the best start of leaving out is the least cost less its place.
            self._costs = np.minimum.accumulate(put_in - self._places) + self._places
            self._runs[1:] = np.where(same, self._runs[:-1] + 1, 0)

    @property
    def place(self) -> tuple[int, int]:
        """How much of the source the text has come through, and how many tokens agree before that place. Of places that
        cost the same the one with the longest such run, and of those the first."""
        best = np.flatnonzero(self._costs == self._costs.min())
        place = int(best[np.argmax(self._runs[best])])
        return place, int(self._runs[place])


class Realignment:
    """A drafter that copies on from where the alignment has come to."""

    name = "lookup"
    calibrated = True
    """Lengths are chosen as for the engine's own copies of a document, which is in its favor where wide passes are dear."""

    def __init__(self, substitution: int) -> None:
        self._substitution = substitution
        self._rates = RateTable()
        self._last: list[tuple[int, int]] = []
        """What the last proposal said, token by token, and by which rate."""
        self._stream: list[int] = []
        self._source: list[int] = []
        self._alignment = Alignment((), substitution)

    @property
    def stream(self) -> Sequence[int]:
        """The text as it has been followed so far."""
        return self._stream

    def begin(self, prompt: Sequence[int], source: Sequence[int]) -> None:
        """A new answer, an edit of `source`."""
        self._stream, self._source, self._last = list(prompt), list(source), []
        self._alignment = Alignment(source, self._substitution)

    def observe(self, tokens: Sequence[int]) -> None:
        """Judge the last proposal by what really came, then align it."""
        for token, (proposed, key) in zip(tokens, self._last, strict=False):
            self._rates.learn(key, _PRIORS[key], float(token == proposed))
            if token != proposed:
                break
        self._last = []
        self._stream.extend(tokens)
        self._alignment.extend(tokens)

    def rewind(self, length: int) -> None:
        """An answer begins with `begin`, and goes only forward."""

    def propose(self, limit: int, step: int) -> Draft:
        """The source from where the answer has come to, as far as it is likely to be reached at all."""
        place, run = self._alignment.place
        survival: list[float] = []
        self._last, reached = [], 1.0
        for token in self._source[place : place + min(limit, LONGEST_DRAFT)]:
            key = bisect_left(_RUNS, run)
            reached *= self._rates.mean(key, _PRIORS[key])
            if reached < _LEAST_SURVIVAL:
                break
            self._last.append((token, key))
            survival.append(reached)
            run += 1
        return Draft(self.name, tuple(token for token, _ in self._last), tuple(survival))

    def extend(self, after: Sequence[int], limit: int) -> Draft:
        """Nothing: asked only where a draft model drafts too."""
        return Draft(self.name)
