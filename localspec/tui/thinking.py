"""What a model thinks before it answers: the block at the beginning of an answer, told from the answer itself."""

import re
from dataclasses import dataclass

_NAMES = ("think", "thinking", "reasoning")
_OPENING = re.compile(rf"\s*<({'|'.join(_NAMES)})>", re.IGNORECASE)
# The template of some models has the opening tag in the prompt, so that an answer begins inside the block.
_CLOSING_ALONE = re.compile(rf"^[ \t]*</({'|'.join(_NAMES)})>[ \t]*$", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Thought:
    """An answer in two parts."""

    thoughts: str
    """What stands between the tags; empty without any."""
    body: str
    """The answer."""
    begins: int
    """Where the body begins, in characters."""
    open: bool
    """The block has no end yet."""


def split_thoughts(text: str) -> Thought:
    """The two parts of an answer, which may still be growing. A tag anywhere but at the beginning is text."""
    thoughts: list[str] = []
    at = 0
    while opening := _OPENING.match(text, at):
        closing = re.compile(rf"</{opening[1]}>", re.IGNORECASE).search(text, opening.end())
        if not closing:
            return Thought(_joined([*thoughts, text[opening.end() :]]), "", len(text), True)
        thoughts.append(text[opening.end() : closing.start()])
        at = closing.end()
    if not thoughts and "</" in text and (alone := _CLOSING_ALONE.search(text)) and "<" not in text[: alone.start()]:
        thoughts.append(text[: alone.start()])
        at = alone.end()
    if thoughts:
        at += len(text[at:]) - len(text[at:].lstrip())
    return Thought(_joined(thoughts), text[at:], at, False)


def may_become_thoughts(text: str) -> bool:
    """Whether a growing text is the beginning of an opening tag, and should not be shown yet."""
    begun = text.lstrip().lower()
    return bool(begun) and any(f"<{name}>".startswith(begun) for name in _NAMES)


def without_thoughts(text: str) -> str:
    """The answer alone, as it is copied."""
    return split_thoughts(text).body


def _joined(thoughts: list[str]) -> str:
    return "\n\n".join(stripped for thought in thoughts if (stripped := thought.strip()))
