"""The thread that owns the engine: it loads, answers and closes, one job after the other, and reports in events."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue

from localspec.chat.answer_options import AnswerOptions
from localspec.chat.messages import Message
from localspec.engine.errors import UserError
from localspec.engine.process import EngineDied
from localspec.engine.step import Finish
from localspec.engine.stop import Stop
from localspec.tui.backend import Backend, Load
from localspec.tui.messages import (
    Answered,
    EngineGone,
    Event,
    Failed,
    Fetching,
    Loaded,
    LoadFailed,
    Loading,
    Reading,
    Stepped,
    TakenBack,
)

_log = logging.getLogger("localspec.tui")
_JOIN_SECONDS = 10.0
_STUBBORN_SECONDS = 5.0
"""A stop takes a fraction of a second; a native call that takes so much longer hangs."""


@dataclass(frozen=True)
class Work:
    """Something that asks the engine for several answers; it can be stopped before it has begun."""

    run: Callable[[Backend], None]
    """Called on the engine's thread."""
    refused: Callable[[str], None]
    """Called there with the sentence to show, where there is no engine or something went wrong."""
    stop: Stop = field(default_factory=Stop)
    """Whoever runs hands it to every answer, and begins no other one then."""
    ended: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True)
class _Answer:
    """An answer asked for; it can be stopped before it has begun."""

    turn: int
    messages: tuple[Message, ...]
    goes_on: bool
    options: AnswerOptions | None
    chat: int | None
    stop: Stop = field(default_factory=Stop)
    ended: threading.Event = field(default_factory=threading.Event)


class EngineWorker:
    """All calls return at once, but for `join`. Events wait in a queue until `drain`, so nobody paces the engine."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._events: SimpleQueue[Event] = SimpleQueue()
        self._closing, self._ended = threading.Event(), threading.Event()
        self._backend: Backend | None = None
        self._report: _Report | None = None
        self._no_backend = "No model is loaded; start again with another one."
        self._asked: list[_Answer | Work] = []
        """What has not come to its end, in order: under way, or waiting behind that."""
        self._stopped_at = 0.0
        self._turns = 0
        self._loadings = 0
        """How many were asked for: all but the last are given up."""
        # A daemon: a native call that hangs must not keep the person from leaving.
        self._thread = threading.Thread(target=self._run, name="localspec-engine", daemon=True)

    def start(self) -> None:
        """Begin to load."""
        self._thread.start()

    def answer(
        self,
        messages: Sequence[Message],
        goes_on: bool = False,
        options: AnswerOptions | None = None,
        chat: int | None = None,
    ) -> int:
        """Have an answer written when everything before it is done. Returns the number its events carry.

        The arguments are those of Backend.answer.
        """
        self._turns += 1
        answer = _Answer(self._turns, tuple(messages), goes_on, options, chat)
        self._under_way().append(answer)
        self._jobs.put(lambda: self._write(answer))
        return answer.turn

    def do(self, work: Work) -> None:
        """Have it done when everything before it is done; `stop` ends it."""
        self._under_way().append(work)
        self._jobs.put(lambda: self._do(work))

    def count(self, text: str, told: Callable[[int], object]) -> None:
        """Have the tokens of a text counted. `told` is called with their number, on the engine's thread; not at all where
        there is no engine."""
        self._jobs.put(lambda: self._count(text, told))

    def stop(self) -> None:
        """End the answer under way and those that wait; what has been written is kept. An engine that still has not stopped
        five seconds after that is killed by the next call."""
        if self.hangs and self._backend:
            self._backend.kill()
        self._ask_to_stop()

    @property
    def hangs(self) -> bool:
        """Whether the engine was asked to stop five seconds ago and has not: the next `stop` kills it."""
        stopped = any(each.stop.asked for each in self._under_way())
        return stopped and time.monotonic() - self._stopped_at >= _STUBBORN_SECONDS

    def reload(self, load: Load | None = None) -> None:
        """Stop, free the engine and load again: what was loaded before, or something else. Reports what a start reports; of a
        loading that is under way, nothing more. An engine that does not stop within five seconds is killed."""
        self._loadings += 1
        number = self._loadings
        self._ask_to_stop()
        begun = threading.Event()
        self._jobs.put(lambda: self._load_again(load, begun, number))
        self._insist_on(begun)

    def cost_curve(self) -> dict[int, float]:
        """Milliseconds of a target pass by its width, as known now; empty when unknown."""
        backend = self._backend
        return backend.cost_curve() if backend else {}

    def last_audit(self) -> str | None:
        """What the last audit has found about what is loaded, opened as it is: a sentence; None where there was none."""
        backend = self._backend
        return backend.last_audit() if backend else None

    def drain(self) -> list[Event]:
        """The events since the last call, in order, without what came of loadings that nobody wants any more."""
        events: list[Event] = []
        while True:
            try:
                event = self._events.get_nowait()
            except Empty:
                return events
            if not isinstance(event, Loaded | LoadFailed) or event.loading == self._loadings:
                events.append(event)

    def close(self) -> None:
        """Stop everything and free the engine, soon."""
        self._closing.set()
        self._ask_to_stop()
        self._jobs.put(None)
        self._insist_on(self._ended)

    def join(self) -> bool:
        """Wait until the engine is freed. False when it did not come to an end within ten seconds."""
        if self._thread.ident is not None:
            self._thread.join(_JOIN_SECONDS)
        return not self._thread.is_alive()

    def _ask_to_stop(self) -> None:
        for each in self._under_way():
            if not each.stop.asked:
                self._stopped_at = time.monotonic()
                each.stop.ask()

    def _under_way(self) -> list[_Answer | Work]:
        self._asked = [each for each in self._asked if not each.ended.is_set()]
        return self._asked

    # Everything below runs on the engine's thread.

    def _run(self) -> None:
        try:
            self._open()
            while (job := self._jobs.get()) is not None:
                if not self._closing.is_set():
                    job()
        finally:
            self._ended.set()
            if self._backend:
                self._backend.close()

    def _insist_on(self, stopped: threading.Event) -> None:
        """Kill the engine when it has not stopped in time."""
        if backend := self._backend:
            insist = threading.Thread(target=_insist, args=(backend, stopped), name="localspec-insist", daemon=True)
            insist.start()

    def _open(self, number: int = 0) -> None:
        def unwanted() -> bool:
            return self._closing.is_set() or number != self._loadings

        report = self._report = _Report(self._events, unwanted, self._on_death)
        try:
            backend = self._load(report)
        except Exception as error:
            if not unwanted():
                self._no_backend = _sentence(error)
                self._events.put(LoadFailed(self._no_backend, number, isinstance(error, EngineDied)))
            return
        if unwanted():
            backend.close()
            return
        self._backend = backend
        self._events.put(
            Loaded(
                backend.target,
                backend.draft,
                backend.context_length,
                backend.sampling,
                backend.recommended,
                backend.note,
                number,
            )
        )

    def _load_again(self, load: Load | None, begun: threading.Event, number: int) -> None:
        begun.set()
        self._load = load or self._load
        old, self._backend = self._backend, None
        if old:
            old.close()
        if number == self._loadings:
            self._open(number)

    def _on_death(self, report: _Report, sentence: str) -> None:
        """On any thread. What the engine still had to say comes first."""
        self._jobs.put(lambda: self._say_gone(report, sentence))

    def _say_gone(self, report: _Report, sentence: str) -> None:
        # The death of one that has been replaced meanwhile is nobody's concern.
        if self._backend and report is self._report:
            self._events.put(EngineGone(sentence))

    def _write(self, answer: _Answer) -> None:
        if answer.stop.asked:
            answer.ended.set()
            self._events.put(TakenBack(answer.turn))
            return
        begun, finish = False, None
        try:
            if not self._backend:
                raise UserError(self._no_backend)
            steps = self._backend.answer(
                answer.messages,
                lambda done, total: self._on_prompt(answer, done, total),
                goes_on=answer.goes_on,
                options=answer.options,
                chat=answer.chat,
                stop=answer.stop,
            )
            for step in steps:
                begun, finish = begun or bool(step.text), step.finish
                self._events.put(Stepped(answer.turn, step, time.perf_counter(), self._backend.context_used))
        except Exception as error:
            answer.ended.set()
            self._events.put(Failed(answer.turn, _sentence(error), begun, isinstance(error, EngineDied)))
        else:
            answer.ended.set()
            taken_back = finish is Finish.INTERRUPTED and not begun
            self._events.put(TakenBack(answer.turn) if taken_back else Answered(answer.turn, finish))

    def _do(self, work: Work) -> None:
        try:
            if not self._backend:
                raise UserError(self._no_backend)
            work.run(self._backend)
        except Exception as error:
            work.refused(_sentence(error))
        finally:
            work.ended.set()

    def _count(self, text: str, told: Callable[[int], object]) -> None:
        try:
            if self._backend:
                told(self._backend.count(text))
        except Exception as error:
            # Without it there is an estimate.
            _log.warning("the tokens of a text could not be counted: %s", error)

    def _on_prompt(self, answer: _Answer, done: int, total: int) -> None:
        left_out = self._backend.left_out if self._backend else 0
        self._events.put(Reading(answer.turn, done, total, time.perf_counter(), left_out))


@dataclass(frozen=True)
class _Report:
    """The LoadReport of one loading."""

    events: SimpleQueue[Event]
    closing: Callable[[], bool]
    on_death: Callable[[_Report, str], None]

    def fetching(self, phase: str, done: int, total: int) -> None:
        self.events.put(Fetching(phase, done, total))

    def loading(self, what: str, share: float) -> bool:
        if self.cancelled():
            return False
        self.events.put(Loading(what, share))
        return True

    def cancelled(self) -> bool:
        return self.closing()

    def gone(self, sentence: str) -> None:
        self.on_death(self, sentence)


def _insist(backend: Backend, begun: threading.Event) -> None:
    if not begun.wait(_STUBBORN_SECONDS):
        backend.kill()


def _sentence(error: Exception) -> str:
    """What to show. Anything but a UserError is a bug: the chat goes on, and the log has the traceback."""
    if isinstance(error, UserError):
        return str(error)
    _log.error("unexpected", exc_info=error)
    detail = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return f"Something inside localspec went wrong ({detail}); try again, and look into the log file if it stays."
