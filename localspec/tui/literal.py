"""Text from outside on the screen.

Widgets show it through `literal`, which makes visible what a terminal would obey. What one of them forgets, and what is made
of harmless text only on the way, is stopped by the filter at the very end, which every line of every widget goes through.
"""

from __future__ import annotations

from rich.cells import get_character_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter

from localspec.literal import UNSAFE, literal

__all__ = ["OnlyText", "literal"]


class OnlyText(LineFilter):
    """Leaves text and styles on a line, and nothing that a terminal would obey: no control character, and no hyperlink of
    the terminal's own (OSC 8), which leads elsewhere than its words say."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The line as it may be drawn, as wide as it was."""
        return [
            Segment(_without_commands(text), style.update_link(None) if style and style.link else style)
            for text, style, control in segments
            if not control
        ]


def clickable(segment: Segment, action: str) -> Segment:
    """A segment with a terminal's hyperlink in it, as one that `action` is told of when it is clicked."""
    text, style, control = segment
    if not style or not style.link:
        return segment
    return Segment(text, style.update_link(None) + Style.from_meta({"@click": (action, (style.link,))}), control)


def _without_commands(text: str) -> str:
    if _is_text(text):
        return text
    return "".join(
        # As wide as it was: control characters take no room, half of a surrogate pair does.
        character if _is_text(character) else "\ufffd" * (get_character_cell_size(character) > 0)
        for character in text
    )


def _is_text(text: str) -> bool:
    return "\n" not in text and "\t" not in text and not UNSAFE.search(text)
