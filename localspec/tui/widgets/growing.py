"""Text that grows without end and stays cheap: a code block while it is written, the rest of a very long answer."""

from __future__ import annotations

from collections.abc import AsyncIterator

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content

from localspec.tui.highlighting import Highlighter, theme_of
from localspec.tui.literal import literal
from localspec.tui.widgets.once import Text, once

_LINES = 40
_CHARACTERS = 4000
"""A piece has no more than these."""
_LIVE_LINES = 8
_LIVE_CHARACTERS = 1000
"""So much at the end is drawn with every word."""


class Growing(Vertical):
    """A column of pieces of some forty lines. The last few lines are a widget of their own: only they are laid out again when
    text is added, and when they have become too many they join the piece above."""

    DEFAULT_CSS = "Growing { height: auto; }"
    BLANK = True
    virtual_size = once()

    def __init__(self, language: str | None = None) -> None:
        super().__init__(classes="-code" if language is not None else None)
        self.is_code = language is not None
        self.highlighter = Highlighter(language or "")
        self._piece: Text | None = None
        """The last piece, and what is in it."""
        self._lines: list[Content] = []
        self._characters = 0
        self._live = Text("live")
        self._live_lines: list[Content] = []
        self._line = ""
        """The line that has not ended yet."""

    def compose(self) -> ComposeResult:
        """Nothing yet."""
        yield self._live

    async def add(self, text: str) -> None:
        """More text."""
        theme = theme_of(ansi=self.app.native_ansi_color, dark=self.app.current_theme.dark)
        whole, end, rest = (self._line + text).rpartition("\n")
        if end:
            self._live_lines += self.highlighter.lines(literal(whole + end), theme).split("\n")
        self._line = rest
        while len(rest) >= _CHARACTERS:
            self._live_lines.append(self.highlighter.begun(literal(rest[:_CHARACTERS]), theme))
            self._line = rest = rest[_CHARACTERS:]
        if len(self._live_lines) > _LIVE_LINES or sum(map(len, self._live_lines)) > _LIVE_CHARACTERS:
            lines, self._live_lines = self._live_lines, []
            await self._join(lines)
        shown = [*self._live_lines, *([self.highlighter.begun(literal(rest), theme)] if rest else [])]
        self._live.display = bool(shown)
        self._live.update(Content("\n").join(shown))

    async def fill(self, text: str) -> AsyncIterator[None]:
        """A long text, a piece at a time: whoever asks for the next one waits in between, so that no key has to."""
        start = 0
        while start < len(text):
            end = text.find("\n", start + _CHARACTERS // 2, start + _CHARACTERS) + 1 or start + _CHARACTERS
            await self.add(text[start:end])
            start = end
            yield

    async def _join(self, lines: list[Content]) -> None:
        """Put lines behind those of the last piece, and into new ones where that is full."""
        for line in lines:
            is_full = len(self._lines) >= _LINES or self._characters + len(line) > _CHARACTERS
            if self._piece is None or (is_full and self._lines):
                await self._new_piece()
            self._lines.append(line)
            self._characters += len(line) + 1
        self._show_piece()

    async def _new_piece(self) -> None:
        self._show_piece()
        self._lines, self._characters = [], 0
        self._piece = Text()
        await self.mount(self._piece, before=self._live)

    def _show_piece(self) -> None:
        if self._piece:
            self._piece.update(Content("\n").join(self._lines))
