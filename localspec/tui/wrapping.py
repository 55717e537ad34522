"""Long texts in rows of a given width, fast enough for a megabyte, also on one line."""

from __future__ import annotations

import re

from rich.cells import get_character_cell_size

TAB_CELLS = 4
_LINE_END = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_BLANKS = " \t"
_LEAST_SHARE = 2
"""A row ends at a blank in its second half; a longer word is cut."""

Row = tuple[int, int]
"""Where its characters begin and end; a line end is in no row."""


def rows_of(text: str, width: int, start: int = 0) -> list[Row]:
    """The rows of `text` from the character `start` on, at most `width` cells each (one at least)."""
    width = max(1, width)
    rows: list[Row] = []
    begin = start
    for found in _LINE_END.finditer(text, start):
        _wrap(text, begin, found.start(), width, rows)
        begin = found.end()
    _wrap(text, begin, len(text), width, rows)
    return rows


def _wrap(text: str, start: int, end: int, width: int, rows: list[Row]) -> None:
    """Add the rows of one line."""
    while True:
        fitting = _fitting(text, start, end, width)
        if fitting >= end:
            rows.append((start, end))
            return
        blank = max(text.rfind(mark, start + (fitting - start) // _LEAST_SHARE, fitting + 1) for mark in _BLANKS)
        stop = blank + 1 if blank >= start else fitting
        rows.append((start, max(stop, start + 1)))
        start = rows[-1][1]


def _fitting(text: str, start: int, end: int, width: int) -> int:
    """How far the characters from `start` on fit into `width` cells; one at least."""
    stop = min(end, start + width)
    part = text[start:stop]
    if part.isascii() and "\t" not in part:
        return stop
    cells, at = 0, start
    while at < end:
        character = text[at]
        cells += TAB_CELLS if character == "\t" else get_character_cell_size(character)
        if cells > width:
            return max(at, start + 1)
        at += 1
    return end
