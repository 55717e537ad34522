"""A file on its way: NAME.part, which grows until it is whole, and NAME.part.json, which says what it is a part of."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from localspec.hub.remote import RemoteFile
from localspec.hub.starter import sync_folder
from localspec.whole_file import from_json, write_whole

if TYPE_CHECKING:
    from hashlib import _Hash

SUFFIX = ".part"
_NOTE_SUFFIX = ".part.json"
_READ_BYTES = 1 << 20
_ORPHAN_SECONDS = 2 * 24 * 3600


class Part:
    """The part of one file, held by this process alone between `claim` and `release`.

    Every byte goes to the operating system as it comes, so that a process that is killed loses none that it has. The part
    belongs to the content that the hub calls by `file.etag`: what is left of another one is thrown away.
    """

    def __init__(self, target: Path, file: RemoteFile) -> None:
        self.target, self.file = target, file
        self.path = target.with_name(target.name + SUFFIX)
        self._note = target.with_name(target.name + _NOTE_SUFFIX)
        self._descriptor = -1
        self.size = 0
        """Bytes that are here."""
        self._begin_digest()

    def claim(self) -> bool:
        """Take hold of the part, or of a new empty one; False where another process has it. Raises OSError."""
        while True:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_still(descriptor, self.path):
                    break
            except BlockingIOError:
                os.close(descriptor)
                return False
            except BaseException:
                os.close(descriptor)
                raise
            # Whoever held it has made it the model, or taken it away, since we opened it.
            os.close(descriptor)
        self._descriptor = descriptor
        self.size = os.fstat(descriptor).st_size
        if self.size and (self.size > self.file.size or not self._is_of_this_file()):
            self.discard()
        return True

    def write(self, data: bytes) -> None:
        """Append. Raises OSError; what was written until then stays."""
        if self.size == 0:
            self._write_note()
        rest = memoryview(data)
        while rest:
            written = os.pwrite(self._descriptor, rest, self.size)
            if self._read == self.size:
                self._digest.update(rest[:written])
                self._read += written
            self.size += written
            rest = rest[written:]

    def discard(self) -> None:
        """Throw away what is here."""
        os.ftruncate(self._descriptor, 0)
        self.size = 0
        self._begin_digest()

    def is_right(self, check: Callable[[], None] = lambda: None) -> bool:
        """Whether the content is what the hub promised: read again, where it did not all come through our hands.
        `check` is called now and then, and may raise."""
        while chunk := os.pread(self._descriptor, _READ_BYTES, self._read):
            check()
            self._digest.update(chunk)
            self._read += len(chunk)
        return self._digest.hexdigest() == (self.file.sha256 or self.file.etag).lower()

    def finish(self) -> None:
        """Give the whole file its name, safe on the disk."""
        os.fsync(self._descriptor)
        self.path.replace(self.target)
        sync_folder(self.target.parent)
        self._note.unlink(missing_ok=True)

    def release(self) -> None:
        """Let go of the part. An empty one is taken away."""
        if self._descriptor < 0:
            return
        with contextlib.suppress(OSError):
            if self.size == 0 and _is_still(self._descriptor, self.path):
                self._note.unlink(missing_ok=True)
                self.path.unlink()
        os.close(self._descriptor)
        self._descriptor = -1

    def _begin_digest(self) -> None:
        # A file outside of large file storage is known by the id that git gives its content.
        blob = hashlib.sha1(f"blob {self.file.size}\0".encode(), usedforsecurity=False)
        self._digest: _Hash = hashlib.sha256() if self.file.sha256 else blob
        self._read = 0

    def _is_of_this_file(self) -> bool:
        note = _read_note(self._note)
        return (note.get("etag"), note.get("size")) == (self.file.etag, self.file.size)

    def _write_note(self) -> None:
        note = {
            "repository": self.file.repository,
            "path": self.file.path,
            "commit": self.file.commit,
            "etag": self.file.etag,
            "size": self.file.size,
        }
        # Only one process has claimed it.
        new = self._note.with_name(self._note.name + ".new")
        write_whole(self._note, (json.dumps(note, indent=2) + "\n").encode(), part=new, sync=False)


def part_bytes(target: Path, file: RemoteFile) -> int:
    """How much of `file` has come already and need not come again."""
    part = Part(target, file)
    with contextlib.suppress(OSError):
        size = part.path.stat().st_size
        if size <= file.size and part._is_of_this_file():
            return size
    return 0


def sweep(folder: Path) -> None:
    """Remove what nothing can be made of any more: parts without a note, notes without a part, and parts of files that
    are here whole, if they are two days old and nobody is writing to them. A part that can be gone on with stays."""
    for path in folder.glob(f"*{SUFFIX}"):
        with contextlib.suppress(OSError):
            target = path.with_name(path.name[: -len(SUFFIX)])
            note = path.with_name(target.name + _NOTE_SUFFIX)
            if _is_old(path) and (target.exists() or not _read_note(note)):
                _remove_unlocked(path, note)
    for name in (f"*{_NOTE_SUFFIX}", f"*{_NOTE_SUFFIX}.new"):
        for path in folder.glob(name):
            part = path.with_name(path.name[: path.name.rindex(SUFFIX) + len(SUFFIX)])
            with contextlib.suppress(OSError):
                if _is_old(path) and not part.exists():
                    path.unlink()


def unfinished(folder: Path) -> list[Path]:
    """The files in `folder` that have begun to come, by the names they will have."""
    return sorted(path.with_name(path.name[: -len(SUFFIX)]) for path in folder.glob(f"*.gguf{SUFFIX}"))


def remove_part(target: Path) -> int:
    """Delete what has come of a file, and return how many bytes that was. Raises OSError, BlockingIOError where it is being
    downloaded now."""
    part, note = target.with_name(target.name + SUFFIX), target.with_name(target.name + _NOTE_SUFFIX)
    try:
        size = part.stat().st_size
        _remove_unlocked(part, note)
    except FileNotFoundError:
        return 0
    return size


def _is_still(descriptor: int, path: Path) -> bool:
    try:
        named = path.stat()
    except FileNotFoundError:
        return False
    held = os.fstat(descriptor)
    return (held.st_dev, held.st_ino) == (named.st_dev, named.st_ino)


def _is_old(path: Path) -> bool:
    return time.time() - path.stat().st_mtime > _ORPHAN_SECONDS


def _remove_unlocked(path: Path, note: Path) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_still(descriptor, path):
            note.unlink(missing_ok=True)
            path.unlink()
    finally:
        os.close(descriptor)


def _read_note(path: Path) -> dict[str, object]:
    try:
        note = from_json(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return note if isinstance(note, dict) else {}
