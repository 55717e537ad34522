"""The answer that is asked for."""

from __future__ import annotations

from dataclasses import dataclass, field

from localspec.tui.figures import Figures, in_words
from localspec.tui.widgets.answer import Answer


@dataclass
class Asked:
    """The answer that is being written, or waits for it."""

    number: int
    entry: int
    answer: Answer
    figures: Figures = field(default_factory=Figures)
    reading: tuple[int, int] | None = None
    stopping: bool = False
    hangs: bool = False
    """Asked to stop, and has not."""
    context_used: int = 0
    """Tokens of the conversation; 0 before the first step."""

    @property
    def words(self) -> str:
        """What is going on with it."""
        if self.hangs:
            return "the engine does not stop: esc once more ends it, and the chat stays"
        if self.stopping:
            return "stopping"
        if self.reading:
            return "reading the prompt {:,} / {:,}".format(*self.reading)
        return "   ".join(in_words(self.figures, running=True)) or "waiting"
