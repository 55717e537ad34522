"""A text to be read: as long as it may be, wrapped, with stretches of it marked. Nothing in it is taken for markup."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from localspec.tui.literal import literal
from localspec.tui.wrapping import TAB_CELLS, Row, rows_of


@dataclass(frozen=True, slots=True)
class Marked:
    """A stretch of the text in a style of its own."""

    start: int
    end: int
    kind: str
    """Of TextPane.COMPONENT_CLASSES, without the beginning."""


class TextPane(ScrollView, can_focus=True):
    """Draws the rows that are seen, and nothing else."""

    COMPONENT_CLASSES = {
        "text-pane--added",
        "text-pane--removed",
        "text-pane--kept",
        "text-pane--left-out",
        "text-pane--added-chosen",
        "text-pane--removed-chosen",
        "text-pane--kept-chosen",
        "text-pane--left-out-chosen",
        "text-pane--done",
        "text-pane--place",
    }

    @dataclass
    class Clicked(Message):
        """A character was clicked."""

        pane: TextPane
        at: int

    def __init__(self, text: str = "", *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.text = text
        self._rows: list[Row] = []
        self._starts: list[int] = []
        self._marks: Sequence[Marked] = ()
        self._mark_starts: list[int] = []
        self._width = 0
        self.follows = False
        """Whether its end stays in sight while it grows."""

    # What is shown.

    def show(self, text: str, marks: Sequence[Marked] = ()) -> None:
        """Another text. Its marks are in order and do not overlap."""
        self.text = text
        self.mark(marks)
        self._wrap()

    def mark(self, marks: Sequence[Marked]) -> None:
        """Mark other stretches."""
        self._marks, self._mark_starts = marks, [mark.start for mark in marks]
        self.refresh()

    def append(self, text: str) -> None:
        """More of it. Only the end is wrapped anew."""
        self.text += text
        if self._rows:
            start, _ = self._rows.pop()
            self._rows += rows_of(self.text, self._width, start)
            self._measure()

    def show_place(self, at: int, *, calm: bool = False) -> None:
        """Scroll to a character: into the upper third; when `calm`, only where it is not in sight."""
        if not self._rows:
            self.call_after_refresh(self.show_place, at, calm=calm)
            return
        row, height = self._row_of(at), max(1, self.scrollable_content_region.height)
        top = round(self.scroll_y)
        if not (calm and top <= row < top + max(1, height - 1)):
            self.scroll_to(y=max(0, row - height // 3), animate=False, force=True, immediate=True)

    # How it is drawn.

    def on_resize(self, event: events.Resize) -> None:
        """Other rows; what was at the top stays there."""
        top = self._rows[min(round(self.scroll_y), len(self._rows) - 1)][0] if self._rows else 0
        if self._wrap() and top:
            self.scroll_to(y=self._row_of(top), animate=False, force=True, immediate=True)

    def on_click(self, event: events.Click) -> None:
        """Say which character that was."""
        row = event.get_content_offset(self)
        if row is not None and 0 <= (y := row.y + round(self.scroll_y)) < len(self._rows):
            start, end = self._rows[y]
            self.post_message(self.Clicked(self, min(start + row.x, end)))

    def render_line(self, y: int) -> Strip:
        """One row as it is seen."""
        number = y + round(self.scroll_y)
        width = self.scrollable_content_region.width
        style = self.rich_style
        if number >= len(self._rows):
            return Strip.blank(width, style)
        segments = [Segment(shown(text), style + extra) for text, extra in self._runs(*self._rows[number])]
        return Strip(segments).adjust_cell_length(width, style)

    def _runs(self, start: int, end: int) -> list[tuple[str, Style]]:
        """The row in pieces of one style."""
        runs: list[tuple[str, Style]] = []
        index = max(0, bisect_right(self._mark_starts, start) - 1)
        at = start
        while index < len(self._marks) and self._marks[index].start < end:
            mark = self._marks[index]
            if mark.end > at:
                runs.append((self.text[at : max(at, mark.start)], Style.null()))
                at = max(at, mark.start)
                stop = min(mark.end, end)
                runs.append(
                    (self.text[at:stop], self.get_component_rich_style(f"text-pane--{mark.kind}", partial=True))
                )
                at = stop
            index += 1
        return [*runs, (self.text[at:end], Style.null())]

    def _wrap(self) -> bool:
        """Whether there is a place to wrap it for."""
        # The scrollbar has its place kept.
        self._width = self.scrollable_content_region.width
        if not self._width:
            return False
        self._rows = rows_of(self.text, self._width)
        self._measure()
        return True

    def _measure(self) -> None:
        self._starts = []
        self.virtual_size = Size(self._width, len(self._rows))
        self.refresh()
        if self.follows:
            self.scroll_end(animate=False, force=True, immediate=True, x_axis=False)

    def _row_of(self, at: int) -> int:
        if len(self._starts) != len(self._rows):
            self._starts = [start for start, _ in self._rows]
        return max(0, bisect_right(self._starts, at) - 1)


def shown(text: str) -> str:
    """A part of a row as it may be drawn."""
    return literal(text).replace("\t", " " * TAB_CELLS).replace("\n", "")
