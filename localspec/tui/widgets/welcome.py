"""What stands at the top of the conversation."""

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import ProgressBar, Static

from localspec.engine.rates import share as share_of
from localspec.tui.downloads import Download
from localspec.tui.literal import literal
from localspec.tui.messages import Fetching, Loading
from localspec.tui.shelf import Row
from localspec.tui.widgets.first_models import FirstModels
from localspec.tui.widgets.pull_lines import progress_words

_WRITE_ALREADY = "You can write already: it is sent when the model is ready."
_HOW_TO_BEGIN = "Write below. f1 shows the keys and says what the figures mean."
_HOW_TO_END = "f7 chooses another model, ctrl+q quits."
_CHOOSE = "There is no model on this machine yet. Enter fetches the marked one:"
_HOW_TO_CHOOSE = "up and down mark another one. You can write already: nothing is lost."
_HOW_TO_STOP = "You can write already: it is sent when the model is ready. esc stops it."


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
        self._show_bar(share)

    def show_ready(self, target: str, note: str = "") -> None:
        """The model `target` can be asked; `note` says what about it is otherwise than usual."""
        self._put(f"{target} is ready. {note}".rstrip(), _HOW_TO_BEGIN)
        self.query_one("#progress").display = False

    def show_failure(self, sentence: str) -> None:
        """There will be no answers, and why."""
        self._put(sentence, _HOW_TO_END)
        self.query_one("#progress").display = False
        self.add_class("-failed")

    # The first model.

    def offer_models(self) -> None:
        """Have the person choose a first model."""
        self._put(_CHOOSE, _HOW_TO_CHOOSE)
        self.query_one("#progress").display = False
        self.mount(FirstModels(), before="#hint")

    def offer_pairs(self, rows: Sequence[Row]) -> None:
        """Pairs to choose from as well."""
        for models in self.query(FirstModels):
            models.offer(rows)

    def focus_offer(self) -> None:
        """Go to the choice."""
        for models in self.query(FirstModels):
            models.focus()

    def show_pull(self, download: Download | None, sentence: str = "") -> None:
        """The first model is on its way; or it is not any more, and `sentence` says why."""
        for models in self.query(FirstModels):
            models.display = download is None
        if download is None:
            self._put(f"{sentence} {_CHOOSE}".strip(), _HOW_TO_CHOOSE)
            self.query_one("#progress").display = False
            return
        words = progress_words(download) if download.total else download.state.value
        self._put(download.note or f"downloading {download.name}  {words}", _HOW_TO_STOP)
        self._show_bar(download.share)

    def end_offer(self) -> None:
        """There is a model."""
        self.query(FirstModels).remove()

    def _show_bar(self, share: float) -> None:
        self.remove_class("-failed")
        bar = self.query_one("#progress", ProgressBar)
        bar.display = True
        bar.update(progress=share)

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
    share = share_of(event.done, event.total, of_nothing=0.0)
    return f"{event.phase} the starter model {event.done / 1e6:,.0f} / {event.total / 1e6:,.0f} MB", share
