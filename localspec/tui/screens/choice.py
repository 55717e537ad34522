"""One thing to choose, or one line to write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from localspec.tui.literal import literal


@dataclass(frozen=True)
class Choice:
    """One of several things to do."""

    value: str
    words: str
    note: str = ""
    """More about it, below."""
    key: str = ""
    """The letter that chooses it at once."""


class ChoiceScreen(ModalScreen[str | None]):
    """Closes with the value of what was chosen, or None."""

    BINDINGS = [Binding("escape,ctrl+c,q", "dismiss(None)", "Close", show=False)]

    def __init__(self, title: str, choices: Sequence[Choice], about: str = "") -> None:
        super().__init__()
        self._title, self._choices, self._about = title, choices, about

    def compose(self) -> ComposeResult:
        """A small box over the chat."""
        with Vertical(id="choice", classes="box") as box:
            box.border_title = Content(literal(self._title))
            box.border_subtitle = "enter chooses, esc closes"
            if self._about:
                yield Static(Content(literal(self._about)), id="choice-about")
            yield OptionList(*(Option(_line(choice)) for choice in self._choices), id="choice-list")

    def on_key(self, event: events.Key) -> None:
        """The letter of a choice."""
        for choice in self._choices:
            if choice.key and event.key == choice.key:
                event.stop()
                self.dismiss(choice.value)

    @on(OptionList.OptionSelected)
    def _choose(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._choices[event.option_index].value)


class LineScreen(ModalScreen[str | None]):
    """Closes with the line that was written, or None."""

    BINDINGS = [Binding("escape,ctrl+c", "dismiss(None)", "Leave it as it was", show=False)]

    def __init__(self, title: str, line: str = "", about: str = "") -> None:
        super().__init__()
        self._title, self._line, self._about = title, line, about

    def compose(self) -> ComposeResult:
        """A small box over the chat."""
        with Vertical(id="line", classes="box") as box:
            box.border_title = Content(literal(self._title))
            box.border_subtitle = "enter keeps it, esc leaves it as it was"
            yield Input(self._line, select_on_focus=False, compact=True, id="line-input")
            if self._about:
                yield Static(Content(literal(self._about)), id="line-about")

    @on(Input.Submitted)
    def _keep(self, event: Input.Submitted) -> None:
        self.dismiss(event.value)


def _line(choice: Choice) -> Content:
    key = Content.styled(f"   {choice.key}", "dim") if choice.key else Content("")
    words = Content(literal(choice.words)).append(key)
    return words.append(Content.styled(f"\n{literal(choice.note)}", "dim")) if choice.note else words
