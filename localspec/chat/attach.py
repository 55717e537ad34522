"""Files and pastes, read as documents."""

from __future__ import annotations

import codecs
import contextlib
import os
import re
import shlex
import stat
from pathlib import Path

from localspec.chat.messages import Document
from localspec.engine.errors import UserError

MOST_BYTES = 20_000_000
"""No model reads more, and a person who attaches it has taken the wrong file."""

_PASTE_CHARACTERS, _PASTE_LINES = 1000, 8
_CHARACTERS_PER_TOKEN = 4
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_SURROGATES = re.compile("[\ud800-\udfff]")


def read_document(path: Path) -> Document:
    """The text of a file under the file's name; UTF-8, or UTF-16 with its mark. Line ends stay as they are in the file.

    A leading ~ is the home folder. Raises UserError for anything else than a text, and where there is nothing to read.
    """
    path = expanded(path)
    data = _read(path)
    try:
        text = data.decode("utf-16" if data.startswith(_UTF_16) else "utf-8-sig")
    except UnicodeDecodeError:
        what = "is not a text file: attach its text" if b"\0" in data else "is not UTF-8 text: save it as UTF-8"
        raise UserError(f"{path} {what}.") from None
    if "\0" in text:
        raise UserError(f"{path} is not a text file: attach its text.")
    if not text:
        raise UserError(f"{path} is empty: there is nothing to attach.")
    return Document(_SURROGATES.sub("\ufffd", path.name), text)


def written_path(words: str) -> Path:
    """The path somebody wrote, or a terminal did when a file was dropped on it: in quotes, or with backslashes."""
    path = Path(words)
    if os.name == "posix" and any(mark in words for mark in "\\'\"") and not os.path.lexists(expanded(path)):
        with contextlib.suppress(ValueError):
            parts = shlex.split(words)
            if len(parts) == 1:
                return Path(parts[0])
    return path


def expanded(path: Path) -> Path:
    """The path with a leading ~ or ~name replaced, where there is such a home folder."""
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def is_large(paste: str) -> bool:
    """Whether a paste is a document rather than a part of what is being written."""
    # One long line is counted by its length; splitting a megabyte into lines would only cost time.
    return len(paste) > _PASTE_CHARACTERS or len(paste.splitlines()) > _PASTE_LINES


def pasted_text(paste: str) -> str:
    """What was copied: terminals send carriage returns for line ends, and half of a character cannot be kept."""
    return _SURROGATES.sub("\ufffd", paste.replace("\r\n", "\n").replace("\r", "\n"))


def estimated_tokens(text: str) -> int:
    """About how many tokens a text has, without asking a model."""
    return -(-len(text) // _CHARACTERS_PER_TOKEN)


def _read(path: Path) -> bytes:
    try:
        # Opening a pipe would wait for its other end.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        try:
            return _read_text_file(path, descriptor)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        raise UserError(f"There is no file {path}: check the path.") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UserError(f"{path} cannot be read: {reason}.") from None


def _read_text_file(path: Path, descriptor: int) -> bytes:
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISDIR(mode):
        raise UserError(f"{path} is a folder: attach the files in it one by one.")
    if not stat.S_ISREG(mode):
        raise UserError(f"{path} is not a file: attach a text file.")
    with os.fdopen(descriptor, "rb", closefd=False) as stream:
        data = stream.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise UserError(f"{path} is larger than {MOST_BYTES // 10**6} MB: attach the part that matters.")
    return data
