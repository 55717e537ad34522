"""Downloads of models while the chat goes on. They belong to the app: no screen has to stay open for them.

A thread of its own fetches, and writes down how far it is; whoever shows that looks when there is time. Nothing is sent to
the screen for a piece that arrives, so that a fast network cannot keep a key waiting.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING

from localspec.engine.errors import UserError
from localspec.engine.rates import ratio, share

if TYPE_CHECKING:
    from localspec.hub.plan import Plan
    from localspec.settings import Folders

STARTER = "starter"
"""What `localspec pull` calls the starter model."""

_log = logging.getLogger("localspec.tui")
_GOODBYE_SECONDS = 3.0


class State(Enum):
    """How far a download is."""

    ASKING = "asking the hub"
    RUNNING = "downloading"
    HERE = "here"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass
class Download:
    """A pair or a model that is fetched. Written by its thread, read by the screen."""

    name: str
    """As it was asked for."""
    state: State = State.ASKING
    done: int = 0
    total: int = 0
    """Bytes, what was here before included; `total` is 0 as long as it is not known."""
    speed: float = 0.0
    """Bytes per second; 0 as long as nobody can tell."""
    note: str = ""
    """Why it waits: a sentence, empty while it does not."""
    sentence: str = ""
    """What came of it."""
    models: tuple[str, ...] = ()
    """The names of the models that are here then, the target first."""
    cancelled: threading.Event = field(default_factory=threading.Event, repr=False)

    @property
    def is_running(self) -> bool:
        """Whether there is anything to wait for."""
        return self.state in (State.ASKING, State.RUNNING)

    @property
    def share(self) -> float:
        """0 to 1."""
        return share(self.done, self.total, of_nothing=0.0)

    @property
    def seconds_left(self) -> float | None:
        """None as long as nobody can tell."""
        return ratio(max(0, self.total - self.done), self.speed)


class Downloads:
    """All downloads since the start of the app. All calls return at once, but for `close`."""

    def __init__(self, folders: Folders) -> None:
        self._folders = folders
        self._all: dict[str, Download] = {}
        self._threads: list[threading.Thread] = []

    @property
    def all(self) -> list[Download]:
        """The ended ones as well, in the order in which they were begun."""
        return list(self._all.values())

    @property
    def running(self) -> list[Download]:
        """Those under way."""
        return [download for download in self._all.values() if download.is_running]

    def get(self, name: str) -> Download | None:
        """The last download of this name."""
        return self._all.get(name.casefold())

    def pull(self, name: str) -> Download:
        """Begin to fetch what `localspec pull NAME` would; one that is under way goes on."""
        before = self.get(name)
        if before and before.is_running:
            return before
        download = Download(name)
        self._all.pop(name.casefold(), None)
        self._all[name.casefold()] = download
        # A daemon: a network that hangs must not keep the person from leaving.
        thread = threading.Thread(target=self._run, args=(download,), name="localspec-pull", daemon=True)
        self._threads.append(thread)
        thread.start()
        return download

    def cancel(self, name: str) -> bool:
        """Stop a download, soon; what has come is kept. Whether there was one to stop."""
        download = self.get(name)
        if download is None or not download.is_running:
            return False
        download.cancelled.set()
        return True

    def stop(self) -> None:
        """Stop all of them, soon."""
        for download in self.running:
            download.cancelled.set()

    def close(self) -> None:
        """Stop all of them, and wait a moment for that."""
        self.stop()
        limit = time.monotonic() + _GOODBYE_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, limit - time.monotonic()))

    # On the thread of a download.

    def _run(self, download: Download) -> None:
        # Imported here: nothing of this is needed before the first paint.
        from localspec.hub.pull import fetch, problem_of
        from localspec.hub.starter import FetchCancelledError

        try:
            plan = self._plan(download)
            count = _Count(download, plan)
            download.state = State.RUNNING
            fetch(plan, count.show, download.cancelled.is_set, count.note)
            problem = next(filter(None, map(problem_of, plan.models)), "")
        except FetchCancelledError:
            # pip begins anew each time.
            rest = (
                "" if download.name == STARTER else "; what has come is kept, and the next download goes on from there"
            )
            _end(download, State.STOPPED, f"{download.name} is stopped{rest}.")
        except Exception as error:
            _end(download, State.FAILED, _sentence(download.name, error))
        else:
            if problem:
                _end(download, State.FAILED, problem)
                return
            starter = (plan.starter.path.stem,) if plan.starter else ()
            download.models = (*(model.name for model in plan.models), *starter)
            download.done = download.total
            _end(download, State.HERE, f"{download.name} is here.")

    def _plan(self, download: Download) -> Plan:
        """By another thread, so that nobody waits for the hub who wants to stop."""
        from localspec.hub.catalog import usable_catalog
        from localspec.hub.catalog_file import USER_CATALOG
        from localspec.hub.pull import plan_stoppably
        from localspec.tui.machine import known_machine

        def note(sentence: str) -> None:
            download.note = sentence

        folders, cancelled = self._folders, download.cancelled.is_set
        catalog = usable_catalog(folders.config / USER_CATALOG)
        plan = plan_stoppably([download.name], folders.models, catalog, cancelled, note, cache(known_machine))
        download.note = ""
        return plan


class _Count:
    """Adds up the files of a download."""

    def __init__(self, download: Download, plan: Plan, clock: Callable[[], float] = time.monotonic) -> None:
        from localspec.pull_bars import Speed

        self._download, self._clock, self._speed = download, clock, Speed()
        self._files = {
            file.target.name: (file.here, file.file.size)
            for model in plan.models
            for file in model.files
            if file.missing
        }
        if plan.starter and plan.starter.missing:
            self._files[plan.starter.starter.file] = (0, plan.starter.missing)
        self._add_up()

    def show(self, file: str, done: int, total: int) -> None:
        """So many bytes of a file are here. Called ten times a second at most."""
        self._files[file] = (done, total)
        self._add_up()

    def note(self, sentence: str) -> None:
        """It waits."""
        self._download.note = sentence

    def _add_up(self) -> None:
        download = self._download
        download.total = sum(total for _done, total in self._files.values())
        download.done = sum(done for done, _total in self._files.values())
        self._speed.at(self._clock(), download.done)
        download.speed, download.note = self._speed.bytes_per_second, ""


def _end(download: Download, state: State, sentence: str) -> None:
    # The state last: who sees it reads the sentence next.
    download.sentence, download.note = sentence, ""
    download.state = state


def _sentence(name: str, error: Exception) -> str:
    if isinstance(error, UserError):
        return str(error)
    _log.error("unexpected", exc_info=error)
    return f"{name} could not be downloaded ({type(error).__name__}: {error}); the log says more."
