"""Where code begins and ends in Markdown that is still being written."""

import re
from dataclasses import dataclass
from typing import Literal

_OPENING = re.compile(r" {0,3}(?P<fence>`{3,}|~{3,})(?P<info>[^`\n]*)\n?$")
_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_MAY_OPEN = re.compile(r" {0,3}(?:`{0,2}|~{0,2}|`{3,}[^`\n]*|~{3,}[^\n]*)$")


@dataclass(frozen=True, slots=True)
class Piece:
    """Some more of the text."""

    kind: Literal["prose", "open", "code"]
    """ "open": a block of code begins, and `text` is its language."""
    text: str


class Fences:
    """Cuts a growing text into prose and the code between fences. What could become a fence is held back until it is one."""

    def __init__(self) -> None:
        self._held = ""
        self._fence = ""
        self._midline = False

    def feed(self, text: str) -> list[Piece]:
        """What is certain after `text`."""
        lines = _LINES.findall(self._held + text)
        self._held = ""
        pieces: list[Piece] = []
        for line in lines:
            whole = line.endswith("\n")
            if not self._midline and not whole and self._may_be_fence(line):
                self._held = line
                continue
            found = None if self._midline else self._line(line)
            _add(pieces, found or Piece("code" if self._fence else "prose", line))
            self._midline = not whole
        return [piece for piece in pieces if piece.kind == "open" or piece.text]

    def end(self) -> list[Piece]:
        """The text has ended: what was held back is only text."""
        held, self._held = self._held, ""
        return [Piece("code" if self._fence else "prose", held)] if held else []

    def _may_be_fence(self, line: str) -> bool:
        if self._fence:
            return not line.strip().strip(self._fence[0]) and len(line) - len(line.lstrip()) <= 3
        return bool(_MAY_OPEN.match(line))

    def _line(self, line: str) -> Piece | None:
        """What a whole line does besides being text."""
        if self._fence:
            mark = line.strip()
            if len(mark) >= len(self._fence) and not mark.strip(self._fence[0]):
                self._fence = ""
                return Piece("prose", "")
        elif opening := _OPENING.match(line):
            self._fence = opening["fence"]
            return Piece("open", opening["info"].strip().split(" ")[0])
        return None


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
    if pieces and piece.kind == pieces[-1].kind != "open":
        piece = Piece(piece.kind, pieces.pop().text + piece.text)
    pieces.append(piece)
