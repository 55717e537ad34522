"""Prompt lookup: the index against a plain scan, and drafts that are copies of what really stands there."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localspec.engine.drafters import suffix_index
from localspec.engine.drafters.lookup import LONGEST_DRAFT, Lookup
from localspec.engine.drafters.suffix_index import LONGEST_MATCH, SuffixIndex

texts = st.lists(st.integers(0, 3), max_size=120)
"""Few different tokens, so that everything repeats."""


def scan(stream: Sequence[int], after: Sequence[int] = ()) -> list[tuple[int, int]]:
    """What `SuffixIndex.places` should say, by looking everywhere."""
    tail = [*stream[-LONGEST_MATCH:], *after][-LONGEST_MATCH:]
    for seed in (4, 2, 1):
        if len(tail) < seed:
            continue
        found = []
        for place in range(len(stream) - 1, seed - 1, -1):
            length = 0
            while length < min(len(tail), place) and stream[place - length - 1] == tail[-length - 1]:
                length += 1
            if length >= seed:
                found.append((place, length))
        if found:
            return found[:24]
    return []


def index_of(stream: Sequence[int]) -> SuffixIndex:
    """Built in one go."""
    index = SuffixIndex()
    index.extend(stream)
    return index


def lookup_of(stream: Sequence[int]) -> Lookup:
    """A drafter that has followed a text and proposed nothing yet."""
    lookup = Lookup()
    lookup.observe(stream)
    return lookup


@settings(max_examples=300)
@given(stream=texts, after=st.lists(st.integers(0, 3), max_size=5))
def test_the_index_finds_what_a_scan_finds(stream: list[int], after: list[int]) -> None:
    """Most recent first, with the length of every match, also behind tokens that are only thought of."""
    index = index_of(stream)
    assert index.places() == scan(stream)
    assert index.places(after) == scan(stream, after)
    assert index.tokens == stream


@settings(max_examples=200)
@given(moves=st.lists(st.one_of(texts, st.integers(0, 130)), max_size=12))
def test_rewinding_restores_exactly(moves: list[list[int] | int]) -> None:
    """Any number of tokens added and taken back, in any order: as if the rest had never been."""
    index, lookup, stream = SuffixIndex(), Lookup(), list[int]()
    for move in moves:
        if isinstance(move, int):
            del stream[move:]
            index.truncate(move)
            lookup.rewind(move)
        else:
            stream += move
            index.extend(move)
            lookup.observe(move)
        assert index.places() == scan(stream)
    assert lookup.propose(8, 0) == lookup_of(stream).propose(8, 0)


@settings(max_examples=300)
@given(stream=texts, limit=st.integers(0, 40))
def test_a_draft_is_a_copy_of_what_stands_there(stream: list[int], limit: int) -> None:
    """Behind one of the places where the end of the text occurs, never beyond the known text, and sure of it less and
    less."""
    draft = lookup_of(stream).propose(limit, 0)
    assert len(draft.tokens) <= min(limit, LONGEST_DRAFT)
    assert len(draft.survival) == len(draft.tokens)
    assert draft.q is None
    if draft.tokens:
        starts = [place for place, _ in scan(stream)]
        assert tuple(draft.tokens) in {tuple(stream[start : start + len(draft.tokens)]) for start in starts}
        falling = [1.0, *draft.survival]
        assert all(0 < after <= before for before, after in pairwise(falling))
    else:
        assert limit == 0 or not scan(stream)


def test_nothing_to_copy() -> None:
    """An empty text, one token, and a text without repetition."""
    for stream in ([], [1], [1, 2, 3, 4, 5]):
        assert lookup_of(stream).propose(8, 0).tokens == ()


def test_the_longest_match_wins() -> None:
    """Over a more recent one that agrees in its last two tokens only."""
    stream = [10, 11, 12, 13, 14, 15, 16, 1, 2, 3, 9, 15, 16, 4, 5, 6, 8, 10, 11, 12, 13, 14, 15, 16]
    assert lookup_of(stream).propose(3, 0).tokens == (1, 2, 3)


def test_the_most_recent_of_equals_wins() -> None:
    assert lookup_of([7, 8, 1, 1, 0, 7, 8, 2, 2, 0, 7, 8]).propose(2, 0).tokens == (2, 2)
    assert lookup_of([7, 8, 2, 2, 0, 7, 8, 1, 1, 0, 7, 8]).propose(2, 0).tokens == (1, 1)


def test_a_document_is_copied_to_its_end() -> None:
    """All of what is left, up to the longest draft, and not a token from before."""
    document = list(range(100, 160))
    for known in (3, 20, 50, 58):
        lookup = lookup_of([*document, 5, *document[:known]])
        draft = lookup.propose(LONGEST_DRAFT, 0).tokens
        assert draft[: 60 - known] == tuple(document[known : known + len(draft[: 60 - known])])
        assert len(draft) >= min(10, 60 - known)


def test_an_edit_takes_its_text_away() -> None:
    """What was there before the edit is never drafted again."""
    lookup = lookup_of([1, 2, 3, 4, 50, 51, 52, 9, 9])
    lookup.rewind(4)
    lookup.observe([60, 61, 62, 1, 2, 3, 4])
    assert lookup.propose(3, 0).tokens == (60, 61, 62)


def test_estimates_learn_from_what_became_of_them() -> None:
    """Right copies make it surer, wrong ones less sure, and only up to the first mistake."""
    before = lookup_of([1, 2, 3, 4] * 3).propose(1, 0).survival[0]
    right, wrong = lookup_of([1, 2, 3, 4] * 3), lookup_of([1, 2, 3, 4] * 3)
    for turn in range(30):
        draft = right.propose(4, turn)
        right.observe(draft.tokens or [1, 2, 3, 4])
        wrong.propose(4, turn)
        wrong.observe([50 + turn])
        wrong.rewind(12)
    assert right.propose(1, 0).survival[0] > before > wrong.propose(1, 0).survival[0]


class Counting(list[int]):
    """A chain's links that counts how often one is followed."""

    followed = 0

    def __getitem__(self, index: int) -> int:  # type: ignore[override]
        Counting.followed += 1
        return super().__getitem__(index)


@pytest.mark.parametrize("period", [1, 2, 7])
def test_a_search_costs_the_same_however_long_the_text(monkeypatch: pytest.MonkeyPatch, period: int) -> None:
    """Texts that repeat all the time: places looked at, and links followed to find them, stay bounded."""
    most: dict[int, tuple[int, int]] = {}
    looked, honest = 0, SuffixIndex._match_length

    def counted(self: SuffixIndex, place: int, tail: list[int], known: int) -> int:
        nonlocal looked
        looked += 1
        return honest(self, place, tail, known)

    monkeypatch.setattr(SuffixIndex, "_match_length", counted)
    for length in (2_000, 20_000):
        index = index_of([position % period for position in range(length)])
        for chain in index._chains:
            chain._before = Counting(chain._before)  # type: ignore[assignment]
        looked = Counting.followed = 0
        index.places()
        most[length] = looked, Counting.followed
    assert most[2_000] == most[20_000]
    assert most[20_000][0] <= suffix_index._CANDIDATES
    assert most[20_000][1] <= suffix_index._LINKS * 3


def test_other_seeds_in_the_same_slot_do_no_harm() -> None:
    """More different seeds than slots: hashes collide everywhere, and the answer is still that of a scan."""
    rng = np.random.default_rng(1)
    stream = [int(token) for token in rng.integers(0, 100_000, 60_000)]
    stream += stream[30_000:30_006]
    found = index_of(stream).places()
    assert (30_006, 6) in found
    assert all(
        length == next(n for n in range(40) if stream[place - n - 1] != stream[-n - 1]) for place, length in found
    )
