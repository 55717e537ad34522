"""What the model thought before it answered, folded into one line."""

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.events import Click
from textual.widgets import Static

from localspec.tui.widgets.growing import Growing


class Thoughts(Vertical):
    """One line; a click or `toggle` opens it. Not there when there are no thoughts."""

    DEFAULT_CSS = "Thoughts { height: auto; }"

    def __init__(self, text: str = "") -> None:
        super().__init__()
        self.display = bool(text)
        self._text = text
        self._running = False
        self._line = Static("", markup=False, classes="line")
        self._whole: Growing | None = None

    def compose(self) -> ComposeResult:
        """The line."""
        self._show_line()
        yield self._line

    async def show(self, text: str, running: bool) -> None:
        """These are the thoughts so far. `running`: there will be more."""
        if (text, running) == (self._text, self._running):
            return
        old, self._text, self._running = self._text, text, running
        self.display = bool(text)
        self._show_line()
        if self._whole and text.startswith(old):
            await self._whole.add(text[len(old) :])
        elif self._whole:
            await self._fold()
            await self.toggle()

    async def toggle(self) -> None:
        """Open or fold."""
        if self._whole:
            await self._fold()
        elif self._text:
            self._whole = Growing()
            await self.mount(self._whole)
            await self._whole.add(self._text)
        self._show_line()

    @on(Click, ".line")
    async def _clicked(self) -> None:
        await self.toggle()

    async def _fold(self) -> None:
        whole, self._whole = self._whole, None
        if whole:
            await whole.remove()

    def _show_line(self) -> None:
        count = len(self._text.split())
        doing = "thinking, " if self._running else "thought for "
        self._line.update(Content(f"{'▾' if self._whole else '▸'} {doing}{count:,} word{'s' * (count != 1)}"))
