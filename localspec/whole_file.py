"""The program's own files: each is there as a whole or not at all, and nobody else can read it, whatever the umask."""

import contextlib
import errno
import itertools
import json
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

PRIVATE = 0o600
_DAMAGED = ".damaged"
_LOCK_SECONDS = 2.0
_LOOK_SECONDS = 0.01


@contextlib.contextmanager
def whole_file(path: Path, mode: int = PRIVATE, *, part: Path | None = None, sync: bool = True) -> Iterator[BinaryIO]:
    """A file to write, which takes the place of the one at `path` when all of it is written. Raises OSError, and leaves what
    was there then.

    `part`: its name until then, for whoever is the only one to write it, so that kills leave no heap of them behind. `sync`:
    it is on the disk before it has its name, which may take seconds on a busy one.
    """
    if part:
        descriptor = open_private(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    else:
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name[:60]}.", dir=path.parent)
        part = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fchmod(file.fileno(), mode)
            if sync:
                os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise


def write_whole(path: Path, data: bytes, mode: int = PRIVATE, *, part: Path | None = None, sync: bool = True) -> None:
    """Put `data` in the place of the file at `path`, as `whole_file` does. Raises OSError."""
    with whole_file(path, mode, part=part, sync=sync) as file:
        file.write(data)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """The only one of this program's threads and processes that reads a file in `folder`, changes it and writes it back.

    Nobody waits for ever for one that was stopped or hangs in the middle of that, nor where a disk knows no locks: that one
    change may be lost is better than an app that does not answer."""
    with contextlib.ExitStack() as held:
        # The folder itself is locked: a file would have to lie there for ever.
        with contextlib.suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
            held.callback(os.close, descriptor)
            _wait_for_lock(descriptor)
        yield


def _wait_for_lock(descriptor: int) -> None:
    if fcntl is None:
        return
    limit = time.monotonic() + _LOCK_SECONDS
    while time.monotonic() < limit:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_LOOK_SECONDS)
        else:
            return


def read_entries(file: Path) -> dict[str, Any]:
    """A JSON object that is kept in a file; an empty one where there is none that can be read."""
    try:
        entries = from_json(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return entries if isinstance(entries, dict) else {}


def put_entry(file: Path, key: str, entry: object, *, sync: bool = True) -> None:
    """Put one entry into such a file, beside those that others have put there meanwhile. Raises OSError."""
    with locked(file.parent):
        write_whole(file, json.dumps({**read_entries(file), key: entry}, indent=1).encode(), sync=sync)


def write_over(path: Path, data: bytes) -> None:
    """Put `data` where a person wants it. Raises OSError.

    A file that is there is replaced whole and keeps its mode, a new one is private, and a link stays a link. What is no file,
    such as a pipe, is written to."""
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    try:
        place = path.resolve()
    except RuntimeError as error:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path)) from error
    write_whole(place, data, place.stat().st_mode & 0o777 if place.exists() else PRIVATE)


def private_folder(folder: Path) -> None:
    """Create `folder` and its missing parents for this user alone (mode 0700). Raises OSError."""
    for missing in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)
        # The umask may have taken away even what is this user's.
        missing.chmod(0o700)
    folder.mkdir(exist_ok=True)


def from_json(data: bytes | str) -> Any:
    """What is kept in JSON. Raises ValueError for whatever cannot be read, also for what is nested too deeply."""
    try:
        return json.loads(data)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def open_private(path: str | Path, flags: int) -> int:
    """What `os.open` does, for a file of the program's own; one that others could read so far they cannot any more. Raises
    OSError."""
    descriptor = os.open(path, flags | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0), PRIVATE)
    with contextlib.suppress(OSError):
        if os.fstat(descriptor).st_mode & 0o777 != PRIVATE:
            os.fchmod(descriptor, PRIVATE)
    return descriptor


def set_aside(path: Path) -> Path:
    """Give a file that cannot be read another name, NAME.damaged or NAME.damaged.2 and so on, and return that: perhaps
    somebody can make something of it. Raises OSError."""
    for number in itertools.count(1):
        aside = path.with_name(f"{path.name}{_DAMAGED}{'' if number == 1 else f'.{number}'}")
        if not os.path.lexists(aside):
            return path.rename(aside)
    raise AssertionError("unreachable")
