"""Prompt lookup: what followed the last time the text went like this.

The end of the stream is looked for anywhere earlier in it (system prompt, documents, all turns, the answer being
written); what followed the longest match is the draft. After Saxena: Prompt Lookup Decoding (2023), with the longest
match instead of a fixed n, and an index instead of a scan.
"""

from collections.abc import Sequence

from localspec.engine.drafters.base import Draft

_SEED = 2
"""Tokens that must match at all; single tokens match everywhere and mislead."""
_CANDIDATES = 48
"""Most recent places looked at per step, so that a step's cost does not grow with the text."""
_LONGEST = 32
"""Longest match told apart."""
_DRAFT = 10
"""Longest draft."""

# Acceptance of the next token by match length, before anything is known of this text.
_PRIOR = ((20, 0.96), (10, 0.92), (6, 0.85), (4, 0.75), (3, 0.65), (2, 0.55), (1, 0.40), (0, 0.25))


class Lookup:
    """An index of the stream by its last two tokens."""

    name = "lookup"

    def __init__(self, longest_draft: int = _DRAFT) -> None:
        self._longest_draft = longest_draft
        self._stream: list[int] = []
        self._places: dict[tuple[int, int], list[int]] = {}
        """Last two tokens -> positions that followed them, oldest first."""

    def observe(self, tokens: Sequence[int]) -> None:
        """Extend the index, in constant time per token."""
        stream, places = self._stream, self._places
        for token in tokens:
            stream.append(token)
            if len(stream) >= _SEED:
                places.setdefault((stream[-2], token), []).append(len(stream))

    def rewind(self, length: int) -> None:
        """Take back everything from position `length` on."""
        stream = self._stream
        while len(stream) > length:
            if len(stream) >= _SEED:
                seed = (stream[-2], stream[-1])
                self._places[seed].pop()
                if not self._places[seed]:
                    del self._places[seed]
            stream.pop()

    def propose(self, limit: int, step: int) -> Draft:
        """What followed the longest match, the most recent one among equals; nothing where nothing matches."""
        place, matched = self._longest_match()
        if not matched:
            return Draft(self.name)
        tokens = tuple(self._stream[place : place + min(limit, self._longest_draft)])
        return Draft(self.name, tokens, _survival(matched, len(tokens)))

    def _longest_match(self) -> tuple[int, int]:
        """Where the text goes on after the longest match, and how many tokens match; (0, 0) without one."""
        stream = self._stream
        if len(stream) < _SEED:
            return 0, 0
        best_place, best_length = 0, 0
        # The last entry is the end of the stream itself.
        candidates = self._places[stream[-2], stream[-1]][-1 - _CANDIDATES : -1]
        for place in reversed(candidates):
            length = self._match_length(place)
            if length > best_length:
                best_place, best_length = place, length
                if length >= _LONGEST:
                    break
        return best_place, best_length

    def _match_length(self, place: int) -> int:
        """How many tokens before `place` equal those at the end of the stream."""
        stream, end = self._stream, len(self._stream)
        length = _SEED
        while length < min(_LONGEST, place) and stream[place - length - 1] == stream[end - length - 1]:
            length += 1
        return length


def _survival(matched: int, length: int) -> tuple[float, ...]:
    """Each accepted token makes the match one longer."""
    survival, product = [], 1.0
    for offset in range(length):
        product *= next(rate for above, rate in _PRIOR if matched + offset > above)
        survival.append(product)
    return tuple(survival)
