"""What stands at the top of the conversation."""

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import ProgressBar, Static

from localspec.tui.literal import literal
from localspec.tui.messages import Fetching, Loading

_WRITE_ALREADY = "You can write already: it is sent when the model is ready."
_HOW_TO_BEGIN = "Write below. f1 shows the keys and says what the figures mean."
_HOW_TO_END = "ctrl+q quits."


class Welcome(Vertical):
    """The name, what is going on, and how to begin."""

    def compose(self) -> ComposeResult:
        """Four lines and a bar."""
        yield Static("localspec", markup=False, id="name")
        yield Static("Open models on your own machine, faster and unchanged.", markup=False, id="claim")
        yield Static("", id="state")
        yield ProgressBar(total=1.0, show_eta=False, show_percentage=False, id="progress")
        yield Static("", id="hint")

    def on_mount(self) -> None:
        """Nothing is known yet."""
        self.show("starting", 0.0)

    def show(self, state: str, share: float) -> None:
        """Something is going on, and `share` of it (0 to 1) is done."""
        self._put(state, _WRITE_ALREADY)
        self.query_one("#progress", ProgressBar).update(progress=share)

    def show_ready(self, target: str) -> None:
        """The model `target` can be asked."""
        self._put(f"{target} is ready.", _HOW_TO_BEGIN)
        self.query_one("#progress").display = False

    def show_failure(self, sentence: str) -> None:
        """There will be no answers, and why."""
        self._put(sentence, _HOW_TO_END)
        self.query_one("#progress").display = False
        self.add_class("-failed")

    def _put(self, state: str, hint: str) -> None:
        self.query_one("#state", Static).update(Content(literal(state)))
        self.query_one("#hint", Static).update(Content(hint))


def progress_of(event: Fetching | Loading) -> tuple[str, float]:
    """What is going on in words, and how much of it is done (0 to 1)."""
    if isinstance(event, Loading):
        doing = {"draft": "loading the draft model", "costs": "measuring this machine"}.get(
            event.what, "loading the model"
        )
        return f"{doing} {100 * event.share:.0f} %", event.share
    share = event.done / event.total if event.total else 0.0
    return f"{event.phase} the starter model {event.done / 1e6:,.0f} / {event.total / 1e6:,.0f} MB", share
