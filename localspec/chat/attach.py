"""Files and pastes, read as documents."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from pathlib import Path
from urllib.parse import unquote

from localspec.chat import office
from localspec.chat.messages import Document
from localspec.chat.text_file import read_text_file
from localspec.engine.errors import UserError

_PASTE_CHARACTERS, _PASTE_LINES = 1000, 8
_CHARACTERS_PER_TOKEN = 4
_LONGEST_DRAGGED = 10_000
_FULL = ("/", "~", "'", '"', "file://")
"""How a full path begins, or what it is put in."""
_SURROGATES = re.compile("[\ud800-\udfff]")


def read_document(path: Path) -> Document:
    """The text of a file under the file's name, with newlines for line ends. That of a PDF or a Word file is taken out of it.

    A leading ~ is the home folder. Raises UserError for anything else than a text, and where there is nothing to read.
    """
    path = expanded(path)
    text = office.read(path) if office.is_office(path) else read_text_file(path).content.text
    if not text:
        raise UserError(f"{path} is empty: there is nothing to attach.")
    # What was made of the text of a PDF is no PDF.
    file = None if office.is_office(path) else path.absolute()
    return Document(_SURROGATES.sub("\ufffd", path.name), text, file)


def written_path(words: str) -> Path:
    """The path somebody wrote, or a terminal did when a file was dropped on it: in quotes, or with backslashes."""
    path = Path(words)
    if os.name == "posix" and any(mark in words for mark in "\\'\"") and not os.path.lexists(expanded(path)):
        with contextlib.suppress(ValueError):
            parts = shlex.split(words)
            if len(parts) == 1:
                return Path(parts[0])
    return path


def dragged_paths(paste: str) -> list[Path]:
    """The files that were dropped on the terminal, which pastes their paths then; none where the paste is anything else.

    Only full paths count: somebody who pastes the name of a file may mean the name.
    """
    words = paste.strip()
    if not words or len(words) > _LONGEST_DRAGGED or "\n" in words or not words.startswith(_FULL):
        return []
    try:
        several = shlex.split(words)
    except ValueError:
        several = []
    for names in ([words], several):
        paths = [expanded(_from_url(name)) for name in names]
        if paths and all(path.is_absolute() and is_file(path) for path in paths):
            return paths
    return []


def _from_url(name: str) -> Path:
    return Path(unquote(name.removeprefix("file://")) if name.startswith("file://") else name)


def is_file(path: Path) -> bool:
    """Whether there is such a file, as far as one may know."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


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
