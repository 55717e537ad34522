"""The messages of a chat as a tree: an edit or another answer begins a branch beside the old one, and nothing is lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from localspec.chat.messages import Document, Message, attach_documents

Figures = dict[str, float | int | str | None]
"""What an answer took: values that JSON knows."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One message of a chat."""

    id: int
    """Unique in its chat, rising in the order of writing."""
    parent: int | None
    """The message before it; None for the first."""
    role: Literal["user", "assistant"]
    text: str
    documents: tuple[Document, ...] = ()
    finish: str | None = None
    """Why an answer ended, a value of Finish; None while it is being written, and for a person's message."""
    figures: Figures | None = None

    @property
    def content(self) -> str:
        """What the model reads: the documents, and then the words."""
        return attach_documents(self.documents, self.text)


@dataclass(slots=True)
class Thread:
    """All branches of a chat, and the one that is shown."""

    entries: dict[int, Entry] = field(default_factory=dict)
    leaf: int | None = None
    """The last message of the branch that is shown."""

    def path(self) -> list[Entry]:
        """The branch that is shown, from its first message on."""
        found: list[Entry] = []
        at = self.leaf
        while at is not None:
            found.append(self.entries[at])
            at = self.entries[at].parent
        return found[::-1]

    def messages(self) -> list[Message]:
        """The same, as a template takes it."""
        return [Message(entry.role, entry.content) for entry in self.path()]

    def add(
        self, role: Literal["user", "assistant"], text: str, documents: Sequence[Document] = (), *, after: int | None
    ) -> Entry:
        """A new message behind `after` (None: a new beginning); the branch that ends with it is shown from now on."""
        entry = Entry(max(self.entries, default=0) + 1, after, role, text, tuple(documents))
        self.entries[entry.id] = entry
        self.leaf = entry.id
        return entry

    def change(
        self, id_: int, *, text: str | None = None, finish: str | None = None, figures: Figures | None = None
    ) -> Entry:
        """An answer has grown or ended. What is None stays."""
        old = self.entries[id_]
        entry = replace(
            old,
            text=old.text if text is None else text,
            finish=finish or old.finish,
            figures=figures or old.figures,
        )
        self.entries[id_] = entry
        return entry

    def remove(self, id_: int) -> None:
        """Take back a message that nothing follows; the branch before it is shown. Raises ValueError where something does."""
        if any(entry.parent == id_ for entry in self.entries.values()):
            raise ValueError(f"message {id_} has answers")
        parent = self.entries.pop(id_).parent
        if self.leaf == id_:
            self.leaf = parent

    def siblings(self, id_: int) -> list[int]:
        """The messages that stand at this one's place, itself included, oldest first."""
        parent = self.entries[id_].parent
        return sorted(other.id for other in self.entries.values() if other.parent == parent)

    def show(self, id_: int) -> None:
        """Show the branch through a message, and on along the newest messages behind it."""
        at = id_
        while behind := [entry.id for entry in self.entries.values() if entry.parent == at]:
            at = max(behind)
        self.leaf = at
