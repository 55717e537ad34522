"""A child that loads one model after the other and has each answer, and what is seen of it from outside."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localspec.chat.messages import Message
from localspec.chat_start import wanted
from localspec.engine.errors import UserError
from localspec.engine.process import EngineDied, Host, Link
from localspec.settings import Folders, Settings

SECONDS = 10.0
"""Loading, answering and closing a tiny model takes a fraction of one."""
ANSWER = 6
"""Tokens."""


class _Report:
    def fetching(self, phase: str, done: int, total: int) -> None: ...

    def loading(self, what: str, share: float) -> bool:
        return True

    def cancelled(self) -> bool:
        return False


class Trier:
    """The service: loads as the app does."""

    def __init__(self, link: Link, folder: Path) -> None:
        from localspec.engine import engine  # noqa: F401 - what it takes is not the file's

        self._folders = Folders(*[folder] * 5)

    def resident(self) -> Iterator[int]:
        """What the process takes before anything is loaded (bytes); the highest figure starts here anew."""
        Path("/proc/self/clear_refs").write_text("5")
        yield _status("self", "VmRSS")

    def answer(self, path: Path) -> Iterator[str]:
        settings = Settings(model=str(path), drafter="lookup", max_tokens=ANSWER, seed=1, threads=1)
        answerer = wanted(settings, self._folders).load(_Report())
        try:
            for step in answerer.answer([Message("user", "abc, " * 30)], lambda done, total: None):
                yield step.text
        finally:
            answerer.close()

    def stop(self) -> None: ...

    def idle(self, unwanted: Callable[[], bool]) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Outcome:
    """What came of one file."""

    text: str | None
    """The answer; None where there is none."""
    error: Exception | None
    seconds: float
    memory: int
    """By how much the child had grown at its largest (bytes)."""

    @property
    def died(self) -> bool:
        return isinstance(self.error, EngineDied)


class Trial:
    """Keeps a child at work."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._host = folder, self._started(folder)

    def _started(self, folder: Path) -> Host:
        host = Host(Trier, (folder,), log_file=folder / "log", remedy="start it again")
        assert list(host.start()) == []
        return host

    def of(self, path: Path) -> Outcome:
        """Load a file and have it answer. A child that dies is replaced."""
        host = self._host
        before = sum(host.call("resident"))
        peak, over = before, threading.Event()

        def watch() -> None:
            nonlocal peak
            while not over.wait(0.01):
                peak = max(peak, _status(host.pid, "VmHWM"))

        watching, killing = threading.Thread(target=watch), threading.Timer(SECONDS, host.kill)
        started = time.monotonic()
        text, error = None, None
        watching.start()
        killing.start()
        try:
            text = "".join(host.call("answer", path))
        except Exception as caught:
            error = caught
        finally:
            killing.cancel()
            seconds = time.monotonic() - started
            peak = max(peak, _status(host.pid, "VmHWM"))
            over.set()
            watching.join()
        if isinstance(error, EngineDied):
            host.close()
            self._host = self._started(self._folder)
        return Outcome(text, error, seconds, peak - before)

    def close(self) -> None:
        self._host.close()


def _status(process: Any, name: str) -> int:
    """A figure of /proc in bytes, 0 of a process that has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except (OSError, ValueError):
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith(name + ":")), 0)


def is_one_sentence(error: Exception | None) -> bool:
    said = str(error)
    return isinstance(error, UserError) and said.endswith(".") and said.isprintable() and len(said) < 600
