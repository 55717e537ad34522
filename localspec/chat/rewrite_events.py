"""What is asked and what happens while a text is rewritten; see chat/rewrite.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from localspec.chat.messages import Message
from localspec.engine.step import Finish, Step


@dataclass(frozen=True, slots=True)
class Request:
    """What one part asks of a model."""

    messages: tuple[Message, ...]
    """A new conversation of its own; only the prompt's beginning is shared between parts."""
    begun: str
    """Text with which the answer has begun already, as the assistant's unfinished message; "" where it has not."""
    max_tokens: int
    """No sensible answer is longer."""
    document: str
    """The text to be rewritten, as it stands in the last message: drafts are looked up there."""


OnPrompt = Callable[[int, int], None]
"""Called with the prompt tokens read so far and their number."""

Ask = Callable[[Request, OnPrompt], Iterator[Step]]
"""Yields the steps of an answer. The iterator is closed before its end where the rest is not wanted, and the answer must be
stopped then."""

CountTokens = Callable[[str], int]
"""The tokens of a text; an estimate does, where it is not far below the truth."""


@dataclass(frozen=True, slots=True)
class Started:
    """The source has been cut."""

    parts: int
    """All of them, also those that were done before."""
    first: int
    """The number of the part that comes first now, from 0; more than 0 where a rewriting goes on."""
    characters: int
    """Of the source."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How far the prompt of a part has been read, in tokens. Given to `on_reading`: it happens while the iterator waits."""

    part: int
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Wrote:
    """One more step of the answer."""

    text: str
    """What it adds to the result, without wrappers; often "" where a wrapper may have begun, and never taken back but by
    PartFailed."""
    step: Step
    """Its tokens and figures. Its `text` is the raw one."""
    source_position: int
    """About how many characters of the source have been rewritten. Never falls within a part."""


@dataclass(frozen=True, slots=True)
class PartDone:
    """A part is rewritten."""

    index: int
    text: str
    """All of it, with the blanks around it."""
    source_position: int
    """Where the part ends in the source, in characters."""


@dataclass(frozen=True, slots=True)
class PartFailed:
    """A part could not be rewritten and keeps its source text."""

    index: int
    text: str
    """Its source text."""
    source_position: int
    reason: str
    """Why, as the rest of a sentence that begins with the part: "did not come to an end"."""
    begun: str = ""
    """What had been written of it before it went wrong, if that is of any use."""
    reached: int = 0
    """About where in the source that has come to."""


@dataclass(frozen=True, slots=True)
class Finished:
    """The end."""

    finish: Finish
    """STOP when every part has been asked for, INTERRUPTED when somebody stopped it: then the texts of the Wrotes since the
    last finished part are an unfinished part."""
    failed: tuple[int, ...]
    """The numbers of the failed parts, those of before included."""
    source_position: int
    """The source from here on has not been rewritten."""


Event = Started | Wrote | PartDone | PartFailed | Finished


@dataclass(frozen=True, slots=True)
class State:
    """What is done, small enough to be written down after every part (`asdict` is JSON; `State(**values)` reads it)."""

    digest: str
    """Of the source and the instruction: it is of no use for others."""
    part: int
    """How many parts are finished."""
    source_position: int
    """Where they end, in characters."""
    failed: tuple[int, ...] = ()
    tail: str = ""
    """The end of the last part as it was rewritten; the next one is written to fit it."""
    begun: str = ""
    """What the model had written of the part after that when it was stopped, wrappers included: it goes on behind it."""


def state_of(values: Mapping[str, Any]) -> State:
    """The state by its values as they were written down. Raises ValueError, TypeError or KeyError where they are none."""
    state = State(**{**values, "failed": tuple(values["failed"])})
    if not all(type(number) is int and number >= 0 for number in (state.part, state.source_position, *state.failed)):
        raise ValueError("a number is none")
    if not all(isinstance(text, str) for text in (state.digest, state.tail, state.begun)):
        raise ValueError("a text is none")
    return state
