"""A text file that is rewritten: read with care, and replaced at once or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from localspec.chat.text_bytes import TextBytes, text_of
from localspec.engine.errors import UserError

MOST_BYTES = 20_000_000
"""Nobody rewrites more at a time."""


class ChangedMeanwhileError(UserError):
    """The file is not as it was read."""


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file as it was read."""

    path: Path
    """Of the file itself, where a link was given."""
    shown: str
    """The path as it was given."""
    content: TextBytes
    digest: bytes
    links: int
    """Names the file has; more than one are hard links."""


def read_text_file(path: Path) -> TextFile:
    """Read a file. Raises UserError where there is none, or none with a text."""
    try:
        # Opening a pipe would wait for its other end.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise UserError(f"{path} is not a file; give a text file, or pipe the text in.")
            data = file.read(MOST_BYTES + 1)
        real = path.resolve()
    except FileNotFoundError:
        raise UserError(f"There is no file {path}; check the path.") from None
    except IsADirectoryError:
        raise UserError(f"{path} is a folder; give the files in it.") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read ({_reason(error)}); check its permissions.") from None
    if len(data) > MOST_BYTES:
        raise UserError(f"{path} is larger than {MOST_BYTES // 10**6} MB; give the part that matters.")
    content = text_of(data, str(path))
    return TextFile(real, str(path), content, hashlib.sha256(data).digest(), status.st_nlink)


def check_writable(path: Path) -> None:
    """Raises UserError where `path` cannot be replaced or made, as far as that can be known before it is tried."""
    try:
        _check_place(path, path.resolve())
    except (OSError, RuntimeError, ValueError) as error:
        # A folder on the way may not be looked into, or leads back to itself.
        raise UserError(f"{path} cannot be written ({_reason(error)}); choose another output.") from None


def _check_place(path: Path, real: Path) -> None:
    if real.is_dir():
        raise UserError(f"{path} is a folder; give the name of a file.")
    if real.exists() and not real.is_file():
        raise UserError(f"{path} is not a file; give another name.")
    if real.exists() and not os.access(real, os.W_OK):
        raise UserError(f"{path} is read-only; make it writable, or choose another output with -o.")
    if not real.parent.is_dir():
        raise UserError(f"There is no folder {real.parent}; make it first, or choose another output.")
    if not os.access(real.parent, os.W_OK | os.X_OK):
        raise UserError(f"Nothing can be written in the folder {real.parent}; choose an output elsewhere with -o.")


def is_unchanged(file: TextFile) -> bool:
    """Whether the file still has the bytes that were read."""
    try:
        return hashlib.sha256(file.path.read_bytes()).digest() == file.digest
    except OSError:
        return False


def replace_by(written: Path, target: Path, like: Path | None) -> None:
    """Put the file `written`, in the same folder, in the place of `target`, with the mode and as far as possible the owner
    of `like`; all of it is on the disk then. Raises UserError, and leaves both files alone."""
    try:
        if like is not None:
            _make_alike(written, like)
        with written.open("rb+") as file:
            os.fsync(file.fileno())
        written.replace(target)
    except OSError as error:
        raise UserError(
            f"{target} cannot be written ({_reason(error)}); the rewritten text is in {written}."
        ) from error
    _sync_folder(target.parent)


def replace_file(file: TextFile, written: Path, backup: bool = False) -> None:
    """Put the file `written`, in the same folder, in the place of `file`; with `backup` a copy of that is kept beside it.

    Raises UserError, ChangedMeanwhileError where the file is not as it was read: then `written` stays under a name that the
    sentence says.
    """
    if not is_unchanged(file):
        kept = _free_name(file.path, ".rewritten")
        written.replace(kept)
        raise ChangedMeanwhileError(
            f"{file.shown} was changed meanwhile and stays as it is; the rewritten text is in {kept}."
        )
    if backup:
        back_up(file)
    replace_by(written, file.path, file.path)


def back_up(file: TextFile) -> Path:
    """A copy of the file beside it, FILE.bak or FILE.bak.2 and so on: no earlier one is overwritten. Raises UserError."""
    kept = _free_name(file.path, ".bak")
    try:
        shutil.copy2(file.path, kept)
    except OSError as error:
        raise UserError(
            f"No copy of {file.shown} can be kept ({_reason(error)}), so it stays as it is; leave out --backup."
        ) from error
    return kept


def _make_alike(written: Path, like: Path) -> None:
    status = like.stat()
    now = written.stat()
    if hasattr(os, "chown") and (status.st_uid, status.st_gid) != (now.st_uid, now.st_gid):
        # Only root may give a file away; a group one belongs to is fine.
        for owner in ((status.st_uid, status.st_gid), (-1, status.st_gid)):
            with contextlib.suppress(OSError):
                os.chown(written, *owner)
                break
    # Behind the owner: a change of that takes bits away.
    written.chmod(stat.S_IMODE(status.st_mode))


def _free_name(path: Path, ending: str) -> Path:
    return next(name for name in _names(path, ending) if not os.path.lexists(name))


def _names(path: Path, ending: str) -> Iterator[Path]:
    yield path.with_name(path.name + ending)
    for number in itertools.count(2):
        yield path.with_name(f"{path.name}{ending}.{number}")


def _sync_folder(folder: Path) -> None:
    # Windows cannot open folders, and some file systems cannot sync them.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
