"""The versions of a document: what became of it, instruction by instruction. They are kept with the document, so that they
are there again when the chat or the app was left, however that happened."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from localspec.chat.clock import now
from localspec.chat.database import damaged
from localspec.chat.kept_documents import decoded, digest_of, drop_unused, encoded, keep, read
from localspec.chat.messages import Document
from localspec.chat.rewrite import digest_of as of_rewriting
from localspec.chat.rewrite_events import State, state_of
from localspec.chat.rows import known, storable
from localspec.chat.store import Store
from localspec.engine.errors import UserError
from localspec.whole_file import from_json

_COLUMNS = "id, instruction, source, result, finish, rejected, state"


@dataclass(frozen=True, slots=True)
class Version:
    """One rewriting of a text."""

    id: int
    """Its number in the store; 0 where it is not kept."""
    instruction: str
    """"" for what a person wrote."""
    source: str
    """What was rewritten: the document, or what was accepted of an earlier version."""
    result: str
    """All that was written of it."""
    finish: str | None = None
    """How the writing ended, a value of Finish; None while it goes on, and where it broke off."""
    rejected: tuple[int, ...] = ()
    """The changes that the person does not want, by their number; see chat/diff.py."""
    state: State | None = None
    """Where the writing can be gone on with, if it has not come to its end."""
    done: int = 0
    """With `state`: so many characters of the result are finished parts."""


class Versions:
    """The versions of one document, the oldest first. All methods raise UserError; without a store nothing is kept."""

    def __init__(self, store: Store | None, document: Document) -> None:
        self._store, self._document = store, document
        self._digest = digest_of(document.text)

    def load(self) -> list[Version]:
        """Those that were kept."""
        if self._store is None:
            return []
        with self._store.reading() as database:
            rows = database.execute(
                f"SELECT {_COLUMNS} FROM versions WHERE document = ? ORDER BY id", (self._digest,)
            ).fetchall()
            try:
                return [_version(database, *row) for row in rows]
            except (TypeError, ValueError, KeyError) as error:
                raise UserError(damaged(self._store.path)) from error

    def add(self, version: Version) -> Version:
        """A new version. Returns it with its number."""
        if self._store is None:
            return version
        with self._store.writing() as database:
            at = now()
            row = database.execute(
                """INSERT INTO versions
                (document, source, result, name, path, instruction, finish, state, rejected, created, updated)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
                (
                    keep(database, self._document.text),
                    keep(database, version.source),
                    encoded(version.result),
                    storable(self._document.name),
                    os.fsencode(self._document.path) if self._document.path else None,
                    storable(version.instruction),
                    version.finish,
                    _kept_state(version),
                    json.dumps(version.rejected),
                    at,
                    at,
                ),
            )
            return replace(version, id=known(row.lastrowid))

    def change(self, version: Version) -> None:
        """Keep what has become of a version: its result, how it ended, where it goes on, what is rejected."""
        if self._store is None or not version.id:
            return
        with self._store.writing() as database:
            database.execute(
                "UPDATE versions SET result = ?, finish = ?, state = ?, rejected = ?, updated = ? WHERE id = ?",
                (
                    encoded(version.result),
                    version.finish,
                    _kept_state(version),
                    json.dumps(version.rejected),
                    now(),
                    version.id,
                ),
            )

    def remove(self, version: Version) -> None:
        """One in which nothing was written."""
        if self._store is None or not version.id:
            return
        with self._store.writing() as database:
            database.execute("DELETE FROM versions WHERE id = ?", (version.id,))
            drop_unused(database)


def rewritten_lately(store: Store | None, most: int = 20) -> list[Document]:
    """The documents with versions, the one that was changed last first. Raises UserError."""
    if store is None:
        return []
    with store.reading() as database:
        rows = database.execute(
            """SELECT document, name, path, max(updated) FROM versions GROUP BY document
            ORDER BY max(updated) DESC LIMIT ?""",
            (most,),
        ).fetchall()
        found = []
        for digest, name, path, _ in rows:
            # Of a damaged file, what can be read.
            with contextlib.suppress(TypeError, ValueError, KeyError):
                where = Path(os.fsdecode(path)) if path else None
                found.append(Document(name, read(database, digest), where))
        return found


def _version(
    database: sqlite3.Connection,
    id_: int,
    instruction: str,
    source: str,
    result: bytes,
    finish: str | None,
    rejected: str,
    state: str | None,
) -> Version:
    """The version of a row. Raises TypeError, ValueError or KeyError for one that cannot be read."""
    version = Version(id_, instruction, read(database, source), decoded(result), finish, tuple(from_json(rejected)))
    if state is None:
        return version
    try:
        kept = from_json(state)
        goes_on, done = state_of(kept["state"]), int(kept["done"])
    except (TypeError, ValueError, KeyError):
        # The text is there all the same.
        return version
    fits = goes_on.source_position <= len(version.source) and 0 <= done <= len(version.result)
    if not fits or goes_on.digest != of_rewriting(version.source, instruction):
        return version
    return replace(version, state=goes_on, done=done)


def _kept_state(version: Version) -> str | None:
    # ASCII: halves of surrogate pairs stay what they are.
    return json.dumps({"state": asdict(version.state), "done": version.done}) if version.state else None
