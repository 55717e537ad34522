"""What is on the screen while a text is rewritten: the source and the result beside each other, the instruction below."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.content import Content
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Static

from localspec.chat.answer_options import AnswerOptions
from localspec.chat.attach import pasted_text
from localspec.chat.messages import Document
from localspec.chat.presets import Preset
from localspec.chat.store import Store
from localspec.tui.engine_worker import EngineWorker
from localspec.tui.literal import literal
from localspec.tui.review import Review, review
from localspec.tui.version_history import VersionHistory
from localspec.tui.widgets.instruction import Instruction, InstructionBox
from localspec.tui.widgets.speculation import Speculation
from localspec.tui.widgets.status import Status
from localspec.tui.widgets.text_pane import Marked, TextPane

_ASKING_KEYS = "enter begins   tab to the texts   esc leaves"
_WRITING_KEYS = "esc stops, and keeps what is written   v source   f2 figures"
_GO_ON_KEY = "c continues"
_GOES_ON = "Not written to its end, the rest is as it was: c goes on with it."
_REVIEW_KEYS = (
    "n p change  a accept  r reject  A R all  i refine  e edit  y copy  s save",
    "← → versions  v source  esc leaves",
)


@dataclass(frozen=True)
class RewriteContext:
    """What the screen needs of the chat it was opened from."""

    worker: EngineWorker
    store: Store | None
    options: Callable[[], AnswerOptions]
    """How it is answered."""
    why_not: Callable[[], str]
    """Why nothing can be asked for now; empty when something can."""
    restart: Callable[[], None]
    """Start the engine again, where it has died."""
    presets: Sequence[Preset] = field(default_factory=tuple)


class ResultPane(TextPane):
    """The result, or what it changes; the letters are keys here."""

    BINDINGS = [
        Binding("n,tab", "screen.change(1)", "Next change", id="rewrite.next", show=False),
        Binding("p,shift+tab", "screen.change(-1)", "Change before", id="rewrite.previous", show=False),
        Binding("a", "screen.decide(True)", "Accept the change", id="rewrite.accept", show=False),
        Binding("r", "screen.decide(False)", "Reject the change", id="rewrite.reject", show=False),
        Binding("space", "screen.turn", "Accept or reject the change", id="rewrite.toggle", show=False),
        Binding("A", "screen.decide_all(True)", "Accept all changes", id="rewrite.accept_all", show=False),
        Binding("R", "screen.decide_all(False)", "Reject all changes", id="rewrite.reject_all", show=False),
        Binding("e", "screen.edit", "Edit the text", id="rewrite.edit", show=False),
        Binding("y", "screen.copy", "Copy the text", id="rewrite.copy", show=False),
        Binding("s", "screen.save", "Save the text", id="rewrite.save", show=False),
        Binding("c", "screen.go_on", "Continue the writing", id="rewrite.continue", show=False),
        Binding("i", "screen.refine", "Refine it", id="rewrite.refine", show=False),
        Binding("left", "screen.version(-1)", "Version before", id="rewrite.version_before", show=False),
        Binding("right", "screen.version(1)", "Version after", id="rewrite.version_after", show=False),
    ]


class RewriteBase(Screen[None]):
    """Panes, figures and messages. What happens in it is in RewriteScreen, what is done with a version in ReviewActions."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]

    def __init__(self, context: RewriteContext, document: Document, instruction: str = "") -> None:
        """With an `instruction` it begins at once."""
        super().__init__()
        self._given, self._path, self._begin_with = context, document.path, instruction
        document = replace(document, text=pasted_text(document.text))
        self._trouble: list[str] = []
        self._history = VersionHistory(context.store, document, self._trouble.append)
        self._source, self._result = TextPane(id="rewrite-source"), ResultPane(id="rewrite-result")
        self._instruction = Instruction(context.presets)
        self._speculation = Speculation()
        self._figures, self._keys = Static(id="rewrite-figures"), Static(id="rewrite-keys")
        self._chosen = 0
        """The change that the cursor is on."""
        self._review = Review("", (), ())
        self._said: Timer | None = None
        self._measured = ""
        """What the last rewriting took."""

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        with Horizontal(id="rewrite-panes"):
            yield self._source
            yield self._result
        yield self._speculation
        yield self._figures
        yield InstructionBox(self._instruction)
        yield self._keys

    async def on_mount(self) -> None:
        """The newest version, where there is one."""
        self._speculation.add_class("-strip")
        self._speculation.display = False
        if self._history.goes_on:
            self._measured = _GOES_ON
        self.show_version(review_it=self._history.goes_on)

    # What is shown.

    @property
    def is_writing(self) -> bool:
        """Whether a rewriting is under way."""
        return False

    def must_wait(self) -> bool:
        """Whether what was asked for must wait for the end of the writing; says so then."""
        if self.is_writing:
            self.say("The text is still being written; esc stops it.")
        return self.is_writing

    @work(exclusive=True, group="version")
    async def show_version(self, *, review_it: bool = False) -> None:
        """The version that the history is at. With `review_it` the keys go to it."""
        history = self._history
        if history.current:
            self._show_figures("comparing the texts")
            await asyncio.to_thread(lambda: history.diff)
        if self.is_writing:
            return
        self._chosen = 0
        self._show_source()
        self._show_review()
        if review_it and history.versions:
            self._result.focus()
            self.set_class(False, "-source")
        elif not history.current and self.focused is not self._instruction:
            self._instruction.focus()
        self.show_keys()
        if self._review.places:
            self.call_after_refresh(self._show_chosen)
        self.say_trouble()

    def say_trouble(self) -> None:
        """What could not be saved, and why."""
        for sentence in self._trouble:
            self.say(sentence)
        self._trouble.clear()

    def _show_source(self) -> None:
        history = self._history
        name = " ".join(literal(history.document.name).split())
        of = history.current and history.source != history.document.text
        self._source.border_title = Content(f"{name}, as accepted before" if of else name)
        self._source.show(history.source)

    def _show_review(self) -> None:
        """The changes with their signs; only the marks, where they alone have changed."""
        history = self._history
        if history.current is None:
            self._review = Review("", (), ())
            self._result.border_title = "the document itself" if history.versions else "result"
            self._result.border_subtitle = "→ shows version 1" if history.versions else ""
            self._result.show(history.document.text if history.versions else "")
            self._show_idle()
            return
        accepted = history.accepted
        self._review = review(history.diff, accepted, self._chosen)
        if self._review.text == self._result.text:
            self._result.mark(self._review.marks)
        else:
            self._result.show(self._review.text, self._review.marks)
        self._result.border_title = Content(self._version_title())
        if accepted:
            state = "accepted" if accepted[self._chosen] else "rejected"
            words = f"change {self._chosen + 1:,} of {len(accepted):,}, {state}   {sum(accepted):,} accepted"
            hunk = history.diff.hunks[self._chosen]
            self._source.mark([Marked(hunk.at, max(hunk.at + len(hunk.old), hunk.at + 1), "place")])
        else:
            words = "nothing is changed"
        self._result.border_subtitle = Content(words)
        self._show_idle()

    def _show_chosen(self) -> None:
        """Bring the change under the cursor into sight, on both sides."""
        if self._review.places:
            self._result.show_place(self._review.places[self._chosen], calm=True)
            self._source.show_place(self._history.diff.hunks[self._chosen].at, calm=True)

    def _version_title(self) -> str:
        history = self._history
        current = history.current
        assert current is not None
        what = " ".join(literal(current.instruction).split()) or "by hand"
        ends = {
            "stop": "",
            "interrupted": ", stopped",
            "length": ", with the beginning of what failed",
        }
        end = ends.get(current.finish or "", ", broken off")
        return f"version {history.at} of {len(history.versions)}{end}: {what[:60]}"

    def _show_idle(self) -> None:
        if self.is_writing:
            return
        self._show_figures(self._measured)

    def _show_figures(self, words: str) -> None:
        if self._said is None:
            self._figures.update(Content(literal(words)))
        self._figures_words = words

    _figures_words = ""

    def show_keys(self) -> None:
        """What can be pressed now."""
        if self.is_writing:
            words = _WRITING_KEYS
        elif self.focused is self._instruction or not self._history.versions:
            words = _ASKING_KEYS
        else:
            changes, others = _REVIEW_KEYS
            others = f"{_GO_ON_KEY}  {others}" if self._history.goes_on else others
            words = (
                f"{changes}\n{others}" if self.has_class("-narrow") or self._history.goes_on else f"{changes}  {others}"
            )
        self._keys.update(Content(words))

    def say(self, sentence: str) -> None:
        """A sentence for the person, for a few seconds."""
        if self._said:
            self._said.stop()
        self._said = self.set_timer(Status.MESSAGE_SECONDS, self._unsay)
        self._figures.update(Content(literal(sentence)))
        self._figures.add_class("-message")

    def _unsay(self) -> None:
        if self._said:
            self._said.stop()
        self._said = None
        self._figures.remove_class("-message")
        self._figures.update(Content(literal(self._figures_words)))
