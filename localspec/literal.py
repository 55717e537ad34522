"""Text from outside as a terminal may be given it: what people, models, documents, files and the hub write can hold anything,
and must neither command the terminal nor hide in what it shows."""

from __future__ import annotations

import re

_LINE_ENDS = re.compile("\r\n|[\r\x85\u2028\u2029]")
_REPLACEMENT = "\ufffd"
_PICTURES = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n"}
_TURNING = [*range(0x202A, 0x202F), *range(0x2066, 0x206A)]
"""Embeddings, overrides and isolates: with them a line of code is shown in another order than it is read in ("Trojan
Source"). Hebrew and Arabic do without them, since letters know their own direction, and so the marks U+200E, U+200F and
U+061C stay, and so do the joiners that Persian, the scripts of India and emoji are written with."""
_HALVES = range(0xD800, 0xE000)
_SHOWN = _PICTURES | {0x7F: "\u2421"} | dict.fromkeys([*range(0x80, 0xA0), *_TURNING, *_HALVES], _REPLACEMENT)

UNSAFE = re.compile("[^\t\n -~\xa0-\u2027\u202f-\u2065\u206a-\ud7ff\ue000-\U0010ffff]")
"""A character that `literal` leaves in no text."""

_IN_JSON = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029, *_TURNING, *_HALVES)}
"""Those that JSON may hold as they are, and the other way to write them, which means the same."""


def literal(text: str) -> str:
    """`text` with control characters made visible, every line end a newline, and replaced what turns the direction of the
    writing around and what is half of a surrogate pair."""
    return _LINE_ENDS.sub("\n", text).translate(_SHOWN) if UNSAFE.search(text) else text


def literal_json(written: str) -> str:
    """JSON that means the same, and that a terminal and a file in UTF-8 can be given as it is."""
    return written.translate(_IN_JSON)


class LiteralPieces:
    """`literal` for a text that comes in pieces: a line end may be cut in two."""

    def __init__(self) -> None:
        self._after_return = False

    def next(self, piece: str) -> str:
        """What to show of the next piece."""
        if not piece:
            return ""
        shown = literal(piece.removeprefix("\n") if self._after_return else piece)
        self._after_return = piece.endswith("\r")
        return shown
