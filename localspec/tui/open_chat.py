"""The chat that is open: its messages and what the store has of them, kept in step. Knows no widgets."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from localspec.chat.database import PATIENCE
from localspec.chat.messages import Document, Message
from localspec.chat.store import JSON, Chat, ChatInfo, Store, title_of
from localspec.chat.thread import Entry, Figures, Thread
from localspec.engine.errors import UserError
from localspec.engine.step import Finish

SAVE_SECONDS = 1.0
"""Nothing that was written longer ago than this gets lost."""
_TROUBLED_SECONDS = 0.05
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
    """One chat at a time. Whatever the store cannot take now is tried again with the next message."""

    store: Store | None
    on_trouble: Callable[[str], None] = lambda sentence: None
    """Called with one sentence when something could not be saved."""
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
            self._do(lambda store: store.name_model(chat, model))

    def rename(self, title: str) -> None:
        """Give the chat a title."""
        self.title = title
        if (chat := self.id) is not None:
            self._do(lambda store: store.rename(chat, title))
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
            self._do(lambda store: store.configure(chat, system, settings))

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
        saved = self.store is not None and not self._unsaved
        return "" if saved or not self.troubled or self.thread.leaf is None else self.why

    def save(self) -> None:
        """Bring the store up to date."""
        if self._unsaved and self.id is None:
            self._do(self._create)
        if (chat := self.id) is None:
            return
        for id_ in sorted(self._unsaved):
            entry = self.thread.entries[id_]
            if not self._do(lambda store, entry=entry: store.save(chat, entry)):  # type: ignore[misc]
                return
            self._unsaved.discard(id_)
        if self._shown != self.thread.leaf and not self._is_empty(self.thread.leaf):
            leaf = self.thread.leaf
            if self._do(lambda store: store.show(chat, leaf)):
                self._shown = leaf

    def _is_empty(self, id_: int | None) -> bool:
        """Whether it is the answer without a word, which is not in the store."""
        return self.writing is not None and self.writing.entry == id_ and not self.thread.entries[id_].text

    def _create(self, store: Store) -> None:
        self.id = store.create(self.model, self.system)
        if self._named:
            store.rename(self.id, self._named)
        if self.settings:
            store.configure(self.id, self.system, self.settings)

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
            self._do(lambda store: store.remove(chat, id_))

    def _become(self, thread: Thread, id_: int | None, title: str) -> None:
        self.thread, self.id, self.title = thread, id_, title
        self.writing, self._shown, self._unsaved, self._named = None, None, set(), ""
        self.troubled = self.troubled and self.store is None

    def _do(self, act: Callable[[Store], None]) -> bool:
        if self.store is None:
            return False
        try:
            act(self.store)
        except (UserError, sqlite3.Error) as error:
            self.why = str(error)
            if not self.troubled:
                # Keys wait as long as saving does: from now on, not for those who keep the file busy.
                self._wait(_TROUBLED_SECONDS)
                self.troubled = True
                self.on_trouble(f"This chat is not saved ({error}); it goes on, and saving is tried again.")
            return False
        if self.troubled:
            self.troubled = False
            self._wait(PATIENCE)
        return True

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
