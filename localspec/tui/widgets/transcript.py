"""The conversation, growing downwards."""

from textual.containers import VerticalScroll
from textual.widget import Widget

from localspec.tui.widgets.answer import Answer
from localspec.tui.widgets.turn import Turn

_LIVELY_ANSWERS = 6
"""The newest answers are real Markdown, whose text can be selected; older ones are cheap."""


class Transcript(VerticalScroll, can_focus=False):
    """Follows what is written until the reader scrolls up, and again from the bottom on."""

    BLANK = True

    def on_mount(self) -> None:
        """Follow from the beginning."""
        self.anchor()

    async def begin(self, words: str) -> tuple[Turn, Answer]:
        """Add a turn and the empty answer to it, and go there."""
        turn, answer = Turn(words), Answer()
        await self.mount(turn, answer)
        self.anchor()
        for old in list(self.query(Answer))[:-_LIVELY_ANSWERS]:
            await old.settle()
        return turn, answer

    async def add(self, widget: Widget) -> None:
        """Add anything else."""
        await self.mount(widget)

    async def clear(self) -> None:
        """Remove everything."""
        await self.remove_children(":is(Turn, Answer, Notice)")
        self.anchor()
