"""Prompt lookup: what followed when the text went like this before.

The end of the stream is looked for anywhere earlier in it (system prompt, documents, all turns, the answer being
written). The occurrences with the longest matches vote on each next token, and every draft carries its own estimate of
how far it will be accepted: rates by match length, agreement and position that learn from every verified token, whether
the draft was used or not. After Saxena: Prompt Lookup Decoding (2023); votes and probabilities after Oliaro et al.:
SuffixDecoding (2024).
"""

from collections.abc import Sequence

from localspec.engine.calibration import RateTable
from localspec.engine.drafters.base import Draft
from localspec.engine.drafters.suffix_index import LONGEST_MATCH, SuffixIndex

LONGEST_DRAFT = 32
_LEAST_SURVIVAL = 0.05
"""A draft ends where it is less likely than this to be reached."""

# Acceptance of the next token by match length, before anything is known of this text.
_LENGTHS = (1, 2, 3, 4, 6, 10, 20)
_PRIORS = (0.25, 0.40, 0.55, 0.65, 0.75, 0.85, 0.92, 0.96)
_LENGTH_CLASS = tuple(sum(length > limit for limit in _LENGTHS) for length in range(LONGEST_MATCH + 1))
"""By match length."""
_CLEAR_MAJORITY = 0.75
_ONE_PLACE = 1

_Key = tuple[int, int, int]


class Lookup:
    """Drafts by copying."""

    name = "lookup"

    def __init__(self) -> None:
        self._index = SuffixIndex()
        self._rates = RateTable()
        self._last: list[tuple[int, _Key]] = []
        """What the last proposal said, token by token, and by which rate."""
        self._voters: list[tuple[int, int]] | None = None

    @property
    def calibrated(self) -> bool:
        """Promises are those of all answers so far."""
        return False

    @property
    def stream(self) -> Sequence[int]:
        """The text as it has been followed so far."""
        return self._index.tokens

    def observe(self, tokens: Sequence[int]) -> None:
        """Judge the last proposal by what really came, then extend the index; microseconds per token."""
        for token, (proposed, key) in zip(tokens, self._last, strict=False):
            self._rates.learn(key, _PRIORS[key[0]], float(token == proposed))
            if token != proposed:
                break
        self._last, self._voters = [], None
        self._index.extend(tokens)

    def rewind(self, length: int) -> None:
        """Take back everything from position `length` on."""
        self._last, self._voters = [], None
        self._index.truncate(length)

    def places(self) -> list[tuple[int, int]]:
        """(place, match length) of earlier occurrences of the end of the stream, most recent first."""
        if self._voters is None:
            self._voters = self._index.places()
        return self._voters

    def propose(self, limit: int, step: int) -> Draft:
        """The continuation that the longest matches agree on, as far as it is likely to be reached at all."""
        draft, self._last = self._copy((), limit)
        return draft

    def extend(self, after: Sequence[int], limit: int) -> Draft:
        """The same, if `after` followed the stream: how a draft by somebody else could go on. Not judged later."""
        return self._copy(after, limit)[0]

    def _copy(self, after: Sequence[int], limit: int) -> tuple[Draft, list[tuple[int, _Key]]]:
        voters = self._index.places(after)
        if not after:
            self._voters = voters
        stream = self._index.tokens
        said: list[tuple[int, _Key]] = []
        survival: list[float] = []
        reached, most = 1.0, min(limit, LONGEST_DRAFT)
        while len(voters) > 1 and len(said) < most:
            token, share, voters = _elect(voters, stream)
            if token < 0:
                break
            kind = _LENGTH_CLASS[max(length for _, length in voters)]
            key = (kind, _vote_class(share, len(voters)), min(len(said), 2))
            reached *= self._rates.mean(key, _PRIORS[kind])
            if reached < _LEAST_SURVIVAL:
                break
            said.append((token, key))
            survival.append(reached)
            voters = [(place + 1, min(length + 1, LONGEST_MATCH)) for place, length in voters]
        else:
            if len(voters) == 1:
                self._copy_one(*voters[0], most, said, survival)
        return Draft(self.name, tuple([token for token, _ in said]), tuple(survival)), said

    def _copy_one(
        self, place: int, length: int, most: int, said: list[tuple[int, _Key]], survival: list[float]
    ) -> None:
        """Where one place is left, the text goes on as it did there; long copies are mostly this."""
        reached, rate, key = survival[-1] if survival else 1.0, 0.0, (-1, _ONE_PLACE, 0)
        for token in self._index.tokens[place : place + most - len(said)]:
            now = (_LENGTH_CLASS[length], _ONE_PLACE, min(len(said), 2))
            if now != key:
                key, rate = now, self._rates.mean(now, _PRIORS[now[0]])
            reached *= rate
            if reached < _LEAST_SURVIVAL:
                return
            said.append((token, key))
            survival.append(reached)
            length = min(length + 1, LONGEST_MATCH)


def _elect(voters: list[tuple[int, int]], stream: list[int]) -> tuple[int, float, list[tuple[int, int]]]:
    """The next token by the votes of the places whose match is at least half the longest, weighted by its square; the
    winner's share of the votes, and its voters. Token -1 where every place is at the end of the text."""
    end = len(stream)
    longest = max(length for _, length in voters)
    votes: dict[int, int] = {}
    total = 0
    for place, length in voters:
        if place < end and 2 * length >= longest:
            votes[stream[place]] = votes.get(stream[place], 0) + length * length
            total += length * length
    if not votes:
        return -1, 0.0, []
    # The first among equals is the most recent place: dictionaries keep their order.
    winner = max(votes, key=votes.__getitem__)
    return winner, votes[winner] / total, [voter for voter in voters if voter[0] < end and stream[voter[0]] == winner]


def _vote_class(share: float, supporters: int) -> int:
    """0: the places disagree; 1: one place alone; 2: several agree."""
    if share < _CLEAR_MAJORITY:
        return 0
    return _ONE_PLACE if supporters == 1 else 2
