"""The changes of a version as a text with signs, so that they can be told apart without colors too. Knows no widgets.

What goes stands in [-...-], what comes in {+...+}. Of a change that was rejected the old words stand in [=...=], since they
stay, and the new ones in {-...-}, since they do not come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from localspec.chat.diff import Diff
from localspec.tui.widgets.text_pane import Marked

_END = "↵"
_BLANK = str.maketrans({" ": "·", "\t": "→"})


@dataclass(frozen=True, slots=True)
class Review:
    """A text with all changes in it."""

    text: str
    marks: tuple[Marked, ...]
    places: tuple[int, ...]
    """Where each change begins in the text."""


def review(diff: Diff, accepted: Sequence[bool], chosen: int | None = None) -> Review:
    """Lay out the changes; the chosen one is marked as a whole."""
    parts: list[str] = []
    marks: list[Marked] = []
    places: list[int] = []
    at = 0
    for piece in diff.pieces():
        if piece.hunk is None:
            parts.append(piece.text)
            at += len(piece.text)
            continue
        places.append(at)
        hunk, taken = diff.hunks[piece.hunk], accepted[piece.hunk]
        signs = (("[-", hunk.old, "-]", "removed"), ("{+", hunk.new, "+}", "added"))
        if not taken:
            signs = (("[=", hunk.old, "=]", "kept"), ("{-", hunk.new, "-}", "left-out"))
        for opening, words, closing, kind in signs:
            if words:
                shown = f"{opening}{visible(words)}{closing}"
                parts.append(shown)
                chosen_kind = f"{kind}-chosen" if piece.hunk == chosen else kind
                marks.append(Marked(at, at + len(shown), chosen_kind))
                at += len(shown)
    return Review("".join(parts), tuple(marks), tuple(places))


def visible(words: str) -> str:
    """The words of a change: line ends can be seen, and blanks where there is nothing else."""
    if not words.strip():
        words = words.translate(_BLANK)
    return words.replace("\n", f"{_END}\n")
