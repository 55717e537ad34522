"""A document as it is, to be read and nothing else."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen

from localspec.tui.literal import literal
from localspec.tui.widgets.text_pane import TextPane


class ViewerScreen(ModalScreen[None]):
    """Closes with esc."""

    BINDINGS = [Binding("escape,q,enter,ctrl+c", "dismiss", "Close", show=False)]
    AUTO_FOCUS = "TextPane"

    def __init__(self, title: str, text: str, about: str = "") -> None:
        """`about`: a few words on how long it is."""
        super().__init__()
        self._title, self._about = title, about
        self._pane = TextPane(text, id="viewer-text")

    def compose(self) -> ComposeResult:
        """A box over the chat."""
        with Vertical(id="viewer") as box:
            box.border_title = Content(" ".join(literal(self._title).split()))
            box.border_subtitle = Content(
                f"{literal(self._about)}   arrows, pageup, pagedown, home, end scroll   esc closes"
            )
            yield self._pane
