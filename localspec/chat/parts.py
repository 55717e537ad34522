"""Where a long text may be cut: at headings, paragraphs and top-level blocks of code; where one of these alone is too long,
at its lines, then at sentences and words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

CountTokens = Callable[[str], int]

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_HEADING = re.compile(r"#{1,6}[ \t]+\S")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_OPENS = re.compile(r"[^\s#*>-].*[{(\[][ \t]*(?://.*|#.*)?$")
"""A line at the margin that begins a block of code."""
_GOES_ON = re.compile(r"(?:[})\]]|(?:else|elif|except|finally|catch|end)\b)")
"""A line at the margin that belongs to the block above it."""
_QUOTES = ('"""', "'''")
_SENTENCE = re.compile(r".+?(?:[.!?]['\"\u201d\u2019)]*(?=\s)|[\u3002\uff01\uff1f]+|\Z)", re.DOTALL)
_WORD = re.compile(r"\s*\S+|\s+")
_RUN = re.compile(r".{1,8}", re.DOTALL)
_UNTIL_CLOSED = re.compile(r"^[})\]].*", re.MULTILINE)
_UNTIL_QUOTE = {quote: re.compile(rf".*?{quote}[^\n]*", re.DOTALL) for quote in _QUOTES}
_UNTIL_COMMENT = re.compile(r".*?\*/[^\n]*", re.DOTALL)


class Cut(IntEnum):
    """How good a place is, the best first."""

    HEADING = 0
    BLOCK = 1
    """Between two paragraphs, or two blocks of code."""
    BLANK = 2
    """At an empty line within a block."""
    LINE = 3
    FENCED_LINE = 4
    SENTENCE = 5
    WORD = 6
    ANYWHERE = 7


_WITHIN_LINES = {Cut.SENTENCE: _SENTENCE, Cut.WORD: _WORD, Cut.ANYWHERE: _RUN}


@dataclass(frozen=True, slots=True)
class Piece:
    """From `start` to `end` in characters; `cut` is the place where it starts."""

    start: int
    end: int
    cut: Cut


def cut(text: str, count_tokens: CountTokens, limit: int) -> list[tuple[int, int]]:
    """`text` in parts of at most `limit` tokens, as (start, end) in characters: each begins where the one before ends.

    A part is as long as may be, but that a heading in its second half begins the next one.
    """
    groups = _grouped(text, pieces(text, Cut.BLOCK), count_tokens, limit, Cut.BLOCK)
    return [(group[0].start, group[-1].end) for group in groups]


def pieces(text: str, finest: Cut, start: int = 0, end: int | None = None) -> Iterator[Piece]:
    """`text` from `start` to `end`, cut at every place that is as good as `finest` or better."""
    end = len(text) if end is None else end
    if pattern := _WITHIN_LINES.get(finest):
        yield from (Piece(*found.span(), finest) for found in pattern.finditer(text, start, end))
        return
    began, kind = start, Cut.BLOCK
    for place, quality in _places(text, start, end):
        if place > began and quality <= finest:
            yield Piece(began, place, kind)
            began, kind = place, quality
    if began < end:
        yield Piece(began, end, kind)


def _grouped(
    text: str, found: Iterator[Piece], count_tokens: CountTokens, limit: int, finest: Cut
) -> Iterator[list[Piece]]:
    """Neighbors put together as long as they fit; a piece that does not fit alone is cut finer."""
    group: list[Piece] = []
    sizes: list[int] = []
    for piece in found:
        size = count_tokens(text[piece.start : piece.end])
        while group and sum(sizes) + size > limit:
            split = _heading_in_second_half(group, sizes)
            # What stands behind the heading may still be too much together with this piece.
            yield group[:split]
            group, sizes = group[split:], sizes[split:]
        if size > limit and finest < Cut.ANYWHERE:
            finer = Cut(finest + 1)
            yield from _grouped(text, pieces(text, finer, piece.start, piece.end), count_tokens, limit, finer)
            continue
        group.append(piece)
        sizes.append(size)
    if group:
        yield group


def _heading_in_second_half(group: Sequence[Piece], sizes: Sequence[int]) -> int:
    """How many pieces of the group make the part."""
    before, half = 0, sum(sizes) / 2
    for index, (piece, size) in enumerate(zip(group, sizes, strict=True)):
        if index and piece.cut is Cut.HEADING and before >= half:
            return index
        before += size
    return len(group)


def _places(text: str, start: int, end: int) -> Iterator[tuple[int, Cut]]:
    """The beginning of every line but the first, and how good a place to cut it is."""
    state = _Reader()
    blank = heading = False
    for found in _LINE.finditer(text, start, end):
        line = found[0].rstrip("\n")
        inside = state.inside
        if found.start() > start:
            yield found.start(), _quality(line, inside, state.fence, blank, heading)
        if not line.strip():
            blank = True
            continue
        heading = not inside and _HEADING.match(line) is not None
        blank = False
        state.read(line, text, found.end())


def _quality(line: str, inside: bool, fence: str, blank: bool, heading: bool) -> Cut:
    if fence:
        return Cut.FENCED_LINE
    if not line.strip() or heading:
        # Empty lines stay with what is above them, and a heading with what is below it.
        return Cut.LINE
    if not inside and _HEADING.match(line):
        return Cut.HEADING
    if not blank:
        return Cut.LINE
    return Cut.BLANK if inside or line[0] in " \t" or _GOES_ON.match(line) else Cut.BLOCK


class _Reader:
    """Reads lines, and knows whether the next one is inside something that stays together."""

    def __init__(self) -> None:
        self.fence = ""
        """The fence that is open."""
        self._until: int = 0
        """The block that is open ends here, in characters."""
        self._at = 0

    @property
    def inside(self) -> bool:
        return bool(self.fence) or self._at < self._until

    def read(self, line: str, text: str, end: int) -> None:
        """Take the line that ends at `end`."""
        self._at = end
        found = _FENCE.match(line)
        if self.fence:
            if found and found[1].startswith(self.fence) and not line[found.end() :].strip():
                self.fence = ""
        elif end < self._until:
            return
        elif found:
            self.fence = found[1]
        elif (closing := _closing(line)) is not None:
            behind = closing.search(text, end)
            # What is never closed is no block.
            self._until = behind.end() if behind else 0


def _closing(line: str) -> re.Pattern[str] | None:
    """What ends the block that this line opens; None where it opens none."""
    for quote in _QUOTES:
        if line.count(quote) % 2:
            return _UNTIL_QUOTE[quote]
    if line.startswith("/*") and "*/" not in line:
        return _UNTIL_COMMENT
    return _UNTIL_CLOSED if _OPENS.match(line) else None
