"""A conversation longer than the context: its oldest turns are left out of what the model reads."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence

from localspec.chat.messages import Message

_SLACK = 4
"""The limit divided by this is how much is left out at a time."""

_FRAME = re.compile(r"(-{3,}) document: ([^\n]*) \1\n")


def fit(
    messages: Sequence[Message], count: Callable[[Sequence[Message]], int], limit: int
) -> tuple[list[Message], int]:
    """What of a conversation the model reads when that may be `limit` tokens, and how many messages are left out.

    `count` gives the tokens of a conversation; it is called about as often as bisecting the turns takes. The oldest
    turns go first, a turn being a person's message and the answer to it; those with documents go only when no other is
    left. The system prompt stays, and everything from the person's last message on. Where even that is too much, the
    messages come back as they are.

    A quarter of `limit` is left out at a time, as long as that costs no document: the same turns stay out until the chat
    has grown by that much, and meanwhile the model need not read everything again for every turn.
    """
    tokens = count(messages)
    if tokens <= limit:
        return list(messages), 0
    removable = _turns(messages)[:-1]
    with_document = [_has_document(messages[turn[0]]) for turn in removable]
    order = [turn for _, turn in sorted(zip(with_document, removable, strict=True))]
    counted = {0: tokens}

    def kept(removed: int) -> list[Message]:
        gone = {place for turn in order[:removed] for place in turn}
        return [message for place, message in enumerate(messages) if place not in gone]

    def tokens_without(removed: int) -> int:
        if removed not in counted:
            counted[removed] = count(kept(removed))
        return counted[removed]

    slack = max(1, limit // _SLACK)
    too_much = -(-(tokens - limit) // slack) * slack
    removed = _fewest(tokens_without, 0, with_document.count(False), tokens - too_much)
    if tokens_without(removed) > limit:
        removed = _fewest(tokens_without, removed, len(order), limit)
    if tokens_without(removed) > limit:
        return list(messages), 0
    left = kept(removed)
    return left, len(messages) - len(left)


def _fewest(tokens_without: Callable[[int], int], low: int, high: int, limit: int) -> int:
    """The fewest turns to remove so that the rest is within `limit`; `high` where fewer do not do it."""
    return bisect_left(range(high), True, low, high, key=lambda removed: tokens_without(removed) <= limit)


def _turns(messages: Sequence[Message]) -> list[list[int]]:
    """The places of each turn's messages. The system prompt is in no turn."""
    turns: list[list[int]] = []
    for place, message in enumerate(messages):
        if message.role == "system":
            continue
        if message.role == "user" or not turns:
            turns.append([])
        turns[-1].append(place)
    return turns


def _has_document(message: Message) -> bool:
    """Whether the message begins as `attach_documents` begins one."""
    found = _FRAME.match(message.content) if message.role == "user" else None
    return found is not None and f"\n{found[1]} end of {found[2]} {found[1]}" in message.content
