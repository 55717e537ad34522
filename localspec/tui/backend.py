"""What the app talks to: a loaded pair. It knows no conversation: the app gives the messages each time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from localspec.chat.answer_options import AnswerOptions
from localspec.chat.messages import Message
from localspec.chat.service import (
    Answerer,
    ChatService,
    Fetched,
    LoadedShare,
    Pair,
    Prepare,
    Read,
    Report,
    Wanted,
    Wrote,
    pair_of,
)
from localspec.engine.errors import UserError
from localspec.engine.process import CannotStartError, Host
from localspec.engine.step import Step
from localspec.engine.stop import Stop
from localspec.measure.audit_file import last_audit

__all__ = [
    "AnswerOptions",
    "Backend",
    "EngineBackend",
    "Load",
    "LoadReport",
    "Prepare",
    "ProcessBackend",
    "PromptProgress",
    "Wanted",
    "engine_loader",
    "process_loader",
]

REMEDY = "your chat is untouched: press ctrl+r to start it again"
"""What to do when the engine has died, as the end of a sentence."""

_log = logging.getLogger("localspec.tui")

PromptProgress = Callable[[int, int], None]
"""Called with the prompt tokens read so far and their number."""


class LoadReport(Report, Protocol):
    """The same, and where a loaded engine says that it has died."""

    def gone(self, sentence: str) -> None:
        """The engine has died; called from any thread, whether something was asked of it or not."""


class Backend(Protocol):
    """One thread at a time, but for `kill`, `cost_curve` and `last_audit`."""

    @property
    def target(self) -> str:
        """Name of the target."""

    @property
    def draft(self) -> str | None:
        """Name of the draft model, None without one."""

    @property
    def context_length(self) -> int:
        """Tokens the conversation can have."""

    @property
    def sampling(self) -> Mapping[str, float]:
        """How an answer is sampled that asks for nothing of its own, by the names of settings."""

    @property
    def recommended(self) -> Collection[str]:
        """Those of them that are as the model's file recommends."""

    @property
    def note(self) -> str:
        """What was reduced so that it fits into the memory: a sentence, empty where nothing was."""

    @property
    def context_used(self) -> int:
        """Tokens of the conversation so far."""

    @property
    def left_out(self) -> int:
        """How many messages, the oldest ones, the last answer was written without, because the context is full. Known when
        the reading of the prompt begins."""

    def answer(
        self,
        messages: Sequence[Message],
        on_prompt: PromptProgress,
        *,
        goes_on: bool = False,
        options: AnswerOptions | None = None,
        chat: int | None = None,
        stop: Stop | None = None,
    ) -> Iterator[Step]:
        """Stream the answer to the last message. What the messages share with those before is not read again.

        `messages`: the system prompt may be the first one, else the one of the start is put there; an empty one is for none
        at all. `goes_on`: the last one is the assistant's, and the answer goes on right behind it. `chat`: its number in the
        store, so that what was read of it is kept over a restart. `stop`, whenever it is asked for, ends the answer; what
        has been written stays. Raises UserError.
        """

    def count(self, text: str) -> int:
        """The tokens of a text, without those of the template around it. Raises UserError."""

    def cost_curve(self) -> dict[int, float]:
        """Milliseconds of a target pass by its width, as known now; empty when unknown."""

    def last_audit(self) -> str | None:
        """What the last audit has found about this target, run as it is now by this build on these devices: a sentence. None
        where there was none."""

    def kill(self) -> None:
        """End an engine that does not stop, from any thread, where that is possible: what is asked of it fails then."""

    def close(self) -> None:
        """Free everything."""


Load = Callable[[LoadReport], Backend]
"""Runs on the engine's thread. Raises UserError with the sentence to show."""


class _OfPair:
    """What both kinds of engine say of their models."""

    _pair: Pair
    _cache: Path | None
    """The cache folder, where audits are kept."""

    @property
    def target(self) -> str:
        """The file's name without its ending."""
        return self._pair.target

    @property
    def draft(self) -> str | None:
        """The file's name without its ending."""
        return self._pair.draft

    @property
    def context_length(self) -> int:
        """Tokens the conversation can have."""
        return self._pair.context_length

    @property
    def sampling(self) -> Mapping[str, float]:
        """How an answer is sampled that asks for nothing of its own."""
        return self._pair.sampling

    @property
    def recommended(self) -> Collection[str]:
        """What of that the model's file recommends."""
        return self._pair.recommended

    @property
    def note(self) -> str:
        """A sentence, or empty."""
        return self._pair.note

    def last_audit(self) -> str | None:
        """A sentence. Read anew each time: an audit may have been made since."""
        return last_audit(self._cache, self._pair.opened) if self._cache else None


class ProcessBackend(_OfPair):
    """An engine in a process of its own."""

    def __init__(self, host: Host, pair: Pair, cache: Path | None = None) -> None:
        self._host, self._pair, self._cache = host, pair, cache
        self.context_used = 0
        self.left_out = 0

    @property
    def pid(self) -> int:
        """The process."""
        return self._host.pid

    def answer(
        self,
        messages: Sequence[Message],
        on_prompt: PromptProgress,
        *,
        goes_on: bool = False,
        options: AnswerOptions | None = None,
        chat: int | None = None,
        stop: Stop | None = None,
    ) -> Iterator[Step]:
        """Stream the answer. Raises UserError; EngineDied when the process has ended."""
        for said in self._host.call("answer", tuple(messages), goes_on, options, chat, stop=stop):
            match said:
                case Read(done, total, left_out):
                    self.left_out = left_out
                    on_prompt(done, total)
                case Wrote(step, context_used):
                    self.context_used = context_used
                    yield step
                case Pair():
                    self._pair = said

    def count(self, text: str) -> int:
        """The tokens of a text. Raises UserError; EngineDied when the process has ended."""
        return sum(self._host.call("count", text))

    def cost_curve(self) -> dict[int, float]:
        """As known when the last answer ended."""
        return self._pair.cost_curve

    def kill(self) -> None:
        """End the process by force, from any thread."""
        self._host.kill()

    def close(self) -> None:
        """End the process."""
        self._host.close()


class EngineBackend(_OfPair):
    """An engine in this process."""

    def __init__(self, answerer: Answerer, cache: Path | None = None) -> None:
        self._answerer, self._pair, self._cache = answerer, pair_of(answerer), cache

    @property
    def context_used(self) -> int:
        """Tokens of the conversation so far."""
        return len(self._answerer.engine.stream)

    @property
    def left_out(self) -> int:
        """Messages that the last answer was written without."""
        return self._answerer.left_out

    def answer(
        self,
        messages: Sequence[Message],
        on_prompt: PromptProgress,
        *,
        goes_on: bool = False,
        options: AnswerOptions | None = None,
        chat: int | None = None,
        stop: Stop | None = None,
    ) -> Iterator[Step]:
        """Stream the answer. Raises UserError."""
        return self._answerer.answer(messages, on_prompt, goes_on=goes_on, options=options, chat=chat, stop=stop)

    def count(self, text: str) -> int:
        """The tokens of a text."""
        return self._answerer.count(text)

    def cost_curve(self) -> dict[int, float]:
        """Milliseconds of a target pass by its width."""
        return self._answerer.engine.costs.target.table()

    def kill(self) -> None:
        """Not possible: it would end the app."""

    def close(self) -> None:
        """Free the engine."""
        self._answerer.close()


def engine_loader(wanted: Wanted) -> Load:
    """Loading of an engine in this process. The heavy imports happen on the thread that loads, behind the screen."""
    return lambda report: EngineBackend(wanted.load(report), wanted.cache)


def process_loader(wanted: Wanted, log_file: Path) -> Load:
    """Loading of an engine in a process of its own, or in this one where there can be no other. What native code prints
    there goes to `log_file`."""

    def load(report: LoadReport) -> Backend:
        try:
            host = Host(
                ChatService,
                (wanted, log_file),
                log_file=log_file,
                remedy=REMEDY,
                on_death=lambda error: report.gone(str(error)),
            )
        except CannotStartError as error:
            _log.warning("the engine runs in the app's own process: %s", error)
            return engine_loader(wanted)(report)
        try:
            return ProcessBackend(host, _loaded(host, report), wanted.cache)
        except BaseException:
            host.close()
            raise

    return load


def _loaded(host: Host, report: Report) -> Pair:
    pair, stop = None, Stop()
    for said in host.start(report.cancelled, stop):
        match said:
            case Fetched(phase, done, total):
                report.fetching(phase, done, total)
            case LoadedShare(what, share):
                if not report.loading(what, share):
                    stop.ask()
            case Pair():
                pair = said
    if pair is None:
        raise UserError("Loading was given up; start again to load the model.")
    return pair
