"""The texts of all documents in the file of the chats, each kept once under the SHA-256 of its bytes.

A message has names and digests in its column `documents`; the texts are in a table of their own, so that a text attached ten
times takes the room of one.
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from localspec.chat.clock import now_for_dropping
from localspec.chat.messages import Document
from localspec.whole_file import from_json

_KEPT_SECONDS = 30 * 24 * 3600
"""How long the versions of a document are kept that no chat refers to, since the last change of one."""
_REFERRING = "SELECT documents FROM entries WHERE documents <> '[]'"


def digest_of(text: str) -> str:
    """What a text is known by: 64 hexadecimal digits."""
    return hashlib.sha256(encoded(text)).hexdigest()


def keep(database: sqlite3.Connection, text: str) -> str:
    """Keep a text, and return its digest. A text that is there already is not written again."""
    digest = digest_of(text)
    if not database.execute("SELECT 1 FROM documents WHERE digest = ?", (digest,)).fetchone():
        database.execute("INSERT INTO documents (digest, text) VALUES (?, ?)", (digest, encoded(text)))
    return digest


def read(database: sqlite3.Connection, digest: str) -> str:
    """The text with this digest. Raises KeyError where it is missing."""
    row = database.execute("SELECT text FROM documents WHERE digest = ?", (digest,)).fetchone()
    if row is None:
        raise KeyError(digest)
    return decoded(row[0])


def keep_all(database: sqlite3.Connection, documents: Sequence[Document]) -> str:
    """Keep the texts of a message's documents, and return what its column has for them."""
    # ASCII: halves of surrogate pairs stay what they are.
    return json.dumps(
        [
            {"name": document.name, "sha256": keep(database, document.text)}
            | ({"path": str(document.path)} if document.path else {})
            for document in documents
        ]
    )


def read_all(database: sqlite3.Connection, column: str) -> tuple[Document, ...]:
    """The documents of a message by its column. Raises TypeError, ValueError or KeyError for what cannot be read."""
    return tuple(
        Document(value["name"], read(database, value["sha256"]), path_of(value.get("path")))
        for value in from_json(column)
    )


def path_of(kept: str | None) -> Path | None:
    """The path of a document by what is kept of it. Raises TypeError for what is none."""
    return Path(kept) if kept else None


def take_out_of_messages(database: sqlite3.Connection) -> None:
    """From version 1, in which every message had the texts of its documents in its column."""
    # One at a time, since they may be large. What cannot be read stays as it is, and is reported when it is needed.
    for (key,) in database.execute("SELECT key FROM entries WHERE documents <> '[]'").fetchall():
        (column,) = database.execute("SELECT documents FROM entries WHERE key = ?", (key,)).fetchone()
        try:
            documents = [Document(value["name"], value["text"]) for value in from_json(column)]
        except (TypeError, ValueError, KeyError):
            continue
        database.execute("UPDATE entries SET documents = ? WHERE key = ?", (keep_all(database, documents), key))


def drop_unused(database: sqlite3.Connection) -> None:
    """Delete the texts that no message and no version of a document refers to; and the versions of a document that no chat
    has, when they are a month old. Inside a transaction."""
    used = _used_by_messages(database)
    old = now_for_dropping(database) - _KEPT_SECONDS
    for digest, updated in database.execute("SELECT document, max(updated) FROM versions GROUP BY document").fetchall():
        if digest not in used and updated < old:
            database.execute("DELETE FROM versions WHERE document = ?", (digest,))
    for row in database.execute("SELECT document, source FROM versions"):
        used.update(row)
    for (digest,) in database.execute("SELECT digest FROM documents").fetchall():
        if digest not in used:
            database.execute("DELETE FROM documents WHERE digest = ?", (digest,))


def _used_by_messages(database: sqlite3.Connection) -> set[str]:
    used: set[str] = set()
    for (column,) in database.execute(_REFERRING):
        used.update(_digests(column))
    return used


def _digests(column: str) -> Iterator[str]:
    try:
        yield from [value["sha256"] for value in from_json(column)]
    except (TypeError, ValueError, KeyError):
        # A damaged row refers to nothing that could be read.
        return


def encoded(text: str) -> bytes:
    """`text` as it is kept: halves of surrogate pairs and NULs stay what they are."""
    return text.encode("utf-8", "surrogatepass")


def decoded(kept: bytes) -> str:
    """The text of what is kept. Raises TypeError or ValueError where it is none."""
    if not isinstance(kept, bytes):
        raise TypeError("no bytes")
    return bytes(kept).decode("utf-8", "surrogatepass")
