"""A service in a process of its own, so that a crash of native code there costs neither the screen nor a word.

The parent calls one method at a time and reads what it yields. A thread of the child listens all the while, so that a stop
takes effect in the middle of a call, and the child ends when the parent does, however that ends.
"""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from localspec.engine.deaths import cause_of, open_log
from localspec.engine.errors import NO_MEMORY, UserError
from localspec.engine.stop import Stop

LOGGER_NAME = "localspec.engine.process"
"""The logger of bugs in the child. Without a handler they go to the child's stderr, which is the log file."""

_STOP, _CLOSE = b"stop", b"close"
"""What the parent sends besides calls, which are pickles and begin with another byte. Behind the first one stands which of
the calls is meant: both ends count them."""
_ITEM, _END, _ERROR = "item", "end", "error"
"""What the child sends."""
_BOOT = """
import sys
pipe, idle, *sys.path = sys.argv[1:]
from localspec.engine.process import serve
serve(int(pipe), float(idle))
"""
"""The child's program. multiprocessing would start a second process beside it, which fails under Textual's stderr, and run
the parent's main program once more."""
_POLL_SECONDS = 0.05
_PATIENCE_SECONDS = 3.0
"""So long a child may take to free everything before it is killed."""

_log = logging.getLogger(LOGGER_NAME)


class EngineDied(UserError):  # noqa: N818  (an event, not an error)
    """The child has ended and was not asked to."""


class CannotStartError(Exception):
    """There is no process for the service: it was refused, or what it is made of cannot be sent to one."""


class Service(Protocol):
    """What runs in the child: its other methods are generators, called one at a time."""

    def idle(self, unwanted: Callable[[], bool]) -> None:
        """Called once when nothing has been asked for a while after a call; to end early when `unwanted` says so."""

    def close(self) -> None:
        """Free everything."""


class Link:
    """The service's way to the parent."""

    def __init__(self, send: Callable[[Any], None]) -> None:
        self.send = send
        """Give the parent one more item of the call under way."""
        self.stop = Stop()
        """Of the call under way, be it asked for before the service got to it."""


Factory = Callable[..., Service]
"""Called in the child with a Link and further arguments. A function of a module (not of the main program), so that it can be
sent there."""


class Host:
    """The parent's end. One thread at a time, but for `kill`."""

    def __init__(
        self,
        factory: Factory,
        arguments: Sequence[Any],
        *,
        log_file: Path,
        remedy: str,
        on_death: Callable[[EngineDied], None] = lambda error: None,
        idle_seconds: float = 2.0,
    ) -> None:
        """Start the child; `start` has the service made in it. Raises CannotStartError.

        Everything the child prints goes to `log_file`. `remedy` says what to do when it dies, and ends the sentence then;
        `on_death` is called from another thread as soon as that happens. The service is idle when nothing has been asked for
        `idle_seconds` after a call.
        """
        self._remedy, self._on_death = remedy, on_death
        self._dead = threading.Event()
        self._outgoing: SimpleQueue[bytes] = SimpleQueue()
        self._closing = self._killed = False
        self._calls = 0
        try:
            self._making = pickle.dumps((factory, tuple(arguments)))
            self._pipe, theirs = Pipe()
            with theirs:
                self._process = _started(theirs, idle_seconds, log_file)
        except (OSError, pickle.PicklingError, AttributeError, TypeError) as error:
            raise CannotStartError(str(error)) from error
        for work, name in ((self._watch, "watch"), (self._post, "post")):
            threading.Thread(target=work, name=f"localspec-engine-{name}", daemon=True).start()

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid

    def start(self, cancelled: Callable[[], bool] = lambda: False, stop: Stop | None = None) -> Iterator[Any]:
        """Have the service made; yields what its factory sends. Raises what the factory raises, or EngineDied.

        Ends early when `cancelled`, which is asked many times a second; nothing but `close` may follow then. `stop` asks the
        factory to give up, which it may answer.
        """
        yield from self._answers_to(self._making, cancelled, stop)

    def call(self, method: str, *arguments: Any, stop: Stop | None = None) -> Iterator[Any]:
        """Call a method; yields what it yields and sends, and `stop` is its Link.stop. Raises what it raises, or EngineDied.

        Of errors only UserErrors and built-in ones arrive as they are.
        """
        yield from self._answers_to(pickle.dumps((method, arguments)), lambda: False, stop)

    def kill(self) -> None:
        """End a child that does not stop, from any thread. The call under way raises EngineDied."""
        self._killed = True
        self._process.kill()

    def close(self) -> None:
        """End the child, by force where it takes its time. Safe to call twice."""
        if self._closing:
            return
        self._closing = True
        self._send(_CLOSE)
        if not self._dead.wait(_PATIENCE_SECONDS):
            self._process.kill()
            self._dead.wait(_PATIENCE_SECONDS)
        self._pipe.close()

    def _answers_to(self, call: bytes, cancelled: Callable[[], bool], stop: Stop | None) -> Iterator[Any]:
        self._calls = number = self._calls + 1
        self._send(call)
        with (stop or Stop()).ending(lambda: self._stop(number)):
            yield from self._items(cancelled)

    def _stop(self, number: int) -> None:
        """End this call, and no later one."""
        self._send(_STOP + str(number).encode())

    def _send(self, message: bytes) -> None:
        """Returns at once, whatever the child does: a long call to one that reads no more would wait for ever, and with it
        everybody who wants to stop that."""
        self._outgoing.put(message)

    def _post(self) -> None:
        # A child that is gone is noticed where its answers are read.
        with contextlib.suppress(OSError):
            while not self._dead.is_set():
                message = self._outgoing.get()
                self._pipe.send_bytes(message)

    def _items(self, cancelled: Callable[[], bool]) -> Iterator[Any]:
        over = False
        try:
            while not over:
                kind, item = self._next(cancelled)
                over = kind != _ITEM
                if kind == _ERROR:
                    raise item
                if kind == _ITEM:
                    yield item
        finally:
            if not over:
                self._skip_the_rest()

    def _next(self, cancelled: Callable[[], bool]) -> tuple[str, Any]:
        try:
            while not self._pipe.poll(_POLL_SECONDS):
                if cancelled():
                    return _END, None
            kind, item = self._pipe.recv()
        except (EOFError, OSError) as error:
            raise self._death() from error
        return kind, item

    def _skip_the_rest(self) -> None:
        """Nobody wants the rest of a call: the next one must not find it."""
        self._stop(self._calls)
        with contextlib.suppress(EOFError, OSError):
            while self._pipe.recv()[0] == _ITEM:
                pass

    def _death(self) -> EngineDied:
        if not self._dead.wait(_PATIENCE_SECONDS):
            self._process.kill()
            self._dead.wait(_PATIENCE_SECONDS)
        return self._obituary()

    def _obituary(self) -> EngineDied:
        why = "it did not stop and was ended" if self._killed else cause_of(self._process.returncode)
        return EngineDied(f"The engine has stopped working ({why}, see the log file); {self._remedy}.")

    def _watch(self) -> None:
        self._process.wait()
        try:
            if not self._closing:
                self._on_death(self._obituary())
        finally:
            self._dead.set()
            # Whoever posts looks up.
            self._outgoing.put(_STOP)


def _started(pipe: Connection, idle_seconds: float, log_file: Path) -> subprocess.Popen[bytes]:
    if getattr(sys, "frozen", False) or not sys.executable:
        raise OSError("there is no Python to start")
    command = [sys.executable, "-c", _BOOT, str(pipe.fileno()), str(idle_seconds), *sys.path]
    log = open_log(log_file)
    try:
        # In a process group of its own: ctrl+c in a terminal reaches all of a group.
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=[pipe.fileno()], process_group=0
        )
    finally:
        os.close(log)


# Everything below runs in the child.


def serve(descriptor: int, idle_seconds: float) -> None:
    """The child's main program; `descriptor` is its end of the pipe. Does not return."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Also a crash in native code leaves a traceback in the log.
    faulthandler.enable()
    try:
        _Child(Connection(descriptor), idle_seconds).run()
    except BrokenPipeError:
        # Nobody is there to answer.
        pass
    except BaseException:
        _log.exception("the engine's process ends")
        os._exit(1)
    logging.shutdown()
    # Native libraries have been seen to crash when they are unloaded, and there is nothing left to do.
    os._exit(0)


class _Child:
    def __init__(self, pipe: Connection, idle_seconds: float) -> None:
        self._pipe, self._idle_seconds = pipe, idle_seconds
        self._link = Link(lambda item: pipe.send((_ITEM, item)))
        self._service: Service | None = None
        self._calls: SimpleQueue[tuple[bytes, Stop] | None] = SimpleQueue()

    def run(self) -> None:
        threading.Thread(target=self._listen, name="localspec-engine-listen", daemon=True).start()
        try:
            while (call := self._next()) is not None:
                self._answer(*call)
        finally:
            if self._service:
                self._service.close()

    def _next(self) -> tuple[bytes, Stop] | None:
        if self._service:
            try:
                return self._calls.get(timeout=self._idle_seconds)
            except Empty:
                self._idle(self._service)
        return self._calls.get()

    def _idle(self, service: Service) -> None:
        try:
            service.idle(lambda: not self._calls.empty())
        except Exception:
            _log.exception("unexpected")

    def _listen(self) -> None:
        number, stop = 0, Stop()
        while True:
            try:
                message = self._pipe.recv_bytes()
            except (EOFError, OSError):
                # The parent is gone, and with it everybody who could want the rest.
                os._exit(0)
            if message == _CLOSE:
                self._calls.put(None)
            if message == _CLOSE or message == _STOP + str(number).encode():
                stop.ask()
            elif not message.startswith(_STOP):
                number, stop = number + 1, Stop()
                self._calls.put((message, stop))

    def _answer(self, call: bytes, stop: Stop) -> None:
        self._link.stop = stop
        try:
            what, arguments = pickle.loads(call)
            if self._service is None:
                self._service = what(self._link, *arguments)
            else:
                items: Iterable[Any] = getattr(self._service, what)(*arguments)
                for item in items:
                    self._link.send(item)
        except Exception as error:
            # Not by its class: llama.cpp may not be loaded yet.
            if not isinstance(error, UserError) and type(error).__name__ != "LoadCancelledError":
                _log.exception("unexpected")
            self._pipe.send((_ERROR, _portable(error)))
        else:
            self._pipe.send((_END, None))


def _portable(error: Exception) -> Exception:
    """The error as the parent can read it, without the modules that only the child has loaded."""
    if isinstance(error, UserError):
        return error if type(error).__module__ == UserError.__module__ else UserError(str(error))
    if isinstance(error, MemoryError):
        return UserError(NO_MEMORY)
    if type(error).__module__ == "builtins":
        with contextlib.suppress(Exception):
            return pickle.loads(pickle.dumps(error)) if error.args else error
    return RuntimeError(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
