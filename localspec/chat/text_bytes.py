"""A text and the bytes it is in a file: encoding, byte order mark and line ends are found out, and given back."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from dataclasses import dataclass
from difflib import SequenceMatcher

from localspec.engine.errors import UserError

_MARKS = (
    # The one of UTF-32 begins like that of UTF-16.
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (codecs.BOM_UTF8, "utf-8"),
)
_WESTERN = "cp1252"
"""Where it has letters it is also Latin-1."""
_NAMES = {_WESTERN: "Windows-1252", "utf-8": "UTF-8"}
_LINE_END = re.compile("\r\n|\r|\n")
_MOST_LINES_COMPARED = 3000

_HIGH = re.compile(rb"[\x80-\xff]+")
_UTF_8 = re.compile(rb"(?:[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3})+")
_LETTER = re.compile(rb"[A-Za-z]")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_LONGEST_RUN = 3
_LETTERS_TO_ONE = 2


@dataclass(frozen=True, slots=True)
class LineEnds:
    """The line ends of a text, of which each newline has one."""

    usual: str
    """The most frequent one, which a new line gets."""
    each: tuple[str, ...] | None = None
    """One for every newline, where they are not all the same."""

    @classmethod
    def of(cls, text: str) -> LineEnds:
        """Those of a text as it is in the file."""
        found = _LINE_END.findall(text)
        counts = Counter(found)
        usual = counts.most_common(1)[0][0] if counts else "\n"
        return cls(usual, tuple(found) if len(counts) > 1 else None)

    def restored(self, before: str, after: str, first: int = 0) -> str:
        """`after` with line ends. It was written in place of `before`, which begins behind the newline number `first` of the
        source: a line that is the same in both keeps its own."""
        if self.each is None:
            return after.replace("\n", self.usual)
        old, new = before.split("\n"), after.split("\n")
        ends = [self.usual] * (len(new) - 1)
        for place, source in _same_lines(old, new):
            if place < len(ends) and source < len(old) - 1:
                ends[place] = self.each[first + source]
        return "".join(line + end for line, end in zip(new, [*ends, ""], strict=True))


@dataclass(frozen=True, slots=True)
class TextBytes:
    """What a text is in bytes."""

    text: str
    """Every line ends with a newline alone."""
    encoding: str
    mark: bytes
    """The byte order mark."""
    ends: LineEnds

    def encoded(self, text: str) -> bytes:
        """Text with its line ends in place, as bytes without the mark. Raises UnicodeEncodeError."""
        return text.encode(self.encoding)

    def objection(self, text: str) -> str | None:
        """Why `text` cannot stand in the file, as the rest of a sentence; None where it can."""
        try:
            self.encoded(text)
        except UnicodeEncodeError as error:
            character = text[error.start]
            return f"needs the character {character!r}, which {self.encoding_name} does not have"
        return None

    @property
    def encoding_name(self) -> str:
        """As it is called."""
        return _NAMES.get(self.encoding, self.encoding.upper())


def text_of(data: bytes, name: str) -> TextBytes:
    """The text of the bytes of `name`. Raises UserError where they are not text, or in an encoding that nobody can tell."""
    mark, encoding = next((each for each in _MARKS if data.startswith(each[0])), (b"", "utf-8"))
    try:
        text = data[len(mark) :].decode(encoding)
    except UnicodeDecodeError as error:
        if mark or not _is_western(data):
            raise UserError(_refusal(data, name, len(mark) + error.start)) from None
        text, encoding = data.decode(_WESTERN), _WESTERN
    if "\0" in text:
        raise UserError(f"{name} is not a text file; give one with the text alone.")
    return TextBytes(_LINE_END.sub("\n", text), encoding, mark, LineEnds.of(text))


def _is_western(data: bytes) -> bool:
    """Whether bytes that are not UTF-8 are text of a Western European language in Windows-1252 or Latin-1: mostly plain
    letters, with others among them that stand alone or are few together. In the code pages of other scripts whole words are
    above 127; and where most of what is above it is good UTF-8, the rest is damage."""
    try:
        data.decode(_WESTERN)
    except UnicodeDecodeError:
        return False
    if _CONTROL.search(data):
        return False
    runs = [len(found[0]) for found in _HIGH.finditer(data)]
    good = sum(len(found[0]) for found in _UTF_8.finditer(data))
    letters = len(_LETTER.findall(data))
    return max(runs) <= _LONGEST_RUN and letters >= _LETTERS_TO_ONE * sum(runs) and 2 * good < sum(runs)


def _refusal(data: bytes, name: str, place: int) -> str:
    if _CONTROL.search(data):
        return f"{name} is not a text file; give one with the text alone."
    return f"{name} is not UTF-8 (byte {place + 1} is 0x{data[place]:02x}); save it as UTF-8 first."


def _same_lines(old: list[str], new: list[str]) -> list[tuple[int, int]]:
    """Places of lines of `new` and of the lines of `old` they are, or are written in place of."""
    if old == new or len(old) + len(new) > _MOST_LINES_COMPARED:
        return [(place, place) for place in range(min(len(old), len(new)))]
    pairs = []
    for _what, start, end, new_start, new_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if end - start == new_end - new_start:
            pairs += list(zip(range(new_start, new_end), range(start, end), strict=True))
    return pairs
