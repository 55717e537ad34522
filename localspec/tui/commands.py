"""What is a slash command, and what is only text that begins with a slash."""

import difflib
import re
from dataclasses import dataclass
from enum import Enum


class Command(Enum):
    """A thing to do, and the words for it."""

    HELP = ("/help", "/?")
    NEW = ("/new",)
    QUIT = ("/quit", "/exit", "/bye")


@dataclass(frozen=True)
class Unknown:
    """A command that does not exist."""

    sentence: str
    """What is wrong and what to write instead."""


_WORDS = {word: command for command in Command for word in command.value}
# One word on a line of its own or before a blank: /usr/bin is a path, and text.
_COMMAND = re.compile(r"/[\w?-]+(?=\s|$)")


def parse(text: str) -> Command | Unknown | None:
    """The command that `text` is; None for a prompt."""
    text = text.strip()
    found = _COMMAND.match(text)
    if not found:
        return None
    word = found[0].lower()
    if command := _WORDS.get(word):
        if text == found[0]:
            return command
        return Unknown(f"{word} takes nothing after it: write {word} alone.")
    near = difflib.get_close_matches(word, _WORDS, n=1)
    remedy = f"did you mean {near[0]}?" if near else f"there are {', '.join(c.value[0] for c in Command)}."
    return Unknown(f"There is no command {found[0][:40]}: {remedy}")
