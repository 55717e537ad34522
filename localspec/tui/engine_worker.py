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
class _Answer:
    """An answer asked for; it can be stopped before it has begun."""

    turn: int
    messages: tuple[Message, ...]
    goes_on: bool
    options: AnswerOptions | None
    chat: int | None
    stopped: threading.Event = field(default_factory=threading.Event)
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
        self._answer: _Answer | None = None
        self._stopped_at = 0.0
        self._turns = 0
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
        answer = self._answer = _Answer(self._turns, tuple(messages), goes_on, options, chat)
        self._jobs.put(lambda: self._write(answer))
        return answer.turn

    def stop(self) -> None:
        """End the answer under way or still waiting; it keeps what has been written. An engine that still has not stopped
        five seconds after that is killed by the next call."""
        answer, backend = self._answer, self._backend
        hangs = answer and answer.stopped.is_set() and not answer.ended.is_set()
        if hangs and backend and time.monotonic() - self._stopped_at >= _STUBBORN_SECONDS:
            backend.kill()
        self._ask_to_stop()

    def reload(self, load: Load | None = None) -> None:
        """Stop, free the engine and load again: what was loaded before, or something else. Reports what a start reports. An
        engine that does not stop within five seconds is killed."""
        self._ask_to_stop()
        begun = threading.Event()
        self._jobs.put(lambda: self._load_again(load, begun))
        self._insist_on(begun)

    def cost_curve(self) -> dict[int, float]:
        """Milliseconds of a target pass by its width, as known now; empty when unknown."""
        backend = self._backend
        return backend.cost_curve() if backend else {}

    def drain(self) -> list[Event]:
        """The events since the last call, in order."""
        events: list[Event] = []
        while True:
            try:
                events.append(self._events.get_nowait())
            except Empty:
                return events

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
        if self._answer and not self._answer.stopped.is_set():
            self._stopped_at = time.monotonic()
            self._answer.stopped.set()
        if self._backend:
            self._backend.stop()

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

    def _open(self) -> None:
        report = self._report = _Report(self._events, self._closing.is_set, self._on_death)
        try:
            backend = self._load(report)
        except Exception as error:
            if not self._closing.is_set():
                self._no_backend = _sentence(error)
                self._events.put(LoadFailed(self._no_backend))
            return
        self._backend = backend
        self._events.put(Loaded(backend.target, backend.draft, backend.context_length))

    def _load_again(self, load: Load | None, begun: threading.Event) -> None:
        begun.set()
        self._load = load or self._load
        old, self._backend = self._backend, None
        if old:
            old.close()
        self._open()

    def _on_death(self, report: _Report, sentence: str) -> None:
        """On any thread. What the engine still had to say comes first."""
        self._jobs.put(lambda: self._say_gone(report, sentence))

    def _say_gone(self, report: _Report, sentence: str) -> None:
        # The death of one that has been replaced meanwhile is nobody's concern.
        if self._backend and report is self._report:
            self._events.put(EngineGone(sentence))

    def _write(self, answer: _Answer) -> None:
        if answer.stopped.is_set():
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

    def _on_prompt(self, answer: _Answer, done: int, total: int) -> None:
        left_out = self._backend.left_out if self._backend else 0
        self._events.put(Reading(answer.turn, done, total, time.perf_counter(), left_out))
        # The engine has forgotten a stop that came before the answer began.
        if answer.stopped.is_set() and self._backend:
            self._backend.stop()


@dataclass(frozen=True)
class _Report:
    """The LoadReport of one loading."""

    events: SimpleQueue[Event]
    closing: Callable[[], bool]
    on_death: Callable[[_Report, str], None]

    def fetching(self, phase: str, done: int, total: int) -> None:
        self.events.put(Fetching(phase, done, total))

    def loading(self, what: str, share: float) -> bool:
        self.events.put(Loading(what, share))
        return not self.cancelled()

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
