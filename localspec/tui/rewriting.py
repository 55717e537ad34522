"""A rewriting on the engine's thread, and what of it has been written so far. Knows no widgets."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue

from localspec.chat.answer_options import AnswerOptions
from localspec.chat.diff import matches, tokens_of
from localspec.chat.messages import Message
from localspec.chat.rewrite import Rewriting
from localspec.chat.rewrite_events import (
    Finished,
    OnPrompt,
    PartDone,
    PartFailed,
    Reading,
    Request,
    Started,
    State,
    Wrote,
)
from localspec.engine.step import Finish, Step
from localspec.tui.backend import Backend
from localspec.tui.engine_worker import Work

_SEAM_CHARACTERS = 300
"""So far back it is looked where a text that was stopped has come to in its source."""


@dataclass(frozen=True, slots=True)
class Refused:
    """It could not be begun, or broke off."""

    sentence: str


@dataclass(frozen=True, slots=True)
class Reached:
    """An event, and where it can be gone on from when it has happened."""

    event: Started | PartDone | PartFailed | Finished
    state: State


Happened = tuple[Wrote | Reached | Reading | Refused, float]
"""What happened, and when: seconds of time.perf_counter."""


class RewriteRun:
    """One rewriting. `work` is for the engine's worker; what happens waits in a queue until `drain`."""

    def __init__(self, source: str, instruction: str, options: AnswerOptions, state: State | None = None) -> None:
        """`state`: where it is gone on from."""
        self._source, self._instruction, self._options, self._state = source, instruction, options, state
        self._happened: SimpleQueue[Happened] = SimpleQueue()
        self.work = Work(self._run, lambda sentence: self._tell(Refused(sentence)))

    def drain(self) -> Iterator[Happened]:
        """What has happened since the last call, in order."""
        while True:
            try:
                yield self._happened.get_nowait()
            except Empty:
                return

    # On the engine's thread.

    def _run(self, backend: Backend) -> None:
        rewriting = Rewriting(
            self._source,
            self._instruction,
            lambda request, on_prompt: self._ask(backend, request, on_prompt),
            backend.count,
            backend.context_length,
            max_tokens=self._options.max_tokens,
            on_reading=self._tell,
            state=self._state,
            stop=self.work.stop,
        )
        for event in rewriting:
            self._tell(event if isinstance(event, Wrote) else Reached(event, rewriting.state))

    def _ask(self, backend: Backend, request: Request, on_prompt: OnPrompt) -> Iterator[Step]:
        messages = [*request.messages]
        if request.begun:
            messages.append(Message("assistant", request.begun))
        options = replace(self._options, max_tokens=request.max_tokens)
        # No chat: what the engine has read of the open one is not to be kept under its number when this is over.
        goes_on, stop = bool(request.begun), self.work.stop
        yield from backend.answer(messages, on_prompt, goes_on=goes_on, options=options, chat=None, stop=stop)

    def _tell(self, what: Wrote | Reached | Reading | Refused) -> None:
        self._happened.put((what, time.perf_counter()))


@dataclass
class Written:
    """What has been written, by the events of a rewriting."""

    source: str
    parts: int = 1
    part: int = 0
    position: int = 0
    """About how many characters of the source have been rewritten."""
    reading: Reading | None = None
    finish: Finish | None = None
    refused: str = ""
    failures: list[str] = field(default_factory=list)
    """A sentence for each part that keeps its text."""
    _before: str = ""
    """The whole text as it was when it was stopped, until more is written."""
    _state: State | None = None
    _done: list[str] = field(default_factory=list)
    _beginnings: list[str] = field(default_factory=list)
    """As `_done`, but of parts that failed what had been written, and behind it the rest of their source."""
    _begun: list[str] = field(default_factory=list)
    _raw: list[str] = field(default_factory=list)
    """What the model wrote for that."""

    @classmethod
    def before(cls, source: str, result: str, state: State, done: int) -> Written:
        """What was written of `result` when it was stopped: see Version."""
        finished = result[:done]
        position, part = state.source_position, state.part
        return cls(
            source,
            part=part,
            position=position,
            _before=result,
            _state=state,
            _done=[finished],
            _beginnings=[finished],
        )

    @property
    def over(self) -> bool:
        """Whether nothing more comes."""
        return self.finish is not None or bool(self.refused)

    @property
    def text(self) -> str:
        """What there is of the result."""
        return "".join([*self._done, *self._begun])

    @property
    def whole(self) -> str:
        """The same, and behind it the part of the source that is not rewritten."""
        if self.finish is Finish.STOP:
            return self.text
        if self._before:
            return self._before
        done, begun = "".join(self._done), "".join(self._begun)
        start = self._state.source_position if self._state else 0
        rest = self.source[start:]
        return done + (joined(rest, begun, self.position - start) if begun else rest)

    @property
    def done(self) -> int:
        """So many characters of the text are finished parts."""
        return sum(map(len, self._done))

    @property
    def state(self) -> State | None:
        """Where it can be gone on from; None before it has begun."""
        if self._state is None or self._before:
            return self._state
        # Half a character was shown as this one: the model writes all of it again.
        return replace(self._state, begun="".join(self._raw).removesuffix("\ufffd"))

    @property
    def with_beginnings(self) -> str | None:
        """The text with what had been written of the parts that failed; None where nothing was."""
        text = "".join([*self._beginnings, *self._begun])
        return text if text != self.text else None

    def take(self, event: Wrote | Reached | Reading | Refused) -> str | None:
        """One more event. Returns what it adds to the text, None where that has become another one."""
        match event:
            case Reading():
                self.reading = event if event.done < event.total else None
            case Wrote():
                self.reading, self._before = None, ""
                self.position = max(self.position, event.source_position)
                self._begun.append(event.text)
                self._raw.append(event.step.text)
                return event.text
            case Reached():
                return self._reach(event)
            case Refused():
                self.refused = event.sentence
        return ""

    def _reach(self, reached: Reached) -> str | None:
        start = self._state.source_position if self._state else 0
        event = reached.event
        added: str | None = ""
        match event:
            case Started():
                self.parts, self.part = event.parts, event.first
                if failed := len(reached.state.failed):
                    parts = "1 part that failed keeps its" if failed == 1 else f"{failed} parts that failed keep their"
                    self.failures.append(f"Before it was stopped, {parts} text.")
            case PartDone() | PartFailed():
                added = self._end_part(event, start)
            case Finished():
                self.finish = event.finish
        if not isinstance(event, Started):
            self._before = ""
        self._state = reached.state
        return added

    def _end_part(self, event: PartDone | PartFailed, start: int) -> str | None:
        self.part, self.position = event.index + 1, event.source_position
        begun = "".join(self._begun)
        self._begun.clear()
        self._raw.clear()
        self._done.append(event.text)
        self._beginnings.append(event.text)
        if isinstance(event, PartFailed):
            name, stays = f"Part {event.index + 1} of {self.parts}", "it keeps its text"
            if self.parts == 1:
                name, stays = "The answer", "the text stays"
            self.failures.append(f"{name} {event.reason}, so {stays}.")
            if event.begun.strip():
                self._beginnings[-1] = joined(event.text, event.begun, event.reached - start)
        return event.text[len(begun) :] if event.text.startswith(begun) else None


def joined(source: str, written: str, about: int) -> str:
    """A text that was stopped, and the source behind the place it has come to; `about`: a guess, in characters of the source.

    The last words that both have show where that is; what the text has behind them stands for as many words of the source.
    Half a word at its end is given up for the whole one.
    """
    start = max(0, about - _SEAM_CHARACTERS)
    old, new = tokens_of(source[start : about + _SEAM_CHARACTERS]), tokens_of(written[-_SEAM_CHARACTERS:])
    # A single sign stands everywhere.
    found = [
        match for match in matches(old, new) if any(token.isalnum() for token in old[match[0] : match[0] + match[2]])
    ]
    if not found:
        return written + source[about:]
    a, b, size = found[-1]
    reached = min(len(old), a + size + len(new) - (b + size))
    last = new[-1]
    if reached and last.isalnum() and old[reached - 1] != last and old[reached - 1].startswith(last):
        written, reached = written.removesuffix(last), reached - 1
    return written + source[start + sum(map(len, old[:reached])) :]
