"""Several downloads at once, watched by whoever waits for them."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from localspec.hub.starter import FetchCancelledError

_LOOK_SECONDS = 0.1
_GOODBYE_SECONDS = 2.0


@dataclass
class Job:
    """One thing to fetch."""

    name: str
    total: int
    """Bytes."""
    work: Callable[[Job, Crew], Any]
    """Does it: tells `done`, asks `stopped` often, waits with `pause`."""
    done: int = 0
    told: tuple[int, int] | None = field(default=None, repr=False)


class Crew:
    """Does jobs with a few threads of its own. Everything that is told is told by the thread that called `run`."""

    def __init__(self, jobs: Sequence[Job], threads: int = 3) -> None:
        self._jobs, self._waiting = list(jobs), deque(jobs)
        self._count = min(threads, len(self._jobs))
        self._stop = threading.Event()
        self._moved = threading.Event()
        self._notes: deque[str] = deque()
        self._errors: deque[BaseException] = deque()

    def run(
        self,
        progress: Callable[[str, int, int], None] = lambda name, done, total: None,
        cancelled: Callable[[], bool] = lambda: False,
        note: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        """Do all jobs. `cancelled` is asked ten times a second; `note` is told why something has to wait.

        Raises the first error of a job, having stopped the others, or FetchCancelledError.
        """
        # A thread that waits for the network may take a while to notice that it is to stop, and nobody waits for it.
        threads = [
            threading.Thread(target=self._labour, name="localspec-fetch", daemon=True) for _ in range(self._count)
        ]
        try:
            for thread in threads:
                thread.start()
            while any(thread.is_alive() for thread in threads) and not self._errors:
                self._moved.wait(_LOOK_SECONDS)
                self._moved.clear()
                self._tell(progress, note)
                if cancelled():
                    raise FetchCancelledError("The download was stopped: run it again to go on.")
            self._tell(progress, note)
            if self._errors:
                raise self._errors[0]
        finally:
            self._stop.set()
            for thread in threads:
                if thread.ident is not None:
                    thread.join(_GOODBYE_SECONDS / len(threads))

    def stopped(self) -> bool:
        """Whether a job has to end."""
        return self._stop.is_set()

    def pause(self, seconds: float, why: str) -> None:
        """Wait, for a reason that is a sentence or empty. Raises FetchCancelledError when it is time to end."""
        if why:
            self._notes.append(why)
        if self._stop.wait(seconds):
            raise FetchCancelledError("The download was stopped: run it again to go on.")

    def _labour(self) -> None:
        with contextlib.suppress(IndexError):
            while not self._stop.is_set():
                job = self._waiting.popleft()
                try:
                    job.work(job, self)
                except BaseException as error:
                    self._errors.append(error)
                    self._stop.set()
        self._moved.set()

    def _tell(self, progress: Callable[[str, int, int], None], note: Callable[[str], None]) -> None:
        while self._notes:
            note(self._notes.popleft())
        for job in self._jobs:
            now = (job.done, job.total)
            if now != job.told and (job.done or job not in self._waiting):
                job.told = now
                progress(job.name, *now)
