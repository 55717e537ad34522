"""Rewriting a text: an instruction in, the streamed result out, and then what has changed, to be taken or left."""

from __future__ import annotations

from typing import Any

from textual import events, on
from textual.binding import Binding
from textual.content import Content

from localspec.chat.rewrite_events import Reading, Wrote
from localspec.engine.step import Finish
from localspec.tui.blocks import bar
from localspec.tui.figures import Figures, in_words
from localspec.tui.literal import literal
from localspec.tui.pace import Pace
from localspec.tui.review import Review
from localspec.tui.rewriting import RewriteRun, Written
from localspec.tui.screens.help import HelpScreen
from localspec.tui.screens.rewrite_base import ResultPane, RewriteBase
from localspec.tui.screens.rewrite_review import ReviewActions
from localspec.tui.widgets.instruction import Instruction
from localspec.tui.widgets.text_pane import Marked

__all__ = ["ResultPane", "RewriteBase", "RewriteScreen"]

_TICK_SECONDS = 0.1
"""An eye does not see more, and drawing takes time from the model."""
_SAVE_SECONDS = 1.0
_BAR_CELLS = 12


class RewriteScreen(ReviewActions):
    """Closes with esc. One rewriting at a time, on the chat's own engine."""

    BINDINGS = [
        Binding("escape", "stop_or_leave", "Stop, or leave", id="rewrite.leave", show=False),
        Binding("ctrl+c", "stop_or_leave", "Stop, or leave", id="rewrite.stop", priority=True, show=False),
        Binding("ctrl+r", "restart", "Start the engine again", id="rewrite.restart", priority=True, show=False),
        Binding("v,f6", "other_text", "The other text", id="rewrite.other_text", show=False),
        Binding("f1", "help", "Help", id="rewrite.help", priority=True, show=False),
        Binding("f2", "speculation", "Figures of speculation", id="rewrite.speculation", priority=True, show=False),
    ]
    AUTO_FOCUS = "Instruction"

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._run: RewriteRun | None = None
        self._written = Written("")
        self._run_figures = Figures()
        self._saved = {}
        self._is_warned = False
        """That leaving would lose what is not saved."""
        self._pace = Pace()

    async def on_mount(self) -> None:
        """Begin at once, where that was asked for."""
        self.set_interval(_TICK_SECONDS, self._tick)
        self.set_interval(_SAVE_SECONDS, self._save_again)
        if self._begin_with:
            self._instruction.put(self._begin_with)
            self._begin(self._begin_with)
        self.show_keys()

    def on_unmount(self) -> None:
        """The app closes, or the screen does: what has been written is kept."""
        self.save()

    def save(self) -> None:
        """Keep what has been written."""
        run, self._run = self._run, None
        if run:
            self._take_events(run)
            self._grow()
            self._history.finish(self._written.finish or Finish.INTERRUPTED)
        self._history.save()

    def _save_again(self) -> None:
        self._history.save()
        self.say_trouble()

    def _grow(self) -> None:
        written = self._written
        self._history.grow(written.whole, written.state, written.done)

    @property
    def is_writing(self) -> bool:
        """Whether a rewriting is under way."""
        return self._run is not None

    # To a rewriting and back.

    @on(Instruction.Given)
    def _take_instruction(self, event: Instruction.Given) -> None:
        if event.problem:
            self.say(event.problem)
        elif not event.instruction:
            self.say("Say what is to become of the text; down lists what is often said.")
        elif not self.must_wait():
            self._begin(event.instruction)

    def _begin(self, instruction: str) -> None:
        if why_not := self._given.why_not():
            self.say(why_not)
            return
        self._history.begin(instruction)
        self._write(instruction, Written(self._history.source))

    def action_go_on(self) -> None:
        """Write on in the shown version, where that was stopped."""
        current = self._history.current
        if self.must_wait():
            return
        if current is None or current.state is None:
            self.say("Nothing is left to be written of this version." if current else "There is no version yet.")
        elif why_not := self._given.why_not():
            self.say(why_not)
        else:
            self._history.go_on()
            written = Written.before(current.source, current.result, current.state, current.done)
            self._write(current.instruction, written)

    def _write(self, instruction: str, written: Written) -> None:
        """Have the shown version written, or more of it."""
        self._run = RewriteRun(written.source, instruction, self._given.options(), written.state)
        self._written, self._run_figures = written, Figures()
        self._unsay()
        self._speculation.begin()
        self._review = Review("", (), ())
        self._show_source()
        self._result.show(written.text)
        self._result.border_title = Content(f"version {self._history.at}: {literal(instruction)[:60]}")
        self._result.border_subtitle = ""
        self._result.follows = True
        self.set_class(False, "-source")
        self._result.focus()
        self._given.worker.do(self._run.work)
        self.show_keys()
        self._show_progress()

    def _tick(self) -> None:
        run = self._run
        if run is None or not (self._pace.due() or run.work.ended.is_set()):
            return
        self._take_events(run)
        written = self._written
        if written.over:
            self._end()
        else:
            if self._history.is_due and written.text:
                self._grow()
            self._show_progress()
        self._speculation.refresh_view()

    def _take_events(self, run: RewriteRun) -> None:
        """What has happened since the last time: the result grows, and the place in the source moves on."""
        new: list[str] = []
        anew = False
        for what, at in run.drain():
            added = self._written.take(what)
            anew = anew or added is None
            new.append(added or "")
            if isinstance(what, Reading):
                self._run_figures.begin(at)
            elif isinstance(what, Wrote):
                self._run_figures.add(what.step, at)
                self._speculation.add(what.step, at)
        if not self.is_attached:
            return
        if anew:
            self._result.show(self._written.text)
        elif text := "".join(new):
            self._result.append(text)
        if anew or new:
            self._show_place()

    def _show_place(self) -> None:
        """How far the source is rewritten."""
        at = min(self._written.position, max(0, len(self._source.text) - 1))
        end = at + 1
        while end < len(self._source.text) and self._source.text[end].isalnum():
            end += 1
        self._source.mark([Marked(0, at, "done"), Marked(at, end, "place")] if at else [Marked(at, end, "place")])
        self._source.show_place(at, calm=True)

    def _show_progress(self) -> None:
        written, run = self._written, self._run
        assert run is not None
        share = written.position / max(1, len(written.source))
        words = [f"{bar(share, _BAR_CELLS):<{_BAR_CELLS}}▏{100 * share:3.0f} %"]
        if written.parts > 1:
            words.append(f"part {min(written.part + 1, written.parts)} of {written.parts}")
        if run.work.stop.asked:
            words.append("stopping")
        elif written.reading:
            words.append(f"reading {written.reading.done:,} / {written.reading.total:,}")
        elif not self._run_figures.totals.steps:
            words.append("waiting for the model")
        else:
            words += in_words(self._run_figures, running=True)
        self._show_figures("   ".join(words))

    def _end(self) -> None:
        """The result is complete, was stopped, or broke off: on to what has changed."""
        written, self._run = self._written, None
        self._speculation.end()
        self._result.follows = False
        finish = written.finish or (None if written.text else Finish.INTERRUPTED)
        self._grow()
        self._history.finish(finish)
        failure = written.failures[-1] if written.failures else ""
        if finish is Finish.STOP and (text := written.with_beginnings) is not None:
            self._history.add_beginnings(text)
            failure = f"{failure.removesuffix('.')}; version {len(self._history.versions)} has more."
        figures = in_words(self._run_figures, running=False) if self._run_figures.totals.steps else []
        self._measured = "   ".join(filter(None, [failure, written.refused, *figures]))
        if finish is Finish.STOP or written.text:
            self._instruction.put("")
        self.show_version(review_it=True)
        self.show_keys()

    # Keys.

    @on(Instruction.Left)
    def _leave_line(self, event: Instruction.Left) -> None:
        if event.closes:
            self.action_stop_or_leave()
        elif self.has_class("-source") and self.has_class("-narrow"):
            self._source.focus()
        else:
            self._result.focus()

    def action_stop_or_leave(self) -> None:
        """Stop the rewriting, which keeps what is written; else leave."""
        if self._run:
            self._given.worker.stop()
            self._show_progress()
        elif self.focused is self._instruction and self._history.current and self._instruction.value:
            self._result.focus()
        elif self._history.save() or self._is_warned:
            self.dismiss()
        else:
            self._is_warned = True
            self.say("Not everything is saved yet; s saves the text to a file, and esc once more leaves.")

    def action_refine(self) -> None:
        """Say what else is to become of the text with what is accepted."""
        if not self.must_wait():
            self._instruction.focus()

    def action_restart(self) -> None:
        """Start an engine again that has died."""
        self._given.restart()

    def action_speculation(self) -> None:
        """Show or hide the figures of speculation."""
        self._speculation.display = not self._speculation.display
        self._speculation.refresh_view()

    def action_help(self) -> None:
        """Keys and figures."""
        self.app.push_screen(HelpScreen())

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Other keys."""
        self.show_keys()
