"""What is on the chat's screen."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from textual import on
from textual.app import ComposeResult
from textual.containers import Container
from textual.content import Content
from textual.screen import Screen
from textual.timer import Timer

from localspec.engine.step import Step
from localspec.settings import Settings
from localspec.tui.asked import Asked
from localspec.tui.engine_worker import EngineWorker
from localspec.tui.literal import literal
from localspec.tui.messages import Loaded
from localspec.tui.open_chat import OpenChat
from localspec.tui.pace import Pace
from localspec.tui.unsent import Unsent
from localspec.tui.widgets.prompt import Prompt
from localspec.tui.widgets.prompt_box import PromptBox
from localspec.tui.widgets.speculation import Speculation
from localspec.tui.widgets.status import HELP_HINT, KILL_HINT, STOP_HINT, Status
from localspec.tui.widgets.transcript import Transcript
from localspec.tui.widgets.turn import Notice


class _Conversation(Container):
    BLANK = True


class Conversation(Screen[None]):
    """Messages, the prompt, the status."""

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
        self._unsent = Unsent(history.parent) if history else None
        self._ticks: Timer
        self._ticking = asyncio.Lock()
        self._turning = asyncio.Lock()
        """Held while an answer or another chat comes onto the screen: keys may ask for both at once."""
        self._pace = Pace()

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        with _Conversation(id="conversation"):
            yield self._transcript
            yield self._speculation
        yield self._frame
        yield self._status

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
        self.show_title()

    def _say_saved(self) -> None:
        self.say("The chat is saved again.")
        self.show_title()

    def show_settings(self) -> None:
        """What this chat sets for itself may have changed."""

    def _show_status(self) -> None:
        if self._has_failed:
            self._status.show_activity("no model", "f7 models")
        elif self._is_gone:
            self._status.show_activity("the engine has stopped", "ctrl+r start it again")
        elif not self._loaded:
            waiting = "your message waits: " if self._asked else ""
            self._status.show_activity(waiting + self._loading, STOP_HINT if self._asked else HELP_HINT)
        elif self._asked:
            self._asked.hangs = self._worker.hangs
            self._status.show_activity(self._asked.words, KILL_HINT if self._asked.hangs else STOP_HINT)
        else:
            self._status.show_activity(*self.idle_status())

    def idle_status(self) -> tuple[str, str]:
        """What stands in the status while nothing goes on, and the key to press."""
        return self._last_figures, HELP_HINT
