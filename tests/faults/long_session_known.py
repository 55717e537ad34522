"""What the person of a long session knows: the plan, what was said in which chat, and what was heard of an answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Plan:
    """What is to be played."""

    target: str
    draft: str
    turns: int
    """Answers, at least."""
    looks: int
    """At what there is of everything, beside the one at the beginning."""
    seed: int
    one_chat: bool = False
    """Stay in one chat all the time."""
    trace: bool = False
    """Say where memory comes from (slow)."""
    context: int = 1024
    most: int = 150
    """Tokens of an answer."""


@dataclass(eq=False)
class Said:
    """A message as the person knows it."""

    role: str
    text: str
    documents: tuple[str, ...]
    parent: Said | None
    children: list[Said] = field(default_factory=list)
    ended: bool = False
    """The model had no more to say."""


@dataclass(eq=False)
class Known:
    """A chat as the person knows it."""

    id: int | None = None
    first: list[Said] = field(default_factory=list)
    leaf: Said | None = None

    def as_rows(self) -> list[list[Any]]:
        """Role, text, documents, and the row of the message before (-1: none) of every message, each right below the one that
        it follows: branches in the order of writing."""
        rows: list[list[Any]] = []
        left = [(said, -1) for said in reversed(self.first)]
        while left:
            said, before = left.pop()
            left += [(child, len(rows)) for child in reversed(said.children)]
            rows.append([said.role, said.text, list(said.documents), before])
        return rows

    def path(self) -> list[Said]:
        """The branch that is shown."""
        found, at = [], self.leaf
        while at:
            found.append(at)
            at = at.parent
        return found[::-1]

    def siblings(self, said: Said) -> list[Said]:
        """Those in its place."""
        return said.parent.children if said.parent else self.first

    def add(self, role: str, text: str, documents: tuple[str, ...], parent: Said | None) -> Said:
        """One more."""
        said = Said(role, text, documents, parent)
        self.siblings(said).append(said)
        self.leaf = said
        return said

    def show(self, said: Said) -> None:
        """Down along the newest."""
        while said.children:
            said = said.children[-1]
        self.leaf = said


@dataclass
class Heard:
    """What the engine has said in one answer, as far as it reached the screen. Times in milliseconds."""

    text: str = ""
    tokens: int = 0
    steps: int = 0
    """Target passes."""
    rows: int = 0
    """Positions in them."""
    prompt: int = 0
    """Tokens that the answer began with."""
    stream: int = 0
    """Most tokens of the conversation."""
    passes_ms: float = 0.0
    host_ms: float = 0.0
    ended: bool = False
    failed: str = ""
