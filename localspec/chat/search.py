"""Finding chats by what was said in them."""

import contextlib
import re
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from localspec.chat.database import FORGET, transaction

_TRIGRAM = 3
"""Characters: the index knows nothing shorter."""
_CREATE = "CREATE VIRTUAL TABLE IF NOT EXISTS texts USING fts5 (text, tokenize = 'trigram')"
_A_TEXT = "coalesce(CAST({} AS TEXT), '')"
"""In a damaged file the columns for texts may hold anything."""
_SOON_CHARACTERS = 8000
"""The index takes about a second for a million characters, and nobody may notice when a message is saved."""
_INDEXING_SECONDS = 0.05
"""A search must not take long; what is not in the index is read through."""
_NO_INDEXING = (
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
)
_BEFORE, _AFTER = 24, 72
"""Characters of a message shown around what was found in it."""


@dataclass(slots=True)
class Hit:
    """A chat that was found."""

    messages: Counter[int] = field(default_factory=Counter)
    """How many of the words each message has, by its key; empty where all of them are in the title."""

    @property
    def best(self) -> int | None:
        """The newest of the messages with the most words."""
        return max(self.messages, key=lambda key: (self.messages[key], key), default=None)


def words_of(search: str) -> list[str]:
    """The words to look for, each once."""
    return list(dict.fromkeys(search.split()))


def find(database: sqlite3.Connection, words: Sequence[str]) -> dict[int, Hit]:
    """The chats, deleted ones too, in which each of `words` (one at least) occurs in a message or in the title, in any
    case and inside of words, too."""
    indexed = _refresh(database)
    hits: dict[int, Hit] = {}
    left: set[int] | None = None
    for word in words:
        found = _with_title(database, word)
        for chat, key in _messages_with(database, word, indexed):
            hits.setdefault(chat, Hit()).messages[key] += 1
            found.add(chat)
        left = found if left is None else left & found
    return {chat: hits.get(chat, Hit()) for chat in left or ()}


def index(database: sqlite3.Connection, key: int) -> None:
    """Make ready a message that is complete. A long one is left for the first search."""
    with _may_fail(), transaction(database):
        row = database.execute(
            f"SELECT {_A_TEXT.format('text')} FROM entries WHERE key = ? AND NOT indexed AND length(text) <= ?",
            (key, _SOON_CHARACTERS),
        ).fetchone()
        if row:
            database.execute(_CREATE)
            _index(database, key, row[0])


def snippet(text: str, words: Sequence[str]) -> str:
    """The place in `text` where the first of `words` stands, on one line."""
    line = " ".join(text.split())
    places = [match.start() for word in words if (match := _pattern(word).search(line))]
    at = min(places, default=0)
    start, end = max(0, at - _BEFORE), at + _AFTER
    if start and " " in line[start:at]:
        start = line.index(" ", start) + 1
    return ("…" if start else "") + line[start:end] + ("…" if end < len(line) else "")


def _pattern(word: str) -> re.Pattern[str]:
    return re.compile(re.escape(word), re.IGNORECASE)


def _with_title(database: sqlite3.Connection, word: str) -> set[int]:
    holds = _pattern(word).search
    return {
        chat for chat, title in database.execute(f"SELECT id, {_A_TEXT.format('title')} FROM chats") if holds(title)
    }


def _messages_with(database: sqlite3.Connection, word: str, indexed: bool) -> Iterator[tuple[int, int]]:
    """Chat and key of every message that has the word."""
    by_index = indexed and len(word) >= _TRIGRAM and "\0" not in word
    if by_index:
        quoted = '"' + word.replace('"', '""') + '"'
        yield from database.execute(
            """SELECT entries.chat, entries.key FROM texts JOIN entries ON entries.key = texts.rowid
            WHERE texts MATCH ? AND entries.indexed""",
            (quoted,),
        )
    holds = _pattern(word).search
    which = "WHERE NOT indexed" if by_index else ""
    rows = database.execute(f"SELECT chat, key, {_A_TEXT.format('text')} FROM entries {which}")
    yield from ((chat, key) for chat, key, text in rows if holds(text))


def _refresh(database: sqlite3.Connection) -> bool:
    """Bring the index up to date, or a little nearer to that; False where there is none to search in."""
    if database.execute("SELECT 1 FROM entries WHERE NOT indexed LIMIT 1").fetchone() or _has_gone(database):
        with _may_fail(), transaction(database):
            database.execute(_CREATE)
            database.execute(FORGET)
            _index_some(database)
    try:
        database.execute("SELECT rowid FROM texts LIMIT 1").fetchone()
    except sqlite3.OperationalError:
        return False
    return True


@contextlib.contextmanager
def _may_fail() -> Iterator[None]:
    """Whatever keeps us from writing an index, reading goes on; and not every SQLite can have this one."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF not in _NO_INDEXING:
            raise


def _has_gone(database: sqlite3.Connection) -> bool:
    """Whether there is something in the index that is nowhere else."""
    try:
        return database.execute(FORGET.replace("DELETE", "SELECT 1", 1)).fetchone() is not None
    except sqlite3.OperationalError:
        return False


def _index_some(database: sqlite3.Connection) -> None:
    """The messages that are not in the index yet, one at least, and then as many as there is time for."""
    until = time.monotonic() + _INDEXING_SECONDS
    for (key,) in database.execute("SELECT key FROM entries WHERE NOT indexed ORDER BY key").fetchall():
        (text,) = database.execute(f"SELECT {_A_TEXT.format('text')} FROM entries WHERE key = ?", (key,)).fetchone()
        _index(database, key, text)
        if time.monotonic() > until:
            break


def _index(database: sqlite3.Connection, key: int, text: str) -> None:
    database.execute("DELETE FROM texts WHERE rowid = ?", (key,))
    # The tokenizer would stop at a NUL.
    database.execute("INSERT INTO texts (rowid, text) VALUES (?, ?)", (key, text.replace("\0", " ")))
    database.execute("UPDATE entries SET indexed = 1 WHERE key = ?", (key,))
