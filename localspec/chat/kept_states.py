"""Which saved caches belong to which chat: one file each, within a budget, those unused for longest dropped first.

A file is only a shortcut. A chat without one, with an old one or with one of another chat is answered just the same, after
its text has been read again. Nothing heavy is imported with this module: who has the store has no engine.
"""

from __future__ import annotations

import logging
import re
import shutil
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING

from localspec.engine.errors import UserError
from localspec.settings import make_private

if TYPE_CHECKING:
    from localspec.engine.engine import Engine

FOLDER = "states"
"""In the cache folder."""
BUDGET = 2_000_000_000
"""Bytes of all files together."""
LEAST_TOKENS = 500
"""Reading fewer takes no time worth a file."""

_SUFFIX = ".state"
_NAME = re.compile(rf"chat-(\d+){re.escape(_SUFFIX)}(\..*)?")
"""Of a file of a chat, also of one that is still being written."""
_FREE_DISK = 1_000_000_000
"""Bytes that are left to others."""
_PART_SECONDS = 3600
"""A file that has been written for so long was left behind by a program that ended."""

_log = logging.getLogger("localspec.chat")
_log.addHandler(logging.NullHandler())


class KeptStates:
    """The files of one folder. Two programs may share it. Nothing here raises for a file that cannot be written or used;
    that is logged. To be called between two answers, where the engine is."""

    def __init__(self, folder: Path, budget: int = BUDGET) -> None:
        """`folder` need not exist."""
        self.folder = folder
        self.budget = budget
        self._same: tuple[int, list[int]] | None = None
        """The chat and the tokens that its file and the engine had in common last."""

    def path(self, chat: int) -> Path:
        """The file of a chat, whether there is one or not."""
        return self.folder / f"chat-{chat}{_SUFFIX}"

    def save(self, chat: int, engine: Engine, unwanted: Callable[[], bool] | None = None) -> bool:
        """Keep the caches of the engine, which has last answered in this chat. True when the file has all of them now, as
        after a second call with nothing new. Ends early and writes nothing once `unwanted` says so."""
        tokens = engine.target_context.tokens
        if len(tokens) < LEAST_TOKENS:
            return False
        path = self.path(chat)
        if self._same == (chat, tokens) and _is_there(path):
            return True
        try:
            make_private(self.folder)
            room = shutil.disk_usage(self.folder).free - _FREE_DISK
            if engine.save_state(path, max(0, min(self.budget, room)), unwanted) == 0:
                return False
        except (UserError, OSError) as error:
            _log.warning("the state of chat %d is not kept: %s", chat, error)
            return False
        self._same = (chat, list(tokens))
        self._make_room(path)
        return True

    def load(self, chat: int, engine: Engine) -> int:
        """Put the caches of a chat into the engine. Returns how many tokens need not be read again, 0 where nothing is
        kept."""
        tokens = engine.target_context.tokens
        if tokens and self._same == (chat, tokens):
            return len(tokens)
        path = self.path(chat)
        if not _is_there(path):
            return 0
        count = engine.load_state(path)
        if count:
            self._same = (chat, list(engine.target_context.tokens))
            try:
                # It was used now.
                path.touch(exist_ok=True)
            except OSError as error:
                _log.warning("%s cannot be touched: %s", path, error)
        return count

    def _make_room(self, newest: Path) -> None:
        """Remove what was not used for longest until the rest is within the budget; never the file just written."""
        from localspec.engine.saved_state import PART_SUFFIX

        files = []
        for path in self.folder.glob(f"*{_SUFFIX}*"):
            try:
                status = path.stat()
            except OSError:
                # Another program has just removed it.
                continue
            if path.name.endswith(PART_SUFFIX):
                if time.time() - status.st_mtime > _PART_SECONDS:
                    _remove(path)
            else:
                files.append((path != newest, -status.st_mtime_ns, status.st_size, path))
        total = 0
        for _, _, size, path in sorted(files):
            total += size
            if total > self.budget and path != newest:
                _remove(path)
                total -= size


def drop_unknown(folder: Path, ids: Collection[int]) -> None:
    """Remove what is kept in `folder` of chats whose numbers are not among `ids`: they were deleted, and nothing that was
    said in them may stay. A chat that is brought back is only read again."""
    known = set(ids)
    try:
        files = list(folder.iterdir()) if folder.exists() else []
    except OSError as error:
        _log.warning("%s cannot be searched for deleted chats: %s", folder, error)
        return
    for path in files:
        name = _NAME.fullmatch(path.name)
        if name and int(name[1]) not in known:
            _remove(path)


def _is_there(path: Path) -> bool:
    """As far as one may know."""
    try:
        path.stat()
    except OSError:
        return False
    return True


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        _log.warning("%s cannot be removed: %s", path, error)
