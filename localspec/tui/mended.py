"""What Textual 8 does not survive, mended from outside: bytes that are no text, pastes with escapes in them, no width at all,
and messages to a screen that has just been left."""

from __future__ import annotations

import codecs
import functools
import os
from collections.abc import Generator, Iterable
from typing import Any

from textual import events
from textual._context import active_message_pump
from textual._xterm_parser import XTermParser
from textual.content import Content
from textual.css.query import NoMatches
from textual.dom import DOMNode
from textual.message import Message
from textual.widget import MountError
from textual.worker import WorkerFailed

_BEGINS, _ENDS = "\x1b[200~", "\x1b[201~"
"""What a terminal puts around a paste."""
_ESCAPE = "\ufdd0"
"""Stands for an escape within a paste: no text has it, by what Unicode says of this code point."""


def mend() -> None:
    """Have it survive them. Twice is as good as once."""
    if os.name == "posix":
        from textual.drivers import linux_driver

        vars(linux_driver)["XTermParser"] = PasteParser
        vars(linux_driver)["getincrementaldecoder"] = _lenient
    if not hasattr(Content._wrap_and_format, "__wrapped__"):
        Content._wrap_and_format = _with_some_width(Content._wrap_and_format)  # type: ignore[method-assign]


def is_late(error: Exception) -> bool:
    """Whether it is about what is no longer on the screen: a screen was left before it was all there."""
    if isinstance(error, WorkerFailed):
        error = error.error if isinstance(error.error, Exception) else error
    pump = active_message_pump.get(None)
    if not isinstance(error, NoMatches | MountError) or not isinstance(pump, DOMNode):
        return False
    return pump._closing or pump._pruning or not pump.is_attached


class PasteParser(XTermParser):
    """A paste is text, whatever is in it. Textual takes up to 32 characters after an escape for keys, ctrl+q among them."""

    _pasting = False
    _typed = ""
    """The last of what was typed, which may be the beginning of a mark."""
    _kept = ""
    """The end of what was pasted, which may be the beginning of a mark."""

    def feed(self, data: str) -> Iterable[Message]:
        """Parse what has come; nothing at all is the end."""
        if not data:
            yield from self._fed(self._kept)
            yield from super().feed("")
        while data:
            data = yield from self._pasted(data) if self._pasting else self._keys(data)

    def _keys(self, data: str) -> Generator[Message, None, str]:
        """Up to a paste. Gives the rest."""
        # Nothing is held back here: an escape alone is a key.
        seen = self._typed + data
        found = seen.find(_BEGINS)
        if found < 0:
            self._typed = seen[1 - len(_BEGINS) :]
            yield from self._fed(data)
            return ""
        end = found + len(_BEGINS) - len(self._typed)
        self._pasting, self._typed = True, ""
        yield from self._fed(data[:end])
        return data[end:]

    def _pasted(self, data: str) -> Generator[Message, None, str]:
        """Up to the end of a paste. Gives the rest."""
        text, mark, rest = (self._kept + data).partition(_ENDS)
        text, self._kept = (text, "") if mark else _without_begun_mark(text)
        self._pasting = not mark
        yield from self._fed(text.replace("\x1b", _ESCAPE) + mark)
        return rest

    def _fed(self, data: str) -> Iterable[Message]:
        # Without anything it would be the end.
        for event in super().feed(data) if data else ():
            yield events.Paste(event.text.replace(_ESCAPE, "\x1b")) if isinstance(event, events.Paste) else event


def _without_begun_mark(text: str) -> tuple[str, str]:
    """`text`, and what at its end may go on as the mark of the end."""
    for length in range(min(len(_ENDS) - 1, len(text)), 0, -1):
        if text.endswith(_ENDS[:length]):
            return text[:-length], text[-length:]
    return text, ""


def _lenient(encoding: str) -> Any:
    """What is no text in this encoding comes as U+FFFD."""
    return functools.partial(codecs.getincrementaldecoder(encoding), "replace")


def _with_some_width(wrap: Any) -> Any:
    @functools.wraps(wrap)
    def wrapped(content: Content, width: int, *arguments: Any, **named: Any) -> Any:
        return wrap(content, max(1, width), *arguments, **named)

    return wrapped
