"""Changes as a text with signs."""

from __future__ import annotations

from localspec.chat.diff import diff
from localspec.tui.review import review, visible

OLD, NEW = "The quick fox\njumps over.", "The slow fox\n\njumps [b]over."


def test_what_goes_and_what_comes_has_its_own_sign() -> None:
    """Without colors too; of a rejected change, what stays and what does not come."""
    found = diff(OLD, NEW)
    assert len(found.hunks) == 3
    assert review(found, [True, True, True]).text == "The [-quick-]{+slow+} fox\n{+↵\n+}jumps {+[b]+}over."
    assert review(found, [False, True, False]).text == "The [=quick=]{-slow-} fox\n{+↵\n+}jumps {-[b]-}over."


def test_marks_and_places_are_where_the_changes_are() -> None:
    """And the chosen one is marked as such."""
    found = review(diff(OLD, NEW), [True, False, True], chosen=0)
    assert [found.text[mark.start : mark.end] for mark in found.marks] == [
        "[-quick-]",
        "{+slow+}",
        "{-↵\n-}",
        "{+[b]+}",
    ]
    assert [mark.kind for mark in found.marks] == ["removed-chosen", "added-chosen", "left-out", "added"]
    assert [found.text[place:][:2] for place in found.places] == ["[-", "{-", "{+"]


def test_a_change_of_blanks_can_be_seen() -> None:
    """Where there is nothing else in it."""
    assert visible("  ") == "··"
    assert visible("a b\n") == "a b↵\n"
