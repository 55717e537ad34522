"""The chat screen's heart: what is on it, and how an answer gets there from the engine's thread."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

from textual import on
from textual.app import ComposeResult
from textual.containers import Container
from textual.content import Content
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Tooltip

from localspec.chat.answer_options import AnswerOptions
from localspec.chat.messages import Document
from localspec.chat.thread import Entry
from localspec.engine.step import Finish, Step
from localspec.settings import Settings
from localspec.tui import unsent
from localspec.tui.asked import Asked
from localspec.tui.endings import ending
from localspec.tui.engine_worker import EngineWorker
from localspec.tui.figures import in_words
from localspec.tui.literal import literal
from localspec.tui.messages import (
    Answered,
    EngineGone,
    Failed,
    Fetching,
    Loaded,
    LoadFailed,
    Loading,
    Reading,
    Stepped,
    TakenBack,
)
from localspec.tui.open_chat import OpenChat, Writing
from localspec.tui.pace import Pace
from localspec.tui.widgets.answer import Answer
from localspec.tui.widgets.prompt import Prompt
from localspec.tui.widgets.prompt_box import PromptBox
from localspec.tui.widgets.speculation import Speculation
from localspec.tui.widgets.status import HELP_HINT, STOP_HINT, Status
from localspec.tui.widgets.transcript import Transcript
from localspec.tui.widgets.turn import Notice
from localspec.tui.widgets.welcome import progress_of

_TICK_SECONDS = 0.066
"""Text arrives this often: Markdown keeps up with twenty updates a second, and an eye does not see more."""
_IDLE_SECONDS = 1.0
_REMEMBERED_ANSWERS = 20
"""Of so many it is known who drafted what."""


class Answering(Screen[None]):
    """Messages, the prompt, the status. The only writer of its widgets; the engine's thread sends events."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]

    def __init__(
        self,
        worker: EngineWorker,
        chat: OpenChat,
        start: Settings,
        history: Path | None = None,
        trouble: Sequence[str] = (),
    ) -> None:
        """`start`: what the program was started with; `history`: the file that keeps what was sent; `trouble`: sentences
        to begin with."""
        super().__init__()
        self._start = start
        self._worker, self._chat, self._trouble = worker, chat, trouble
        self._loaded: Loaded | None = None
        self._has_failed = self._is_gone = False
        self._loading = "starting"
        self._asked: Asked | None = None
        self._last_figures = ""
        self._steps: dict[int, list[Step]] = {}
        """Who drafted what in the answers since the start of the app."""
        self._transcript, self._prompt, self._status = Transcript(), Prompt(history), Status()
        self._frame, self._speculation = PromptBox(self._prompt), Speculation()
        self._data = history.parent if history else None
        self._ticks: Timer
        self._ticking = asyncio.Lock()
        self._turning = asyncio.Lock()
        """Held while an answer or another chat comes onto the screen: keys may ask for both at once."""
        self._pace = Pace()

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        with Container(id="conversation"):
            yield self._transcript
            yield self._speculation
        yield self._frame
        yield self._status

    async def on_mount(self) -> None:
        """Begin to load, behind the screen."""
        # Textual takes the text of a Markdown table's cell for markup when it shows it in a tooltip.
        await self.query_children(Tooltip).remove()
        self._speculation.display = False
        self._chat.on_trouble = self._say_unsaved
        self._worker.start()
        self._ticks = self.set_interval(_TICK_SECONDS, self._tick_in_time)
        # An engine may die while nothing is asked of it.
        self.set_interval(_IDLE_SECONDS, self._tick)
        if self._chat.thread.leaf is not None:
            await self.show_chat()
        for sentence in self._trouble:
            await self._transcript.add(Notice(sentence, error=True))
        if self._data:
            self._prompt.give_back(*unsent.take(self._data))
        self.show_settings()
        self._show_status()

    # What is shown.

    async def show_chat(self) -> None:
        """The chat has become another one."""
        self._steps.clear()
        self._last_figures = ""
        self._speculation.load(entry.figures for entry in self._chat.thread.entries.values())
        self.show_settings()
        await self._transcript.clear()
        await self.show_branch()
        self._transcript.anchor()
        if self._loaded:
            self._status.show_context(0, self._loaded.context_length)
        self._show_status()

    async def show_branch(self, choose: int | None = None) -> None:
        """Another branch of the chat may be shown than before. `choose`: the message to select in it."""
        writing = self._chat.writing.entry if self._chat.writing else None
        await self._transcript.show(self._chat.thread.path(), self._chat.branches, writing, choose)
        self.show_title()

    def show_title(self) -> None:
        """What the chat is called, and whether it is kept."""
        words = literal(" ".join(self._chat.title.split()))
        if self._chat.troubled:
            words = f"{words}   not saved" if words else "not saved"
        self._frame.border_subtitle = Content(words)

    def say(self, sentence: str) -> None:
        """A sentence for the person, for a few seconds."""
        self._status.say(sentence)

    @on(Prompt.Said)
    def _say_for_prompt(self, event: Prompt.Said) -> None:
        self.say(event.sentence)

    def _say_unsaved(self, sentence: str) -> None:
        self.run_worker(self._transcript.add(Notice(sentence, error=True)), group="notice")

    # To an answer and back.

    def why_not_now(self) -> str:
        """Why no answer can be asked for; empty when one can."""
        if self._has_failed:
            return "There is no model to ask; ctrl+q quits."
        if self._is_gone:
            return "The engine has stopped; ctrl+r starts it again."
        if self._chat.writing and not self._loaded:
            return "One message is waiting for the model already; yours stays here."
        return "The answer is still being written; your text stays here." if self._chat.writing else ""

    async def begin_answer(self, entry: Entry) -> None:
        """The one way to an answer. `entry`: what the chat has begun to write, unless it is left before its turn."""
        writing = self._chat.writing
        async with self._turning:
            if self._chat.writing is writing:
                await self._begin_answer(entry)

    async def _begin_answer(self, entry: Entry) -> None:
        self._status.unsay()
        await self.show_branch()
        self._transcript.anchor()
        answer = self._transcript.answer(entry.id)
        if answer is None or self._chat.writing is None:
            raise AssertionError("an answer that is not on the screen")
        messages, goes_on = self._chat.messages(), self._chat.writing.goes_on
        number = self._worker.answer(messages, goes_on, self.answer_options(), self._chat.id)
        self._asked = Asked(number, entry.id, answer)
        if not goes_on:
            self._steps[entry.id] = []
        for old in list(self._steps)[:-_REMEMBERED_ANSWERS]:
            del self._steps[old]
        self._speculation.begin()
        self._ticks.resume()
        self._show_status()

    def restart_engine(self) -> None:
        """Load again what was loaded before; the chat stays."""
        self._is_gone, self._loading = False, "starting"
        self._worker.reload()
        self._ticks.resume()
        self._show_status()

    def answer_options(self) -> AnswerOptions | None:
        """What this chat sets for itself."""
        return None

    def show_settings(self) -> None:
        """What this chat sets for itself may have changed."""

    async def stop_answer(self) -> None:
        """Stop the answer; a message that is not being answered yet goes back into the prompt."""
        if not self._asked:
            return
        self._worker.stop()
        self._asked.stopping = True
        if not self._loaded:
            await self._take_back()
        self._show_status()

    async def leave_chat(self) -> None:
        """Before another chat is shown: the answer under way ends here, and keeps what has been written."""
        await self._tick()
        if self._asked:
            self._worker.stop()
            if self._chat.writing and self._chat.writing.begun:
                self._end(self._asked, Answered(self._asked.number, Finish.INTERRUPTED))
        # Another message may be sent while one goes back.
        while self._chat.writing:
            await self._take_back()

    def not_sent(self) -> tuple[str, tuple[Document, ...]]:
        """What the person has written and not sent."""
        return self._prompt.text, self._prompt.documents

    def on_unmount(self) -> None:
        """The app closes: what has been written is saved, and so is a message that is not answered or not sent yet."""
        if self._data:
            unsent.keep(self._data, *self.not_sent())
        asked, self._asked = self._asked, None
        if asked:
            events = [event for event in self._worker.drain() if isinstance(event, Stepped)]
            self._chat.grow(
                "".join(event.step.text for event in events if event.turn == asked.number), time.monotonic()
            )
            if self._chat.writing and self._chat.writing.begun:
                self._chat.finish(Finish.INTERRUPTED, self._speculation.figures())
        # What could not be saved before may be now.
        self._chat.save()

    async def _take_back(self) -> None:
        """Nothing was written: all is as before, and the person's words go back into the prompt."""
        self._asked = None
        self._speculation.end()
        taken = self._chat.take_back()
        await self.show_branch()
        if taken:
            writing, entry = taken
            if entry:
                await self.give_back(writing, entry.text, entry.documents)

    async def give_back(self, writing: Writing, words: str, documents: tuple[Document, ...]) -> None:
        """What was not answered goes back to where it came from."""
        self._prompt.give_back(words, documents)

    # What the engine's thread reports.

    async def _tick_in_time(self) -> None:
        if self._asked is None or self._pace.due():
            await self._tick()

    async def _tick(self) -> None:
        # Timers have tasks of their own: two of them must not mix up the order of what was written.
        async with self._ticking:
            await self._take_events()
        self._speculation.refresh_view()
        self._show_status()
        if not self._asked and (self._loaded or self._has_failed):
            self._ticks.pause()

    async def _take_events(self) -> None:
        text: list[str] = []
        for event in self._worker.drain():
            match event:
                case Fetching() | Loading() | Loaded() | LoadFailed():
                    await self._on_load_event(event)
                case EngineGone(sentence):
                    self._is_gone, self._loaded = True, None
                    await self._transcript.add(Notice(sentence, error=True))
                case _ if self._asked is None or event.turn != self._asked.number:
                    pass
                case Reading():
                    await self._on_reading(self._asked, event)
                case Stepped():
                    self._on_step(self._asked, event, text)
                case Answered() | TakenBack() | Failed():
                    await self._on_end(self._asked, event, text)
        if self._asked and text:
            await self._write(self._asked, text)

    async def _on_reading(self, asked: Asked, event: Reading) -> None:
        asked.reading = (event.done, event.total) if event.done < event.total else None
        asked.figures.begin(event.at)
        path = self._chat.thread.path()
        await self._transcript.mark_forgotten(path[event.left_out].id if 0 < event.left_out < len(path) else None)

    async def _write(self, asked: Asked, text: list[str]) -> None:
        new = "".join(text)
        text.clear()
        self._chat.grow(new, time.monotonic())
        await asked.answer.write(new)

    async def _on_load_event(self, event: Fetching | Loading | Loaded | LoadFailed) -> None:
        match event:
            case Fetching() | Loading():
                self._loading, share = progress_of(event)
                self._transcript.welcome.show(self._loading, share)
            case Loaded(target, draft, context_length):
                self._loaded, self._has_failed = event, False
                self._chat.name_model(target)
                self._transcript.welcome.show_ready(target)
                self._status.show_models(target, draft)
                self._status.show_context(0, context_length)
                self._prompt.chips.show_room(context_length)
            case LoadFailed(sentence):
                if self._chat.model:
                    # It was there before, and may be again.
                    self._is_gone = True
                    await self._transcript.add(Notice(sentence, error=True))
                else:
                    self._has_failed = True
                    self._transcript.welcome.show_failure(sentence)
                if self._asked:
                    await self._take_back()

    def _on_step(self, asked: Asked, event: Stepped, text: list[str]) -> None:
        asked.reading = None
        asked.figures.add(event.step, event.at)
        self._speculation.add(event.step, event.at)
        if asked.entry in self._steps:
            self._steps[asked.entry].append(event.step)
            asked.answer.add_step(event.step)
        text.append(event.step.text)
        if self._loaded and event.step.width:
            self._status.show_context(event.context_used, self._loaded.context_length)

    async def _on_end(self, asked: Asked, event: Answered | TakenBack | Failed, text: list[str]) -> None:
        if isinstance(event, TakenBack) or (isinstance(event, Failed) and not event.begun):
            await self._take_back()
        else:
            await self._write(asked, text)
            self._end(asked, event)
        if isinstance(event, Failed):
            await self._transcript.add(Notice(event.sentence, error=True))

    def _end(self, asked: Asked, event: Answered | Failed) -> None:
        self._last_figures = "   ".join(in_words(asked.figures, running=False))
        self._asked = None
        self._speculation.end()
        finish = event.finish if isinstance(event, Answered) else None
        self._chat.finish(finish, self._speculation.figures())
        self.show_title()
        # Not awaited: a long answer takes a while to be laid out, and keys come first.
        note = ending(self._chat.thread.entries[asked.entry])
        self.run_worker(self._finish(asked.answer, note), group="finish")

    async def _finish(self, answer: Answer, note: str) -> None:
        try:
            await answer.finish(note)
        except Exception:
            # A new chat may have taken the answer off the screen meanwhile.
            if answer.is_attached:
                raise

    def _show_status(self) -> None:
        if self._has_failed:
            self._status.show_activity("no model", "ctrl+q quit")
        elif self._is_gone:
            self._status.show_activity("the engine has stopped", "ctrl+r start it again")
        elif not self._loaded:
            waiting = "your message waits: " if self._asked else ""
            self._status.show_activity(waiting + self._loading, STOP_HINT if self._asked else HELP_HINT)
        elif self._asked:
            self._status.show_activity(self._asked.words, STOP_HINT)
        else:
            self._status.show_activity(*self.idle_status())

    def idle_status(self) -> tuple[str, str]:
        """What stands in the status while nothing goes on, and the key to press."""
        return self._last_figures, HELP_HINT
