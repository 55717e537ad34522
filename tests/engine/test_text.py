"""Text out of tokens: however bytes are cut into pieces, the text is the same."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from localspec.engine.text import TextStream

SMALL = "abé🙂"
"""So few characters that stop strings overlap each other and the text."""


def streamed(pieces: list[bytes], stop: tuple[str, ...] = ()) -> tuple[str, TextStream]:
    """All the text of the pieces, and the stream after them."""
    stream = TextStream(stop)
    text = "".join(stream.push(piece) for piece in pieces)
    return text + stream.finish(), stream


def cut(data: bytes, at: list[int]) -> list[bytes]:
    """The bytes in pieces, cut at some places; pieces may be empty."""
    edges = [0, *sorted(place % (len(data) + 1) for place in at), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


def first_stop(text: str, stop: tuple[str, ...]) -> int | None:
    """Where the text ends: before the stop string that is complete first, the longest of those that end there."""
    for end in range(1, len(text) + 1):
        starts = [end - len(string) for string in stop if string and text[:end].endswith(string)]
        if starts:
            return min(starts)
    return None


@given(data=st.binary(max_size=40), at=st.lists(st.integers(0, 40), max_size=12))
@example(data="é🙂".encode(), at=[1, 3, 4, 5])
@example(data=b"\xf0\x9f\x99", at=[1, 2])
@example(data=b"\xe2\x28\xa1\xff\xfe", at=[1])
def test_any_cut_of_any_bytes(data: bytes, at: list[int]) -> None:
    """As if all of it had been decoded at once, replacement characters included."""
    assert streamed(cut(data, at))[0] == data.decode("utf-8", "replace")


@given(text=st.text(SMALL, max_size=30), at=st.lists(st.integers(0, 120), max_size=20))
def test_nothing_is_held_back_without_need(text: str, at: list[int]) -> None:
    """After each piece all whole characters are out."""
    stream, seen, shown = TextStream(), b"", ""
    for piece in cut(text.encode(), at):
        seen += piece
        shown += stream.push(piece)
        assert shown == seen.decode("utf-8", "ignore")
    assert stream.finish() == ""


@given(
    text=st.text(SMALL, max_size=30),
    stop=st.lists(st.text(SMALL, max_size=4), max_size=4).map(tuple),
    at=st.lists(st.integers(0, 120), max_size=20),
)
@example(text="abab", stop=("abab", "ba"), at=[1, 2, 3])
@example(text="aab", stop=("ab", "aab"), at=[1, 2])
def test_stop_strings_are_found_across_any_cut(text: str, stop: tuple[str, ...], at: list[int]) -> None:
    """Nothing of them or behind them is ever shown, and all before them is."""
    shown, stream = streamed(cut(text.encode(), at), stop)
    end = first_stop(text, stop)
    assert shown == text[:end]
    assert stream.stopped == (end is not None)


@given(
    text=st.text(SMALL, min_size=1, max_size=30),
    stop=st.lists(st.text(SMALL, min_size=1, max_size=4), min_size=1, max_size=3).map(tuple),
)
def test_only_what_could_become_a_stop_string_is_held_back(text: str, stop: tuple[str, ...]) -> None:
    """Piece by piece, one character each: what is missing begins a stop string."""
    stream, shown = TextStream(stop), ""
    for index, character in enumerate(text):
        shown += stream.push(character.encode())
        if stream.stopped:
            return
        missing = text[len(shown) : index + 1]
        assert not missing or any(string.startswith(missing) and string != missing for string in stop)
        longest = [n for n in range(1, index + 2) if any(s.startswith(text[index + 1 - n : index + 1]) for s in stop)]
        assert len(missing) == max(longest, default=0)


def test_the_tail_is_given_at_the_end() -> None:
    """The beginning of a stop string, part of a character, or both."""
    assert streamed([b"one ST"], ("STOP",))[0] == "one ST"
    assert streamed(["x🙂".encode()[:-1]])[0] == "x\ufffd"
    stream = TextStream(("é!",))
    assert stream.push("é".encode()[:1]) == ""
    assert stream.push("é".encode()[1:]) == ""
    assert (stream.finish(), stream.stopped) == ("é", False)


def test_a_stop_string_that_only_the_end_completes() -> None:
    """Bytes that never became a character turn into one when nothing more comes."""
    text, stream = streamed([b"ab", b"\xf0\x9f"], ("b\ufffd",))
    assert (text, stream.stopped) == ("a", True)


@pytest.mark.parametrize("stop", [(), ("",), ("", "")])
def test_no_stop_strings(stop: tuple[str, ...]) -> None:
    """Empty ones would stop everything."""
    assert streamed([b"text"], stop)[0] == "text"


def test_nothing_after_the_stop() -> None:
    """Not from later pieces, nor from the end."""
    stream = TextStream(("\n",))
    assert stream.push(b"a\nb") == "a"
    assert stream.stopped
    assert stream.push(b"c") == ""
    assert stream.finish() == ""
