"""Long texts in rows: nothing is lost, no row is too wide, and words stay whole where they can."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from localspec.tui.wrapping import TAB_CELLS, rows_of

TEXTS = st.text(st.sampled_from("ab  世é\t\n\r\u2028\U0001f600"), max_size=200)


def cells(text: str) -> int:
    """By Unicode's own widths, those of the signs above."""
    return sum(TAB_CELLS if sign == "\t" else 2 if sign in "世\U0001f600" else 1 for sign in text)


@settings(max_examples=300)
@given(TEXTS, st.integers(1, 30))
def test_rows_hold_the_whole_text_and_are_not_too_wide(text: str, width: int) -> None:
    """What lies between two rows is a line end."""
    done = 0
    for start, end in rows_of(text, width):
        assert re.fullmatch("\r\n|[\n\r\u2028]|", text[done:start])
        assert not re.search("[\n\r\u2028]", text[start:end])
        words = text[start:end].rstrip(" \t")
        assert cells(words) <= width or len(words) == 1
        done = end
    assert done == len(text)


@given(TEXTS, st.integers(1, 30), st.data())
def test_a_text_that_grew_can_be_wrapped_on_from_its_last_row(text: str, width: int, data: st.DataObject) -> None:
    """As it is done while a text is written."""
    cut = data.draw(st.integers(0, len(text)))
    if text[cut - 1 : cut + 1] == "\r\n":
        cut += 1
    rows = rows_of(text[:cut], width)
    start, _ = rows.pop()
    assert [*rows, *rows_of(text, width, start)] == rows_of(text, width)


def test_words_stay_whole() -> None:
    """Unless one is longer than half a row."""
    text = "one two three incomprehensibilities"
    assert [text[slice(*row)] for row in rows_of(text, 10)] == ["one two ", "three ", "incomprehe", "nsibilitie", "s"]


def test_a_megabyte_on_one_line_has_its_rows() -> None:
    """As many as it needs."""
    assert len(rows_of("x" * 1_000_000, 80)) == 12_500
