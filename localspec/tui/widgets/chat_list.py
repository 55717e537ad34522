"""Saved chats, one below the other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from textual.binding import Binding
from textual.content import Content
from textual.css.styles import RulesMap
from textual.strip import Strip
from textual.style import Style
from textual.visual import RenderOptions, Visual
from textual.widgets.option_list import Option

from localspec.tui.dates import when
from localspec.tui.literal import literal
from localspec.tui.widgets.searched_list import SearchedList

if TYPE_CHECKING:
    from localspec.chat.store import ChatInfo

ROW_LINES = 2
UNTITLED = "untitled"
_GAP = 2
_MUTED = "$foreground 70%"
"""$text-muted is made for the background of a widget, and does not fade in a part of its text."""


def one_line(text: str) -> str:
    """`text` as it may be shown on one line."""
    return " ".join(literal(text).split())


class Row(Visual):
    """A chat in two lines. It is made into text only when it comes into view: thousands of chats cost nothing."""

    def __init__(self, info: ChatInfo, words: Sequence[str], now: datetime, note: str) -> None:
        self._info, self._words, self._now, self._note = info, words, now, note

    def render_strips(self, width: int, height: int | None, style: Style, options: RenderOptions) -> list[Strip]:
        """The title and when above; what was found, or how much it is and with which model, below."""
        title = _marked(Content(one_line(self._info.title) or UNTITLED), self._words)
        above = _sides(title, Content.styled(self._right(), _MUTED), width)
        lines = (above, self._below().truncate(width, ellipsis=True))
        return [strip for line in lines for strip in line.render_strips(width, 1, style, options)[:1]]

    def get_optimal_width(self, rules: RulesMap, container_width: int) -> int:
        """As much as there is."""
        return container_width

    def get_height(self, rules: RulesMap, width: int) -> int:
        """Lines."""
        return ROW_LINES

    def _right(self) -> str:
        return "  ".join(filter(None, (self._note, when(self._info.updated, self._now))))

    def _below(self) -> Content:
        if self._words and (snippet := one_line(self._info.snippet)):
            return _marked(Content.styled(snippet, _MUTED), self._words)
        count = "1 message" if self._info.messages == 1 else f"{self._info.messages:,} messages"
        return Content.styled(", ".join(filter(None, (count, one_line(self._info.model)))), _MUTED)


def _sides(left: Content, right: Content, width: int) -> Content:
    """Both on one line; where there is no room, the right one is left out first."""
    room = width - right.cell_length - _GAP
    if room < min(left.cell_length, width // 2):
        return left.truncate(width, ellipsis=True)
    return left.truncate(room, ellipsis=True, pad=True) + Content(" " * _GAP) + right


def _marked(line: Content, words: Sequence[str]) -> Content:
    """`line` with every one of `words` made to stand out, wherever one begins."""
    if not words:
        return line
    pattern = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    return line.highlight_regex(re.compile(rf"(?<!\w)(?:{pattern})", re.IGNORECASE), style="bold $text-warning")


class ChatList(SearchedList):
    """The chats, newest first."""

    BINDINGS = [
        Binding("delete", "screen.delete", "Delete", id="chats.delete", show=False),
        Binding("x", "screen.export", "Export", id="chats.export", show=False),
        Binding("u", "screen.undo", "Undo", id="chats.undo", show=False),
        Binding("ctrl+e", "screen.rename", "Rename", id="chats.rename", show=False),
    ]

    def show(self, chats: Sequence[ChatInfo], words: Sequence[str], chosen: int | None, current: int | None) -> None:
        """Show `chats`, found by `words`; the one with the id `chosen` is highlighted, else the first."""
        now = datetime.now().astimezone()
        places = {info.id: place for place, info in enumerate(chats)}
        self.set_options(
            Option(Row(info, words, now, "open now" if info.id == current else ""), id=str(info.id)) for info in chats
        )
        if chats:
            self.highlighted = places.get(chosen, 0) if chosen is not None else 0

    @property
    def chosen(self) -> int | None:
        """The id of the highlighted chat."""
        option = self.highlighted_option
        return int(option.id) if option and option.id else None

    @property
    def title_line(self) -> int | None:
        """The line of this widget that the highlighted title stands on; None when it is not in view."""
        if self.highlighted is None:
            return None
        line = self.highlighted * ROW_LINES - self.scroll_offset.y
        return line if 0 <= line < self.size.height else None
