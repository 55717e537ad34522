"""Before a chat is left that could not be saved."""

from __future__ import annotations

from typing import Literal

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from localspec.tui.literal import literal

Choice = Literal["stay", "markdown", "json", "leave"]

_CHOICES: tuple[tuple[Choice, str], ...] = (
    ("stay", "Stay here; saving is tried again"),
    ("markdown", "Write what is shown to a Markdown file, and leave"),
    ("json", "Write all of it, branches and documents too, to a JSON file, and leave"),
    ("leave", "Leave anyway: what is not saved is lost"),
)


class UnsavedScreen(ModalScreen[Choice]):
    """Closes with what to do. `why`: the sentence that says why the chat is not saved."""

    BINDINGS = [Binding("escape,ctrl+c,q", "stay", "Stay", show=False)]

    def __init__(self, why: str) -> None:
        super().__init__()
        self._why = why

    def compose(self) -> ComposeResult:
        """A box over the chat."""
        with Vertical(id="unsaved") as box:
            box.border_title = "This chat is not saved"
            box.border_subtitle = "enter chooses, esc stays"
            yield Static(Content(literal(self._why)), id="unsaved-why")
            yield OptionList(*(Option(Content(words), id=choice) for choice, words in _CHOICES), id="unsaved-choices")

    @on(OptionList.OptionSelected)
    def _choose(self, event: OptionList.OptionSelected) -> None:
        chosen = next(choice for choice, _ in _CHOICES if choice == event.option_id)
        self.dismiss(chosen)

    def action_stay(self) -> None:
        """Change nothing."""
        self.dismiss("stay")
