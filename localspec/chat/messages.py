"""What is said in a conversation, and the shapes a model may want it in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True)
class Message:
    """One thing said, by whom."""

    role: Role
    content: str


@dataclass(frozen=True)
class Document:
    """A text attached to a message, and the name it goes by."""

    name: str
    text: str
    path: Path | None = field(default=None, compare=False)
    """The text file it was read from."""


def attach_documents(documents: Sequence[Document], words: str) -> str:
    """The text of a user message: every document, verbatim, between lines that name it, and then the person's words.

    The words come last because small models follow best what they read last.
    """
    return "\n\n".join([*map(_framed, documents), *([words] if words else [])])


def _framed(document: Document) -> str:
    name = " ".join(document.name.split())
    rule = "---"
    while f"{rule} end of {name} {rule}" in document.text:
        rule += "-"
    newline = "" if document.text.endswith("\n") else "\n"
    return f"{rule} document: {name} {rule}\n{document.text}{newline}{rule} end of {name} {rule}"


def fold_system(messages: Sequence[Message]) -> list[Message]:
    """Every system message put at the head of the user message after it, for models that know no system role."""
    folded: list[Message] = []
    waiting: list[str] = []
    for message in messages:
        if message.role == "system":
            waiting.append(message.content)
        elif message.role == "user" and waiting:
            folded.append(replace(message, content="\n\n".join([*waiting, message.content])))
            waiting.clear()
        else:
            folded.append(message)
    return [*folded, Message("user", "\n\n".join(waiting))] if waiting else folded


def merge_turns(messages: Sequence[Message]) -> list[Message]:
    """Neighbors of the same role made one, for models whose roles must alternate."""
    merged: list[Message] = []
    for message in messages:
        if merged and merged[-1].role == message.role:
            merged[-1] = replace(message, content=f"{merged[-1].content}\n\n{message.content}")
        else:
            merged.append(message)
    return merged


def shapes(messages: Sequence[Message]) -> Iterator[list[Message]]:
    """The same conversation as a strict template may want it, the least changed first; what is equal comes once."""
    shape = list(messages)
    yield shape
    for reshape in (fold_system, merge_turns):
        reshaped = reshape(shape)
        if reshaped != shape:
            yield reshaped
        shape = reshaped
