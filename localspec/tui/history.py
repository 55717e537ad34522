"""What was sent before, to send again; also after the next start."""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from localspec.engine.errors import UserError
from localspec.settings import make_private
from localspec.whole_file import open_private, write_whole

MOST_ENTRIES = 1000
_SPARE_ENTRIES = 200
"""The file is cut only when it has so many too many: most starts leave it alone."""

_log = logging.getLogger(__name__)


class History:
    """Going back and forth through earlier entries; what was being written waits at the end.

    With a `file`, entries are kept in it, one JSON string a line, and read from it when first asked for. A file that
    cannot be read or written is logged and done without.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._entries: list[str] = []
        self._is_read = file is None
        self._at = 0
        self._unsent = ""

    def add(self, text: str) -> None:
        """`text` has been sent."""
        self._read()
        if not self._entries or self._entries[-1] != text:
            self._entries.append(text)
            del self._entries[:-MOST_ENTRIES]
            if self._file:
                _append(self._file, text)
        self._at = len(self._entries)
        self._unsent = ""

    def older(self, current: str) -> str | None:
        """The entry before; None at the oldest. `current` is what stands in the prompt."""
        self._read()
        if self._at == len(self._entries):
            self._unsent = current
        if self._at == 0:
            return None
        self._at -= 1
        return self._entries[self._at]

    def newer(self) -> str | None:
        """The entry after, in the end what was being written; None there."""
        if self._at == len(self._entries):
            return None
        self._at += 1
        return self._unsent if self._at == len(self._entries) else self._entries[self._at]

    def _read(self) -> None:
        if self._is_read or self._file is None:
            return
        self._is_read = True
        self._entries = _read(self._file)
        self._at = len(self._entries)


def _read(file: Path) -> list[str]:
    """The newest entries of a file, which is cut to them when it has grown too long."""
    try:
        with _locked(file, os.O_RDONLY) as descriptor:
            entries = _entries(descriptor)
            if len(entries) > MOST_ENTRIES + _SPARE_ENTRIES:
                _replace(file, entries[-MOST_ENTRIES:])
            return entries[-MOST_ENTRIES:]
    except FileNotFoundError:
        return []
    except OSError as error:
        _log.warning("the history cannot be read: %s", error)
        return []


def _entries(descriptor: int) -> list[str]:
    with os.fdopen(os.dup(descriptor), "rb") as stream:
        lines = stream.read().split(b"\n")
    found = []
    for line in lines:
        # Whatever else wrote there, or was cut short, is no entry.
        with contextlib.suppress(ValueError, RecursionError):
            entry = json.loads(line)
            if isinstance(entry, str) and entry:
                found.append(entry)
    return found


def _append(file: Path, text: str) -> None:
    try:
        make_private(file.parent)
        with _locked(file, os.O_RDWR | os.O_APPEND | os.O_CREAT) as descriptor:
            _write(descriptor, b"" if _ends_whole(descriptor) else b"\n", _line(text))
    except (OSError, UserError) as error:
        _log.warning("the history cannot be written: %s", error)


def _ends_whole(descriptor: int) -> bool:
    """Whether the last line has its end: an app that was killed while writing leaves one without."""
    size = os.fstat(descriptor).st_size
    if size == 0:
        return True
    os.lseek(descriptor, size - 1, os.SEEK_SET)
    return os.read(descriptor, 1) == b"\n"


def _replace(file: Path, entries: list[str]) -> None:
    try:
        write_whole(file, b"".join(map(_line, entries)))
    except OSError as error:
        _log.warning("the history cannot be cut: %s", error)


def _line(text: str) -> bytes:
    return json.dumps(text).encode() + b"\n"


def _write(descriptor: int, *pieces: bytes) -> None:
    data = memoryview(b"".join(pieces))
    while data:
        data = data[os.write(descriptor, data) :]


@contextlib.contextmanager
def _locked(file: Path, flags: int) -> Iterator[int]:
    """The open file, which no other app appends to or cuts meanwhile (Windows: where nothing is locked, it might)."""
    while True:
        descriptor = open_private(file, flags)
        try:
            if fcntl is not None:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            # Another app may have put a shorter file in this one's place while this one waited.
            if fcntl is None or _is_still(file, descriptor):
                yield descriptor
                return
        finally:
            os.close(descriptor)


def _is_still(file: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(file.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
