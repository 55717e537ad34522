"""What there is to know of something: words at the left, and texts that wrap beside them."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.widgets import Static

from localspec.tui.literal import literal

_WORD_CELLS = 14
_GAP = 2
_LEAST_CELLS = 16


class Facts(Static):
    """A title, and a row for each fact."""

    def __init__(self, id: str) -> None:  # noqa: A002  (as every widget has it)
        super().__init__(id=id)
        self._title, self._facts = "", tuple[tuple[str, str], ...]()
        self._width = 0

    def show(self, title: str, facts: Sequence[tuple[str, str]]) -> None:
        """Other ones."""
        self._title, self._facts = title, tuple(facts)
        self._draw()

    def on_resize(self) -> None:
        """There is more room, or less."""
        if self.content_size.width != self._width:
            self._draw()

    def _draw(self) -> None:
        self._width = self.content_size.width
        lines = [Content.styled(literal(self._title), "bold")] if self._title else []
        room = max(_LEAST_CELLS, self._width - _WORD_CELLS - _GAP)
        for word, text in self._facts:
            left = Content.styled(word, "$foreground 70%").pad_right(max(0, _WORD_CELLS - len(word)) + _GAP)
            blank = Content(" " * (_WORD_CELLS + _GAP))
            wrapped = Content(literal(" ".join(text.split()))).wrap(room)
            lines += [(left if number == 0 else blank) + line for number, line in enumerate(wrapped)]
        self.update(Content("\n").join(lines))
