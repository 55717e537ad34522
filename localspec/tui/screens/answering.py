"""The chat screen's heart: what is on it, and how an answer gets there from the engine's thread."""

from __future__ import annotations

import logging
import time

from textual.widget import MountError
from textual.widgets import Tooltip

from localspec.chat.answer_options import AnswerOptions
from localspec.chat.messages import Document
from localspec.chat.thread import Entry
from localspec.engine.step import Finish
from localspec.tui.asked import Asked
from localspec.tui.endings import ending
from localspec.tui.figures import in_words
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
from localspec.tui.open_chat import Writing
from localspec.tui.screens.conversation import Conversation
from localspec.tui.unsent import Draft
from localspec.tui.widgets.answer import Answer
from localspec.tui.widgets.turn import Notice
from localspec.tui.widgets.welcome import progress_of

_TICK_SECONDS = 0.066
"""Text arrives this often: Markdown keeps up with twenty updates a second, and an eye does not see more."""
_IDLE_SECONDS = 1.0
_REMEMBERED_ANSWERS = 20
"""Of so many it is known who drafted what."""

_log = logging.getLogger("localspec.tui")


class Answering(Conversation):
    """The only writer of its widgets; the engine's thread sends events."""

    _is_given_up = False
    """The person has left the chat in the knowledge that it is not saved."""
    _is_told = False
    """That words which are not sent cannot be kept."""

    async def on_mount(self) -> None:
        """Begin to load, behind the screen."""
        # Textual takes the text of a Markdown table's cell for markup when it shows it in a tooltip.
        await self.query_children(Tooltip).remove()
        self._speculation.display = False
        self._chat.on_trouble, self._chat.on_saved = self._say_unsaved, self._say_saved
        self._worker.start()
        self._ticks = self.set_interval(_TICK_SECONDS, self._tick_in_time)
        # An engine may die while nothing is asked of it.
        self.set_interval(_IDLE_SECONDS, self._tick)
        self.set_interval(_IDLE_SECONDS, self.keep_draft)
        self.set_interval(_IDLE_SECONDS, self._chat.retry)
        if self._chat.thread.leaf is not None:
            await self.show_chat()
        for sentence in self._trouble:
            await self._transcript.add(Notice(sentence, error=True))
        if self._unsent:
            self.take_draft(self._unsent.take())
            for file in self._unsent.damaged:
                await self._transcript.add(
                    Notice(f"What was typed and not sent before cannot be read; it is kept in {file}.", error=True)
                )
        self.show_settings()
        self._show_status()

    # To an answer and back.

    def why_not_now(self) -> str:
        """Why no answer can be asked for; empty when one can."""
        if self._has_failed:
            return "There is no model to ask: f7 chooses one."
        if self._is_gone:
            return "The engine has stopped; ctrl+r starts it again."
        if self._chat.writing and not self._loaded:
            return "One message is waiting for the model already; yours stays here."
        return "The answer is still being written; your text stays here." if self._chat.writing else ""

    async def begin_answer(self, entry: Entry) -> None:
        """The one way to an answer. `entry`: what the chat has begun to write, unless it is left before its turn."""
        writing = self._chat.writing
        # What was sent is in the chat now: after a crash it is not to be in the prompt as well.
        self.keep_draft()
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

    async def follow_chat(self) -> None:
        """Another chat is shown, which may have chosen other models."""

    def keep_models(self) -> None:
        """A new chat has begun, which goes on with the models that are loaded."""

    def models_loaded(self, event: Loaded) -> None:
        """Other models than before may answer now."""

    async def models_refused(self, sentence: str) -> bool:
        """What was to be loaded cannot be. Whether something else is loaded instead."""
        return False

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

    def draft(self) -> Draft:
        """All that would be lost otherwise."""
        return Draft(*self.not_sent())

    def take_draft(self, draft: Draft) -> None:
        """What was not sent when the app was left, or crashed."""
        self._prompt.give_back(draft.text, draft.documents)

    def keep_draft(self) -> None:
        """Write down what has been written: a crash costs a second of it."""
        if self._unsent and not self._unsent.keep(self._at_risk()) and not self._is_told and self.is_mounted:
            self._is_told = True
            self.say("What you type cannot be written down, so a crash would lose it; free some space on the disk.")

    def _at_risk(self) -> Draft:
        """What a crash would lose: the draft, and before it what was sent and cannot be saved."""
        draft = self.draft()
        for entry in () if self._is_given_up else reversed(self._chat.unsaved_questions()):
            draft.text = "\n".join(text for text in (entry.text, draft.text) if text.strip())
            draft.documents = (*(each for each in entry.documents if each not in draft.documents), *draft.documents)
        return draft

    def not_sent(self) -> tuple[str, tuple[Document, ...]]:
        """What the person has written and not sent."""
        return self._prompt.text, self._prompt.documents

    def on_unmount(self) -> None:
        """The app closes: what has been written is saved, and so is a message that is not answered or not sent yet."""
        # There is no screen to say anything on.
        self._chat.on_trouble, self._chat.on_saved = lambda sentence: None, lambda: None
        self.keep_draft()
        asked, self._asked = self._asked, None
        if asked:
            events = [event for event in self._worker.drain() if isinstance(event, Stepped)]
            self._chat.grow(
                "".join(event.step.text for event in events if event.turn == asked.number), time.monotonic()
            )
            if self._chat.writing and self._chat.writing.begun:
                self._chat.finish(Finish.INTERRUPTED, self._speculation.figures())
        # What could not be saved before may be now.
        self._chat.save_at_last()
        if self._unsent:
            self._unsent.keep(self._at_risk())
            self._unsent.close()

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
        asked = self._asked
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
        if asked and asked.context_used and self._loaded:
            self._status.show_context(asked.context_used, self._loaded.context_length)

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
                self.models_loaded(event)
                self.show_settings()
                self._chat.name_model(target)
                self._transcript.welcome.show_ready(target, event.note)
                self._status.show_models(target, draft)
                self._status.show_context(0, context_length)
                self._prompt.chips.show_room(context_length)
            case LoadFailed(sentence):
                if await self.models_refused(sentence):
                    pass
                elif self._chat.model or event.died:
                    # It was there before, or nearly, and may be again.
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
        if event.step.width:
            asked.context_used = event.context_used

    async def _on_end(self, asked: Asked, event: Answered | TakenBack | Failed, text: list[str]) -> None:
        if isinstance(event, TakenBack) or (isinstance(event, Failed) and not event.begun):
            await self._take_back()
        else:
            await self._write(asked, text)
            self._end(asked, event)
        if isinstance(event, Failed) and not event.gone:
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
        except MountError:
            # The app is being left, which takes all off the screen, what is in the answer before the answer.
            _log.info("the app was left before the answer was laid out")
        except Exception:
            # A new chat may have taken the answer off the screen meanwhile.
            if answer.is_attached:
                raise
