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

    @property
    def words(self) -> str:
        """What is going on with it."""
        if self.stopping:
            return "stopping"
        if self.reading:
            return "reading the prompt {:,} / {:,}".format(*self.reading)
        return "   ".join(in_words(self.figures, running=True)) or "waiting"
