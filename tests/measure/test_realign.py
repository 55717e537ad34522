"""Where a diff says an answer has come to: the same place as a table worked out by hand, token after token."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localspec.measure.realign import Alignment, Realignment

DIFF, DISTANCE = 2, 1
texts = st.lists(st.integers(0, 3), max_size=14)
"""Few different tokens, so that there are many ways to align them."""


def table(source: list[int], text: list[int], substitution: int) -> list[int]:
    """Costs of every prefix of the source, by the textbook."""
    row = list(range(len(source) + 1))
    for token in text:
        below = [row[0] + 1]
        for place, known in enumerate(source):
            change = 0 if known == token else substitution
            below.append(min(row[place] + change, row[place + 1] + 1, below[place] + 1))
        row = below
    return row


def run_before(source: list[int], text: list[int], place: int) -> int:
    """Tokens before a place of the source that end the text."""
    run = 0
    while run < min(place, len(text)) and source[place - run - 1] == text[-run - 1]:
        run += 1
    return run


def place_after(source: list[int], text: list[int], substitution: int) -> tuple[int, int]:
    """Where the alignment has come to."""
    alignment = Alignment(source, substitution)
    alignment.extend(text)
    return alignment.place


def drafted(source: list[int], text: list[int], substitution: int, limit: int = 32) -> list[int]:
    """What is copied behind a text."""
    drafter = Realignment(substitution)
    drafter.begin([9], source)
    drafter.observe(text)
    return list(drafter.propose(limit, 0).tokens)


@given(texts, texts, st.sampled_from([DIFF, DISTANCE]))
def test_the_place_is_the_cheapest_with_the_longest_run(source: list[int], text: list[int], substitution: int) -> None:
    """As a table of all costs has it; of equals the first."""
    costs = table(source, text, substitution)
    best = [place for place, cost in enumerate(costs) if cost == min(costs)]
    wanted = max(best, key=lambda place: run_before(source, text, place))
    assert place_after(source, text, substitution) == (wanted, run_before(source, text, wanted))


@pytest.mark.parametrize("substitution", [DIFF, DISTANCE])
def test_it_goes_on_behind_an_edit(substitution: int) -> None:
    """A token put in, left out, or in the place of another, once two tokens agree again."""
    source = [1, 2, 3, 4, 5, 6, 7, 8]
    for text in ([1, 2, 3, 0, 4, 5], [1, 2, 3, 5], [1, 2, 0, 4, 5]):
        assert drafted(source, text, substitution)[:2] == [6, 7], text


def test_only_the_edit_distance_knows_one_token_for_another_at_once() -> None:
    """A diff stays in front of the token that was replaced, until the next one agrees."""
    assert place_after([1, 2, 3, 4], [1, 2, 0], DIFF) == (2, 0)
    assert place_after([1, 2, 3, 4], [1, 2, 0, 4], DIFF) == (4, 1)
    assert place_after([1, 2, 3, 4], [1, 2, 0, 4], DISTANCE) == (4, 1)


def test_nothing_is_copied_past_the_end_or_the_limit() -> None:
    """And nothing at all without a source."""
    assert drafted([1, 2, 3, 4], [1, 2], DIFF) == [3, 4]
    assert drafted([1, 2, 3, 4], [1, 2], DIFF, limit=1) == [3]
    assert drafted([1, 2], [1, 2], DIFF) == []
    assert drafted([], [1, 2], DIFF) == []


@pytest.mark.parametrize(("text", "surer"), [(list(range(40)), True), ([*range(1, 40, 3)], False)])
def test_it_learns_how_far_copies_carry(text: list[int], surer: bool) -> None:
    """An answer that copied makes the next one surer, one that left tokens out all the time less sure."""
    source, drafter = list(range(40)), Realignment(DIFF)
    promised = []
    for _answer in range(2):
        drafter.begin([9], source)
        drafter.observe([0])
        promised.append(sum(drafter.propose(8, 0).survival))
        for token in text[1:]:
            drafter.observe([token])
            drafter.propose(8, 0)
    assert (promised[1] > promised[0]) is surer
