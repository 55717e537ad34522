"""How a model is asked for a rewritten text and for nothing else."""

from __future__ import annotations

from localspec.chat.messages import Document, Message, attach_documents

_NAME = "text"
"""What the text is called in its frame."""
_ONLY_THE_TEXT = "Answer with the whole text and nothing else."
_ENDS = ".!?:;\u3002\uff01\uff1f"
"""Ends of sentences, the Chinese ones among them."""
MOST_SHOWN = 400
"""Characters of a neighbor."""


def rewrite_messages(
    instruction: str,
    text: str,
    *,
    before: tuple[str, str] | None = None,
    after: str = "",
    system: str | None = None,
) -> tuple[Message, ...]:
    """The conversation that asks for `text` rewritten.

    The text stands in the same frame as an attached document. The instruction comes behind it, because small models follow
    best what they read last, and without a system prompt of ours, which makes them talkative. `before` is the end of the
    part before it, as it was and as it was rewritten: it comes first, as if it had been asked for alone, and shows what is
    wanted. `after` is what the text goes on with where a paragraph or a block is torn.
    """
    messages = [Message("system", system)] if system else []
    if before:
        messages += [Message("user", _asked(instruction, before[0])), Message("assistant", before[1])]
    follows = f"Behind the text stands, and is not to be written:\n{after}\n\n" if after else ""
    return (*messages, Message("user", follows + _asked(instruction, text)))


def _asked(instruction: str, text: str) -> str:
    instruction = instruction.strip()
    stop = "" if instruction[-1:] in _ENDS else "."
    return attach_documents([Document(_NAME, text)], f"{instruction}{stop} {_ONLY_THE_TEXT}")


def tail_of(text: str, most: int = MOST_SHOWN) -> str:
    """The last paragraph of a text, or so many characters of its end: from the beginning of a line, a sentence or a word
    on."""
    text = text.strip()
    end = text[-most:] if most > 0 else ""
    if "\n\n" in end:
        return end.rpartition("\n\n")[2].strip()
    if len(text) > most:
        mark = next((mark for mark in ("\n", ". ", " ") if mark in end), "")
        return end.partition(mark)[2].strip() if mark else end
    return end


def head_of(text: str, most: int = MOST_SHOWN) -> str:
    """The first words of a text, of so many characters."""
    text = text.strip()
    return text if len(text) <= most else f"{text[:most].rpartition(' ')[0].strip()} …"
