"""The blanks around a text and at its lines come back as they were."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localspec.chat.margins import Margins, MarginWriter

PIECES = st.sampled_from(["\n", "\n\n", " ", "    ", "\t", "word", "a b", "é", "\u3000", "\x0c", "}", "שלום"])


def put_back(margins: Margins, answer: str, sizes: list[int]) -> str:
    writer, given_text, at = MarginWriter(margins), "", 0
    for size in [*sizes, len(answer)]:
        given_text += writer.feed(answer[at : at + size])
        at += size
    return given_text + writer.end()


@given(st.lists(PIECES, max_size=30).map("".join), st.lists(st.integers(1, 4), max_size=60))
def test_a_text_that_is_copied_is_the_same(text, sizes):
    """Whatever its blanks, and however the copy comes."""
    margins = Margins.of(text)
    copied = put_back(margins, margins.body, sizes)
    assert copied == (text if text.strip() else "")


@pytest.mark.parametrize("answer", ["b\n  c", "\n\nb\n  c\n\n", "  b\n  c"])
def test_blanks_that_the_model_adds_around_the_text_are_not_kept(answer):
    """A part of an indented block stays where it is, with the empty lines around it."""
    margins = Margins.of("\n    b\n      c\n\n")
    assert (margins.body, margins.indentation) == ("b\n  c", "    ")
    assert put_back(margins, answer, [1] * 20) == "\n    b\n      c\n\n"


def test_new_lines_are_indented_like_the_others():
    """And empty ones are not."""
    assert put_back(Margins.of("\ta\n\tb\n"), "a\n\nx\nb", [3]) == "\ta\n\n\tx\n\tb\n"
