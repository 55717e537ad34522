"""Where the end of a token stream has occurred before: hash chains over the stream, as LZ77 compressors keep them.

Three chains link every position to the last earlier one after the same 4, 2 or 1 tokens. Extending and cutting the stream
take constant time per token, a search follows a bounded number of links, and a token costs 12 bytes beside the tables of
chain heads (400 KB), whatever the text.
"""

from array import array
from collections.abc import Iterator, Sequence

_SEEDS = (4, 2, 1)
"""Tokens that must match for a chain to be followed, longest first."""
_CANDIDATES, _LINKS = 24, 96
"""Most places looked at per search, and most links followed to find them."""
LONGEST_MATCH = 32
"""Longest match told apart."""
_HEADS = 1 << 15
"""Size of a table of chain heads. It never grows: rebuilding it would stop a long answer for a second."""
_MULTIPLIER, _MASK = 0x9E3779B1, 0xFFFFFFFF
_STRIDE = 7
"""Tokens compared at once: four strides and the longest seed are the longest match."""


class SuffixIndex:
    """The stream, and the places where its end has been before."""

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self._chains = [_Chain(seed) for seed in _SEEDS]

    def extend(self, tokens: Sequence[int]) -> None:
        """Add tokens at the end."""
        stream = self.tokens
        four, two, one = (chain.link for chain in self._chains)
        for token in tokens:
            stream.append(token)
            place = len(stream)
            slots = _slots(stream, place)
            four(slots[0], place)
            two(slots[1], place)
            one(slots[2], place)

    def truncate(self, length: int) -> None:
        """Take back everything from `length` on."""
        stream = self.tokens
        while len(stream) > length:
            for chain, slot in zip(self._chains, _slots(stream, len(stream)), strict=True):
                chain.unlink(slot)
            stream.pop()

    def places(self, after: Sequence[int] = ()) -> list[tuple[int, int]]:
        """(place, match length) of earlier occurrences of the end of the stream, most recent first; `place` is where the
        text went on. `after`: tokens to be thought of as following the stream. Only the longest seed that occurs at all
        is followed."""
        stream = self.tokens
        tail = stream[-LONGEST_MATCH:]
        if after:
            tail = [*tail, *after][-LONGEST_MATCH:]
        for chain, slot in zip(self._chains, _slots(tail, len(tail)), strict=True):
            found = [
                (place, self._match_length(place, tail, chain.seed)) for place in chain.earlier(slot, stream, tail)
            ]
            if found:
                return found
        return []

    def _match_length(self, place: int, tail: list[int], known: int) -> int:
        """How many tokens before `place` equal the end of `tail`, of which `known` are known to."""
        stream, size = self.tokens, len(tail)
        length, longest = known, min(size, place)
        while (
            length + _STRIDE <= longest
            and stream[place - length - _STRIDE : place - length] == tail[size - length - _STRIDE : size - length]
        ):
            length += _STRIDE
        while length < longest and stream[place - length - 1] == tail[size - length - 1]:
            length += 1
        return length


class _Chain:
    """Positions after the same `seed` tokens, each linked to the one before it."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._heads = array("i", [0]) * _HEADS
        self._before = array("i")
        """For each position 1.. of the stream, the last earlier position with the same hash; 0 ends a chain."""

    def link(self, slot: int, place: int) -> None:
        """The stream has come to `place`, one token further; `slot` is the hash of what it ends with."""
        self._before.append(self._heads[slot] if slot >= 0 else 0)
        if slot >= 0:
            self._heads[slot] = place

    def unlink(self, slot: int) -> None:
        """The last token of the stream is about to go."""
        before = self._before.pop()
        if slot >= 0:
            self._heads[slot] = before

    def earlier(self, slot: int, stream: list[int], tail: list[int]) -> Iterator[int]:
        """Positions that follow the same seed as the end of `tail`, most recent first."""
        if slot < 0:
            return
        seed, before = self.seed, self._before
        wanted = tail[-seed:]
        place, found = self._heads[slot], 0
        for _ in range(_LINKS):
            if place <= 0 or found == _CANDIDATES:
                return
            # Other seeds can have the same hash, and nothing follows the end of the stream.
            if place < len(stream) and stream[place - seed : place] == wanted:
                yield place
                found += 1
            place = before[place - 1]


def _slots(tokens: list[int], place: int) -> tuple[int, int, int]:
    """The hashes of the last 4, 2 and 1 tokens before `place`; -1 where there are fewer."""
    if place < 1:
        return -1, -1, -1
    one = (tokens[place - 1] + 1) * _MULTIPLIER & _MASK
    if place < 2:
        return -1, -1, one >> 7 & _HEADS - 1
    two = (one * 31 + tokens[place - 2] + 1) * _MULTIPLIER & _MASK
    if place < 4:
        return -1, two >> 7 & _HEADS - 1, one >> 7 & _HEADS - 1
    four = (two * 31 + tokens[place - 3] + 1) * _MULTIPLIER & _MASK
    four = (four * 31 + tokens[place - 4] + 1) * _MULTIPLIER & _MASK
    return four >> 7 & _HEADS - 1, two >> 7 & _HEADS - 1, one >> 7 & _HEADS - 1
