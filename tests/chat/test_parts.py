"""Where long texts are cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localspec.chat.parts import cut

LINES = st.sampled_from(
    [
        "",
        "",
        "# Heading",
        "words and words",
        "    indented",
        "```",
        "~~~~",
        "def f(",
        "):",
        "{",
        "}",
        '"""',
        "a. b! c?",
        "x" * 30,
        "。" * 9,
    ]
)


def words(text: str) -> int:
    return len(text.split())


def parts(text: str, limit: int) -> list[str]:
    return [text[start:end] for start, end in cut(text, words, limit)]


@given(st.lists(LINES, max_size=30).map("\n".join), st.integers(1, 40))
def test_parts_are_the_whole_text_and_none_is_too_long(text, limit):
    """Nothing is lost between two parts, and the model can take each."""
    found = parts(text, limit)
    assert "".join(found) == text
    assert all(words(part) <= limit for part in found)
    assert all(found)


def test_a_text_that_fits_is_one_part():
    """The best cut is none."""
    assert parts("# One\n\ntwo\n\n# Three\n\nfour\n", 100) == ["# One\n\ntwo\n\n# Three\n\nfour\n"]


def test_paragraphs_stay_whole():
    """A sentence is not torn from its paragraph."""
    assert parts("one two three\n\nfour five\nsix\n\nseven\n", 5) == ["one two three\n\n", "four five\nsix\n\nseven\n"]


def test_a_heading_goes_with_what_is_below_it():
    """And begins a part where one would soon end anyway."""
    text = "a b c d\n\ne f g h\n\n## Next\n\ni j k\n\nl m\n"
    assert parts(text, 13) == ["a b c d\n\ne f g h\n\n", "## Next\n\ni j k\n\nl m\n"]


@pytest.mark.parametrize("fence", ["```", "~~~~"])
def test_a_fence_is_not_cut(fence):
    """Not even at its empty lines, and not where something in it looks like a heading."""
    block = f"{fence}sh\na\n\n# b\n\nc d\n{fence}\n"
    assert parts(f"one two\n\n{block}\nthree\n", 8) == ["one two\n\n", f"{block}\nthree\n"]


def test_python_is_cut_between_its_functions():
    """Not between the lines of one, its decorators, its branches, its brackets or its docstrings."""
    text = (
        '"""What it is.\n\nMore.\n"""\n\n@wrap\ndef one(\n    a,\n):\n    b\n\n    c\n\nif d:\n    e\n\nelse:\n    f\n\n'
        "G = {\n    1: 2,\n\n    3: 4,\n}\n"
    )
    pieces = ['"""What it is.\n\nMore.\n"""\n\n', "@wrap\ndef one(\n    a,\n):\n    b\n\n    c\n\n"]
    pieces += ["if d:\n    e\n\nelse:\n    f\n\n", "G = {\n    1: 2,\n\n    3: 4,\n}\n"]
    assert parts(text, 8) == pieces


def test_a_branch_stays_with_the_one_above_it():
    """Though it begins at the margin behind an empty line."""
    assert parts("w w w\n\nif a:\n    b\n\nelse:\n    c\n", 6) == ["w w w\n\n", "if a:\n    b\n\nelse:\n    c\n"]


def test_a_paragraph_is_cut_before_the_fence_below_it():
    """What stands close together and is too long is cut at the lines outside the fence first."""
    assert parts("a b\nc d\n```\ne\n\nf g\n```\n", 5) == ["a b\nc d\n", "```\ne\n\nf g\n```\n"]


def test_braces_stay_together():
    """A function of C, with empty lines and labels at the margin in it."""
    block = "int main() {\n  a;\n\nlabel:\n\n  b;\n}\n"
    assert parts(f"int x;\n\n{block}\nint y;\n", 8) == ["int x;\n\n", f"{block}\n", "int y;\n"]


def test_what_is_too_long_alone_is_cut_at_lines_then_sentences_then_words():
    """The finest cut is the last resort."""
    assert parts("a b\nc d\ne f\n", 4) == ["a b\nc d\n", "e f\n"]
    assert parts("One two. Three four? Five six.", 4) == ["One two. Three four?", " Five six."]
    assert parts("one two three four five", 2) == ["one two", " three four", " five"]
    assert [len(text) for text in ["x" * 8, "x" * 8, "x" * 4]] == [end - start for start, end in cut("x" * 20, len, 8)]


def test_finer_cuts_are_only_made_where_they_are_needed():
    """One long paragraph among others leaves those whole."""
    assert parts("a b\n\nc d e f\ng h i j\n\nk l\n", 4) == ["a b\n\n", "c d e f\n", "g h i j\n\n", "k l\n"]
