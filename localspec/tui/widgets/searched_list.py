"""A list below a search box: letters are for the search, and up from the first row leads to it."""

from __future__ import annotations

from dataclasses import dataclass

from textual import events
from textual.message import Message
from textual.widgets import OptionList


class SearchedList(OptionList):
    """Rows to choose from. Letters that mean nothing here are for the search."""

    class LeftUpwards(Message):
        """Up was pressed on the first row."""

    @dataclass
    class Typed(Message):
        """Text for the search."""

        text: str

    @property
    def first(self) -> int | None:
        """The place of the first row that can be chosen."""
        return next((place for place, option in enumerate(self.options) if option.id), None)

    def action_cursor_up(self) -> None:
        """Go up; from the first row, to the search."""
        if self.highlighted is None or self.highlighted == self.first:
            self.post_message(self.LeftUpwards())
        else:
            super().action_cursor_up()

    def action_cursor_down(self) -> None:
        """Go down, and not around."""
        if self.highlighted is None or self.highlighted < self.option_count - 1:
            super().action_cursor_down()

    def on_key(self, event: events.Key) -> None:
        """Letters go to the search."""
        if event.is_printable and event.character and event.key not in self.screen.active_bindings:
            event.stop()
            event.prevent_default()
            self.post_message(self.Typed(event.character))
