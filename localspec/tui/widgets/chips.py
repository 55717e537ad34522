"""The documents that go along with what is being written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual import events
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from localspec.chat.attach import estimated_tokens
from localspec.chat.messages import Document
from localspec.tui.literal import literal

_MOST_LINES = 4
_LONGEST_NAME = 30


@dataclass(frozen=True)
class Chip:
    """A document, and how long it is."""

    document: Document
    words: int
    tokens: int
    """About so many; nobody has asked the model."""

    @classmethod
    def of(cls, document: Document) -> Chip:
        """The chip of a document. Counting takes a moment for a very long one."""
        return cls(document, len(document.text.split()), estimated_tokens(document.text))


class Chips(Static):
    """One line for each document, the newest at the bottom; no lines at all without one."""

    @dataclass
    class Picked(Message):
        """A chip was clicked."""

        index: int

    def __init__(self) -> None:
        super().__init__("")
        self._chips: list[Chip] = []
        self._room: int | None = None
        self.display = False

    def __len__(self) -> int:
        return len(self._chips)

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, index: int) -> Chip:
        return self._chips[index]

    @property
    def documents(self) -> tuple[Document, ...]:
        """What the chips stand for."""
        return tuple(chip.document for chip in self._chips)

    def insert(self, index: int, chip: Chip) -> None:
        """Put a chip before the one at `index`, or at the end."""
        self._chips.insert(index, chip)
        self._draw()

    def replace(self, index: int, chip: Chip) -> None:
        """Put a chip in the place of another."""
        self._chips[index] = chip
        self._draw()

    def take(self, index: int) -> Chip:
        """Take a chip away."""
        chip = self._chips.pop(index)
        self._draw()
        return chip

    def drop(self, documents: Sequence[Document]) -> None:
        """Take away the chips of documents that have been sent: these very ones, not others that say the same."""
        sent = {id(document) for document in documents}
        self._chips = [chip for chip in self._chips if id(chip.document) not in sent]
        self._draw()

    def show_room(self, tokens: int) -> None:
        """How many tokens the model can look back on: what is longer says so."""
        self._room = tokens
        self._draw()

    def on_click(self, event: events.Click) -> None:
        """A line is a chip."""
        index = event.y + self._first - (1 if self._first else 0)
        if self._first <= index < len(self._chips):
            self.post_message(self.Picked(index))

    @property
    def _first(self) -> int:
        """The first chip that is shown. If there are more, a line above says how many."""
        return 0 if len(self._chips) <= _MOST_LINES else len(self._chips) - _MOST_LINES + 1

    def _draw(self) -> None:
        self.display = bool(self._chips)
        lines = [self._line(chip) for chip in self._chips[self._first :]]
        if self._first:
            lines.insert(0, Content.styled(f"and {self._first} more", "dim"))
        if lines:
            lines[-1] = lines[-1].append(Content.styled("   f4 edits, backspace removes", "dim"))
        self.update(Content("\n").join(lines))

    def _line(self, chip: Chip) -> Content:
        name = " ".join(literal(chip.document.name).split())
        if len(name) > _LONGEST_NAME:
            # The end of a path says more than its beginning.
            name = f"…{name[1 - _LONGEST_NAME :]}"
        words = f"{chip.words:,} word{'' if chip.words == 1 else 's'}, about {chip.tokens:,} tokens"
        line = Content.styled(f" {name} ", "reverse $text-primary").append(Content.styled(f" {words}", "dim"))
        if self._room is not None and chip.tokens > self._room:
            line = line.append(Content.styled(", too long for the model", "$text-warning"))
        return line
