"""An answer that says the same again and again."""

from __future__ import annotations

import re
from bisect import bisect_left

_TIMES = 4
"""What is said so often in a row is a loop, where the source has nothing of that kind."""
_SHORTEST = 300
"""Characters of a loop: a laugh or a rule of dashes is none."""
_LOOKED_FOR = 64
"""Characters at the end of an answer that must have come before."""
_GROWTH = 2
"""Of the same shape, a rewritten text may be so many times as long."""
_LENIENCE = 8
"""A stretch that the source has is looked up again when it is longer by this fraction."""
_MOST_LINES = 8
"""Of a verse or an entry that comes again."""
_SENTENCE_END = re.compile(r"[.!?](?=\s)|\n")
_WORDS = re.compile(r"(?:\w|[^\S\n])+|(?P<sign>.)", re.DOTALL)


class Runaway:
    """Watches an answer that is written after `source`.

    An answer that ends in a stretch of the same words, four times over, is in a loop, unless the source has a stretch of
    that shape, or as many lines of one shape: table rows, items of a list, verses of a refrain, whatever they have become.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._shape: tuple[str, list[int]] | None = None
        self._text = ""
        self._looked_at = 0
        self._period = self._length = 0
        """The last `length` characters come every `period` characters."""
        self._allowed = 0
        """So many of them the source has, too."""

    @property
    def sound(self) -> int:
        """How many characters of the answer stand before the loop, up to the end of a sentence or a line where there is one;
        what is repeated counts once."""
        once = len(self._text) - self._length + self._period
        ends = [match.end() for match in _SENTENCE_END.finditer(self._text, max(0, once - self._period), once)]
        return ends[-1] if ends else once

    def repeats(self, written: str) -> bool:
        """Whether with `written` the answer is in a loop."""
        before = len(self._text)
        self._text += written
        if self._period and self._text[before - self._period : -self._period] == written:
            self._length += len(written)
        elif len(self._text) - self._looked_at >= _LOOKED_FOR:
            self._looked_at = len(self._text)
            self._find_period()
        else:
            self._period = self._length = self._allowed = 0
        # Not looked up in the source at every step.
        least = max(_TIMES * self._period, _SHORTEST, self._allowed + self._allowed // _LENIENCE)
        if not self._period or self._length < least:
            return False
        self._allowed = self._length
        return not self._is_of_source(self._text[-self._length :])

    def _find_period(self) -> None:
        text = self._text
        self._period = self._length = self._allowed = 0
        place = text.rfind(text[-_LOOKED_FOR:], 0, len(text) - 1)
        if place < 0:
            return
        period = len(text) - _LOOKED_FOR - place
        lengths = range(_LOOKED_FOR, len(text) - period + 1)
        # What is the same for so many characters is the same for fewer.
        same = bisect_left(lengths, True, key=lambda size: text[-size:] != text[-size - period : -period])
        self._period, self._length = period, lengths[same - 1] + period

    def _is_of_source(self, stretch: str) -> bool:
        """Whether the source has a stretch of this shape that is about as long."""
        words = stretch.strip()
        if not words or stretch in self._source:
            return stretch in self._source
        if self._shape is None:
            self._shape = _shape_of(self._source)
        shape, ends = self._shape
        wanted, _ = _shape_of(words)
        place = shape.find(wanted)
        while place >= 0:
            start = ends[place - 1] if place else 0
            if _GROWTH * (ends[place + len(wanted) - 1] - start) >= len(words):
                return True
            place = shape.find(wanted, place + 1)
        return _repetitions(shape) * self._period >= self._length


def _repetitions(shape: str) -> float:
    """How often in a row lines of the same shape come, one or several at a time."""
    lines = shape.split("\n")
    most = 1.0
    for every in range(1, _MOST_LINES + 1):
        count = 0
        for line, before in zip(lines[every:], lines, strict=False):
            count = count + 1 if line == before else 0
            most = max(most, 1 + count / every)
    return most


def _shape_of(text: str) -> tuple[str, list[int]]:
    """A text with a "w" for each run of words between two signs or line ends; and where each sign or run ends."""
    found = [match for match in _WORDS.finditer(text) if match[0] == "\n" or not match[0].isspace()]
    shape = "".join(match[0] if match["sign"] else "w" for match in found)
    return shape, [match.end() for match in found]
