"""What was written and not sent: it stands there again at the next start, even when the app has crashed."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

from localspec.chat.messages import Document
from localspec.whole_file import from_json, open_private, set_aside, write_whole

UNSENT_FILE = "unsent.json"
"""Its name in the data folder. Of several apps at a time, the others put their number behind it."""
MOST_EDITS = 50
_NAME = re.compile(rf"{re.escape(UNSENT_FILE)}(\.\d+)?")

_log = logging.getLogger("localspec.tui")

Place = tuple[int | None, int]
"""A chat, None for one that is not saved, and a message in it."""


@dataclass
class Draft:
    """What somebody has written."""

    text: str = ""
    documents: tuple[Document, ...] = ()
    edits: dict[Place, tuple[str, tuple[Document, ...]]] = field(default_factory=dict)
    """Changes of messages that are neither sent nor taken back."""

    def __bool__(self) -> bool:
        return bool(self.text.strip() or self.documents or self.edits)


class Unsent:
    """The file of this app. It is locked as long as the app runs, so that another one does not take it for left behind."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.damaged: list[Path] = []
        """Files that could not be read, by the names that they were given instead."""
        self._file: Path | None = None
        self._lock: IO[bytes] | None = None
        self._kept = Draft()
        self._is_closed = False

    def take(self) -> Draft:
        """What apps that have ended have left, together: it is this app's from now on."""
        taken, found = Draft(), []
        for file in sorted(self._folder.glob(f"{UNSENT_FILE}*"), key=_age):
            lock = _locked(_beside(file, _LOCK)) if _NAME.fullmatch(file.name) else None
            if lock is None:
                continue
            left = self._left(file)
            if left is None:
                lock.close()
                continue
            found.append((file, lock))
            _add(taken, left)
        self._kept = Draft()
        if self.keep(taken) or not taken:
            for file, lock in found:
                with contextlib.suppress(OSError):
                    if file != self._file:
                        file.unlink()
                        _beside(file, _LOCK).unlink()
                lock.close()
        return taken

    def _left(self, file: Path) -> Draft | None:
        """What is in a file; nothing in one that is damaged, which gets another name. None where it stays as it is."""
        try:
            data = file.read_bytes()
            try:
                return _draft(data) if data else Draft()
            except (ValueError, KeyError, TypeError, AttributeError):
                _log.exception("what was not sent could not be read")
                self.damaged.append(set_aside(file))
                return Draft()
        except OSError:
            _log.exception("what was not sent could not be read")
            return None

    def keep(self, draft: Draft) -> bool:
        """Write it down, where it is another than before. A folder that cannot be written is only logged."""
        if draft == self._kept or self._is_closed:
            return True
        try:
            if self._file is None:
                self._own()
            assert self._file is not None
            if draft:
                # A key does not wait for the disk: what the system has, it writes, whatever becomes of the app.
                data = json.dumps(_values(draft)).encode()
                write_whole(self._file, data, part=_beside(self._file, _PART), sync=False)
            else:
                self._file.unlink(missing_ok=True)
        except OSError:
            _log.exception("what was not sent could not be kept")
            return False
        self._kept = draft
        return True

    def close(self) -> None:
        """The app ends; what it has kept stays."""
        if self._lock and self._file:
            with contextlib.suppress(OSError):
                _beside(self._file, _LOCK).unlink()
            self._lock.close()
        self._lock = self._file = None
        self._is_closed = True

    def _own(self) -> None:
        """A file that no other app has."""
        for number in range(1000):
            file = self._folder / (UNSENT_FILE if not number else f"{UNSENT_FILE}.{number}")
            if file.exists():
                continue
            lock = _locked(_beside(file, _LOCK))
            if lock:
                self._file, self._lock = file, lock
                return
        raise FileExistsError(f"{self._folder} is full of files named {UNSENT_FILE}")


_LOCK, _PART = ".lock", ".part"


def _beside(file: Path, ending: str) -> Path:
    return file.with_name(file.name + ending)


def _locked(file: Path) -> IO[bytes] | None:
    """The file, locked; None where another app has it."""
    try:
        opened = os.fdopen(open_private(file, os.O_RDWR | os.O_CREAT), "r+b")
    except OSError:
        return None
    try:
        if fcntl is not None:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        opened.close()
        return None
    return opened


def _age(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0


def _add(draft: Draft, more: Draft) -> None:
    draft.text = "\n".join(text for text in (draft.text, more.text) if text.strip())
    draft.documents += tuple(document for document in more.documents if document not in draft.documents)
    draft.edits = dict(list({**draft.edits, **more.edits}.items())[-MOST_EDITS:])


def _values(draft: Draft) -> dict[str, Any]:
    edits = [
        {"chat": chat, "message": message, "text": text, "documents": _listed(documents)}
        for (chat, message), (text, documents) in draft.edits.items()
    ]
    return {"text": draft.text, "documents": _listed(draft.documents), "edits": edits}


def _listed(documents: tuple[Document, ...]) -> list[list[str]]:
    return [[document.name, document.text, *([str(document.path)] if document.path else [])] for document in documents]


def _draft(data: bytes) -> Draft:
    """What a file holds. Raises ValueError, KeyError, TypeError, or AttributeError where it is damaged."""
    values = from_json(data)
    edits = {
        (edit["chat"] if edit["chat"] is None else int(edit["chat"]), int(edit["message"])): (
            str(edit["text"]),
            _documents(edit["documents"]),
        )
        for edit in values.get("edits", ())
    }
    return Draft(str(values["text"]), _documents(values["documents"]), edits)


def _documents(listed: list[list[str]]) -> tuple[Document, ...]:
    # The file it came from was not always kept.
    return tuple(Document(str(name), str(text), *map(Path, path[:1])) for name, text, *path in listed)
