"""The thread that owns the engine: it loads, answers and closes, one job after the other, and reports in events."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue

from localspec.engine.errors import UserError
from localspec.engine.step import Finish
from localspec.tui.backend import Backend, Load
from localspec.tui.messages import (
    Answered,
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


@dataclass(frozen=True)
class _Answer:
    """An answer asked for; it can be stopped before it has begun."""

    turn: int
    stopped: threading.Event = field(default_factory=threading.Event)


class EngineWorker:
    """All calls return at once, but for `join`. Events wait in a queue until `drain`, so nobody paces the engine."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._events: SimpleQueue[Event] = SimpleQueue()
        self._closing = threading.Event()
        self._backend: Backend | None = None
        self._no_backend = "No model is loaded; start again with another one."
        self._answer: _Answer | None = None
        self._turns = 0
        # A daemon: a native call that hangs must not keep the person from leaving.
        self._thread = threading.Thread(target=self._run, name="localspec-engine", daemon=True)

    def start(self) -> None:
        """Begin to load."""
        self._thread.start()

    def ask(self, words: str) -> int:
        """Have a turn answered when everything before it is done. Returns the number its events carry."""
        self._turns += 1
        answer = self._answer = _Answer(self._turns)
        self._jobs.put(lambda: self._write_answer(answer, words))
        return answer.turn

    def stop(self) -> None:
        """End the answer under way or still waiting; it keeps what has been written."""
        if self._answer:
            self._answer.stopped.set()
        if self._backend:
            self._backend.stop()

    def restart(self) -> None:
        """Stop, and begin an empty conversation."""
        self.stop()
        self._jobs.put(self._begin_again)

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
        self.stop()
        self._jobs.put(None)

    def join(self) -> bool:
        """Wait until the engine is freed. False when it did not come to an end within ten seconds."""
        if self._thread.ident is not None:
            self._thread.join(_JOIN_SECONDS)
        return not self._thread.is_alive()

    # The methods of LoadReport, called on the engine's thread.

    def fetching(self, phase: str, done: int, total: int) -> None:
        """A download is under way."""
        self._events.put(Fetching(phase, done, total))

    def loading(self, what: str, share: float) -> bool:
        """A model is being loaded; False ends that."""
        self._events.put(Loading(what, share))
        return not self.cancelled()

    def cancelled(self) -> bool:
        """Whether the app is closing."""
        return self._closing.is_set()

    # Everything below runs on the engine's thread.

    def _run(self) -> None:
        try:
            self._open()
            while (job := self._jobs.get()) is not None:
                if not self._closing.is_set():
                    job()
        finally:
            if self._backend:
                self._backend.close()

    def _open(self) -> None:
        try:
            backend = self._load(self)
        except Exception as error:
            if not self._closing.is_set():
                self._no_backend = _sentence(error)
                self._events.put(LoadFailed(self._no_backend))
            return
        self._backend = backend
        self._events.put(Loaded(backend.target, backend.draft, backend.context_length))

    def _begin_again(self) -> None:
        if self._backend:
            self._backend.restart()

    def _write_answer(self, answer: _Answer, words: str) -> None:
        if answer.stopped.is_set():
            self._events.put(TakenBack(answer.turn))
            return
        begun, finish = False, None
        try:
            if not self._backend:
                raise UserError(self._no_backend)
            for step in self._backend.ask(words, lambda done, total: self._on_prompt(answer, done, total)):
                begun, finish = begun or bool(step.text), step.finish
                self._events.put(Stepped(answer.turn, step, time.perf_counter(), self._backend.context_used))
        except Exception as error:
            self._events.put(Failed(answer.turn, _sentence(error), begun))
        else:
            taken_back = finish is Finish.INTERRUPTED and not begun
            self._events.put(TakenBack(answer.turn) if taken_back else Answered(answer.turn, finish))

    def _on_prompt(self, answer: _Answer, done: int, total: int) -> None:
        self._events.put(Reading(answer.turn, done, total, time.perf_counter()))
        # The engine has forgotten a stop that came before the answer began.
        if answer.stopped.is_set() and self._backend:
            self._backend.stop()


def _sentence(error: Exception) -> str:
    """What to show. Anything but a UserError is a bug: the chat goes on, and the log has the traceback."""
    if isinstance(error, UserError):
        return str(error)
    _log.error("unexpected", exc_info=error)
    detail = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return f"Something inside localspec went wrong ({detail}); try again, and look into the log file if it stays."
