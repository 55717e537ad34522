"""The versions of the text that is being rewritten, and the one that is shown. Knows no widgets."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from localspec.chat.database import BusyError
from localspec.chat.diff import Diff, diff
from localspec.chat.messages import Document
from localspec.chat.rewrite_events import State
from localspec.chat.store import Store
from localspec.chat.versions import Version, Versions
from localspec.engine.errors import UserError
from localspec.engine.step import Finish

_Done = TypeVar("_Done")
_SAVE_SECONDS = 1.0
_TOLD_SECONDS = 2.0
"""That others are writing is no trouble, unless it lasts."""
_CHARACTERS_PER_SECOND = 200_000
"""A long text is saved less often while it is written."""


class VersionHistory:
    """Version 0 is the document; each other one was made from what was accepted of another."""

    def __init__(
        self, store: Store | None, document: Document, on_trouble: Callable[[str], None] = lambda _: None
    ) -> None:
        """`on_trouble` is called with a sentence when versions cannot be kept; work goes on without."""
        self.document = document
        self._kept, self._on_trouble = Versions(store, document), on_trouble
        self._troubled = False
        self._failing: float | None = None
        """Since when nothing can be saved, by a clock that only rises."""
        self._store, self._generation = store, store.generation if store else 0
        self._unsaved: set[int] = set()
        """The places of versions that are as they are in memory only."""
        self.versions: list[Version] = self._do(self._kept.load, at_once=True) or []
        self.at = len(self.versions)
        """The version that is shown."""
        self._diffs: dict[int, Diff] = {}
        self._growing = len(self.versions) - 1
        """The place of the version that is being written, or was last."""
        self._decided: set[tuple[int, str, str]] = set()
        """The changes that were rejected before more of it is written."""
        self._saved_at = 0.0

    @property
    def current(self) -> Version | None:
        """The version that is shown; None for the document."""
        return self.versions[self.at - 1] if self.at else None

    @property
    def source(self) -> str:
        """What the shown version was made from."""
        return self.current.source if self.current else self.document.text

    @property
    def diff(self) -> Diff:
        """What the shown version changes. Takes a moment for a long text, the first time."""
        if self.at not in self._diffs:
            current = self.current
            self._diffs[self.at] = diff(current.source, current.result) if current else diff("", "")
        return self._diffs[self.at]

    @property
    def accepted(self) -> list[bool]:
        """Of each change, whether it is accepted; all are, until the person rejects them."""
        rejected = set(self.current.rejected) if self.current else set()
        return [number not in rejected for number in range(len(self.diff.hunks))]

    @property
    def text(self) -> str:
        """The shown version with what is accepted of it."""
        return self.diff.applied(self.accepted) if self.current else self.document.text

    def go(self, by: int) -> bool:
        """Show the version before or after. Whether there is one."""
        if not 0 <= self.at + by <= len(self.versions):
            return False
        self.at += by
        return True

    def begin(self, instruction: str) -> None:
        """A new version, from the text that is shown now; nothing is written of it yet."""
        self._append(Version(0, instruction, self.text, ""))

    def add(self, result: str) -> None:
        """A version that the person has written."""
        source = self.text
        self._append(Version(0, "", source, result, Finish.STOP.value))
        self._save(self._growing)

    def add_beginnings(self, result: str) -> None:
        """Behind the version that was written last: the same with what had been written of the parts that failed."""
        place = self._growing
        self._append(replace(self.versions[place], id=0, result=result, finish=Finish.LENGTH.value, rejected=()))
        self._save(self._growing)
        self.at = place + 1

    @property
    def goes_on(self) -> bool:
        """Whether the writing of the shown version can be gone on with."""
        return self.current is not None and self.current.state is not None

    def go_on(self) -> None:
        """More of the shown version is going to be written."""
        self._growing = self.at - 1
        self._decided = self._rejected()

    def grow(self, result: str, state: State | None = None, done: int = 0) -> None:
        """The version that is being written has so much now, and can be gone on with from `state`; it is saved, if that is
        due."""
        due = self.is_due
        self._replace(self._growing, replace(self.versions[self._growing], result=result, state=state, done=done))
        if due:
            self._save(self._growing)
            self._saved_at = time.monotonic()

    @property
    def is_due(self) -> bool:
        """Whether what is being written should be saved now."""
        length = len(self.versions[self._growing].result) if self.versions else 0
        return time.monotonic() - self._saved_at >= _SAVE_SECONDS + length / _CHARACTERS_PER_SECOND

    def finish(self, finish: Finish | None) -> None:
        """The version that is being written is complete, was stopped, or broke off (None). One without a word is none."""
        place = self._growing
        version = self.versions[place]
        begun = version.state is not None and bool(version.state.part or version.state.begun)
        if version.result in ("", version.source) and finish is not Finish.STOP and not begun:
            self.versions.pop(place)
            self._unsaved = {other - (other > place) for other in self._unsaved if other != place}
            self._diffs.clear()
            self.at = min(self.at, len(self.versions))
            if version.id:
                self._do(lambda: self._kept.remove(version))
            return
        ended = replace(version, finish=finish.value if finish else None)
        if finish is Finish.STOP or not begun:
            ended = replace(ended, state=None, done=0)
        self._replace(place, ended)
        self._reject_again(place)
        self._save(place)

    def decide(self, numbers: Sequence[int], taken: bool) -> None:
        """Accept or reject changes of the shown version."""
        if self.current:
            rejected = set(self.current.rejected) - set(numbers) | (set() if taken else set(numbers))
            self.versions[self.at - 1] = replace(self.current, rejected=tuple(sorted(rejected)))
            self._save(self.at - 1)

    def save(self) -> bool:
        """Try again what could not be saved. Whether all of it is."""
        if self._store and self._store.generation != self._generation:
            # The file that they were in is gone.
            self._generation = self._store.generation
            self.versions = [replace(version, id=0) for version in self.versions]
            self._unsaved = set(range(len(self.versions)))
        for place in sorted(self._unsaved):
            version = self._do(lambda place=place: self._kept_now(self.versions[place]))  # type: ignore[misc]
            if version is None:
                return False
            self.versions[place] = version
            self._unsaved.discard(place)
        return True

    def _rejected(self) -> set[tuple[int, str, str]]:
        """The changes of the shown version that are rejected: where they are in its source, and what they change."""
        hunks = zip(self.diff.hunks, self.accepted, strict=True)
        return {(hunk.at, hunk.old, hunk.new) for hunk, accepted in hunks if not accepted}

    def _reject_again(self, place: int) -> None:
        """What was rejected before more was written is so still, whatever its number is now."""
        decided, self._decided = self._decided, set()
        if not decided:
            return
        version = self.versions[place]
        hunks = diff(version.source, version.result).hunks
        rejected = [number for number, hunk in enumerate(hunks) if (hunk.at, hunk.old, hunk.new) in decided]
        self._replace(place, replace(version, rejected=tuple(rejected)))

    def _append(self, version: Version) -> None:
        self.versions.append(version)
        self.at = len(self.versions)
        self._growing = self.at - 1
        self._diffs.pop(self.at, None)

    def _replace(self, place: int, version: Version) -> None:
        """Another result."""
        self.versions[place] = version
        self._diffs.pop(place + 1, None)

    def _save(self, place: int) -> None:
        self._unsaved.add(place)
        self.save()

    def _kept_now(self, version: Version) -> Version:
        if not version.id:
            return self._kept.add(version)
        self._kept.change(version)
        return version

    def _do(self, act: Callable[[], _Done], *, at_once: bool = False) -> _Done | None:
        try:
            done = act()
        except (UserError, sqlite3.Error) as error:
            now = time.monotonic()
            self._failing = now if self._failing is None else self._failing
            lasts = at_once or not isinstance(error, BusyError) or now - self._failing >= _TOLD_SECONDS
            if lasts and not self._troubled:
                self._troubled = True
                self._on_trouble(f"The versions are not saved ({error}); rewriting goes on, and saving is tried again.")
            return None
        self._troubled, self._failing = False, None
        return done
