"""A text and its bytes: what was there before comes back, whatever was done to the words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localspec.chat.text_bytes import LineEnds, text_of
from localspec.engine.errors import UserError

PIECES = st.sampled_from(
    ["\n", "\r\n", "\r", "\t", "  ", "word", "שלום", "مرحبا", "🎉", "é", "\u3000", "```", '"', ".", "\x0b"]
)
TEXTS = st.lists(PIECES, min_size=1, max_size=40).map("".join)
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be", "utf-32-le"]
MARKS = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff", "utf-32-le": b"\xff\xfe\x00\x00"}


def in_bytes(text: str, encoding: str) -> bytes:
    return MARKS.get(encoding, b"") + text.encode(encoding)


@given(TEXTS, st.sampled_from(ENCODINGS))
def test_a_text_in_which_nothing_changes_has_the_same_bytes(text, encoding):
    """Line ends of every kind and mixed, byte order marks, scripts of every direction."""
    data = in_bytes(text, encoding)
    found = text_of(data, "it")
    assert "\r" not in found.text
    assert found.mark + found.encoded(found.ends.restored(found.text, found.text)) == data


@given(TEXTS)
def test_every_part_gives_its_own_bytes(text):
    """A text that is taken apart between its lines is the same when its parts are put together."""
    found = text_of(text.encode(), "it")
    lines = found.text.split("\n")
    restored, newlines = "", 0
    for line in [f"{line}\n" for line in lines[:-1]] + [lines[-1]]:
        restored += found.ends.restored(line, line, newlines)
        newlines += line.count("\n")
    assert restored == text


def test_lines_that_stay_keep_their_ends_and_new_ones_get_the_usual_one():
    """Of a file with mixed line ends only what is really new is chosen for."""
    found = text_of(b"one\r\ntwo\nthree\r\nfour\rfive\r\n", "it")
    assert found.ends.usual == "\r\n"
    after = "zero\none\nTWO\nthree\nfour\nfive\nsix\n"
    assert found.ends.restored(found.text, after) == "zero\r\none\r\nTWO\nthree\r\nfour\rfive\r\nsix\r\n"


def test_a_text_without_lines_gets_newlines():
    """Nothing is known of line ends then."""
    assert LineEnds.of("one line").restored("one line", "two\nlines") == "two\nlines"


@pytest.mark.parametrize("text", ["Crème brûlée für naïve Gäste, à la carte, “really”.", "¿Qué pasó mañana?"])
def test_western_european_text_is_read_as_windows_1252(text):
    """Old files of Western Europe are read and written as they are."""
    found = text_of(text.encode("cp1252"), "it")
    assert (found.text, found.encoding_name) == (text, "Windows-1252")
    assert found.encoded(text) == text.encode("cp1252")
    assert found.objection("only letters") is None
    assert found.objection("10 → 12") == "needs the character '→', which Windows-1252 does not have"


@pytest.mark.parametrize(
    ("data", "what"),
    [
        ("Привет, как дела?".encode("cp1251"), "is not UTF-8 (byte 1 is 0xcf); save it as UTF-8 first."),
        ("日本語のテキスト".encode("shift-jis"), "is not UTF-8 (byte 1 is 0x93); save it as UTF-8 first."),
        ("naïve café, déjà vu".encode()[:-3] + b"\xff vu", "is not UTF-8 (byte 21 is 0xff); save it as UTF-8 first."),
        (b"\x7fELF\x02\x01\x01\x00\x00", "is not a text file; give one with the text alone."),
        (b"\x89PNG\r\n\x1a\n\x05", "is not a text file; give one with the text alone."),
        (b"\xff\xfea\x00\x00\xd8b\x00", "is not a text file; give one with the text alone."),
    ],
)
def test_what_cannot_be_read_surely_is_refused(data, what):
    """A guess would show a model gibberish, and write it back."""
    with pytest.raises(UserError) as error:
        text_of(data, "it")
    assert str(error.value) == f"it {what}"
