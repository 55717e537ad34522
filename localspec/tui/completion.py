"""What in the text before the cursor can be completed, and with what."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from localspec.tui.commands import completions
from localspec.tui.file_names import matching_paths
from localspec.tui.widgets.suggestions import Suggestion

_MODEL = re.compile(r"(/models?|/draft)\s+(\S*)", re.IGNORECASE)
_PATH = re.compile(r"(?:^|\s)@(\S*)$")
_LONGEST_PATH = 4096


@dataclass(frozen=True)
class Token:
    """A command or a path that is being written."""

    kind: Literal["command", "path", "model", "draft"]
    fragment: str
    """What is there of it: a command with its slash, a path without its @, the name of a model."""
    row: int
    start: int
    """Column of the slash or the @."""

    @property
    def place(self) -> tuple[int, int]:
        """Where it begins."""
        return self.row, self.start


def token_before(line: str, row: int, column: int, *, is_alone: bool) -> Token | None:
    """What is being written at the cursor. `is_alone`: this line is the whole text."""
    if is_alone and column == len(line) and completions(line):
        return Token("command", line, row, 0)
    if is_alone and column == len(line) and (found := _MODEL.fullmatch(line)):
        return Token("draft" if found[1].lower() == "/draft" else "model", found[2], row, found.start(2))
    before = line[max(0, column - _LONGEST_PATH) : column]
    if found := _PATH.search(before):
        return Token("path", found[1], row, column - len(found[1]) - 1)
    return None


def command_suggestions(token: Token) -> list[Suggestion]:
    """The commands it may become; a blank at the end says that something must follow."""
    return [
        Suggestion(
            f"{word} " if command.needs_argument else word,
            f"{word} {command.argument}".rstrip(),
            command.description,
        )
        for word, command in completions(token.fragment)
    ]


def model_suggestions(token: Token) -> list[Suggestion]:
    """The models it may become: installed ones first, then those of the catalog. Takes a moment."""
    from localspec.hub.catalog import usable_catalog
    from localspec.hub.catalog_file import USER_CATALOG
    from localspec.hub.resolve import installed
    from localspec.settings import find_folders

    folders = find_folders()
    found = {model.name: "installed" for model in installed(folders.models)}
    if token.kind == "draft":
        found["none"] = "no draft model"
    else:
        pairs = usable_catalog(folders.config / USER_CATALOG).pairs
        found |= {pair.name: f"with {pair.draft.name}" for pair in pairs if pair.name not in found}
    start = token.fragment.casefold()
    names = sorted(
        (name for name in found if name.casefold().startswith(start)), key=lambda name: name.casefold() != start
    )
    return [Suggestion(name, name, found[name]) for name in names]


def path_suggestions(token: Token) -> list[Suggestion]:
    """The files and folders it may become. Takes a moment where folders are large or far away."""
    return [Suggestion(path, path) for path in matching_paths(token.fragment)]
