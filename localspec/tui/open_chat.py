"""The chat that is open: its messages and what the store has of them, kept in step. Knows no widgets."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from localspec.chat.database import BusyError, StorageError
from localspec.chat.messages import Document, Message
from localspec.chat.store import JSON, Chat, ChatInfo, Store, title_of
from localspec.chat.thread import Entry, Figures, Thread
from localspec.engine.errors import UserError
from localspec.engine.step import Finish

SAVE_SECONDS = 1.0
"""Nothing that was written longer ago than this gets lost."""
KEY_SECONDS = 0.1
"""So long may a key wait for another program that is writing; saving is tried again after that."""
_LAST_SECONDS = 2.0
"""The same when the app ends, and there will be no other time."""
_TOLD_SECONDS = 2.0
"""That others are writing is no trouble, unless it lasts."""
EDITED: Figures = {"edited": True}
"""What a person wrote in the model's place took nothing."""


@dataclass(slots=True)
class Writing:
    """An answer that is being written, and how things were before."""

    entry: int
    leaf: int | None
    """The end of the branch shown before."""
    asked: int | None = None
    """The person's message that came with it; it goes back when nothing comes of it."""
    edits: int | None = None
    """The message that one stands beside."""
    goes_on: bool = False
    begun: bool = False
    saved_at: float = 0.0


@dataclass(slots=True)
class OpenChat:
    """One chat at a time. Whatever the store cannot take now is tried again with the next message, and by `retry`."""

    store: Store | None
    on_trouble: Callable[[str], None] = lambda sentence: None
    """Called with one sentence when something could not be saved."""
    on_saved: Callable[[], None] = lambda: None
    """Called when it could after all."""
    open_store: Callable[[], Store] | None = None
    """Opens the store where it could not be opened before. Raises UserError."""
    model: str = ""
    thread: Thread = field(default_factory=Thread)
    system: str | None = None
    """The system prompt; None: the one of the start."""
    settings: dict[str, JSON] = field(default_factory=dict)
    title: str = ""
    id: int | None = None
    """Its number in the store; None before its first message is saved."""
    writing: Writing | None = None
    troubled: bool = False
    """What is shown is not saved."""
    why: str = ""
    """Why not, the last time: a sentence."""
    _usual: tuple[str | None, dict[str, JSON]] = field(default_factory=lambda: (None, {}))
    _unsaved: set[int] = field(default_factory=set)
    _waiting: dict[object, Callable[[Store], None]] = field(default_factory=dict)
    """What else the store has not been told yet, the newest of each kind."""
    _failing: float | None = None
    """Since when nothing can be saved, by a clock that only rises."""
    _generation: int = 0
    """Of the store, when the chat was given its number."""
    _named: str = ""
    """The title that the person gave it before it was saved."""
    _shown: int | None = None
    """The branch that the store knows to be shown."""

    # What a person does. Each begins an answer; `messages` are then what to answer.

    def ask(self, words: str, documents: Sequence[Document] = ()) -> Entry:
        """A new message at the end. Returns the answer to write."""
        return self._ask(words, documents, self.thread.leaf, None)

    def ask_instead(self, id_: int, words: str, documents: Sequence[Document] = ()) -> Entry:
        """Another message in the place of one of the person's: a branch. Returns the answer to write."""
        return self._ask(words, documents, self.thread.entries[id_].parent, id_)

    def answer_again(self, id_: int) -> Entry:
        """Another answer in the place of this one, or to this message of the person's. Returns the answer to write."""
        entry, leaf = self.thread.entries[id_], self.thread.leaf
        answer = self.thread.add("assistant", "", after=entry.parent if entry.role == "assistant" else id_)
        self.writing = Writing(answer.id, leaf)
        return answer

    def go_on(self, id_: int) -> Entry:
        """Have an answer continued; one that others follow is continued in a branch. Returns the answer to write."""
        entry, leaf = self.thread.entries[id_], self.thread.leaf
        if any(other.parent == id_ for other in self.thread.entries.values()):
            entry = self.thread.add("assistant", entry.text, after=entry.parent)
        self.writing = Writing(entry.id, leaf, goes_on=True)
        return entry

    def messages(self) -> list[Message]:
        """What the model is to answer or to continue."""
        path = self.thread.path()
        if self.writing and not self.writing.goes_on:
            path = path[:-1]
        turns = [Message(entry.role, entry.content) for entry in path]
        return turns if self.system is None else [Message("system", self.system), *turns]

    # What becomes of the answer.

    def grow(self, text: str, now: float) -> None:
        """The answer has grown. `now`: seconds of a clock that only rises."""
        writing = self.writing
        if writing is None or not text:
            return
        entry = self.thread.change(writing.entry, text=self.thread.entries[writing.entry].text + text)
        self._unsaved.add(entry.id)
        if not writing.begun or now - writing.saved_at >= SAVE_SECONDS:
            self.save()
            writing.begun, writing.saved_at = True, now

    def finish(self, finish: Finish | None, figures: Figures | None) -> None:
        """The answer is complete, was stopped, or broke off (None)."""
        writing, self.writing = self.writing, None
        if writing:
            before = self.thread.entries[writing.entry].figures if writing.goes_on else None
            figures = _summed(before, figures)
            self.thread.change(writing.entry, finish=finish.value if finish else None, figures=figures)
            self._unsaved.add(writing.entry)
            self.save()

    def take_back(self) -> tuple[Writing, Entry | None] | None:
        """No word has been written: all is as it was before. Returns the person's message that is not there any more."""
        writing, self.writing = self.writing, None
        if writing is None:
            return None
        entry = self.thread.entries[writing.entry]
        if not writing.goes_on or entry.id != writing.leaf:
            self.thread.remove(entry.id)
        asked = self.thread.entries[writing.asked] if writing.asked is not None else None
        if asked:
            self._remove(asked.id)
        self.thread.leaf = writing.leaf
        self.save()
        return writing, asked

    # What needs no answer.

    def write_instead(self, id_: int, text: str) -> Entry:
        """The person's words in the place of an answer: a branch, which the model takes for its own."""
        entry = self.thread.add("assistant", text, after=self.thread.entries[id_].parent)
        entry = self.thread.change(entry.id, finish=Finish.INTERRUPTED.value, figures=EDITED)
        self._unsaved.add(entry.id)
        self.save()
        return entry

    def show_branch(self, id_: int, by: int) -> Entry | None:
        """Show the branch `by` places after the one through a message; None where there is none."""
        siblings = self.thread.siblings(id_)
        at = siblings.index(id_) + by
        if not 0 <= at < len(siblings):
            return None
        self.thread.show(siblings[at])
        self.save()
        return self.thread.entries[siblings[at]]

    def branches(self, id_: int) -> str:
        """Which of the messages at its place it is, such as 2/3; empty for one alone."""
        siblings = self.thread.siblings(id_)
        return f"{siblings.index(id_) + 1}/{len(siblings)}" if len(siblings) > 1 else ""

    def name_model(self, model: str) -> None:
        """Who answers from now on."""
        self.model = model
        if (chat := self.id) is not None:
            self._tell("model", lambda store: store.name_model(chat, model))

    def rename(self, title: str) -> None:
        """Give the chat a title."""
        self.title = title
        if (chat := self.id) is not None:
            self._tell("title", lambda store: store.rename(chat, title))
        else:
            self._named = title

    def refresh_title(self) -> None:
        """Somebody else may have renamed the chat."""
        self.title = self.as_chat().info.title

    def configure(self, system: str | None, settings: dict[str, JSON]) -> None:
        """What the chat is answered with from now on, and those begun after it."""
        self.system, self.settings = system, settings
        self._usual = system, dict(settings)
        if (chat := self.id) is not None:
            self._tell("settings", lambda store: store.configure(chat, system, settings))

    def begin(self) -> None:
        """An empty chat, with what the person has set last."""
        self.save()
        self._become(Thread(), None, "")
        self.system, self.settings = self._usual[0], dict(self._usual[1])

    def load(self, id_: int) -> None:
        """Another chat. Raises UserError; this one stays open then."""
        if self.store is None:
            raise UserError("The chats cannot be read, so none can be opened.")
        self.save()
        chat = self.store.load(id_)
        self._become(chat.thread, id_, chat.info.title)
        self.system, self.settings = chat.system, chat.settings
        self._shown = chat.thread.leaf

    def as_chat(self) -> Chat:
        """What there is to export."""
        info = ChatInfo(self.id or 0, self.title, self.model, 0.0, 0.0, len(self.thread.entries), "")
        if self.store and self.id is not None:
            # What is on the screen can be written all the same.
            with suppress(UserError):
                info = self.store.load(self.id).info
        return Chat(info, self.system, self.settings, self.thread)

    def would_be_lost(self) -> str:
        """Why this chat, or its newest messages, would be lost when it is left now; empty when nothing would. Saving is tried
        once more before."""
        self.save()
        saved = self.store is not None and not self._unsaved and not self._waiting
        fails = self.troubled or self._failing is not None
        return "" if saved or not fails or self.thread.leaf is None else self.why

    def save(self) -> None:
        """Bring the store up to date."""
        if self.store and self.store.generation != self._generation:
            self._forget_number(self.store.generation)
        if self._unsaved and self.id is None:
            self._do(self._create)
        if (chat := self.id) is None:
            return
        for kind, act in list(self._waiting.items()):
            if isinstance(self._failure(act), StorageError | sqlite3.Error):
                return
            # What the store refuses, as of a chat that was deleted, it would refuse again.
            del self._waiting[kind]
        for id_ in sorted(self._unsaved):
            entry = self.thread.entries[id_]
            if not self._do(lambda store, entry=entry: store.save(chat, entry)):  # type: ignore[misc]
                return
            self._unsaved.discard(id_)
        if self._shown != self.thread.leaf and not self._is_empty(self.thread.leaf):
            leaf = self.thread.leaf
            if self._do(lambda store: store.show(chat, leaf)):
                self._shown = leaf

    def unsaved_questions(self) -> list[Entry]:
        """The person's messages that are nowhere but in memory."""
        entries = (self.thread.entries[id_] for id_ in sorted(self._unsaved))
        return [entry for entry in entries if entry.role == "user"]

    def retry(self) -> None:
        """Try again what failed; to be called every now and then."""
        if self.store is None and self.open_store:
            self._do(lambda store: None)
            fails = self.store is not None
        else:
            fails = self.troubled or self._failing is not None
        if fails:
            self.save()

    def save_at_last(self) -> None:
        """The same as `save` when the app ends: nobody waits for a key now."""
        self._wait(_LAST_SECONDS)
        self.save()
        self._wait(KEY_SECONDS)

    def _is_empty(self, id_: int | None) -> bool:
        """Whether it is the answer without a word, which is not in the store."""
        return self.writing is not None and self.writing.entry == id_ and not self.thread.entries[id_].text

    def _forget_number(self, generation: int) -> None:
        """The file that the chat was in is gone: all of it is saved anew."""
        self._generation, self._named = generation, self._named or self.title
        self.id, self._shown, self._waiting = None, None, {}
        self._unsaved = {id_ for id_ in self.thread.entries if not self._is_empty(id_)}

    def _create(self, store: Store) -> None:
        self.id = store.create(self.model, self.system)
        chat, named, system, settings = self.id, self._named, self.system, dict(self.settings)
        if named:
            self._waiting["title"] = lambda store: store.rename(chat, named)
        if settings:
            self._waiting["settings"] = lambda store: store.configure(chat, system, settings)

    def _ask(self, words: str, documents: Sequence[Document], after: int | None, edits: int | None) -> Entry:
        leaf = self.thread.leaf
        asked = self.thread.add("user", words, documents, after=after)
        self.title = self.title or title_of(asked)
        self._unsaved.add(asked.id)
        self.save()
        answer = self.thread.add("assistant", "", after=asked.id)
        self.writing = Writing(answer.id, leaf, asked.id, edits)
        return answer

    def _remove(self, id_: int) -> None:
        self.thread.remove(id_)
        saved = id_ not in self._unsaved
        self._unsaved.discard(id_)
        if saved and (chat := self.id) is not None:
            self._tell(("remove", id_), lambda store: store.remove(chat, id_))

    def _become(self, thread: Thread, id_: int | None, title: str) -> None:
        if self.store and self.id is not None and self.id != id_:
            self.store.forget(self.id)
        self.thread, self.id, self.title = thread, id_, title
        self.writing, self._shown, self._unsaved, self._named = None, None, set(), ""
        self._waiting, self._failing = {}, None
        self._generation = self.store.generation if self.store else 0
        self.troubled = self.troubled and self.store is None

    def _tell(self, kind: object, act: Callable[[Store], None]) -> None:
        """Something is to become of the chat that is no message: now, or as soon as it can."""
        self._waiting.pop(kind, None)
        self._waiting[kind] = act
        self.save()

    def _do(self, act: Callable[[Store], None]) -> bool:
        return (self.store is not None or self.open_store is not None) and self._failure(act) is None

    def _failure(self, act: Callable[[Store], None]) -> Exception | None:
        try:
            if self.store is None and self.open_store:
                self.store = self.open_store()
            if self.store:
                act(self.store)
        except (UserError, sqlite3.Error) as error:
            self.why = str(error)
            now = time.monotonic()
            self._failing = now if self._failing is None else self._failing
            lasts = not isinstance(error, BusyError) or now - self._failing >= _TOLD_SECONDS
            if lasts and not self.troubled:
                self.troubled = True
                self.on_trouble(f"This chat is not saved ({error}); it goes on, and saving is tried again.")
            return error
        self._failing = None
        if self.troubled:
            self.troubled = False
            self.on_saved()
        return None

    def _wait(self, seconds: float) -> None:
        with suppress(UserError, sqlite3.Error):
            if self.store:
                self.store.wait_at_most(seconds)


def _summed(before: Figures | None, figures: Figures | None) -> Figures | None:
    """What an answer took that was written in two parts. What is not known of one part is not known of the whole."""
    if not before or not figures or before.get("edited"):
        return figures
    summed: Figures = {}
    for name, value in figures.items():
        other = before.get(name)
        both_numbers = isinstance(value, int | float) and isinstance(other, int | float)
        summed[name] = value + other if both_numbers else None  # type: ignore[operator]
    return summed
