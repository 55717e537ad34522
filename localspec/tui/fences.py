"""Where code and lists begin and end in Markdown that is still being written."""

import re
from dataclasses import dataclass
from typing import Literal

_OPENING = re.compile(r" {0,3}(?P<fence>`{3,}|~{3,})(?P<info>[^`\n]*)\n?$")
_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])[ \t]")
_MAY_BE_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)]?)$")
_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_MAY_OPEN = re.compile(r" {0,3}(?:`{0,2}|~{0,2}|`{3,}[^`\n]*|~{3,}[^\n]*)$")


@dataclass(frozen=True, slots=True)
class Piece:
    """Some more of the text."""

    kind: Literal["prose", "open", "code", "item", "list"]
    """ "open": a block of code begins, and `text` is its language. "item": an item of a list begins; "list": more of it."""
    text: str


class Fences:
    """Cuts a growing text into prose, lists and the code between fences. What could become one is held back until it is."""

    def __init__(self) -> None:
        self._held = ""
        self._fence = ""
        self._midline = self._in_list = self._after_blank = False

    def feed(self, text: str) -> list[Piece]:
        """What is certain after `text`."""
        lines = _LINES.findall(self._held + text)
        self._held = ""
        pieces: list[Piece] = []
        for line in lines:
            whole = line.endswith("\n")
            if not self._midline and not whole and self._may_become_something(line):
                self._held = line
                continue
            _add(pieces, Piece(self._kind, line) if self._midline else self._begun(line))
            self._midline = not whole
        return [piece for piece in pieces if piece.kind == "open" or piece.text]

    def end(self) -> list[Piece]:
        """The text has ended: what was held back is only text."""
        held, self._held = self._held, ""
        return [Piece(self._kind, held)] if held else []

    @property
    def _kind(self) -> Literal["prose", "code", "list"]:
        return "code" if self._fence else "list" if self._in_list else "prose"

    def _may_become_something(self, line: str) -> bool:
        if self._fence:
            return not line.strip().strip(self._fence[0]) and len(line) - len(line.lstrip()) <= 3
        return bool(_MAY_OPEN.match(line) or _MAY_BE_ITEM.match(line))

    def _begun(self, line: str) -> Piece:
        """What a line is that begins here."""
        if self._fence:
            mark = line.strip()
            if len(mark) >= len(self._fence) and not mark.strip(self._fence[0]):
                self._fence = ""
                return Piece("prose", "")
            return Piece("code", line)
        if opening := _OPENING.match(line):
            self._fence, self._in_list = opening["fence"], False
            return Piece("open", opening["info"].strip().split(" ")[0])
        if _ITEM.match(line):
            self._in_list, self._after_blank = True, False
            return Piece("item", line)
        if line.strip():
            # Text at the margin behind an empty line is no part of the list any more.
            self._in_list = self._in_list and not (self._after_blank and not line[0].isspace())
        self._after_blank = not line.strip()
        return Piece(self._kind, line)


def code_blocks(markdown: str) -> list[str]:
    """The code between the fences of a whole text, in order."""
    fences = Fences()
    blocks: list[str] = []
    for piece in [*fences.feed(markdown), *fences.end()]:
        if piece.kind == "open":
            blocks.append("")
        elif piece.kind == "code":
            blocks[-1] += piece.text
    return blocks


def _add(pieces: list[Piece], piece: Piece) -> None:
    if pieces and piece.kind == pieces[-1].kind and piece.kind not in ("open", "item"):
        piece = Piece(piece.kind, pieces.pop().text + piece.text)
    pieces.append(piece)
