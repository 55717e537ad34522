"""Text that grows without end and stays cheap: a code block while it is written, the rest of a very long answer."""

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static
from textual.widgets.markdown import MarkdownFence

from localspec.tui.literal import literal

_LINES = 40
_CHARACTERS = 4000


class Growing(Vertical):
    """A column of pieces of some forty lines: only the last one is laid out again when text is added."""

    DEFAULT_CSS = "Growing { height: auto; }"

    def __init__(self, language: str | None = None) -> None:
        super().__init__(classes="-code" if language is not None else None)
        self.is_code = language is not None
        self._language = language
        self._text = ""
        """What stands in the last piece."""
        self._last = Static("", markup=False)

    def compose(self) -> ComposeResult:
        """One empty piece."""
        yield self._last

    async def add(self, text: str) -> None:
        """More text."""
        full, self._text = _cut(self._text + text)
        for piece in full:
            self._last.update(self._shown(piece))
            self._last = Static("", markup=False)
            await self.mount(self._last)
        self._last.display = bool(self._text)
        self._last.update(self._shown(self._text))

    def _shown(self, text: str) -> Content:
        text = literal(text.removesuffix("\n"))
        if not self._language:
            return Content(text)
        # Highlighted piece by piece: a string over many lines may look odd until the whole is laid out.
        dark = self.app.current_theme.dark
        return MarkdownFence.highlight(text, self._language, ansi=self.app.native_ansi_color, dark=dark)


def _cut(text: str) -> tuple[list[str], str]:
    """The pieces that are full, and what is left."""
    full: list[str] = []
    start = end = lines = 0
    while end < len(text):
        found = text.find("\n", end) + 1
        # A line that has not ended yet belongs to the last piece.
        end = min(found or len(text), start + _CHARACTERS)
        lines += 1
        if end < len(text) and (lines >= _LINES or end - start >= _CHARACTERS):
            full.append(text[start:end])
            start, lines = end, 0
    return full, text[start:]
