"""Texts and their edited forms, to measure with how well a drafter follows an edit.

All of it was written for this purpose. One half is for designing, the other one for judging and never looked at before:
no text has pairs in both halves, and every class of edits has pairs in each.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal

Half = Literal["design", "held-out"]
HALVES: tuple[Half, ...] = ("design", "held-out")


@dataclass(frozen=True, slots=True)
class EditPair:
    """One request to edit, and what a good answer is."""

    name: str
    """That of the text, and what is done to it."""
    document: str
    """That of the text alone: pairs that share it share words."""
    edit_class: str
    instruction: str
    source: str
    target: str


def edit_pairs(half: Half) -> list[EditPair]:
    """The pairs of one half, in the order of their texts."""
    name = half.replace("-", "_") + ".jsonl"
    lines = (files(__name__) / name).read_text(encoding="utf-8").splitlines()
    return [pair for line in lines for pair in _pairs_of(json.loads(line))]


def _pairs_of(document: dict[str, Any]) -> Iterator[EditPair]:
    """A line holds a text and its edits. An edit without a source starts from the text as it is, and one without a target
    leads to it."""
    name, text = document["document"], document["text"]
    seen: Counter[str] = Counter()
    for edit in document["edits"]:
        seen[edit["class"]] += 1
        number = seen[edit["class"]]
        yield EditPair(
            name=f"{name}: {edit['class']}" + (f" {number}" if number > 1 else ""),
            document=name,
            edit_class=edit["class"],
            instruction=edit["instruction"],
            source=edit.get("source", text),
            target=edit.get("target", text),
        )
