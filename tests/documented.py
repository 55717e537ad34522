"""Whether every number in a JSON document has its definition in docs/measure.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_SETUP = {
    "accepted", "answers", "arms", "audit", "auto", "backends", "bit_exact", "categories", "compatible",
    "complete", "cpu_features", "device", "draft", "drafted", "drafters", "gpu", "gpu_layers",
    "incompatible_reason", "last_audit", "max_tokens", "model", "option", "overall", "paths", "problem",
    "prompts", "repeat", "seed", "simulated", "skipped", "steps", "tasks", "temp", "threads", "tokens",
    "versions", "warnings", "width",
}  # fmt: skip
"""What was run and on what, and lists; no figures that need a definition."""
_DOCS = Path(__file__).parents[1] / "docs" / "measure.md"


def undefined(document: Any, heading: str, *names: str) -> set[str]:
    """The keys of numbers, and of what holds them, that do not stand in `code` below a heading of the docs, or above the
    first one. `names`: keys that are data, such as arms and categories."""
    first, *chapters = re.split(r"^## ", _DOCS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    chapter = next(chapter for chapter in chapters if chapter.startswith(heading))
    defined = {word for code in re.findall(r"`([^`]+)`", first + chapter) for word in re.findall(r"[\w-]+", code)}
    return set(_keys(document)) - defined - _SETUP - set(names)


def _keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, held in value.items():
            if not isinstance(held, str):
                yield key
            yield from _keys(held)
    elif isinstance(value, list):
        for held in value:
            yield from _keys(held)
