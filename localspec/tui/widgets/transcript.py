"""The conversation, growing downwards."""

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.widget import Widget

from localspec.tui.widgets.answer import Answer
from localspec.tui.widgets.turn import Turn
from localspec.tui.widgets.welcome import Welcome

_LIVELY_ANSWERS = 6
"""The newest answers are real Markdown, whose text can be selected; older ones are cheap."""


class _Items(Vertical):
    """What is scrolled. Never lower than the view: an anchored one would hang a short conversation from its bottom."""

    BLANK = True


class Transcript(VerticalScroll, can_focus=False):
    """Follows what is written until the reader scrolls up, and again from the bottom on."""

    BLANK = True

    def __init__(self) -> None:
        super().__init__()
        self._items = _Items()

    def compose(self) -> ComposeResult:
        """The welcome stays on top."""
        with self._items:
            yield Welcome()

    def on_mount(self) -> None:
        """Follow from the beginning."""
        self.anchor()

    @property
    def welcome(self) -> Welcome:
        """What stands above all turns."""
        return self.query_one(Welcome)

    async def begin(self, words: str) -> tuple[Turn, Answer]:
        """Add a turn and the empty answer to it, and go there."""
        turn, answer = Turn(words), Answer()
        await self._items.mount(turn, answer)
        self.anchor()
        for old in list(self.query(Answer))[:-_LIVELY_ANSWERS]:
            await old.settle()
        return turn, answer

    async def add(self, widget: Widget) -> None:
        """Add anything else."""
        await self._items.mount(widget)

    async def clear(self) -> None:
        """Remove everything but the welcome."""
        await self._items.remove_children("Turn, Answer, Notice")
        self.anchor()
