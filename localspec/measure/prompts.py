"""Prompts to measure with: our own small set, or any file of Spec-Bench lines."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from localspec.engine.errors import UserError

_OWN = "prompts.jsonl"


@dataclass(frozen=True, slots=True)
class Prompt:
    """One conversation to start."""

    id: str
    category: str
    turns: tuple[str, ...]
    """What the person says, turn by turn; at least one."""


def load_prompts(path: Path | None = None) -> list[Prompt]:
    """The prompts of a file, our own without one: JSON lines with question_id, category and turns.

    Raises UserError with the file and the line.
    """
    try:
        text = (files("localspec.measure") / _OWN if path is None else path).read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}); check the path and its permissions.") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not text in UTF-8; give a file of JSON lines.") from error
    prompts: list[Prompt] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            where = f"{path or _OWN}, line {number}"
            prompts.append(_read_line(line, where))
    if not prompts:
        raise UserError(f"{path} holds no prompts; give a file of JSON lines with question_id, category and turns.")
    return prompts


def limit_per_category(prompts: Iterable[Prompt], limit: int | None) -> list[Prompt]:
    """The first `limit` prompts of each category, in their order; all of them for None."""
    seen: Counter[str] = Counter()
    kept = []
    for prompt in prompts:
        seen[prompt.category] += 1
        if limit is None or seen[prompt.category] <= limit:
            kept.append(prompt)
    return kept


def _read_line(line: str, where: str) -> Prompt:
    try:
        values = json.loads(line)
    except json.JSONDecodeError as error:
        raise UserError(f"{where}: this is not JSON ({error.msg}); write one JSON object a line.") from error
    if not isinstance(values, dict):
        raise UserError(f"{where}: this is not a JSON object; write question_id, category and turns.")
    name, category, turns = (values.get(key) for key in ("question_id", "category", "turns"))
    if not isinstance(name, str | int) or isinstance(name, bool) or name == "":
        raise UserError(f"{where}: question_id is missing or no number or text; give every prompt one of its own.")
    if not isinstance(category, str) or not category:
        raise UserError(f"{where}: category is missing or no text; name the kind of task.")
    if not isinstance(turns, list) or not turns or not all(isinstance(turn, str) and turn.strip() for turn in turns):
        raise UserError(f"{where}: turns is missing or no list of texts; write what the person says, turn by turn.")
    return Prompt(str(name), category, tuple(turns))
