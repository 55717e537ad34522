"""The chats of a person, kept in one file that several programs may use at the same time."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from localspec.chat import search as full_text
from localspec.chat.clock import moment, now
from localspec.chat.database import MovedError, damaged, explained, identity, open_database, transaction
from localspec.chat.kept_documents import drop_unused
from localspec.chat.rows import entry_of, known, storable, to_json, values
from localspec.chat.thread import Entry, Thread
from localspec.engine.errors import UserError
from localspec.whole_file import from_json

JSON = None | bool | int | float | str | list["JSON"] | dict[str, "JSON"]

STORE_FILE = "chats.db"
"""Its name in the data folder."""
_TITLE_CHARACTERS = 60
_CONTROLS = dict.fromkeys([*range(0x20), *range(0x7F, 0xA0)], " ")

_NEXT = "(SELECT coalesce(max(touched), 0) + 1 FROM chats)"
"""Behind all that has been written."""
_INFO = """SELECT chats.id, title, model, created, updated, (SELECT count(*) FROM entries WHERE chat = chats.id)
    FROM chats WHERE deleted_at IS NULL"""


@dataclass(frozen=True, slots=True)
class ChatInfo:
    """What a list of chats shows of one. Times in seconds since the epoch."""

    id: int
    title: str
    model: str
    created: float
    updated: float
    messages: int
    """Those of all branches."""
    snippet: str = ""
    """Where a search found something: one line, "" when nothing was searched or the title alone has it."""


@dataclass(slots=True)
class Chat:
    """A whole chat."""

    info: ChatInfo
    system: str | None
    settings: dict[str, JSON]
    """What this chat sets for itself."""
    thread: Thread


class _Place(NamedTuple):
    """Where a message lies in the file."""

    key: int
    id: int
    ours: bool
    """This store has written it, rather than only read it."""


class Store:
    """The chats in `path`. Every method may be called from any thread and raises UserError with one sentence.

    Two programs may write to the same chat: neither changes a message of the other, their messages become branches.
    For that the store remembers what it has loaded and saved. A message with an id that it does not know is a new one, and
    if the other has taken the id meanwhile, it gets another in the file; whoever uses this store does not notice.
    """

    def __init__(self, path: Path, patience: float | None = None) -> None:
        """`patience`: how many seconds others who write are waited for, database.PATIENCE where it is None."""
        self.path = path
        self._lock = threading.RLock()
        self._places: dict[int, dict[int, _Place]] = {}
        """By chat, and by the id that a message has for whoever uses this store."""
        self._patience = patience
        self._database = open_database(path, patience)
        self._file = identity(path)
        self.generation = 0
        """Rises when the file was deleted, moved or replaced: numbers of chats and of versions mean nothing any more then."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file. Closing twice is no error."""
        with self._lock, explained(self.path):
            self._database.close()

    def wait_at_most(self, seconds: float) -> None:
        """How long to wait for another program that is writing, from now on."""
        with self.reading() as database:
            self._patience = seconds
            database.execute(f"PRAGMA busy_timeout = {round(1000 * seconds)}")

    def create(self, model: str, system: str | None = None) -> int:
        """A new chat; it is listed once it has a message."""
        with self.writing() as database:
            at = now()
            row = database.execute(
                f"INSERT INTO chats (model, system, created, updated, touched) VALUES (?, ?, ?, ?, {_NEXT})",
                (storable(model), system and storable(system), at, at),
            )
            return known(row.lastrowid)

    def chats(self, search: str = "", limit: int = 500) -> list[ChatInfo]:
        """The chats that have messages, newest first; with `search` those in which all its words occur."""
        words = full_text.words_of(storable(search))
        with self.reading() as database:
            hits = full_text.find(database, words) if words else {}
            rows = database.execute(
                f"{_INFO} AND EXISTS (SELECT 1 FROM entries WHERE chat = chats.id) ORDER BY touched DESC, id DESC"
            )
            found: list[ChatInfo] = []
            for row in rows:
                if len(found) >= limit:
                    break
                if not words:
                    found.append(info_of(row))
                elif hit := hits.get(row[0]):
                    found.append(replace(info_of(row), snippet=_snippet(database, hit.best, words)))
            return found

    def load(self, chat: int) -> Chat:
        """A chat with all its branches."""
        with self.reading() as database:
            # One transaction, so that nobody writes between the queries.
            database.execute("BEGIN")
            try:
                info = info_of(self._existing(chat))
                row = database.execute("SELECT system, settings, leaf FROM chats WHERE id = ?", (chat,)).fetchone()
                rows = database.execute("SELECT * FROM entries WHERE chat = ? ORDER BY id", (chat,)).fetchall()
                system, settings, leaf = row
                chosen = from_json(settings)
                if not isinstance(chosen, dict) or not isinstance(system, str | None):
                    raise ValueError("the settings are none")
                return Chat(info, system, chosen, self._thread(chat, rows, leaf))
            except (TypeError, ValueError, KeyError) as error:
                raise UserError(damaged(self.path)) from error
            finally:
                # What could not be read may have ended it already.
                if database.in_transaction:
                    database.execute("COMMIT")

    def save(self, chat: int, entry: Entry) -> None:
        """Write a message, a new one or one that has changed.

        A new message is the end of the branch that is shown. The first one of a person gives the chat its title, and
        a new one of a person brings back a chat that has been deleted meanwhile.
        """
        with self._lock:
            with self.writing() as database:
                self._existing(chat, deleted=True)
                at = now()
                place = self._update(chat, entry, at) or self._insert(chat, entry, at)
                database.execute(f"UPDATE chats SET updated = ?, touched = {_NEXT} WHERE id = ?", (at, chat))
                if entry.role == "user":
                    title = storable(title_of(entry))
                    database.execute("UPDATE chats SET title = ? WHERE id = ? AND title = ''", (title, chat))
            # Only what has been written is known: a key that was not may be given to another message.
            self._places.setdefault(chat, {})[entry.id] = place
            if entry.role == "user" or entry.finish:
                with self.reading() as database:
                    full_text.index(database, place.key)

    def remove(self, chat: int, entry: int) -> None:
        """Take back a message that was loaded or saved here. One that is followed by others stays."""
        with self._lock:
            place = self._places.get(chat, {}).get(entry)
            if place is None:
                return
            with self.writing() as database:
                self._remove(database, chat, place)
            del self._places[chat][entry]

    def forget(self, chat: int) -> None:
        """Nobody has the messages of this chat any more who might change them; until it is loaded again."""
        with self._lock:
            self._places.pop(chat, None)

    def show(self, chat: int, leaf: int | None) -> None:
        """The branch that ends with `leaf` is the one that is shown."""
        with self.writing() as database:
            self._existing(chat, deleted=True)
            database.execute("UPDATE chats SET leaf = ? WHERE id = ?", (self._id(chat, leaf), chat))

    def rename(self, chat: int, title: str) -> None:
        """Give a chat a title of one line; an empty one is replaced by the first words of the chat."""
        with self.writing() as database:
            self._existing(chat)
            line = storable(_one_line(title))
            database.execute("UPDATE chats SET title = ?, named = ? WHERE id = ?", (line, bool(line), chat))
            if not line:
                first = database.execute(
                    "SELECT * FROM entries WHERE chat = ? AND role = 'user' ORDER BY id LIMIT 1", (chat,)
                ).fetchone()
                made = title_of(entry_of(database, first)) if first else ""
                database.execute("UPDATE chats SET title = ? WHERE id = ?", (made, chat))

    def configure(self, chat: int, system: str | None, settings: dict[str, JSON]) -> None:
        """Keep what a chat sets for itself."""
        with self.writing() as database:
            self._existing(chat, deleted=True)
            database.execute(
                "UPDATE chats SET system = ?, settings = ? WHERE id = ?",
                (system and storable(system), to_json(settings), chat),
            )

    def name_model(self, chat: int, model: str) -> None:
        """The model of a chat that was begun before one was loaded."""
        with self.writing() as database:
            database.execute("UPDATE chats SET model = ? WHERE id = ? AND model = ''", (storable(model), chat))

    def delete(self, chat: int) -> None:
        """Take a chat out of the list. It can be restored for 30 days."""
        with self.writing() as database:
            self._existing(chat)
            database.execute("UPDATE chats SET deleted_at = max(?, updated) WHERE id = ?", (now(), chat))

    def restore(self, chat: int) -> None:
        """Undo `delete`. A chat that has not been deleted stays as it is."""
        with self.writing() as database:
            self._existing(chat, deleted=True)
            database.execute("UPDATE chats SET deleted_at = NULL WHERE id = ?", (chat,))

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The file, for one thread at a time."""
        with self._lock, explained(self.path):
            self._open_again_if_moved()
            yield self._database

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """The same; all that is written inside is saved at the end, or nothing of it."""
        with self._lock:
            before = self.generation
            with self.reading() as database:
                if self.generation != before:
                    raise MovedError(f"The chats in {self.path} were deleted, moved or replaced by another program.")
                with transaction(database):
                    yield database

    def _open_again_if_moved(self) -> None:
        """What is written to a file without a name is lost when it is closed."""
        try:
            file = identity(self.path)
        except PermissionError:
            # Whoever may not look into the folder can still write to what is open.
            return
        if file and file == self._file:
            return
        new = open_database(self.path, self._patience)
        self._database.close()
        self._database, self._file, self._places = new, identity(self.path), {}
        self.generation += 1

    def _existing(self, chat: int, *, deleted: bool = False) -> tuple[Any, ...]:
        """What is known of a chat; without `deleted` it must not have been deleted."""
        there = self._database.execute("SELECT deleted_at FROM chats WHERE id = ?", (chat,)).fetchone()
        if there is None:
            raise UserError(f"There is no chat {chat}; see localspec sessions list.")
        if there[0] is not None and not deleted:
            raise UserError(f"Chat {chat} has been deleted; localspec sessions restore {chat} brings it back.")
        info = _INFO.replace("deleted_at IS NULL", "chats.id = ?")
        row: tuple[Any, ...] = self._database.execute(info, (chat,)).fetchone()
        return row

    def _id(self, chat: int, id_: int | None) -> int | None:
        """The id in the file of a message."""
        place = self._places.get(chat, {}).get(id_) if id_ is not None else None
        return place.id if place else id_

    def _update(self, chat: int, entry: Entry, at: float) -> _Place | None:
        """None when the message is not in the file, or no longer, or when what lies there is not this one's beginning."""
        place = self._places.get(chat, {}).get(entry.id)
        if place is None:
            return None
        if not place.ours:
            old = self._database.execute("SELECT text FROM entries WHERE key = ?", (place.key,)).fetchone()
            if old is None or not storable(entry.text).startswith(old[0]):
                return None
        changed = self._database.execute(
            """UPDATE entries SET indexed = indexed AND text = :text, text = :text, documents = :documents,
            finish = :finish, figures = :figures, updated = :now WHERE key = :key AND role = :role AND parent IS :parent""",
            {**values(self._database, entry), "now": at, "key": place.key, "parent": self._id(chat, entry.parent)},
        )
        return place._replace(ours=True) if changed.rowcount else None

    def _insert(self, chat: int, entry: Entry, at: float) -> _Place:
        parent = self._id(chat, entry.parent)
        taken, last = self._database.execute(
            "SELECT count(CASE WHEN id = ? THEN 1 END), max(id) FROM entries WHERE chat = ?", (entry.id, chat)
        ).fetchone()
        behind = parent is None or entry.id > parent
        id_ = entry.id if behind and not taken else max(last or 0, parent or 0) + 1
        row = self._database.execute(
            """INSERT INTO entries (chat, id, parent, role, text, documents, finish, figures, created, updated)
            VALUES (:chat, :id, :parent, :role, :text, :documents, :finish, :figures, :now, :now)""",
            {**values(self._database, entry), "chat": chat, "id": id_, "parent": parent, "now": at},
        )
        self._database.execute("UPDATE chats SET leaf = ? WHERE id = ?", (id_, chat))
        if entry.role == "user":
            self._database.execute("UPDATE chats SET deleted_at = NULL WHERE id = ?", (chat,))
        return _Place(known(row.lastrowid), id_, True)

    @staticmethod
    def _remove(database: sqlite3.Connection, chat: int, place: _Place) -> None:
        followed = "SELECT 1 FROM entries WHERE chat = ? AND parent = ?"
        row = database.execute("SELECT parent, documents FROM entries WHERE key = ?", (place.key,)).fetchone()
        if row is None or database.execute(followed, (chat, place.id)).fetchone():
            return
        database.execute("DELETE FROM entries WHERE key = ?", (place.key,))
        if row[1] != "[]":
            drop_unused(database)
        database.execute("UPDATE chats SET leaf = ? WHERE id = ? AND leaf = ?", (row[0], chat, place.id))
        database.execute(
            """UPDATE chats SET title = '' WHERE id = ? AND NOT named
            AND NOT EXISTS (SELECT 1 FROM entries WHERE chat = chats.id AND role = 'user')""",
            (chat,),
        )

    def _thread(self, chat: int, rows: list[tuple[Any, ...]], leaf: int | None) -> Thread:
        """The messages, by the ids that they have for whoever uses this store."""
        places = self._places.setdefault(chat, {})
        ids = {place.key: id_ for id_, place in places.items()}
        named: dict[int, int] = {}
        for key, _chat, id_, *_ in rows:
            if key not in ids:
                ids[key] = id_ if id_ not in places else max([*places, *(row[2] for row in rows)]) + 1
                places[ids[key]] = _Place(key, id_, False)
            named[id_] = ids[key]
        thread = Thread()
        for row in rows:
            stored = entry_of(self._database, row)
            # A message whose predecessor was never written begins a branch of its own.
            parent = None if stored.parent is None else named.get(stored.parent)
            entry = Entry(
                named[stored.id], parent, stored.role, stored.text, stored.documents, stored.finish, stored.figures
            )
            thread.entries[entry.id] = entry
        thread.leaf = named.get(leaf) if leaf is not None else None
        if thread.leaf is None and thread.entries:
            thread.leaf = named[max(named)]
        return thread


def info_of(row: tuple[Any, ...]) -> ChatInfo:
    """What a list shows of a row; what is damaged in it does not keep others from being shown."""
    id_, title, model, created, updated, messages = row
    return ChatInfo(id_, _words(title), _words(model), moment(created), moment(updated), messages)


def _words(value: object) -> str:
    return value if isinstance(value, str) else ""


def title_of(entry: Entry) -> str:
    """The first words of a message, or the names of its documents where it has no words: one line, not too long."""
    line = _one_line(entry.text) or _one_line(", ".join(document.name for document in entry.documents))
    if len(line) <= _TITLE_CHARACTERS:
        return line
    cut = line[:_TITLE_CHARACTERS]
    # Whole words, unless that would leave little: not every language puts blanks between them.
    words = cut.rpartition(" ")[0]
    return (words if len(words) > _TITLE_CHARACTERS // 2 else cut[:-1]) + "…"


def _one_line(text: str) -> str:
    return " ".join(text.translate(_CONTROLS).split())


def _snippet(database: sqlite3.Connection, key: int | None, words: list[str]) -> str:
    if key is None:
        return ""
    row = database.execute("SELECT text FROM entries WHERE key = ?", (key,)).fetchone()
    # Another program may have removed it meanwhile.
    return full_text.snippet(row[0], words) if row and isinstance(row[0], str) else ""
