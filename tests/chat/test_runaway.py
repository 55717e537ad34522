"""An answer in a loop is ended soon; a text that repeats itself may be copied and edited."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from localspec.chat.runaway import Runaway
from rewriting import Answers, rewritten

POEM = "The wind blows over the hill,\nblow, wind, blow,\nthe mill goes round,\nblow, wind, blow.\n\n" * 9
TABLE = "| Thing | Price | Shop |\n| --- | --- | --- |\n" + "| Apples | 2.00 | Market |\n" * 120
LICENSE = "".join(
    f"{number}. THE SOFTWARE IS PROVIDED AS IS, WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED.\n\n"
    for number in range(40)
)
CODE = "    def test_it(self):\n        self.assertEqual(1, 1)\n        self.assertEqual(1, 1)\n\n" * 30
RULES = ("-" * 400 + "\n") * 3
EQUAL = "It rained all day in the valley.\n" * 500
BLANKS = "word" + " " * 900 + "word" + "\n" * 900 + "word"
REPETITIVE = [POEM, TABLE, LICENSE, CODE, RULES, EQUAL, BLANKS]
PROSE = (
    "The library in our town was built in 1908. Last year the roof began to leak, and the librarian put buckets under it.\n\n"
    "Now the roof is new, and there is even a small room for children. On Wednesdays a teacher reads fairy tales there.\n"
)
PIECES = st.tuples(
    st.sampled_from(
        ["ha ", "the same line again\n", "\t", "\n", "no, ", "| a | b |\n", "=", "שלום ", "x", "one two. "]
    ),
    st.sampled_from([1, 2, 5, 60, 400]),
)
SOURCES = st.lists(PIECES, min_size=1, max_size=12).map(lambda pieces: "".join(text * times for text, times in pieces))


def alarm(source: str, answer: str, size: int = 7) -> int | None:
    """How much of the answer was written when it was ended."""
    runaway = Runaway(source)
    for at in range(0, len(answer), size):
        if runaway.repeats(answer[at : at + size]):
            return at + size
    return None


@settings(deadline=None)
@given(SOURCES, st.sampled_from([1, 7, 40, 1000]))
@example(POEM * 3, 3)
@example("a" * 2000, 1)
def test_a_copy_of_any_text_is_no_loop(source: str, size: int) -> None:
    """However often the text says the same, and however it comes."""
    assert alarm(source, source, size) is None


@pytest.mark.parametrize("source", REPETITIVE)
def test_a_repetitive_text_is_copied_to_its_end(source: str) -> None:
    """Part by part, with the blanks at the beginning of its lines taken off before the model reads it."""
    assert rewritten(source, Answers(size=9), 4000) == source


@settings(deadline=None)
@given(SOURCES)
def test_a_copy_never_fails(source: str) -> None:
    """Not one of its parts."""
    assert rewritten(source, Answers(size=30), 3000) == source


@pytest.mark.parametrize(
    ("source", "old", "new"),
    [
        (TABLE, "Apples", "Pears and plums"),
        (EQUAL, "rained", "snowed"),
        (EQUAL, " all day in the valley", ""),
        (POEM, "wind", "storm"),
        (LICENSE, "WITHOUT WARRANTY OF ANY KIND, ", ""),
        (TABLE, "| Apples | 2.00 | Market |", "### Apples\n- for 2.00\n- at the market"),
        (CODE, "assertEqual(1, 1)", "assertEqual(first, 1)"),
        ("".join(f"Step {number}: wash the dishes, all of them.\n" for number in range(99)), "dishes", "dish"),
    ],
)
def test_a_repetitive_text_may_be_edited(source: str, old: str, new: str) -> None:
    """Its words are others then, and stand as often."""
    assert rewritten(source, Answers(lambda text: text.replace(old, new), size=9), 6000) == source.replace(old, new)


def test_lines_that_become_equal_are_no_loop() -> None:
    """For example when their numbers are left out; but where they do not end with the source, they are."""
    source = "".join(f"{number}. Wash the dishes in the kitchen.\n" for number in range(100, 200))
    edited = "".join(line[5:] for line in source.splitlines(True))
    assert alarm(source, edited) is None
    assert alarm(TABLE, "Apples cost 2.00 at the market in the old town. " * 120) is None
    ended = alarm(source, edited * 3)
    assert ended is not None
    assert ended < 1.3 * len(edited)


@settings(deadline=None)
@given(
    st.sampled_from(
        [
            "It is said that it is a rare book of 1587. ",
            "blow, wind, ",
            "and so on and ",
            "\n",
            "-",
            "a whole paragraph of the answer, which is longer than most sentences are; it speaks of books and of roofs "
            "and of whoever reads them on a Saturday, and then it begins again.\n\n",
        ]
    ),
    st.integers(0, 230),
    st.sampled_from([1, 7, 40]),
)
def test_a_loop_is_ended_soon(unit: str, begins: int, size: int) -> None:
    """After four times the same, wherever it begins; what was good stands before it."""
    good = PROSE[:begins]
    ended = alarm(PROSE, good + unit * 800, size)
    assert ended is not None
    assert ended <= begins + max(4 * len(unit), 300) + 2 * 64 + 2 * size


def test_a_loop_in_the_shape_of_the_source_is_ended_soon_behind_it() -> None:
    """A table that does not stop."""
    table = "| Apples | 2.00 |\n" * 20
    ended = alarm(table, "| Pears | 2.00 |\n" * 200)
    assert ended is not None
    assert 17 * 20 <= ended <= 17 * 30


@pytest.mark.parametrize("unit", ["It is said that it is a rare book. ", "blow, wind, blow, "])
def test_what_stands_before_a_loop_is_known(unit: str) -> None:
    """The sentences that were good, and what is repeated once."""
    runaway = Runaway(PROSE)
    answer = PROSE[:115] + "\n\n" + unit * 60
    for at in range(0, len(answer), 5):
        if runaway.repeats(answer[at : at + 5]):
            break
    sound = answer[: runaway.sound]
    assert sound.startswith(PROSE[:115])
    assert unit.strip() in sound
    assert 2 * unit not in sound
    assert not unit.endswith(". ") or sound.endswith(".")


def test_what_looks_like_a_loop_for_a_moment_is_none() -> None:
    """Three times the same, a laugh, a rule of dashes."""
    for answer in ("He said the same sentence over and over again, word by word. " * 3, "ha " * 90, "-" * 250 + "\n"):
        assert alarm(PROSE, answer + PROSE) is None
