"""The place-aware lookup: it follows a document through copies and edits, and proposes what stands there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localspec.engine.drafters.lookup import LONGEST_DRAFT, Lookup
from localspec.engine.drafters.place import PlaceLookup, shipped_priors

WORD = 100
"""Tokens from here on begin a word, those below go on within one."""


def piece(token: int) -> bytes:
    """Tokens 0 to 9 are line ends, those below WORD go on within a word."""
    return b"\n" if token < 10 else b" w" if token >= WORD else b"x"


def document_lookup(
    document: Sequence[int], *, before: Sequence[int] = (1, 2), after: Sequence[int] = (3, 4), rewrites: bool = True
) -> PlaceLookup:
    """A drafter at the beginning of an answer to a prompt with one document."""
    lookup = PlaceLookup(piece)
    lookup.observe([*before, *document, *after])
    lookup.begin([(len(before), len(before) + len(document))], rewrites)
    return lookup


def say(lookup: PlaceLookup, answer: Sequence[int]) -> None:
    """The answer goes on token by token, each with a proposal before it."""
    for token in answer:
        lookup.propose(LONGEST_DRAFT, 0)
        lookup.observe([token])


DOCUMENT = list(range(WORD, WORD + 60))
"""No token twice: whatever is drafted right behind an edit cannot come from a match of several tokens."""


def test_a_rewrite_begins_at_the_beginning_of_the_document() -> None:
    """Before a single token is known; nobody else would draft anything."""
    assert document_lookup(DOCUMENT).propose(LONGEST_DRAFT, 0).tokens == tuple(DOCUMENT[:LONGEST_DRAFT])
    assert Lookup().propose(LONGEST_DRAFT, 0).tokens == ()


def test_another_answer_waits_until_it_copies() -> None:
    """A question about a document is no copy of it: only a match of several tokens in it is a place."""
    lookup = document_lookup(DOCUMENT, rewrites=False)
    assert lookup.propose(8, 0).tokens == ()
    assert not lookup.calibrated
    say(lookup, DOCUMENT[20:25])
    lookup.propose(8, 0)
    assert not lookup._where.copying
    say(lookup, DOCUMENT[25:27])
    assert lookup.propose(4, 0).tokens == tuple(DOCUMENT[27:31])
    assert lookup._where.copying
    say(lookup, DOCUMENT[27:52])
    assert lookup.calibrated


@pytest.mark.parametrize(
    ("instead", "resumes"),
    [([900], 11), ([900, 901], 12), ([900, DOCUMENT[10]], 11)],
    ids=["one token replaced", "two replaced", "one put in"],
)
def test_a_guess_goes_on_behind_an_edit_at_once(instead: list[int], resumes: int) -> None:
    """Words replaced one for one are guessed without any match; one that was put in by the token behind it."""
    lookup = document_lookup(DOCUMENT)
    say(lookup, [*DOCUMENT[:10], *instead])
    draft = lookup.propose(4, 0)
    assert draft.tokens[:2] == tuple(DOCUMENT[resumes : resumes + 2])
    assert 0.0 < draft.survival[0] < 1.0


def test_guesses_count_tokens_and_words() -> None:
    """Behind a word of two tokens that stands for one of three: one for one, word for word, the word behind, and put in."""
    document = [WORD, WORD + 1, 50, 51, WORD + 2, 52, *range(WORD + 3, WORD + 9)]
    lookup = document_lookup(document)
    say(lookup, [WORD, WORD + 90, 60])
    lookup.propose(8, 0)
    places = {guess.place - 2 for guess in lookup._guesses._made}
    assert places == {3, 4, 6, 1}


@pytest.mark.parametrize(
    ("answer", "place"),
    [
        ([900, *DOCUMENT[11:13]], 13),
        (DOCUMENT[14:16], 16),
        ([900, 901, 902, 903, *DOCUMENT[10:12]], 12),
        ([900, 901, *DOCUMENT[15:17]], 17),
    ],
    ids=["replaced", "left out", "put in", "several for several"],
)
def test_two_tokens_bring_the_answer_back_to_the_document(answer: list[int], place: int) -> None:
    """Whatever the edit was; and it is remembered as one."""
    lookup = document_lookup(DOCUMENT)
    say(lookup, [*DOCUMENT[:10], *answer])
    assert (lookup._where.copying, lookup._where.at - 2) == (True, place)
    assert lookup.propose(5, 0).tokens == tuple(DOCUMENT[place : place + 5])
    rules = [rule for rules in lookup._memory.by_first.values() for rule in rules]
    old, new = {(rule.old, rule.new) for rule in rules}.pop()
    assert [*DOCUMENT[:10], *new] == [*DOCUMENT[:10], *answer[:-2]]
    assert list(old) == DOCUMENT[10 : place - 2]


def test_a_far_place_is_found_by_a_long_match() -> None:
    """Paragraphs that change places, and text that is left out."""
    lookup = document_lookup(list(range(WORD, WORD + 300)))
    say(lookup, list(range(WORD, WORD + 10)))
    say(lookup, list(range(WORD + 200, WORD + 207)))
    assert lookup.propose(3, 0).tokens == (WORD + 207, WORD + 208, WORD + 209)


def rename(times: int) -> PlaceLookup:
    """A document in which token 500 stands between other ones ten times, answered with 900 in its place."""
    document = [token for line in range(10) for token in (*range(WORD + 20 * line, WORD + 20 * line + 6), 500)]
    lookup = document_lookup(document)
    say(lookup, [900 if token == 500 else token for token in document[: 7 * times + 3]])
    return lookup


def test_a_repeated_edit_is_expected_again() -> None:
    """After a confirmation the draft has the new word in its place, and goes on behind it."""
    draft = rename(3).propose(LONGEST_DRAFT, 0)
    assert draft.tokens[3] == 900
    assert draft.tokens[4] == WORD + 80
    assert 500 not in draft.tokens


def test_an_edit_that_was_taken_back_is_not_expected_any_more() -> None:
    """The source's word came in its place three times: the rule is out."""
    lookup = rename(2)
    at = lookup._where.at
    say(lookup, lookup.stream[at : at + 7 * 4])
    assert 900 not in lookup.propose(LONGEST_DRAFT, 0).tokens


def test_a_longer_edit_is_drafted_to_its_end() -> None:
    """A replacement of several tokens, also from the middle of it."""
    document = [token for line in range(8) for token in (*range(WORD + 20 * line, WORD + 20 * line + 6), 500)]
    edited = [token for token in document for token in ([900, 901, 902] if token == 500 else [token])]
    lookup = document_lookup(document)
    say(lookup, edited[:33])
    assert lookup.propose(8, 0).tokens == tuple(edited[33:41])
    say(lookup, edited[33:35])
    assert lookup.propose(8, 0).tokens == tuple(edited[35:43])
    assert edited[33:36] == [900, 901, 902]


def test_the_last_document_is_followed_first_and_any_by_a_long_match() -> None:
    """Two documents."""
    one, two = list(range(WORD, WORD + 40)), list(range(WORD + 100, WORD + 140))
    lookup = PlaceLookup(piece)
    lookup.observe([1, *one, 2, *two, 3])
    lookup.begin([(1, 41), (42, 82)], rewrites=True)
    assert lookup.propose(2, 0).tokens == tuple(two[:2])
    say(lookup, one[5:12])
    assert lookup.propose(4, 0).tokens == tuple(one[12:16])


def test_an_answer_that_goes_on_is_followed_from_where_it_was() -> None:
    """The prompt ends with what was already written of it."""
    lookup = PlaceLookup(piece)
    lookup.observe([1, *DOCUMENT, 2, *DOCUMENT[:20]])
    lookup.begin([(1, 61)], rewrites=True)
    assert lookup.propose(4, 0).tokens == tuple(DOCUMENT[20:24])


def test_a_place_belongs_to_its_answer() -> None:
    """After a rewind it is plain lookup, until the next answer begins."""
    lookup = document_lookup(DOCUMENT)
    say(lookup, DOCUMENT[:12])
    lookup.rewind(64)
    assert not lookup.calibrated
    assert lookup.propose(4, 0).tokens == ()
    lookup.begin([(2, 62)], rewrites=True)
    assert lookup.propose(4, 0).tokens == tuple(DOCUMENT[:4])


@pytest.mark.parametrize("span", [(-1, 5), (5, 5), (60, 66), (5, 700), (7, 2)])
def test_spans_that_make_no_sense_are_no_documents(span: tuple[int, int]) -> None:
    """Empty ones, and those that do not end before the stream does."""
    lookup = PlaceLookup(piece)
    lookup.observe([1, 2, *DOCUMENT, 3])
    lookup.begin([span], rewrites=True)
    assert not lookup.calibrated
    assert lookup.propose(4, 0).tokens == ()


def test_what_is_thought_of_is_followed_too() -> None:
    """How a draft by somebody else goes on: along the document, and behind an edit that it makes."""
    lookup = document_lookup(DOCUMENT)
    say(lookup, DOCUMENT[:10])
    assert lookup.extend(DOCUMENT[10:12], 3).tokens == tuple(DOCUMENT[12:15])
    assert lookup.extend([900, *DOCUMENT[11:13]], 3).tokens == tuple(DOCUMENT[13:16])
    assert lookup.extend([900, 901], 3).tokens == ()


def test_doubt_grows_with_failures_and_ends_with_the_answer() -> None:
    """An answer that breaks every promise is promised less."""
    lookup, first = document_lookup(DOCUMENT), document_lookup(DOCUMENT).propose(8, 0).survival
    for _ in range(12):
        at = lookup._where.at if lookup._where.copying else 4
        lookup.propose(8, 0)
        lookup.observe([1000 + len(lookup.stream), *DOCUMENT[at : at + 3]])
    doubting = lookup._promises.doubt
    lookup.begin([(2, 62)], rewrites=True)
    assert doubting > 1.0 == lookup._promises.doubt
    assert lookup.propose(8, 0).survival[0] < first[0]


tokens = st.integers(0, 12).map(lambda number: number + 95)
moves = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.lists(tokens, min_size=1, max_size=12)),
        st.tuples(st.just("copy"), st.tuples(st.integers(0, 40), st.integers(1, 20))),
        st.tuples(st.just("rewind"), st.integers(0, 150)),
        st.tuples(st.just("begin"), st.lists(st.tuples(st.integers(-2, 80), st.integers(-2, 160)), max_size=3)),
        st.tuples(st.just("extend"), st.lists(tokens, min_size=1, max_size=5)),
    ),
    max_size=25,
)


@settings(max_examples=150, deadline=None)
@given(moves=moves, limit=st.integers(1, 40), rewrites=st.booleans())
def test_whatever_happens_drafts_are_sound(moves: list[tuple[str, object]], limit: int, rewrites: bool) -> None:
    """Within their limits, with chances that fall, and of tokens that somebody has said; the stream is what it was told."""
    lookup, stream = PlaceLookup(piece), [95, 96]
    lookup.observe(stream)
    for kind, what in moves:
        draft = lookup.propose(limit, 0)
        if kind == "extend":
            draft = lookup.extend(what, limit)  # type: ignore[arg-type]
        check(draft.tokens, draft.survival, min(limit, LONGEST_DRAFT), {*stream, *(what if kind == "extend" else ())})
        if kind == "rewind":
            stream = stream[: max(2, what)]  # type: ignore[type-var]
            lookup.rewind(len(stream))
        elif kind == "begin":
            lookup.begin(what, rewrites)  # type: ignore[arg-type]
        elif kind == "copy":
            start, length = what  # type: ignore[misc]
            stream = follow(lookup, stream, stream[start : start + length])
        elif kind == "say":
            stream = follow(lookup, stream, what)  # type: ignore[arg-type]
    assert list(lookup.stream) == stream


def follow(lookup: PlaceLookup, stream: list[int], said: list[int]) -> list[int]:
    """The answer goes on with these tokens."""
    lookup.observe(said)
    return [*stream, *said]


def check(drafted: Sequence[int], survival: Sequence[float], most: int, known: set[int]) -> None:
    """A draft as the policy may expect it."""
    assert len(drafted) == len(survival) <= most
    assert all(1.0 >= before >= after > 0.0 for before, after in zip([1.0, *survival], survival, strict=False))
    assert set(drafted) <= known


@settings(max_examples=100, deadline=None)
@given(
    document=st.lists(tokens, min_size=4, max_size=60),
    answer=st.lists(tokens, max_size=60),
    other=st.lists(tokens, max_size=30),
)
def test_a_new_answer_is_followed_as_if_it_were_the_first(
    document: list[int], answer: list[int], other: list[int]
) -> None:
    """Place, anchors and memory of another answer are gone, and the stream is cut back; only rates have been learned."""
    used, fresh = (document_lookup(document) for _ in range(2))
    say(used, other)
    used.rewind(len(document) + 4)
    used.begin([(2, 2 + len(document))], rewrites=True)
    for token in answer:
        for lookup in (used, fresh):
            lookup.propose(8, 0)
            lookup.observe([token])
        for name in ("copying", "at", "run", "patched", "anchors", "near", "copied", "edits"):
            assert getattr(used._where, name) == getattr(fresh._where, name), name
        assert used._memory.by_first.keys() == fresh._memory.by_first.keys()


@settings(max_examples=100, deadline=None)
@given(stream=st.lists(tokens, max_size=80), said=st.lists(st.lists(tokens, min_size=1, max_size=9), max_size=8))
def test_without_a_document_it_is_plain_lookup(stream: list[int], said: list[list[int]]) -> None:
    """The same drafts and the same chances, token for token."""
    lookup, plain = PlaceLookup(piece), Lookup()
    for drafter in (lookup, plain):
        drafter.observe(stream)
    lookup.begin()
    for part in said:
        assert lookup.propose(16, 0) == plain.propose(16, 0)
        assert lookup.extend(part, 9) == plain.extend(part, 9)
        for drafter in (lookup, plain):
            drafter.observe(part)


def test_thousands_of_random_steps() -> None:
    """A long answer that copies, edits, jumps and repeats itself."""
    random = np.random.default_rng(7)
    document = [int(token) for token in random.integers(90, 130, 400)]
    lookup = document_lookup(document)
    place, most = 0, 0
    for _ in range(10_000):
        draft = lookup.propose(int(random.integers(1, 33)), 0)
        assert len(draft.tokens) == len(draft.survival) <= LONGEST_DRAFT
        place = (place + int(random.choice([1, 1, 1, 1, 2, 0, 37]))) % 390
        said = document[place : place + int(random.integers(1, 9))]
        lookup.observe([int(random.integers(90, 130))] if random.random() < 0.2 else said)
        place += len(said) - 1
        most = max(most, len(draft.tokens))
    assert most == LONGEST_DRAFT


def test_what_is_shipped_is_sound() -> None:
    """Every rate is a share, and some are known of each kind."""
    priors = shipped_priors()
    assert set(priors) == {"edits", "copies", "guesses"}
    for cells in priors.values():
        assert cells
        assert all(0.0 <= hits <= trials > 0.0 for _, hits, trials in cells)
