"""Where the person writes."""

from collections.abc import Callable
from dataclasses import dataclass

from textual import events
from textual.binding import Binding
from textual.message import Message
from textual.timer import Timer
from textual.widgets import TextArea

from localspec.tui.history import History
from localspec.tui.literal import literal

_BURST_SECONDS = 0.015
"""Keys of a paste that the terminal does not mark follow each other faster than this, a person's do not: an enter
followed by another key so soon is a line end of that paste."""
_NEW_LINE_KEYS = ("shift+enter", "ctrl+j")


class Prompt(TextArea):
    """Several lines; enter sends them. What was sent before comes back with up and down."""

    BINDINGS = [
        Binding("ctrl+d", "delete_or_quit", "Delete, or quit when empty", id="prompt.delete_or_quit", show=False),
        Binding("end", "line_end_or_follow", "End of the line, then of the chat", show=False),
    ]

    @dataclass
    class Sent(Message):
        """Enter was pressed on some text. Who handles it clears the prompt with `accept`, or leaves the text there."""

        text: str

    class QuitAsked(Message):
        """Ctrl+d was pressed on an empty prompt."""

    class FollowAsked(Message):
        """End was pressed at the end."""

    def __init__(self) -> None:
        super().__init__(placeholder="Write here. Enter sends, ctrl+j makes a new line.", highlight_cursor_line=False)
        self._history = History()
        self._enter: Timer | None = None

    def accept(self) -> None:
        """The text has been sent: remember it, and make room."""
        self._history.add(self.text)
        self._show("")

    def give_back(self, text: str) -> None:
        """Put `text` before what stands in the prompt: it was not sent after all."""
        self._show(f"{text}\n{self.text}" if self.text.strip() else text)

    def takes(self, event: events.Key) -> bool:
        """Whether the key is text: no other widget gets to see it once the prompt has."""
        return event.is_printable or event.key in ("enter", *_NEW_LINE_KEYS)

    def action_delete_or_quit(self) -> None:
        """Delete to the right; ask to quit when there is nothing."""
        if self.text:
            self.action_delete_right()
        else:
            self.post_message(self.QuitAsked())

    def action_line_end_or_follow(self) -> None:
        """Go to the end of the line; from the end of the text, to the end of the chat."""
        if self.cursor_at_end_of_text:
            self.post_message(self.FollowAsked())
        self.action_cursor_line_end()

    def action_cursor_up(self, select: bool = False) -> None:
        """Go up; from the first line, to what was sent before."""
        if select or not self.navigator.is_first_wrapped_line(self.cursor_location):
            super().action_cursor_up(select)
        else:
            self._recall(lambda: self._history.older(self.text))

    def action_cursor_down(self, select: bool = False) -> None:
        """Go down; from the last line, to what was sent after."""
        if select or not self.navigator.is_last_wrapped_line(self.cursor_location):
            super().action_cursor_down(select)
        else:
            self._recall(self._history.newer)

    def on_key(self, event: events.Key) -> None:
        """Enter and its kin. Handled here and not as bindings, which would overtake keys typed just before them."""
        if self._enter is not None:
            self._enter.stop()
            self._enter = None
            self._new_line()
        if event.key == "enter":
            self._enter = self.set_timer(_BURST_SECONDS, self._send)
        elif event.key in _NEW_LINE_KEYS:
            self._new_line()
        else:
            return
        event.prevent_default()
        event.stop()

    def on_paste(self, event: events.Paste) -> None:
        """A paste goes in as it is, however large."""
        event.prevent_default()
        event.stop()
        self._replace_selection(literal(event.text))

    def _new_line(self) -> None:
        self._replace_selection("\n")

    def _send(self) -> None:
        self._enter = None
        if self.text.strip():
            self.post_message(self.Sent(self.text))

    def _replace_selection(self, text: str) -> None:
        self.move_cursor(self.replace(text, *self.selection).end_location)

    def _recall(self, entry: Callable[[], str | None]) -> None:
        text = entry()
        if text is not None:
            self._show(text)

    def _show(self, text: str) -> None:
        self.text = text
        self.move_cursor(self.document.end)
