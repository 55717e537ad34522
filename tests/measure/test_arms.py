"""The arms of a comparison: each rule proposes what a hand computes, and no arm learns from another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes import TableModel, TableSampler, tables
from localspec.engine import policy
from localspec.engine.chain import Chain
from localspec.engine.costs import CostCurve, Costs
from localspec.engine.drafters.base import Draft
from localspec.engine.drafters.draft_model import Drafting, DraftModel
from localspec.engine.drafters.lookup import Lookup
from localspec.engine.errors import UserError
from localspec.engine.step import Totals
from localspec.measure.arms import Kind, parse_arms
from localspec.measure.baselines import BestSuffix, LongestMatch, PromptLookup, Rule
from localspec.measure.profiles import PROFILES
from localspec.measure.recording import Recording, load
from localspec.measure.replay import MakeChooser, Session

RECORDINGS = Path(__file__).parents[1] / "data" / "recordings.npz"
ALL = "plain,auto,draft:1,lookup,lookup:n3k10,longest5,suffix,first"
RULES: dict[str, Callable[[], Rule]] = {
    "lookup:n3k10": lambda: PromptLookup(3, 10),
    "longest5": LongestMatch,
    "suffix": BestSuffix,
}
streams = st.lists(st.integers(0, 2), max_size=60)
"""Few different tokens, so that everything repeats."""


def session_of(stream: Sequence[int], with_model: bool = True) -> policy.Session:
    """A session whose drafters have followed a text."""
    lookup, model = Lookup(), None
    lookup.observe(stream)
    if with_model:
        model = DraftModel(TableModel(tables(3)), 12)
        model.observe(stream)
        model.begin(TableSampler(0.0), Drafting.COUPLED, 0, greedy=True)
    costs = Costs(CostCurve.guessed(1.0), CostCurve.guessed(0.1))
    return policy.Session(Chain(costs, lookup, model))


def maker(name: str) -> MakeChooser:
    """A fresh run of an arm."""
    return parse_arms(name)[-1].start()


def draft_of(name: str, stream: Sequence[int], room: int = 32) -> Draft:
    """What an arm drafts after a text."""
    return maker(name)(session_of(stream)).choose(room, 0)


def after(name: str, *stream: int, room: int = 32) -> list[int]:
    """Only its tokens."""
    return list(draft_of(name, stream, room).tokens)


# --- names ------------------------------------------------------------------------------------------------------------


def test_arms_come_in_their_order_plain_first_and_each_once() -> None:
    """However they are written."""
    assert [arm.name for arm in parse_arms("suffix, AUTO,draft:3,,suffix")] == ["plain", "suffix", "auto", "draft:3"]
    assert [arm.name for arm in parse_arms("auto,plain")] == ["plain", "auto"]
    assert [arm.name for arm in parse_arms("")] == ["plain"]
    kinds = {arm.name: (arm.kind, arm.needs_draft) for arm in parse_arms(ALL)}
    assert kinds == {
        "plain": (Kind.PLAIN, False),
        "auto": (Kind.ADAPTIVE, False),
        "draft:1": (Kind.FIXED, True),
        "lookup": (Kind.ADAPTIVE, False),
        "lookup:n3k10": (Kind.FIXED, False),
        "longest5": (Kind.RULE, False),
        "suffix": (Kind.RULE, False),
        "first": (Kind.FIXED, True),
    }


@pytest.mark.parametrize("name", ["drafts", "draft:", "draft:x", "lookup:n3", "lookup:k3n3", "longest", "plain:1"])
def test_an_unknown_arm_is_named_with_the_known_ones(name: str) -> None:
    """One sentence."""
    with pytest.raises(UserError) as raised:
        parse_arms(f"auto,{name}")
    assert str(raised.value) == (
        f"There is no arm {name}; the arms are plain, auto, draft:K, lookup, lookup:nNkK, longest5, suffix and first."
    )


@pytest.mark.parametrize(
    "name", ["draft:0", "draft:33", "lookup:n0k3", "lookup:n17k3", "lookup:n3k0", "draft:" + "9" * 5000]
)
def test_a_length_out_of_range_is_refused(name: str) -> None:
    """Whatever its size."""
    with pytest.raises(UserError, match=r"give a number from 1 to (16|32) in the place of"):
        parse_arms(name)


# --- prompt lookup ----------------------------------------------------------------------------------------------------


def test_prompt_lookup_copies_behind_the_most_recent_place_of_the_longest_ngram() -> None:
    """Three tokens before two, two before one, the latest place of equals, and nothing where nothing repeats."""
    # (1 2 3) stands at the beginning; the later (9 2 3) only shares two tokens.
    assert after("lookup:n3k10", 1, 2, 3, 4, 5, 9, 2, 3, 6, 1, 2, 3) == [4, 5, 9, 2, 3, 6, 1, 2, 3]
    assert after("lookup:n3k10", 1, 2, 3, 4, 9, 1, 2, 3, 5, 8, 1, 2, 3) == [5, 8, 1, 2, 3]
    assert after("lookup:n3k10", 2, 3, 4, 9, 2, 3, 5, 8, 2, 3) == [5, 8, 2, 3]
    assert after("lookup:n3k10", 3, 4, 9, 3, 5, 8, 3) == [5, 8, 3]
    assert after("lookup:n3k10", 1, 2, 3, 4) == []
    # With n up to 1 the longer match is not seen.
    assert after("lookup:n1k10", 2, 3, 4, 9, 3, 5, 8, 2, 3) == [5, 8, 2, 3]


def test_prompt_lookup_copies_so_many_and_no_more() -> None:
    """As many as it says, at most as many as there is room for, and never past the known text."""
    text = [*range(50, 80), 50, 51, 52]
    assert after("lookup:n3k10", *text) == list(range(53, 63))
    assert after("lookup:n2k4", *text) == list(range(53, 57))
    assert after("lookup:n3k10", *text, room=2) == [53, 54]
    assert after("lookup:n3k10", *text, room=0) == []
    assert after("lookup:n3k10", 7, 7, 7) == [7]


# --- longest match ----------------------------------------------------------------------------------------------------


def test_longest_match_needs_five_tokens() -> None:
    """Four are silence."""
    assert after("longest5", 1, 2, 3, 4, 5, 6, 7, 9, 2, 3, 4, 5) == []
    assert after("longest5", 1, 2, 3, 4, 5, 6, 7, 9, 1, 2, 3, 4, 5) == [6, 7, 9, 1, 2, 3, 4, 5]


def test_longest_match_prefers_the_longest_then_the_latest() -> None:
    """Six matching tokens far back against five just before, and two of five."""
    five, six = [1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5]
    assert after("longest5", *six, 60, 61, *five, 50, 51, *six)[:2] == [60, 61]
    assert after("longest5", *five, 60, 61, *five, 50, 51, *five)[:2] == [50, 51]


def test_longest_match_copies_sixteen() -> None:
    """And as many as there is room for."""
    text = [*range(50, 80), *range(50, 56)]
    assert after("longest5", *text) == list(range(56, 72))
    assert after("longest5", *text, room=3) == [56, 57, 58]


# --- best suffix ------------------------------------------------------------------------------------------------------


def test_best_suffix_copies_no_more_than_it_has_matched() -> None:
    """Factor 1."""
    draft = draft_of("suffix", [1, 2, 3, 4, 5, 6, 7, 9, 1, 2, 3])
    assert (draft.tokens, draft.survival) == ((4, 5, 6), (1.0, 1.0, 1.0))
    assert after("suffix", 1, 2, 3, 4, 5, 6, 7, 9, 1, 2, 3, room=2) == [4, 5]
    assert after("suffix", 1, 2, 3) == []


def test_best_suffix_follows_the_most_frequent_child() -> None:
    """After 5 came 1 twice and 2 once: two thirds."""
    draft = draft_of("suffix", [5, 1, 5, 1, 5, 2, 5])
    assert (draft.tokens, draft.survival) == ((1,), pytest.approx((2 / 3,)))
    # Of equals the latest.
    assert after("suffix", 5, 1, 6, 5, 2, 5) == [2]


def test_best_suffix_takes_the_best_score_not_the_longest_match() -> None:
    """(9 1 2) went on in two ways: 3 tokens of 0.5 each. (1 2) went on with 7 8 in seven cases of eight: 0.875 each."""
    text = [token for filler in range(20, 26) for token in (filler, 1, 2, 7, 8)]
    text += [30, 9, 1, 2, 7, 8, 31, 9, 1, 2, 6, 5, 32, 9, 1, 2]
    draft = draft_of("suffix", text)
    assert (draft.tokens, draft.survival) == ((7, 8), pytest.approx((0.875, 0.875)))


def test_best_suffix_stops_below_a_tenth() -> None:
    """Eleven ways to go on are one too many; ten are not."""
    eleven = [token for other in range(20, 31) for token in (1, other)]
    assert after("suffix", *eleven, 1) == []
    assert after("suffix", *eleven[:20], 1) == [29]


def test_best_suffix_prefers_the_longer_of_equal_matches() -> None:
    """(4 5) went on with 2 and 1, any 5 with 1 and 2 as often each, and last with 2: all are 0.5."""
    assert after("suffix", 4, 5, 2, 9, 4, 5, 1, 10, 7, 5, 1, 11, 8, 5, 2, 12, 4, 5, room=1) == [1]


@pytest.mark.parametrize(("others", "expected"), [(3, (4 / 7, 1 / 7)), (8, (4 / 12,))])
def test_best_suffix_multiplies_along_the_path(others: int, expected: tuple[float, ...]) -> None:
    """Behind (3 4) came 9 four times, each time before something else, and `others` tokens once each."""
    runs = [(3, 4, 50 + n, 60 + n) for n in range(others)] + [(3, 4, 9, 20 + n) for n in range(4)]
    text = [token for n, run in enumerate(runs) for token in (*run, 40 + n)]
    draft = draft_of("suffix", [*text, 3, 4])
    assert draft.tokens == (9, 23)[: len(expected)]
    assert draft.survival == pytest.approx(expected)


@given(stream=streams, cut=st.integers(0, 60), limit=st.integers(1, 20))
def test_rules_do_what_a_plain_scan_does(stream: list[int], cut: int, limit: int) -> None:
    """Followed at once or in two parts."""
    for name, scan in (("lookup:n3k10", _scan_ngram), ("longest5", _scan_longest), ("suffix", _scan_suffix)):
        rule = RULES[name]()
        rule.follow(stream[:cut])
        rule.follow(stream[cut:])
        assert rule.propose(limit)[0] == scan(stream, limit)


def _ends(stream: Sequence[int], length: int) -> list[int]:
    """Places, latest first, before which the last `length` tokens stand."""
    tail = list(stream[len(stream) - length :])
    return [p for p in range(len(stream) - 1, length - 1, -1) if list(stream[p - length : p]) == tail]


def _scan_ngram(stream: list[int], limit: int) -> list[int]:
    for length in (3, 2, 1):
        if places := _ends(stream, length):
            return stream[places[0] : places[0] + min(10, limit)]
    return []


def _scan_longest(stream: list[int], limit: int) -> list[int]:
    for length in range(32, 4, -1):
        if places := _ends(stream, length):
            return stream[places[0] : places[0] + min(16, limit)]
    return []


def _scan_suffix(stream: list[int], limit: int) -> list[int]:
    best: tuple[float, list[int]] = (0.0, [])
    for length in range(1, 33):
        places = _ends(stream, length)
        path, probability, score = list[int](), 1.0, 0.0
        while places and len(path) < min(limit, length):
            on = [stream[p + len(path)] for p in places if p + len(path) < len(stream)]
            if not on:
                break
            token = max(on, key=lambda token: (on.count(token), -on.index(token)))
            probability *= on.count(token) / len(on)
            if probability < 0.1:
                break
            places = [p for p in places if p + len(path) < len(stream) and stream[p + len(path)] == token]
            path.append(token)
            score += probability
        if path and score >= best[0] - 1e-12:
            best = (score, path)
    return best[1]


# --- the draft model --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [1, 3, 5])
def test_draft_is_always_the_draft_model(length: int) -> None:
    """So many of its tokens, whatever stands in the text, and no more than there is room for."""
    text = [0, 1, 2, 3, 0, 1, 2]
    expected = session_of(text).chain.model.propose(length, 0).tokens
    assert len(expected) == length
    draft = draft_of(f"draft:{length}", text)
    assert (draft.drafter, draft.tokens) == ("draft", expected)
    assert after(f"draft:{length}", *text, room=1) == list(expected[:1])
    assert after(f"draft:{length}", *text, room=0) == []


def test_first_asks_the_draft_model_only_where_lookup_is_silent() -> None:
    """In this order, as llama.cpp combines drafters."""
    draft = draft_of("first", [0, 1, 2, 3, 0, 1, 2])
    assert (draft.drafter, draft.tokens) == ("lookup", (3, 0, 1, 2))
    draft = draft_of("first", [0, 1, 2, 3])
    assert (draft.drafter, draft.tokens) == ("draft", session_of([0, 1, 2, 3]).chain.model.propose(3, 0).tokens)
    assert len(draft.tokens) == 3
    assert after("first", 0, 1, 2, 3, room=0) == []


def test_an_arm_without_its_draft_model_is_a_mistake_of_the_caller() -> None:
    """It says so."""
    for name in ("draft:3", "first"):
        with pytest.raises(ValueError, match="draft model"):
            maker(name)(session_of([1, 2, 3], with_model=False))


def test_plain_never_drafts() -> None:
    """Not even where everything repeats."""
    assert after("plain", 1, 2, 1, 2, 1, 2, 1, 2) == []


@pytest.mark.parametrize("name", RULES)
def test_a_rule_follows_the_answer(name: str) -> None:
    """What is emitted can be copied."""
    chooser = maker(name)(session_of([4, 5, 6, 7, 8, 9]))
    assert chooser.choose(8, 0).tokens == ()
    chooser.learn([4, 5, 6, 7, 8], Draft("none"), 1, 1.0, 0.0)
    expected = RULES[name]()
    expected.follow([4, 5, 6, 7, 8, 9, 4, 5, 6, 7, 8])
    assert list(chooser.choose(8, 1).tokens) == expected.propose(8)[0]
    assert chooser.choose(8, 1).tokens[0] == 9


# --- what arms remember -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def recordings() -> list[Recording]:
    """One answer of each of our categories."""
    return load(RECORDINGS)[:6]


def replayed(session: Session, recordings: Sequence[Recording], make: MakeChooser) -> list[Totals]:
    """Without the times of this machine."""
    found = [session.replay(recording, make) for recording in recordings]
    for totals in found:
        totals.sample_seconds = totals.policy_seconds = 0.0
        totals.host_ms = []
    return found


@pytest.mark.parametrize("name", ["auto", "lookup", "suffix"])
def test_no_arm_profits_from_another(name: str, recordings: list[Recording]) -> None:
    """On a pair that other arms have used for the same texts it does what it does alone."""
    profile = PROFILES["cpu"]
    alone = replayed(Session(profile), recordings, maker(name))
    shared = Session(profile)
    for other in ("auto", "lookup", "first"):
        replayed(shared, recordings, maker(other))
    assert replayed(shared, recordings, maker(name)) == alone


@pytest.mark.parametrize("name", ["auto", "lookup"])
def test_an_arm_keeps_what_it_learns_between_answers(name: str, recordings: list[Recording]) -> None:
    """The second time it does not do the same."""
    session, make = Session(PROFILES["cpu"]), maker(name)
    assert replayed(session, recordings, make) != replayed(session, recordings, make)


@pytest.mark.parametrize("name", ["auto", "lookup"])
def test_the_costs_that_an_arm_learns_are_its_own(name: str) -> None:
    """Passes that took long make nobody else careful."""
    session = session_of([1, 2, 3, 1, 2])
    before = session.chain.costs.target.table()
    chooser = maker(name)(session)
    for step in range(5):
        draft = chooser.choose(4, step)
        chooser.learn([3], draft, 1 + len(draft.tokens), 1000.0, 0.0)
    assert session.chain.costs.target.table() == before


def test_lookup_has_no_draft_model(recordings: list[Recording]) -> None:
    """And auto has."""
    by_arm = {name: replayed(Session(PROFILES["cuda"]), recordings, maker(name)) for name in ("auto", "lookup")}
    used = {name: {who for totals in found for who in totals.by_drafter} for name, found in by_arm.items()}
    assert used == {"auto": {"none", "lookup", "draft"}, "lookup": {"none", "lookup"}}
    assert sum(totals.draft_seconds for totals in by_arm["lookup"]) == 0.0


def test_the_longest_draft_can_be_set(recordings: list[Recording]) -> None:
    """For the arms that choose it themselves."""
    for name in ("auto", "lookup"):
        make = parse_arms(name, longest=2)[-1].start()
        found = replayed(Session(PROFILES["cuda"]), recordings, make)
        assert max(totals.drafted / totals.steps for totals in found) <= 2
        assert sum(totals.accepted for totals in found) > 0
