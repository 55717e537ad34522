"""One file from the hub, gone on with where an earlier download has stopped."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

from localspec.engine.errors import UserError
from localspec.hub.hub_client import ChangedError, Hub, TooShortError
from localspec.hub.hub_errors import PassingError, UnreachableError
from localspec.hub.origins import is_here
from localspec.hub.part import Part
from localspec.hub.patience import Pause, patiently
from localspec.hub.ranges import UnusableAnswerError, new_bytes
from localspec.hub.remote import RemoteFile
from localspec.hub.starter import FetchCancelledError
from localspec.settings import make_private

Progress = Callable[[int], None]
"""Told how many bytes of the file are here."""

_TRIES = 6
_LOOK_SECONDS = 0.2
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Download:
    """A file that is being fetched to `target`.

    `progress` is told the bytes that are here; `pause` waits before another try; `stopped` is asked at every piece that
    arrives.
    """

    def __init__(
        self, hub: Hub, file: RemoteFile, target: Path, progress: Progress, pause: Pause, stopped: Callable[[], bool]
    ) -> None:
        self._hub, self._file, self._target = hub, file, target
        self._progress, self._pause, self._stopped = progress, pause, stopped
        self._part = Part(target, file)

    def run(self) -> bool:
        """Fetch the file; False where another process has done so meanwhile.

        The file gets its name only once its SHA-256 is right. Raises FetchCancelledError or another UserError; what has
        come until then is kept, and the next download goes on with it, also after the process was killed.
        """
        try:
            make_private(self._target.parent)
            why = f"Another process is downloading {self._file.name}, so this one waits for it."
            while not self._part.claim():
                self._wait_for_the_other(why)
                why = ""
            try:
                if is_here(self._target, self._file):
                    return False
                self._complete()
            finally:
                self._part.release()
        except OSError as error:
            raise UserError(self._disk_sentence(error)) from error
        return True

    def _wait_for_the_other(self, why: str) -> None:
        self._check_stopped()
        try:
            self._progress(min(self._part.path.stat().st_size, self._file.size))
        except FileNotFoundError:
            return
        self._pause(_LOOK_SECONDS, why)

    def _complete(self) -> None:
        gone_on_with = self._part.size > 0
        self._fill()
        right = self._is_right()
        if not right and gone_on_with:
            # The old part may have been damaged on the disk since: once more, from the beginning.
            self._part.discard()
            self._fill()
            right = self._is_right()
        if not right:
            self._part.discard()
            raise UserError(
                f"{self._file.name} has come with other bytes than the hub promised, so it was thrown away: run the same "
                "command again, and if that does not help, check what HF_ENDPOINT and the proxies point at."
            )
        self._part.finish()

    def _is_right(self) -> bool:
        return self._part.is_right(self._check_stopped)

    def _fill(self) -> None:
        before = 0

        def attempt() -> None:
            nonlocal before
            before = self._part.size
            self._attempt()

        self._progress(self._part.size)
        try:
            patiently(attempt, self._pause, _TRIES, lambda: self._part.size > before)
        except UnreachableError as error:
            here = f"; {megabytes(self._part.size)} of {self._file.name} are here and kept, so run it again to go on"
            raise UnreachableError(str(error).rstrip(".") + (f"{here}." if self._part.size else ".")) from error

    def _attempt(self) -> None:
        """Ask for what is missing, once."""
        size = self._file.size
        if self._part.size == size:
            return
        try:
            with self._hub.open(self._file, self._part.size) as answer:
                position = answer.begins
                for chunk in answer.chunks:
                    self._check_stopped()
                    self._part.write(new_bytes(chunk, position, self._part.size, size))
                    position += len(chunk)
                    self._progress(self._part.size)
        except TooShortError as error:
            self._part.discard()
            raise PassingError(f"The hub says that {self._file.name} is shorter: try again later.") from error
        except (ChangedError, UnusableAnswerError) as error:
            self._part.discard()
            raise UserError(
                f"{self._file.name} has changed on the hub while it was being downloaded, so what had come was thrown "
                "away: run the same command again."
            ) from error
        if self._part.size < size:
            raise PassingError(f"The download of {self._file.name} broke off: check the network.")

    def _check_stopped(self) -> None:
        if self._stopped():
            raise FetchCancelledError(f"The download of {self._file.name} was stopped: run it again to go on.")

    def _disk_sentence(self, error: OSError) -> str:
        folder, missing = self._target.parent, self._file.size - self._part.size
        if error.errno in _FULL:
            return (
                f"{folder} takes no more ({error.strerror}): free {megabytes(missing)} and run the same command again; "
                f"{megabytes(self._part.size)} of {self._file.name} are here and kept."
            )
        return (
            f"{self._file.name} could not be saved in {folder} ({error.strerror or error}): check the folder's "
            "permissions and run the same command again."
        )


def megabytes(count: int) -> str:
    """A size for people."""
    for unit, size in (("GB", 1e9), ("MB", 1e6)):
        if count >= size:
            return f"{count / size:.1f} {unit}" if count < 100 * size else f"{count / size:,.0f} {unit}"
    return f"{count / 1e3:.0f} kB"
