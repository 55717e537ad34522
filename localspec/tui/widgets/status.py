"""The two lines at the bottom: who answers and how much fits, what is going on and how fast."""

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Static

from localspec.tui.literal import literal

HELP_HINT = "f1 help"
STOP_HINT = "esc stop"
_MESSAGE_SECONDS = 4.0


class Status(Vertical):
    """Four places for text; a message covers the activity for a few seconds."""

    def __init__(self) -> None:
        super().__init__()
        self._activity = ""
        self._places: dict[str, str] = {}
        self._message: Timer | None = None

    def compose(self) -> ComposeResult:
        """Models and context above, activity and the key that matters below."""
        with Horizontal():
            yield Static("", id="models")
            yield Static("", id="context")
        with Horizontal():
            yield Static("", id="activity")
            yield Static(HELP_HINT, id="key")

    def show_models(self, target: str, draft: str | None) -> None:
        """Who answers, and who drafts."""
        self._put("models", f"{target} + {draft}" if draft else target)

    def show_context(self, used: int, length: int) -> None:
        """Tokens of the conversation, and how many it can have."""
        self._put("context", f"context {used:,} / {length:,}")

    def show_activity(self, words: str, key: str = HELP_HINT) -> None:
        """What is going on or what came of it, and the key to press."""
        self._activity = words
        self._put("key", key)
        if self._message is None:
            self._put("activity", words)

    def say(self, message: str) -> None:
        """Show a message for a few seconds."""
        self.unsay()
        self._message = self.set_timer(_MESSAGE_SECONDS, self.unsay)
        self._put("activity", message)
        self.query_one("#activity").add_class("-message")

    def unsay(self) -> None:
        """The message is no longer true, or has been there long enough."""
        if self._message:
            self._message.stop()
            self._message = None
        self._put("activity", self._activity)
        self.query_one("#activity").remove_class("-message")

    def _put(self, place: str, words: str) -> None:
        # Called many times a second, mostly with what stands there already; an update would lay out the whole screen.
        if self._places.get(place) != words:
            self._places[place] = words
            self.query_one(f"#{place}", Static).update(Content(literal(words)))
