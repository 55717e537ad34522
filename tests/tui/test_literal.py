"""Text as it may be shown."""

from hypothesis import given
from hypothesis import strategies as st

from localspec.tui.literal import literal


def test_markup_and_plain_text_stay_as_they_are() -> None:
    text = "[red]bold[/INST] **x** <b> \\[ 日本 e\u0301 \tend\n"
    assert literal(text) == text


def test_control_characters_are_shown_and_not_sent_to_the_terminal() -> None:
    assert literal("a\x1b[2Jb\x00\x7f\x9b") == "a␛[2Jb␀␡\ufffd"


def test_every_kind_of_line_end_is_a_newline() -> None:
    assert literal("a\r\nb\rc\x85d\u2028e\u2029f") == "a\nb\nc\nd\ne\nf"


def test_half_a_surrogate_pair_is_replaced() -> None:
    assert literal("a\ud83db\ude00") == "a\ufffdb\ufffd"


@given(st.text(st.characters(codec=None, categories=None), max_size=60))
def test_anything_becomes_text_that_a_terminal_can_be_given(text: str) -> None:
    shown = literal(text)
    shown.encode("utf-8")
    assert all(
        character in "\t\n" or not ("\x00" <= character < " " or "\x7f" <= character < "\xa0") for character in shown
    )
    assert len(shown.splitlines()) == len(shown.split("\n")) - (shown.endswith("\n") or not shown)
    assert literal(shown) == shown
