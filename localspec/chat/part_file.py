"""What of a text has been rewritten, in a file beside the one it becomes, so that it can be gone on with."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import BinaryIO

from localspec.chat.rewrite_events import State, state_of
from localspec.engine.errors import UserError
from localspec.whole_file import write_whole

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

_ENDING, _STATE_ENDING = ".part", ".state"
_BLOCK = 1 << 20
_LONGEST_NAME = 200
"""Bytes."""


class PartFile:
    """NAME.part holds the bytes of the finished parts and NAME.part.state what they are of, in JSON. A file of that name
    which is of something else is left alone, and NAME.part.2 or a later one taken.

    `private`: the file can be read by nobody else until it takes the place of another one. Raises UserError where it cannot
    be written.
    """

    def __init__(self, target: Path, digest: str, mark: bytes = b"", private: bool = True) -> None:
        self.state: State | None = None
        """Where an earlier rewriting has stopped."""
        self._stream: BinaryIO
        for path in _names(target):
            self.path, self.state_path = path, path.with_name(path.name + _STATE_ENDING)
            if not os.path.lexists(path) and not os.path.lexists(self.state_path):
                if self._begin(digest, mark, private):
                    return
            elif self._go_on(digest):
                return

    def _begin(self, digest: str, mark: bytes, private: bool) -> bool:
        """Make the file; False where somebody else has done so at this moment."""
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
            self._stream = os.fdopen(os.open(self.path, flags, 0o600 if private else 0o666), "wb")
        except FileExistsError:
            return False
        except OSError as error:
            raise self._refusal(error) from error
        if not _is_ours(self._stream, self.path):
            self._stream.close()
            return False
        try:
            # Should this process be killed before the first part is done, the next one knows whose file this is.
            self.append(mark, State(digest, 0, 0))
        except UserError:
            self.discard()
            raise
        return True

    def _go_on(self, digest: str) -> bool:
        """Open what is there, if it is of this text and this instruction; without bytes that nobody has vouched for."""
        try:
            if self.path.is_symlink() or not (self.path.is_file() and self.state_path.is_file()):
                return False
            size, state = _read_state(self.state_path.read_bytes())
            if state.digest != digest or self.path.stat().st_size < size:
                return False
            stream = self.path.open("rb+")
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return False
        if not _is_ours(stream, self.path):
            stream.close()
            return False
        stream.truncate(size)
        stream.seek(size)
        self._stream, self.state = stream, state
        return True

    def append(self, data: bytes, state: State) -> None:
        """Add what a part has become. Raises UserError."""
        try:
            self._stream.write(data)
            self._stream.flush()
            os.fsync(self._stream.fileno())
            self._note(state)
        except OSError as error:
            raise self._refusal(error) from error

    def note(self, state: State) -> None:
        """Write down a state without adding anything. Raises UserError."""
        self.append(b"", state)

    def complete(self) -> bytes:
        """The SHA-256 of all the bytes. The file stays open, and with that this process's, until `close`."""
        digest = hashlib.sha256()
        with self.path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
        return digest.digest()

    def forget_state(self) -> None:
        """The parts have become the whole."""
        with contextlib.suppress(OSError):
            self.state_path.unlink()

    def close(self) -> None:
        """Keep what is there."""
        with contextlib.suppress(OSError):
            self._stream.close()

    def discard(self) -> None:
        """Remove everything."""
        for path in (self.path, self.state_path):
            with contextlib.suppress(OSError):
                path.unlink()
        self.close()

    def _note(self, state: State) -> None:
        values = {"bytes": self._stream.tell(), "state": asdict(state)}
        write_whole(self.state_path, json.dumps(values).encode())

    def _refusal(self, error: OSError) -> UserError:
        return UserError(
            f"{self.path} cannot be written ({error.strerror}); make room, or choose another output with -o."
        )


def _names(target: Path) -> Iterator[Path]:
    name = target.name
    if len(os.fsencode(name)) > _LONGEST_NAME:
        # With an ending behind it, it would be longer than file systems allow.
        short = os.fsencode(name)[:_LONGEST_NAME].decode("utf-8", "ignore")
        name = f"{short}~{hashlib.sha256(os.fsencode(name)).hexdigest()[:8]}"
    yield target.with_name(name + _ENDING)
    for number in itertools.count(2):
        yield target.with_name(f"{name}{_ENDING}.{number}")


def _read_state(data: bytes) -> tuple[int, State]:
    """How many bytes belong to the state, and the state. Raises ValueError, TypeError or KeyError where it is none."""
    values = json.loads(data)
    size, kept = values["bytes"], values["state"]
    if type(size) is not int or size < 0:
        raise ValueError("a number is none")
    return size, state_of(kept)


def _is_ours(stream: BinaryIO, path: Path) -> bool:
    """Whether no other process writes this file, and it is still the one of this name."""
    try:
        if fcntl is not None:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(stream.fileno()), path.stat())
    except OSError:
        return False
