"""What a rewriting has changed: the words that went and those that came, in hunks that can be taken or left one by one.

Words are lined up as in patience diff: sequences of words that occur once on both sides are anchors, the longest rising run
of them divides the texts, and what lies between two anchors is compared in the same way. Only what is short is compared word
by word with all others (difflib's longest matching block), which takes time that grows with the square of the length; what is
longer and has no anchor, such as a table of zeros, is walked through in windows.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

_WORD = re.compile(r"\w+|[^\S\n]+|\n|[^\w\s]")
_ANCHOR_WORDS = (7, 3, 1)
"""Tokens of an anchor, the most telling first."""
_SMALL = 40_000
"""So many pairs of tokens are compared with each other."""
_WINDOW, _WINDOW_SURE = 120, 80
"""Tokens."""

Match = tuple[int, int, int]
"""Where equal tokens begin in the source and in the result, and how many there are."""


@dataclass(frozen=True, slots=True)
class Hunk:
    """One change. Places are in characters."""

    at: int
    """Where it begins in the source."""
    old: str
    """What stands there; "" where something is only added."""
    new: str
    """What is to stand there; "" where something is only left out."""
    result_at: int
    """Where `new` begins in the result."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of both texts: the same in both, or a hunk."""

    text: str
    """What is the same; "" for a hunk."""
    hunk: int | None = None
    """Its number."""


@dataclass(frozen=True, slots=True)
class Diff:
    """The way from `source` to `result`."""

    source: str
    result: str
    hunks: tuple[Hunk, ...]

    def applied(self, accepted: Sequence[bool]) -> str:
        """The source with the accepted hunks: the result where all are accepted, the source where none is."""
        parts, done = [], 0
        for hunk, taken in zip(self.hunks, accepted, strict=True):
            parts += [self.source[done : hunk.at], hunk.new if taken else hunk.old]
            done = hunk.at + len(hunk.old)
        return "".join([*parts, self.source[done:]])

    def pieces(self) -> Iterator[Piece]:
        """Both texts from their beginning to their end."""
        done = 0
        for number, hunk in enumerate(self.hunks):
            if done < hunk.at:
                yield Piece(self.source[done : hunk.at])
            yield Piece("", number)
            done = hunk.at + len(hunk.old)
        if done < len(self.source):
            yield Piece(self.source[done:])


def diff(source: str, result: str) -> Diff:
    """Compare two texts word by word. Takes a few tenths of a second for ten thousand words."""
    old, new = tokens_of(source), tokens_of(result)
    old_ends, new_ends = _ends(old), _ends(new)
    hunks: list[Hunk] = []
    i = j = 0
    for a, b, size in [*matches(old, new), (len(old), len(new), 0)]:
        if i < a or j < b:
            start, new_start = old_ends[i], new_ends[j]
            hunk = Hunk(start, source[start : old_ends[a]], result[new_start : new_ends[b]], new_start)
            _add(hunks, hunk, source)
        i, j = a + size, b + size
    return Diff(source, result, tuple(hunks))


def tokens_of(text: str) -> list[str]:
    """Words, runs of blanks, line ends and single signs; joined they are the text."""
    return _WORD.findall(text)


def matches(old: Sequence[str], new: Sequence[str]) -> list[Match]:
    """Where the two are the same, in order, neighbors joined."""
    found: list[Match] = []
    for a, b, size in _matches(old, new):
        if found and found[-1][0] + found[-1][2] == a and found[-1][1] + found[-1][2] == b:
            found[-1] = (*found[-1][:2], found[-1][2] + size)
        elif size:
            found.append((a, b, size))
    return found


def _matches(old: Sequence[str], new: Sequence[str]) -> Iterator[Match]:
    """Works through gaps from left to right; a gap is where nothing has been found to be equal yet."""
    gaps = [(0, len(old), 0, len(new), 0)]
    while gaps:
        a, a_end, b, b_end, level = gaps.pop()
        head = _same(old, new, range(a, a_end), range(b, b_end))
        yield a, b, head
        a, b = a + head, b + head
        tail = _same(old, new, range(a_end - 1, a - 1, -1), range(b_end - 1, b - 1, -1))
        a_end, b_end = a_end - tail, b_end - tail
        if tail:
            # A gap of the tail alone: it comes after all that is found before it.
            gaps.append((a_end, a_end + tail, b_end, b_end + tail, len(_ANCHOR_WORDS)))
        if a == a_end or b == b_end:
            continue
        if (a_end - a) * (b_end - b) <= _SMALL:
            blocks = SequenceMatcher(None, old[a:a_end], new[b:b_end], autojunk=False).get_matching_blocks()
            gaps.extend((a + i, a + i + n, b + j, b + j + n, 0) for i, j, n in reversed(blocks) if n)
        elif level < len(_ANCHOR_WORDS):
            gaps.extend(reversed(_between_anchors(old[a:a_end], new[b:b_end], (a, b), level)))
        else:
            gaps.extend(reversed(_by_window(old, new, (a, a_end, b, b_end))))


def _between_anchors(
    old: Sequence[str], new: Sequence[str], start: tuple[int, int], level: int
) -> list[tuple[int, int, int, int, int]]:
    """The gaps into which anchors divide two lists that begin at `start`; an anchor is at the head of a gap."""
    size = _ANCHOR_WORDS[level]
    anchors = _rising(_unique_pairs(old, new, size))
    a, b = start
    cuts = [(0, 0), *anchors, (len(old), len(new))]
    next_level = level if anchors else level + 1
    return [(a + i, a + i_end, b + j, b + j_end, next_level) for (i, j), (i_end, j_end) in pairwise(cuts)]


def _by_window(
    old: Sequence[str], new: Sequence[str], gap: tuple[int, int, int, int]
) -> list[tuple[int, int, int, int, int]]:
    """The gaps of one without anchors, in which everything is repeated: what is the same at its beginning, and the rest."""
    a, a_end, b, b_end = gap
    here, there = old[a : min(a_end, a + _WINDOW)], new[b : min(b_end, b + _WINDOW)]
    blocks = SequenceMatcher(None, here, there, autojunk=False).get_matching_blocks()
    # What is the same near the end of the window may be the same only because there is nothing better in it.
    sure = [(i, j, n) for i, j, n in blocks if n and max(i, j) < _WINDOW_SURE]
    i, j, n = sure[-1] if sure else (_WINDOW_SURE, _WINDOW_SURE, 0)
    rest = (min(a + i + n, a_end), a_end, min(b + j + n, b_end), b_end, len(_ANCHOR_WORDS))
    return [*((a + i, a + i + n, b + j, b + j + n, 0) for i, j, n in sure), rest]


def _unique_pairs(old: Sequence[str], new: Sequence[str], size: int) -> list[tuple[int, int]]:
    """Where sequences of so many tokens stand that each list has exactly once, in the order of `old`. One that is all blanks
    says nothing."""
    here, there = _once(old, size), _once(new, size)
    return [(place, there[words]) for words, place in here.items() if words in there]


def _once(tokens: Sequence[str], size: int) -> dict[tuple[str, ...], int]:
    places: dict[tuple[str, ...], int] = {}
    for place, words in enumerate(zip(*(tokens[offset:] for offset in range(size)), strict=False)):
        places[words] = -1 if words in places else place
    return {words: place for words, place in places.items() if place >= 0 and not all(map(str.isspace, words))}


def _rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest run of pairs that rises on both sides (patience sorting)."""
    tops: list[int] = []
    piles: list[int] = []
    before: list[int] = []
    for place, (_, b) in enumerate(pairs):
        pile = bisect_left(tops, b)
        before.append(piles[pile - 1] if pile else -1)
        tops[pile : pile + 1], piles[pile : pile + 1] = [b], [place]
    run: list[tuple[int, int]] = []
    at = piles[-1] if piles else -1
    while at >= 0:
        run.append(pairs[at])
        at = before[at]
    return run[::-1]


def _same(old: Sequence[str], new: Sequence[str], here: range, there: range) -> int:
    """How many tokens are equal from the first places on."""
    count = 0
    for i, j in zip(here, there, strict=False):
        if old[i] != new[j]:
            break
        count += 1
    return count


def _add(hunks: list[Hunk], hunk: Hunk, source: str) -> None:
    """One hunk more. Two with only blanks between them, on one line, are one change for a person."""
    if hunks:
        last = hunks[-1]
        between = source[last.at + len(last.old) : hunk.at]
        if not between.strip(" \t"):
            hunk = Hunk(last.at, f"{last.old}{between}{hunk.old}", f"{last.new}{between}{hunk.new}", last.result_at)
            hunks.pop()
    hunks.append(hunk)


def _ends(tokens: Sequence[str]) -> list[int]:
    """Where each token begins, in characters, and the end of the last."""
    places = [0]
    for token in tokens:
        places.append(places[-1] + len(token))
    return places
