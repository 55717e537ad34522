"""What could be meant by what is being written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from localspec.tui.literal import literal

_ROWS = 8
_WIDEST = 40


@dataclass(frozen=True)
class Suggestion:
    """Something to choose."""

    value: str
    """What it stands for."""
    shown: str
    note: str = ""


class Suggestions(Vertical):
    """A list over the conversation, right above where the person writes. It never has the focus: the prompt moves in it."""

    @dataclass
    class Clicked(Message):
        """The chosen one was clicked."""

    def __init__(self) -> None:
        super().__init__()
        self._items: Sequence[Suggestion] = ()
        self._at = 0
        self._top = 0
        self._hint = ""
        self._rows = [Static(classes="row") for _ in range(_ROWS)]
        self._foot = Static(classes="foot")
        self.display = False

    def compose(self) -> ComposeResult:
        """Rows, and a line that says which keys there are."""
        yield from self._rows
        yield self._foot

    @property
    def chosen(self) -> Suggestion | None:
        """The one that is marked; None while the list is closed."""
        return self._items[self._at] if self._items else None

    def show(self, items: Sequence[Suggestion], hint: str) -> None:
        """Show other items, the first one marked; the list closes when there are none. `hint` says what the keys do."""
        if items == self._items:
            return
        self._items, self._hint, self._at, self._top = items, hint, 0, 0
        self._draw()

    def close(self) -> None:
        """Show nothing."""
        self.show((), "")

    def move(self, by: int) -> None:
        """Mark the next or the previous item, at the ends the one at the other end."""
        if self._items:
            self._mark((self._at + by) % len(self._items))

    def on_click(self, event: events.Click) -> None:
        """A click marks a row and takes it."""
        row = event.screen_y - self.region.y
        if 0 <= row < min(_ROWS, len(self._items)):
            self._mark(self._top + row)
            self.post_message(self.Clicked())

    def _mark(self, at: int) -> None:
        self._at = at
        self._top = min(max(self._top, at - _ROWS + 1), at)
        self._draw()

    def _draw(self) -> None:
        self.display = bool(self._items)
        shown = self._items[self._top : self._top + _ROWS]
        # Above its place, which is the first line inside the frame of the prompt: nothing else moves when it opens.
        self.styles.offset = (0, -len(shown) - 2)
        column = max((min(Content(literal(item.shown)).cell_length, _WIDEST) for item in self._items), default=0)
        for number, row in enumerate(self._rows):
            row.display = number < len(shown)
            if row.display:
                row.update(_line(shown[number], column))
            row.set_class(self._top + number == self._at, "-chosen")
        count = f"{self._at + 1} of {len(self._items)}   " if len(self._items) > _ROWS else ""
        self._foot.update(Content(count + self._hint))


def _line(item: Suggestion, column: int) -> Content:
    shown = Content(literal(item.shown).replace("\n", " "))
    if not item.note:
        return shown
    return shown.pad_right(max(0, column - shown.cell_length) + 2).append(Content.styled(item.note, "dim"))
