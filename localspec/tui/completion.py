"""What in the text before the cursor can be completed, and with what."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from localspec.tui.commands import completions
from localspec.tui.file_names import matching_paths
from localspec.tui.widgets.suggestions import Suggestion

_PATH = re.compile(r"(?:^|\s)@(\S*)$")
_LONGEST_PATH = 4096


@dataclass(frozen=True)
class Token:
    """A command or a path that is being written."""

    kind: Literal["command", "path"]
    fragment: str
    """What is there of it: a command with its slash, a path without its @."""
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


def path_suggestions(token: Token) -> list[Suggestion]:
    """The files and folders it may become. Takes a moment where folders are large or far away."""
    return [Suggestion(path, path) for path in matching_paths(token.fragment)]
