"""Published rules of prompt lookup, to compare with: each proposes by a fixed recipe and knows nothing of costs.

The fixed copy after Saxena: Prompt Lookup Decoding (2023); the threshold of 5 after Hu et al.: SAM Decoding (2024); the
best score after Oliaro et al.: SuffixDecoding (2024), for one text and chains; the fixed order of drafters as llama.cpp
combines them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from localspec.engine.drafters.base import Draft
from localspec.engine.drafters.draft_model import DraftModel
from localspec.engine.step import NO_DRAFTER, Decision

LONGEST_MATCH = 32
"""Longer matches are not told apart."""
_LEAST_MATCH, _COPIED = 5, 16
_LEAST_PROBABILITY = 0.1

Proposal = tuple[list[int], list[float]]
"""Tokens, and how likely the rule takes each to be reached."""


class Rule(Protocol):
    """A recipe for copying from a text that grows."""

    def follow(self, tokens: Sequence[int]) -> None:
        """The text goes on with these tokens."""

    def propose(self, limit: int) -> Proposal:
        """Up to `limit` tokens that could follow the text."""


class _Places:
    """Where each run of `length` tokens has gone on in a text."""

    def __init__(self, length: int) -> None:
        self._length = length
        self._found: dict[tuple[int, ...], list[int]] = {}

    def add(self, text: Sequence[int], start: int) -> None:
        """`text` has new tokens from `start` on."""
        length = self._length
        for place in range(max(start, length), len(text)):
            self._found.setdefault(tuple(text[place - length : place]), []).append(place)

    def of_end(self, text: Sequence[int]) -> list[int]:
        """The places, oldest first, where the last tokens of the text have gone on before."""
        return self._found.get(tuple(text[-self._length :]), [])


class PromptLookup:
    """The last n tokens, n from `longest` down to 1, at their most recent earlier place, and a copy of fixed length."""

    def __init__(self, longest: int, copied: int) -> None:
        self._copied = copied
        self._text: list[int] = []
        self._places = [_Places(n) for n in range(longest, 0, -1)]

    def follow(self, tokens: Sequence[int]) -> None:
        """Extend the tables."""
        start = len(self._text)
        self._text.extend(tokens)
        for places in self._places:
            places.add(self._text, start)

    def propose(self, limit: int) -> Proposal:
        """The copy, cut at the end of the known text."""
        for places in self._places:
            if found := places.of_end(self._text):
                return _certain(self._text[found[-1] : found[-1] + min(limit, self._copied)])
        return _certain(())


class LongestMatch:
    """The longest match of at least 5 tokens, the most recent of several, and a copy of 16."""

    def __init__(self) -> None:
        self._text: list[int] = []
        self._places = _Places(_LEAST_MATCH)

    def follow(self, tokens: Sequence[int]) -> None:
        """Extend the table."""
        start = len(self._text)
        self._text.extend(tokens)
        self._places.add(self._text, start)

    def propose(self, limit: int) -> Proposal:
        """The copy, cut at the end of the known text."""
        found = self._places.of_end(self._text)
        if not found:
            return _certain(())
        place = max(reversed(found), key=lambda place: match_length(self._text, place))
        return _certain(self._text[place : place + min(limit, _COPIED)])


class BestSuffix:
    """For every match length the path of the most frequent next tokens, no longer than the match; the path with the
    largest sum of probabilities wins."""

    def __init__(self) -> None:
        self._text: list[int] = []
        self._places = _Places(1)

    def follow(self, tokens: Sequence[int]) -> None:
        """Extend the table."""
        start = len(self._text)
        self._text.extend(tokens)
        self._places.add(self._text, start)

    def propose(self, limit: int) -> Proposal:
        """The best path; of equals that of the longer match."""
        found = [(match_length(self._text, place), place) for place in reversed(self._places.of_end(self._text))]
        best: Proposal = ([], [])
        # Between two match lengths that occur the places are the same, and only the longer one may copy more.
        for matched in sorted({length for length, _ in found}):
            path = self._path([place for length, place in found if length >= matched], min(limit, matched))
            if sum(path[1]) >= sum(best[1]):
                best = path
        return best

    def _path(self, places: list[int], limit: int) -> Proposal:
        """`places`: most recent first."""
        tokens: list[int] = []
        probabilities: list[float] = []
        probability = 1.0
        while len(tokens) < limit:
            counts: dict[int, int] = {}
            for token in self._at(places):
                counts[token] = counts.get(token, 0) + 1
            if not counts:
                break
            # The first among equals is the most recent one: dictionaries keep their order.
            token = max(counts, key=counts.__getitem__)
            probability *= counts[token] / sum(counts.values())
            if probability < _LEAST_PROBABILITY:
                break
            tokens.append(token)
            probabilities.append(probability)
            places = [place + 1 for place in places if place < len(self._text) and self._text[place] == token]
        return tokens, probabilities

    def _at(self, places: list[int]) -> Iterator[int]:
        return (self._text[place] for place in places if place < len(self._text))


@dataclass(slots=True)
class Copying:
    """A chooser that always does what a rule says, and asks the draft model for `length` tokens where it says nothing."""

    rule: Rule
    model: DraftModel | None = None
    length: int = 0
    decision: Decision | None = None

    def choose(self, room: int, step: int) -> Draft:
        """The first proposal that is not empty."""
        if room <= 0:
            return Draft(NO_DRAFTER)
        tokens, probabilities = self.rule.propose(room)
        if tokens:
            return Draft("lookup", tuple(tokens), tuple(probabilities))
        if self.model and min(room, self.length) > 0:
            return self.model.propose(min(room, self.length), step)
        return Draft(NO_DRAFTER)

    def learn(self, emitted: Sequence[int], draft: Draft, width: int, verify_ms: float, draft_ms: float) -> None:
        """The text goes on."""
        self.rule.follow(emitted)


def match_length(text: Sequence[int], place: int) -> int:
    """How many tokens before `place` equal the last ones of the text, LONGEST_MATCH at most."""
    length, longest = 0, min(place, LONGEST_MATCH)
    while length < longest and text[place - length - 1] == text[-length - 1]:
        length += 1
    return length


def _certain(tokens: Sequence[int]) -> Proposal:
    return list(tokens), [1.0] * len(tokens)
