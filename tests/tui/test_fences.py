"""Where code and lists begin and end while a text grows."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from localspec.tui.fences import Fences, Piece, code_blocks

TEXT = "One `word`.\n\n- a\n  b\n\n1. c\n\n  d\n\ne\n-5\n```python\nx = 1\n\n``` no end\n```\nafter\n~~~\n```\n~~~\n"


def pieces(*texts: str) -> list[Piece]:
    fences = Fences()
    return [piece for text in texts for piece in fences.feed(text)] + fences.end()


def joined(found: list[Piece]) -> list[tuple[str, str]]:
    """What belongs together put together."""
    result: list[tuple[str, str]] = []
    for piece in found:
        before = result[-1][0] if result else ""
        if (piece.kind == before and before not in ("open", "item")) or (piece.kind == "list" and before == "item"):
            result[-1] = (before, result[-1][1] + piece.text)
        else:
            result.append((piece.kind, piece.text))
    return result


def test_prose_lists_and_code_are_told_apart() -> None:
    assert joined(pieces(TEXT)) == [
        ("prose", "One `word`.\n\n"),
        ("item", "- a\n  b\n\n"),
        ("item", "1. c\n\n  d\n\n"),
        ("prose", "e\n-5\n"),
        ("open", "python"),
        ("code", "x = 1\n\n``` no end\n"),
        ("prose", "after\n"),
        ("open", ""),
        ("code", "```\n"),
    ]


@given(st.lists(st.integers(0, len(TEXT)), max_size=12))
def test_where_the_text_is_cut_makes_no_difference(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(TEXT)]
    cut = [TEXT[start:end] for start, end in pairwise(places)]
    assert joined(pieces(*cut)) == joined(pieces(TEXT))


def test_what_may_become_a_fence_waits_and_comes_at_the_end() -> None:
    fences = Fences()
    assert fences.feed("a\n``") == [Piece("prose", "a\n")]
    assert fences.end() == [Piece("prose", "``")]
    assert Fences().feed("`a` b") == [Piece("prose", "`a` b")]


@given(st.text("`~a\n", max_size=60), st.integers(0, 60))
def test_no_letter_is_lost(text: str, cut: int) -> None:
    assert sum(piece.text.count("a") for piece in pieces(text[:cut], text[cut:])) == text.count("a")


def test_blocks_of_code_are_found_in_order_and_an_open_one_too() -> None:
    assert code_blocks("a\n```sh\nls\n```\nb\n```\ncd\nrm\n") == ["ls\n", "cd\nrm\n"]
    assert code_blocks("no code") == []
