"""The app of a long session under the hands of a driver: keys, waiting, and following an answer to its end."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from long_session_known import Heard, Known, Plan, Said
from textual.pilot import Pilot

from localspec.chat_start import wanted
from localspec.logs import LOG_FILE, log_to_file
from localspec.settings import Settings, find_folders
from localspec.tui.app import ChatApp
from localspec.tui.backend import ProcessBackend, process_loader
from localspec.tui.messages import Answered, Event, Failed, Reading, Stepped
from localspec.tui.screens.chat import ChatScreen
from localspec.tui.widgets.prompt import Prompt

WORDS = (
    *("river", "stone", "lamp", "paper", "clock", "bread", "yellow", "window", "seven", "quiet"),
    *("(x)", "[y]", "`code`", "**bold**", "ab", "ä", "€"),
)
_PATIENCE = 60.0
"""Seconds; only a session that hangs needs them."""
_POLL_SECONDS = 0.005
_STOPPED, _LEFT = 0.15, 0.05
"""Shares of the answers."""


class Driven:
    """One run of the app, and what it is known to hold."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan, self.folder = plan, folder
        self.random = random.Random(plan.seed)
        self.chats = [Known()]
        self.now = self.chats[0]
        """The chat that is open."""
        self.last = Heard()
        """The last answer."""
        self.counts: Counter[str] = Counter()
        """What has been done."""
        self._heard: dict[int, Heard] = {}
        self._leaf_before: Said | None = None
        settings = Settings(
            model=plan.target, draft=plan.draft, ctx=plan.context, max_tokens=plan.most, temp=0.8, threads=1
        )
        folders = find_folders()
        log = folders.logs / LOG_FILE
        log_to_file(log.parent, "localspec.tui", "localspec.llama")
        asked = wanted(settings, folders)
        self.app = ChatApp(process_loader(asked, log), folders.data, asked.cache, start=settings)
        self.pilot: Pilot[None]
        drain = self.app.worker.drain
        self.app.worker.drain = lambda: self._listen(drain())  # type: ignore[method-assign]

    def words(self, count: int) -> str:
        """So many."""
        return " ".join(self.random.choices(WORDS, k=count))

    # Looking and waiting.

    @property
    def screen(self) -> ChatScreen:
        """The chat's own."""
        screen = self.app.screen_stack[0]
        assert isinstance(screen, ChatScreen)
        return screen

    @property
    def prompt(self) -> Prompt:
        """Where is written."""
        return self.screen._prompt

    @property
    def backend(self) -> ProcessBackend:
        """The engine in its own process."""
        assert isinstance(self.app.worker._backend, ProcessBackend)
        return self.app.worker._backend

    async def until(self, holds: Callable[[], object], what: str) -> None:
        """Wait for it."""
        limit = time.monotonic() + _PATIENCE
        while not holds():
            if self.app._exception:
                raise self.app._exception
            if time.monotonic() > limit:
                raise AssertionError(f"this never came about: {what}; {self.counts}; {self._where()}")
            await self.pilot.pause(_POLL_SECONDS)

    async def press(self, *keys: str) -> None:
        """As a person does."""
        await self.pilot.press(*keys)

    async def to_prompt(self) -> None:
        """No message selected, nothing written."""
        if self.app.focused is not self.prompt:
            await self.press("escape")
        await self.in_front()
        self.prompt.focus()
        await self.until(lambda: self.app.focused is self.prompt, "the prompt has the focus")
        self.prompt.put("")

    async def in_front(self) -> None:
        """Wait for the chat."""
        await self.until(lambda: self.app.screen is self.screen, "the chat is in front")

    async def leave(self) -> None:
        """To an empty chat, whatever goes on in this one."""
        left = self.now
        left.id = self.screen._chat.id if left.first else left.id
        thread = self.screen._chat.thread
        await self.press("ctrl+n")
        await self.until(lambda: self.screen._chat.thread is not thread, "a new chat")
        self.now = Known()
        self.chats.append(self.now)

    def _where(self) -> str:
        chat = self.screen._chat
        return (
            f"{self.app.screen!r} focus={self.app.focused!r} asked={self.screen._asked} writing={chat.writing}"
            f" prompt={self.prompt.text!r}"
        )

    # An answer.

    def mark(self) -> int:
        """Before an answer is asked for. Returns how many have been before."""
        self._leaf_before = self.now.leaf
        return self.app.worker._turns

    def undoing(self, *added: Said) -> Callable[[], None]:
        """How to take back what was added since the mark."""
        chat, leaf = self.now, self._leaf_before

        def undo() -> None:
            for said in reversed(added):
                chat.siblings(said).remove(said)
            chat.leaf = leaf

        return undo

    async def answered(self, answer: Said, undo: Callable[[], None], before: int, *, whole: bool = False) -> None:
        """Follow an answer to its end, or stop it on the way unless it is to be `whole`; `undo`: what is true where nothing
        came of it."""
        self.counts["turns"] += 1
        await self.until(lambda: self.app.worker._turns > before, "an answer is asked for")
        number = self.app.worker._turns
        how = 1.0 if whole else self.random.random()
        if how < _STOPPED:
            self.counts["stops"] += 1
            await self._some_way(number)
            await self.press("escape")
        elif how < _STOPPED + _LEFT and not self.plan.one_chat:
            self.counts["left"] += 1
            await self._some_way(number)
            await self.leave()
        await self.until(lambda: not self.app.worker._under_way(), "the engine is done")
        await self.until(lambda: self.screen._chat.writing is None and not self.screen._asked, "the answer is over")
        heard = self.last = self._heard.pop(number, Heard())
        assert not heard.failed, f"an answer failed: {heard.failed}"
        self._count(heard)
        answer.text += heard.text
        answer.ended = heard.ended
        if not heard.text and not heard.ended:
            self.counts["taken back"] += 1
            undo()
        if self.screen._chat.id is not None and self.now.first and self.now.id is None:
            self.now.id = self.screen._chat.id

    def _count(self, heard: Heard) -> None:
        self.counts["tokens"] += heard.tokens
        self.counts["steps"] += heard.steps
        if self.backend.left_out:
            self.counts["overflows"] += 1

    async def _some_way(self, number: int) -> None:
        steps = self.random.choice((0, 0, 1, 3, 10, 30))
        await self.until(
            lambda: (self._heard.get(number) or Heard()).steps >= steps or not self.screen._asked, "it goes on"
        )

    def _listen(self, events: list[Event]) -> list[Event]:
        """What reaches the screen."""
        asked = self.screen._asked
        for event in events:
            if asked is None or getattr(event, "turn", None) != asked.number:
                continue
            heard = self._heard.setdefault(asked.number, Heard())
            match event:
                case Reading(total=total):
                    heard.prompt = total
                case Stepped(step=step, context_used=used):
                    heard.text += step.text
                    heard.tokens += len(step.tokens)
                    heard.steps += bool(step.width)
                    heard.rows += step.width
                    heard.stream = max(heard.stream, used)
                    heard.passes_ms += step.verify_ms + step.draft_ms
                    heard.host_ms += step.host_ms
                case Answered(finish=finish):
                    heard.ended = finish is not None and finish.value == "stop"
                case Failed(sentence=sentence):
                    heard.failed = sentence
        return events
