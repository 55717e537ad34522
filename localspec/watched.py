"""A command in a process of its own, watched by the one that was started.

Native code can end a process in the middle of anything: a failed assertion, a wild pointer, memory that has run out. Whoever
watches from outside still says so in one sentence, and leaves the terminal as it was. Nothing heavy is imported here: the
watching process stays small, and beginning takes a millisecond.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from localspec.console import say
from localspec.engine.deaths import cause_of, open_log

try:
    import fcntl
    import termios
except ImportError:
    fcntl = termios = None  # type: ignore[assignment]

_IS_CHILD = "_LOCALSPEC_WATCHED"
"""The environment variable of a child that was started anew: its ends of the pipes."""
_FORKS = sys.platform != "darwin"
"""Metal, and much else of macOS, does not work in a process that was forked and has not begun anew."""
_WITHOUT_A_WORD = frozenset(
    getattr(signal, name) for name in ("SIGHUP", "SIGINT", "SIGQUIT", "SIGPIPE", "SIGTERM") if hasattr(signal, name)
)
"""Who ends a program with one of these means it: it ends the same way, and a shell says what is to be said."""
_OF_SIGNALS = 128
"""Exit codes above it are those of a program that leaves at once because of a signal, as a shell has them."""
_KEYS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGQUIT", "SIGTSTP") if hasattr(signal, name))
"""What a terminal sends to both processes when a key is pressed."""
_MOMENT_SECONDS = 0.3
_PATIENCE_SECONDS = 15.0
"""So long leaving may take before it is forced."""
_TERMINAL_AS_BEFORE = (
    "\x1b[?2026l"  # what is held back is shown
    "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l\x1b[?1016l"  # the mouse
    "\x1b[?2004l\x1b[?1004l\x1b[?2048l\x1b[?7h"  # pasting, focus, sizes; lines wrap
    "\x1b[<u"  # keys, which each screen has its own kind of
    "\x1b[?1049l\x1b[?25h\x1b[0m"  # the other screen, the cursor, colors
)
"""Undoes what Textual does to a terminal."""


Goodbye = Callable[[int], None]


@dataclass(frozen=True)
class Aftermath:
    """What a person meets when the command has died."""

    log_file: Path
    """Where native code's last words are."""
    remedy: str
    """What to do, as the end of a sentence."""
    draws: bool = False
    """Whether it has the terminal for itself: everything is put back then."""


def go_on_watched(aftermath: Aftermath) -> Goodbye:
    """Go on in a process of its own: the one that calls this only watches it from here on, and does not return.

    To be called while there is one thread, and before anything is read or written. What native code prints on stderr goes to
    the log from here on, unless the command `draws`, and so does a crash. Where there can be no other process the command
    goes on in this one.

    Whoever has finished gives its exit code to what this returns: native code may also leave without a word, or crash when
    everything is done.
    """
    if not hasattr(os, "fork"):
        return _no_goodbye
    if ends := _ends_of(os.environ.pop(_IS_CHILD, "")):
        return _be_the_child(ends, aftermath)
    modes = _modes()
    # Who started this may have ignored it, and then nobody is told that a child has ended, nor how.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    awaited = {signal.SIGCHLD, signal.SIGHUP, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, *_KEYS}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    ours, theirs = _pipes()
    try:
        child = os.fork() if _FORKS else _started_anew(theirs, before)
    except OSError:
        ours.close()
        theirs.close()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return _no_goodbye
    if child == 0:
        ours.close()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return _be_the_child(theirs, aftermath)
    theirs.close()
    ended = _ended(child, awaited)
    _end_like_it(ended, ours.goodbye(), modes, aftermath)
    raise AssertionError("unreachable")


@dataclass(frozen=True)
class _Ends:
    """What one of the two processes has of two pipes: each sees there that the other is gone."""

    reader: int
    writer: int

    def close(self) -> None:
        """The other process has them."""
        os.close(self.reader)
        os.close(self.writer)

    def goodbye(self) -> int | None:
        """The exit code that the child has given, if it has."""
        with contextlib.suppress(OSError):
            os.set_blocking(self.reader, False)
            return next(iter(os.read(self.reader, 1)), None)
        return None


def _pipes() -> tuple[_Ends, _Ends]:
    """The ends of the two processes, none in the place of a stream that was closed from the start."""
    low = (*os.pipe(), *os.pipe())
    reader, their_writer, their_reader, writer = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 3) for end in low)
    for end in low:
        os.close(end)
    return _Ends(reader, writer), _Ends(their_reader, their_writer)


def _ends_of(words: str) -> _Ends | None:
    """As _started_anew writes them."""
    ends = [int(word) for word in words.split() if word.isdecimal()]
    return _Ends(*ends) if len(ends) == 2 else None


def _started_anew(ends: _Ends, mask: set[int | signal.Signals]) -> int:
    """The process id of the same command, begun once more."""
    for end in (ends.reader, ends.writer):
        os.set_inheritable(end, True)
    command = [sys.executable, *sys.orig_argv[1:]]
    environment = {**os.environ, _IS_CHILD: f"{ends.reader} {ends.writer}"}
    return os.posix_spawn(sys.executable, command, environment, setsigmask=mask)


def _no_goodbye(_code: int) -> None:
    """Nobody waits for it."""


# The process that watches.


def _ended(child: int, awaited: set[signal.Signals]) -> int:
    """Wait for the child, and give its exit code as subprocess has it. What this process is told meanwhile, it is told."""
    if not hasattr(signal, "sigwaitinfo"):
        # Elsewhere a signal that nobody handles and everybody ignores does not arrive at all.
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    slept = False
    while True:
        changed, status = os.waitpid(child, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
        if changed and (os.WIFEXITED(status) or os.WIFSIGNALED(status)):
            return os.waitstatus_to_exitcode(status)
        if changed:
            slept = os.WIFSTOPPED(status)
            if slept:
                _sleep_like_it(os.WSTOPSIG(status))
            continue
        if slept:
            # The shell's `fg` wakes both, other things only this one. Told twice, the app would begin to draw twice.
            _tell(child, signal.SIGCONT)
            slept = False
        number, was_for_both = _next_signal(awaited)
        if number != signal.SIGCHLD and not was_for_both:
            _tell(child, number)


def _sleep_like_it(number: int) -> None:
    """Be stopped too, by the same signal: the shell waits for this process, and only now the terminal is ready for it."""
    os.kill(os.getpid(), number)
    # The signal that stopped the child may have come here as well; blocked, they are one.
    if number != signal.SIGSTOP:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.pthread_sigmask(signal.SIG_UNBLOCK, {number}) & {number})


def _next_signal(awaited: set[signal.Signals]) -> tuple[int, bool]:
    """The next signal, and whether it is that of a key, which the child has got as well."""
    if hasattr(signal, "sigwaitinfo"):
        told = signal.sigwaitinfo(awaited)
        if told.si_signo == signal.SIGTSTP and told.si_code <= 0:
            # Told twice, it would sleep twice: whoever stops a job tells both, and a moment later it sleeps.
            return told.si_signo, signal.sigtimedwait({signal.SIGCHLD}, _MOMENT_SECONDS) is not None
        return told.si_signo, told.si_signo in _KEYS and told.si_code > 0
    number = signal.sigwait(awaited)
    return number, number in _KEYS and _is_in_front()


def _tell(child: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, number)


def _end_like_it(code: int, goodbye: int | None, modes: list[Any] | None, aftermath: Aftermath) -> NoReturn:
    if goodbye is not None and code < 0:
        # All was done and said before.
        code = goodbye
    in_order = goodbye is not None or code > _OF_SIGNALS
    _restore_terminal(modes, aftermath.draws and not in_order)
    if in_order:
        os._exit(code)
    if -code in _WITHOUT_A_WORD:
        signal.signal(-code, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {-code})
        os.kill(os.getpid(), -code)
        # The first process of a container does not die of its own signals.
        os._exit(_OF_SIGNALS - code)
    if not aftermath.draws and sys.stderr and sys.stderr.isatty():
        # An answer, or progress, may have ended in the middle of a line.
        with contextlib.suppress(OSError):
            sys.stderr.write("\n")
    say(f"The engine has stopped working ({cause_of(code)}, see {aftermath.log_file}); {aftermath.remedy}.")
    os._exit(1)


def _modes() -> list[Any] | None:
    if termios:
        with contextlib.suppress(termios.error, OSError, ValueError):
            return termios.tcgetattr(0)
    return None


def _is_in_front() -> bool:
    """Whether the keys of the terminal, if there is one, are meant for this process."""
    with contextlib.suppress(OSError):
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
        try:
            return os.tcgetpgrp(terminal) == os.getpgrp()
        finally:
            os.close(terminal)
    return False


def _restore_terminal(modes: list[Any] | None, drawn: bool) -> None:
    """`drawn`: there is still a screen on it."""
    with contextlib.suppress(OSError):
        if os.tcgetpgrp(0) != os.getpgrp():
            # A shell has it already, and has put it in order.
            return
    if modes and termios:
        # Nothing that would wait for a terminal which takes no more output.
        with contextlib.suppress(termios.error, OSError):
            termios.tcsetattr(0, termios.TCSANOW, modes)
            if drawn:
                # What was typed at a screen that is gone was not meant for a shell.
                termios.tcflush(0, termios.TCIFLUSH)
    if drawn:
        with contextlib.suppress(OSError):
            os.write(1, _TERMINAL_AS_BEFORE.encode())


# The process that is watched.


def _be_the_child(ends: _Ends, aftermath: Aftermath) -> Goodbye:
    # Without memory for this much there is none for the command either, which says so.
    with contextlib.suppress(MemoryError, RuntimeError, OSError):
        _prepare(ends, aftermath)

    def goodbye(code: int) -> None:
        with contextlib.suppress(OSError):
            os.write(ends.writer, bytes([code]))

    return goodbye


def _prepare(ends: _Ends, aftermath: Aftermath) -> None:
    for end in (ends.reader, ends.writer):
        os.set_inheritable(end, False)
    threading.Thread(
        target=_end_with_the_other, args=(ends.reader, aftermath.draws), name="localspec-watched", daemon=True
    ).start()
    log = open_log(aftermath.log_file)
    # Of a crash in native code the log has where in Python that was.
    faulthandler.enable(log)
    if not aftermath.draws:
        _native_errors_to(log)


def _end_with_the_other(reader: int, draws: bool) -> None:
    """When the process that watches is killed, this one ends too: a screen is put back before."""
    while os.read(reader, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM if draws else signal.SIGKILL)
    time.sleep(_PATIENCE_SECONDS)
    os._exit(_OF_SIGNALS + signal.SIGTERM)


def _native_errors_to(log: int) -> None:
    """Descriptor 2 is the log's from here on, while Python still writes to where it was."""
    ours = sys.stderr
    try:
        if ours is None or ours.fileno() != 2:
            return
        ours.flush()
        kept = os.dup(2)
    except (OSError, ValueError):
        return
    stream = os.fdopen(kept, "w", encoding=ours.encoding, errors="backslashreplace", buffering=1)
    for name in ("stderr", "__stderr__"):
        setattr(sys, name, stream)
    os.dup2(log, 2)
