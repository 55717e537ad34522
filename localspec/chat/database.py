"""The SQLite file of the chats: how it is opened, what is in it, and what its failures mean."""

import contextlib
import errno
import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from localspec.chat.clock import now, now_for_dropping
from localspec.chat.kept_documents import drop_unused, take_out_of_messages
from localspec.engine.errors import UserError
from localspec.settings import make_private
from localspec.whole_file import PRIVATE, open_private

_OURS = 0x6C736370
"""Tells a file of ours from those of other programs."""
PATIENCE = 5.0
"""Seconds to wait for another program that is writing."""
_SMALLEST = 512
"""Bytes of the smallest page, and so of every file that is not empty."""
_KEPT_SECONDS = 30 * 24 * 3600
"""How long a deleted chat can be brought back."""


class StorageError(UserError):
    """The file could not be read or written now; what was to be done may succeed another time."""


class BusyError(StorageError):
    """Another program is writing, and did not come to an end in time."""


class MovedError(StorageError):
    """Another file, or none, had the name of the one that was open. It is open now, with nothing of what the other had."""


FORGET = "DELETE FROM texts WHERE rowid NOT IN (SELECT key FROM entries)"
"""Takes out of the search index what has been removed."""


def _number_by_time(database: sqlite3.Connection) -> None:
    """From version 2, in which the order of the chats was that of their times: a clock may be wrong."""
    for place, (chat,) in enumerate(database.execute("SELECT id FROM chats ORDER BY updated, id").fetchall(), 1):
        database.execute("UPDATE chats SET touched = ? WHERE id = ?", (place, chat))


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
    (
        # Rises with everything that is written: the last chat is the one with the highest.
        "ALTER TABLE chats ADD COLUMN touched INTEGER NOT NULL DEFAULT 0",
        _number_by_time,
        "DROP INDEX chats_by_time",
        "CREATE INDEX chats_by_touch ON chats (touched)",
    ),
)
"""What each version adds to the one before it: statements, and functions that move what is there. A version that has been
published is never changed."""

VERSION = len(_MIGRATIONS)


_FORM = (
    "SELECT id, title, named, model, system, settings, leaf, created, updated, deleted_at, touched FROM chats",
    "SELECT key, chat, id, parent, role, text, documents, finish, figures, created, updated, indexed FROM entries",
    "SELECT digest, text FROM documents",
    "SELECT id, document, source, result, name, path, instruction, finish, state, rejected, updated FROM versions",
)


def open_database(path: Path, patience: float | None = None) -> sqlite3.Connection:
    """The database in `path`, created for this user alone where it is missing, in the form of this version.

    `patience`: how many seconds others who write are waited for, PATIENCE where it is None. Chats that were deleted a month
    ago are dropped. A file of an earlier version is copied before it is changed. Raises UserError, BusyError among them.
    """
    patience = PATIENCE if patience is None else patience
    make_private(path.parent)
    with explained(path):
        _create_private(path)
        # Autocommit: transactions begin and end where we say so.
        database = sqlite3.connect(path, timeout=patience, isolation_level=None, check_same_thread=False)
        # Of a text that is damaged, the rest can be read.
        database.text_factory = _text
        try:
            _check(database, path)
            _write_ahead(database, patience)
            database.execute("PRAGMA synchronous = NORMAL")
            database.execute("PRAGMA foreign_keys = ON")
            _migrate(database, path)
            _check_form(database, path)
            _purge(database, path)
        except BaseException:
            database.close()
            raise
    return database


def identity(path: Path) -> tuple[int, int] | None:
    """Which file has the name; None where none has."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


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
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise BusyError(
                f"The chats in {path} are kept busy by another program; try again when it is done."
            ) from error
        sentence = _sentence(code, path)
        if sentence is None:
            raise
        raise StorageError(sentence) from error
    except UnicodeDecodeError as error:
        # What SQLite says is wrong has the damaged name in it.
        raise StorageError(damaged(path)) from error
    except OSError as error:
        raise StorageError(
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
        os.close(open_private(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        status = path.stat()
        # SQLite takes the stump of a file for an empty one and writes over it.
        if 0 < status.st_size < _SMALLEST:
            raise UserError(damaged(path)) from None
        if stat.S_ISREG(status.st_mode):
            if status.st_mode & 0o777 != PRIVATE:
                with contextlib.suppress(OSError):
                    path.chmod(PRIVATE)
            if not os.access(path, os.R_OK | os.W_OK):
                # SQLite would open it for reading, and never find out that it may be written later.
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path)) from None


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


def _check_form(database: sqlite3.Connection, path: Path) -> None:
    """What a file of this version has in it may have been lost."""
    for query in _FORM:
        try:
            database.execute(f"{query} LIMIT 0")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_ERROR:
                raise
            raise UserError(damaged(path)) from error


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _number(database: sqlite3.Connection, pragma: str) -> int:
    return int(database.execute(f"PRAGMA {pragma}").fetchone()[0])


def _write_ahead(database: sqlite3.Connection, patience: float) -> None:
    """Readers and a writer do not wait for each other. Where the file system cannot do that, it stays as it is."""
    until = time.monotonic() + patience
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
        version = _number(database, "user_version")
        if 0 < version < VERSION:
            _back_up(path, version)
        for migration in _MIGRATIONS[version:]:
            for change in migration:
                if callable(change):
                    change(database)
                else:
                    database.execute(change)
        database.execute(f"PRAGMA application_id = {_OURS}")
        database.execute(f"PRAGMA user_version = {VERSION}")


def _back_up(path: Path, version: int) -> None:
    """Keep what a file of an earlier version was before it is changed; where there is no room for that, it is not changed."""
    kept = path.with_name(f"{path.stem}-version-{version}{path.suffix}")
    part = kept.with_name(f"{kept.name}.part")
    part.unlink(missing_ok=True)
    os.close(open_private(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    try:
        with contextlib.closing(sqlite3.connect(path)) as source, contextlib.closing(sqlite3.connect(part)) as copy:
            source.backup(copy)
            # One file, and nothing beside it.
            copy.execute("PRAGMA journal_mode = DELETE")
        part.replace(kept)
        os.utime(kept, (now(), now()))
    finally:
        part.unlink(missing_ok=True)


def _drop_backups(path: Path, old: float) -> None:
    """Nothing that was deleted stays in a copy for longer than in the file."""
    for kept in path.parent.glob(f"{path.stem}-version-*{path.suffix}"):
        with contextlib.suppress(OSError):
            if kept.stat().st_mtime < old:
                kept.unlink()


def _purge(database: sqlite3.Connection, path: Path) -> None:
    """Drop what has been deleted long ago, and the texts that only that referred to."""
    old = (now_for_dropping(database) - _KEPT_SECONDS,)
    _drop_backups(path, *old)
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
