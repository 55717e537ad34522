"""What a rewriting has changed: every choice of hunks is a text, and the two ends are the source and the result."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from localspec.chat.diff import Hunk, diff, matches, tokens_of

WORDS = st.sampled_from(["the ", "fox", " ", "\n", "jumps", "over ", "\r\n", "dog.", "\t", "é", "\ud800", "x1", ", "])
TEXTS = st.one_of(st.lists(WORDS, max_size=60).map("".join), st.text(max_size=80))


@settings(max_examples=400, deadline=None)
@given(TEXTS, TEXTS, st.randoms(use_true_random=False))
def test_all_gives_the_result_and_none_the_source(source: str, result: str, random) -> None:
    """Byte for byte; and any choice between is made of the hunks' own texts."""
    found = diff(source, result)
    count = len(found.hunks)
    assert found.applied([True] * count) == result
    assert found.applied([False] * count) == source
    accepted = [random.random() < 0.5 for _ in range(count)]
    texts = [hunk.new if taken else hunk.old for hunk, taken in zip(found.hunks, accepted, strict=True)]
    chosen = iter(texts)
    assert found.applied(accepted) == "".join(
        piece.text if piece.hunk is None else next(chosen) for piece in found.pieces()
    )
    for hunk in found.hunks:
        assert source.startswith(hunk.old, hunk.at)
        assert result.startswith(hunk.new, hunk.result_at)
        assert hunk.old != hunk.new


@given(TEXTS)
def test_the_tokens_of_a_text_are_the_text(text: str) -> None:
    """Nothing is lost between words."""
    assert "".join(tokens_of(text)) == text


@given(st.lists(st.sampled_from("abc"), max_size=500), st.lists(st.sampled_from("abc"), max_size=500))
@settings(max_examples=60, deadline=None)
def test_matches_are_equal_and_in_order(old: list[str], new: list[str]) -> None:
    """Also where lists are long enough for anchors."""
    i = j = 0
    for a, b, size in matches(old, new):
        assert a >= i
        assert b >= j
        assert size > 0
        assert old[a : a + size] == new[b : b + size]
        i, j = a + size, b + size


def test_words_that_stand_together_are_one_change() -> None:
    """And a line end is one of its own."""
    found = diff("The quick brown fox.\nIt jumps", "A slow brown fox.\n\nIt jumped high")
    assert found.hunks == (
        Hunk(0, "The quick", "A slow", 0),
        Hunk(21, "", "\n", 18),
        Hunk(24, "jumps", "jumped high", 22),
    )


def test_nothing_changed_is_no_hunk() -> None:
    """The same text twice."""
    assert diff("same words", "same words").hunks == ()


def test_a_long_text_is_compared_word_by_word() -> None:
    """Of ten thousand words on one line, each of the five hundred misspelled ones is a change of its own."""
    words = [f"word{number % 900}" for number in range(10_000)]
    wrong = [f"{word}x" if number % 20 == 7 else word for number, word in enumerate(words)]
    found = diff(" ".join(wrong), " ".join(words))
    assert len(found.hunks) == 500
    assert all(hunk.old.removesuffix("x") == hunk.new or hunk.old == "x" for hunk in found.hunks)


def test_a_text_without_one_repeated_word_is_replaced_as_a_whole() -> None:
    """Two long texts that have nothing in common are one change, and not a thousand."""
    found = diff("".join(f"a{n}-" for n in range(3000)), "".join(f"b{n}+" for n in range(3000)))
    assert len(found.hunks) == 1
