"""The SQLite file of the chats: how it is opened, what is in it, and what its failures mean."""

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from localspec.chat.kept_documents import drop_unused, take_out_of_messages
from localspec.engine.errors import UserError
from localspec.settings import make_private

_OURS = 0x6C736370
"""Tells a file of ours from those of other programs."""
PATIENCE = 5.0
"""Seconds to wait for another program that is writing."""
_SMALLEST = 512
"""Bytes of the smallest page, and so of every file that is not empty."""
_KEPT_SECONDS = 30 * 24 * 3600
"""How long a deleted chat can be brought back."""

FORGET = "DELETE FROM texts WHERE rowid NOT IN (SELECT key FROM entries)"
"""Takes out of the search index what has been removed."""

_MIGRATIONS: tuple[tuple[str | Callable[[sqlite3.Connection], None], ...], ...] = (
    (
        """CREATE TABLE chats (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            title TEXT NOT NULL DEFAULT '',
            named INTEGER NOT NULL DEFAULT 0,
            model TEXT NOT NULL,
            system TEXT,
            settings TEXT NOT NULL DEFAULT '{}',
            leaf INTEGER,
            created REAL NOT NULL,
            updated REAL NOT NULL,
            deleted_at REAL
        )""",
        "CREATE INDEX chats_by_time ON chats (updated)",
        # A key is never given twice; the id of a message counts within its chat.
        """CREATE TABLE entries (
            key INTEGER PRIMARY KEY AUTOINCREMENT,
            chat INTEGER NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
            id INTEGER NOT NULL,
            parent INTEGER,
            role TEXT NOT NULL CHECK (role IN ('user', 'assistant')),
            text TEXT NOT NULL,
            documents TEXT NOT NULL DEFAULT '[]',
            finish TEXT,
            figures TEXT,
            created REAL NOT NULL,
            updated REAL NOT NULL,
            indexed INTEGER NOT NULL DEFAULT 0,
            UNIQUE (chat, id),
            CHECK (parent < id)
        )""",
        "CREATE INDEX entries_to_index ON entries (key) WHERE NOT indexed",
    ),
    (
        "CREATE TABLE documents (digest TEXT PRIMARY KEY, text BLOB NOT NULL)",
        take_out_of_messages,
        "CREATE INDEX entries_with_documents ON entries (key) WHERE documents <> '[]'",
        # What became of a document, see chat/versions.py: `document` and `source` are digests,
        # `name` is that of the document, `path` its file, `state` where the writing can be gone on with.
        """CREATE TABLE versions (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            document TEXT NOT NULL REFERENCES documents (digest),
            source TEXT NOT NULL REFERENCES documents (digest),
            result BLOB NOT NULL,
            name TEXT NOT NULL,
            path BLOB,
            instruction TEXT NOT NULL,
            finish TEXT,
            state TEXT,
            rejected TEXT NOT NULL DEFAULT '[]',
            created REAL NOT NULL,
            updated REAL NOT NULL
        )""",
        "CREATE INDEX versions_by_document ON versions (document)",
    ),
)
"""What each version adds to the one before it: statements, and functions that move what is there. A version that has been
published is never changed."""

VERSION = len(_MIGRATIONS)


def open_database(path: Path) -> sqlite3.Connection:
    """The database in `path`, created for this user alone where it is missing, in the form of this version.

    Chats that were deleted a month ago are dropped. Raises UserError.
    """
    make_private(path.parent)
    with explained(path):
        _create_private(path)
        # Autocommit: transactions begin and end where we say so.
        database = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
        try:
            _check(database, path)
            _write_ahead(database)
            database.execute("PRAGMA synchronous = NORMAL")
            database.execute("PRAGMA foreign_keys = ON")
            _migrate(database, path)
            _purge(database)
        except BaseException:
            database.close()
            raise
    return database


@contextlib.contextmanager
def transaction(database: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """All that is written inside is saved at the end, or nothing of it."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield database
        database.execute("COMMIT")
    except BaseException:
        # Some failures have ended the transaction already.
        with contextlib.suppress(sqlite3.Error):
            database.execute("ROLLBACK")
        raise


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Says in a UserError what a failure of the database means, where a person can do something about it."""
    try:
        yield
    except sqlite3.Error as error:
        sentence = _sentence(getattr(error, "sqlite_errorcode", 0) & 0xFF, path)
        if sentence is None:
            raise
        raise UserError(sentence) from error
    except OSError as error:
        raise UserError(
            f"The chats in {path} cannot be opened ({error.strerror}); check what it is and its permissions, or choose "
            "another folder with LOCALSPEC_DATA_DIR."
        ) from error


def _sentence(code: int, path: Path) -> str | None:
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return damaged(path)
    if code == sqlite3.SQLITE_FULL:
        return f"The chats in {path} cannot be saved because the disk is full; make some space and try again."
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return (
            f"The chats in {path} cannot be opened and written; check the permissions of the file and its folder, or "
            "choose another folder with LOCALSPEC_DATA_DIR."
        )
    if code == sqlite3.SQLITE_IOERR:
        return f"Reading or writing the chats in {path} failed; check the disk and its free space, and try again."
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return f"The chats in {path} are kept busy by another program; try again when it is done."
    return None


def damaged(path: Path) -> str:
    """What to do with a file that cannot be read."""
    return (
        f"The chats in {path} cannot be read because the file is damaged; move it to another place to begin anew, or "
        "repair it with the .recover command of sqlite3."
    )


def _create_private(path: Path) -> None:
    """Creates the file. One that is there is not opened: closing it again would drop the locks of this process on it."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        status = path.stat()
        # SQLite takes the stump of a file for an empty one and writes over it.
        if 0 < status.st_size < _SMALLEST:
            raise UserError(damaged(path)) from None
        if path.is_file() and status.st_mode & 0o077:
            with contextlib.suppress(OSError):
                path.chmod(0o600)


def _check(database: sqlite3.Connection, path: Path) -> None:
    """Before anything is written: is this a file of ours, and not from the future?"""
    version = _number(database, "user_version")
    known = _number(database, "application_id") == _OURS
    if not known and (version or database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]):
        raise UserError(
            f"{path} belongs to another program; move it to another place, or choose another folder with "
            "LOCALSPEC_DATA_DIR."
        )
    if version > VERSION:
        raise UserError(f"The chats in {path} were written by a newer version of localspec; update this one.")


def _number(database: sqlite3.Connection, pragma: str) -> int:
    return int(database.execute(f"PRAGMA {pragma}").fetchone()[0])


def _write_ahead(database: sqlite3.Connection) -> None:
    """Readers and a writer do not wait for each other. Where the file system cannot do that, it stays as it is."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL").fetchone()
            return
        except sqlite3.OperationalError as error:
            # This change does not wait by itself for others who open the file at the same moment.
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.01)


def _migrate(database: sqlite3.Connection, path: Path) -> None:
    if _number(database, "user_version") == VERSION:
        return
    with transaction(database):
        # Another program may have been quicker.
        _check(database, path)
        for migration in _MIGRATIONS[_number(database, "user_version") :]:
            for change in migration:
                if callable(change):
                    change(database)
                else:
                    database.execute(change)
        database.execute(f"PRAGMA application_id = {_OURS}")
        database.execute(f"PRAGMA user_version = {VERSION}")


def _purge(database: sqlite3.Connection) -> None:
    """Drop what has been deleted long ago, and the texts that only that referred to."""
    old = (time.time() - _KEPT_SECONDS,)
    if database.execute("SELECT 1 FROM chats WHERE deleted_at < ?", old).fetchone():
        with transaction(database):
            database.execute("DELETE FROM chats WHERE deleted_at < ?", old)
            # There is an index only once somebody has searched.
            with contextlib.suppress(sqlite3.OperationalError):
                database.execute(FORGET)
            drop_unused(database)
    elif database.execute("SELECT 1 FROM versions WHERE updated < ?", old).fetchone():
        with transaction(database):
            drop_unused(database)
