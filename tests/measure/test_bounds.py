"""The clairvoyant bound against trying everything, and what our policy reaches on recorded answers of every device."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localspec.measure.arms import Kind, parse_arms
from localspec.measure.bounds import Verdict, clairvoyant_ms, judge, verdict_lines
from localspec.measure.profiles import PROFILES, Profile
from localspec.measure.recording import PER_POSITION, Recording, Source, load

RECORDINGS = Path(__file__).parents[1] / "data" / "recordings.npz"
"""Greedy answers of the bench pair to all our own prompts."""
CLIFFS = Profile("cliffs", "made up", ((1, 1.0), (2, 1.9), (3, 1.2), (4, 2.5), (5, 2.6)), 0.3, 0.1)
"""A pass of three tokens costs less than one of two."""
FLAT = Profile("flat", "made up", ((1, 1.0), (2, 1.0)), 0.25, 0.0)
ARMS = "plain,auto,draft:2,draft:3,draft:5,lookup:n3k10,longest5,suffix"
tokens = st.integers(0, 2)


def recording_of(prompt: Sequence[int], answer: Sequence[int], drafted: Sequence[int]) -> Recording:
    """An answer with what the draft model says at each of its positions."""
    count = len(answer)
    arrays = {name: np.zeros(count, np.float32) for name in PER_POSITION}
    arrays |= {"branch": np.full((count, 2), -1, np.int32), "branch_top": np.zeros((count, 2), np.float32)}
    arrays |= {"answer": np.array(answer, np.int32), "drafted": np.array(drafted, np.int32)}
    return Recording("made-up", "none", Source("", ""), np.array(prompt, np.int32), ended=False, **arrays)


def tried_ms(recording: Recording, profile: Profile, longest: int, start: int = 0) -> float:
    """The least time, by trying every draft of every width at every position."""
    answer, prompt = recording.answer.tolist(), recording.prompt.tolist()
    if start == len(answer):
        return 0.0
    known, best = prompt + answer[:start], math.inf
    for width in range(1, longest + 2):
        drafting = 0.0
        for k in range(min(width - 1, len(answer) - start - 1) + 1):
            if k:
                before, token = (prompt + answer)[len(known) + k - 2], answer[start + k - 1]
                copied = any(known[i - 1 : i + 1] == [before, token] for i in range(1, len(known)))
                drafted = recording.drafted[start + k - 1] == token
                drafting += 0.0 if copied else profile.draft_ms(1) if drafted else math.inf
            rest = tried_ms(recording, profile, longest, start + k + 1)
            best = min(best, drafting + profile.target_ms(width) + rest)
    return best


@settings(max_examples=150, deadline=None)
@given(
    prompt=st.lists(tokens, min_size=1, max_size=5),
    answer=st.lists(tokens, min_size=1, max_size=5),
    drafted=st.lists(tokens, min_size=5, max_size=5),
    longest=st.integers(1, 4),
    profile=st.sampled_from([CLIFFS, FLAT, PROFILES["metal"]]),
)
def test_the_bound_is_what_trying_everything_finds(
    prompt: list[int], answer: list[int], drafted: list[int], longest: int, profile: Profile
) -> None:
    """Copies, drafts, mixtures of both, and passes that are wider than they need be."""
    recording = recording_of(prompt, answer, drafted[: len(answer)])
    assert clairvoyant_ms(recording, profile, longest) == pytest.approx(tried_ms(recording, profile, longest))


def test_the_bound_of_answers_that_a_hand_can_compute() -> None:
    """Nothing to copy and no draft that is right; a draft that always is; a text that repeats its prompt."""
    assert clairvoyant_ms(recording_of([1], [2, 3, 4], [0, 0, 0]), FLAT) == pytest.approx(3.0)
    # One pass; its last token needs no draft.
    assert clairvoyant_ms(recording_of([1], [2, 3, 4], [2, 3, 4]), FLAT) == pytest.approx(1.0 + 2 * 0.25)
    assert clairvoyant_ms(recording_of([1, 2, 3, 4, 1], [2, 3, 4], [0, 0, 0]), FLAT) == pytest.approx(1.0)
    # The second token stands nowhere and ends the copy.
    assert clairvoyant_ms(recording_of([1, 2, 3, 4, 1], [2, 9, 9, 4], [0, 0, 0, 0]), FLAT) == pytest.approx(3.0)


# --- a verdict --------------------------------------------------------------------------------------------------------


@pytest.fixture
def verdict() -> Verdict:
    """Made-up figures: two prompts of one category, one of another."""
    return Verdict(
        profile="made up",
        categories=("a", "b", "a"),
        kinds={"plain": Kind.PLAIN, "auto": Kind.ADAPTIVE, "draft:3": Kind.FIXED, "suffix": Kind.RULE},
        speedups={
            "plain": (1.0, 1.0, 1.0),
            "auto": (2.0, 0.9, 4.5),
            "draft:3": (1.0, 0.5, 4.0),
            "suffix": (4.0, 0.8, 4.0),
        },
        bound=(8.0, 2.0, 8.0),
    )


def test_a_verdict_is_computed_as_by_hand(verdict: Verdict) -> None:
    """Geometric means everywhere, first inside a category, then over the categories."""
    assert verdict.by_category["auto"] == pytest.approx({"a": 3.0, "b": 0.9})
    assert verdict.means["auto"] == pytest.approx(math.sqrt(2.7))
    assert verdict.bound_mean == pytest.approx(4.0)
    assert verdict.worst("auto") == ("b", pytest.approx(0.9))
    assert verdict.best(Kind.FIXED) == ("plain", pytest.approx(1.0))
    assert verdict.best(Kind.FIXED, Kind.RULE) == ("suffix", pytest.approx(math.sqrt(3.2)))
    assert verdict.best_by_category(Kind.FIXED) == pytest.approx({"a": 2.0, "b": 1.0})
    assert verdict.best_by_category(Kind.RULE) == pytest.approx({"a": 4.0, "b": 1.0})
    assert verdict.least_share("auto", Kind.FIXED) == ("b", pytest.approx(0.9))
    assert verdict.least_share("auto", Kind.RULE) == ("a", pytest.approx(0.75))
    assert verdict.hindsight_share("auto") == pytest.approx((8.1 / (4.0 * 1.0 * 4.5)) ** (1 / 3))


def test_the_lines_of_a_verdict_hold_its_figures(verdict: Verdict) -> None:
    """All arms, the bound, and the five comparisons."""
    lines = list(verdict_lines(verdict))
    assert lines[0].split() == ["made", "up", "mean", "worst", "category"]
    assert [line.split() for line in lines[1:6]] == [
        ["plain", "1.000", "a", "1.000"],
        ["auto", "1.643", "b", "0.900"],
        ["draft:3", "1.000", "b", "0.500"],
        ["suffix", "1.789", "b", "0.800"],
        ["bound", "4.000"],
    ]
    assert "auto / best single fixed arm (plain, 1.000): 1.643" in lines[6]
    assert "auto / best single fixed arm or rule (suffix, 1.789): 0.919" in lines[9]
    assert "auto / bound: 0.411" in lines[-1]
    assert max(map(len, lines)) <= 80


# --- our policy on recorded answers -----------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=PROFILES)
def judged(request: pytest.FixtureRequest) -> Verdict:
    """All arms over all the recordings on one device."""
    return judge(load(RECORDINGS), PROFILES[request.param], parse_arms(ARMS))


def test_the_recordings_are_of_all_our_categories() -> None:
    """As many of each, and none with a text that is not ours."""
    recordings = load(RECORDINGS)
    categories = [recording.category for recording in recordings]
    assert {category: categories.count(category) for category in categories} == dict.fromkeys(
        ["chat", "code", "summarization", "document_qa", "rewriting", "code_editing"], 6
    )
    assert all(recording.id.startswith(f"{recording.category}-") for recording in recordings)
    assert RECORDINGS.stat().st_size < 200_000


def test_no_arm_beats_the_bound(judged: Verdict) -> None:
    """On any prompt; and plain decoding is the unit."""
    for speedups in judged.speedups.values():
        assert all(speedup <= bound + 1e-9 for speedup, bound in zip(speedups, judged.bound, strict=True))
    assert judged.speedups["plain"] == pytest.approx([1.0] * 36)


def test_auto_is_never_slower_than_plain_decoding(judged: Verdict) -> None:
    """In no category."""
    category, worst = judged.worst("auto")
    assert worst >= 0.97, category


def test_auto_keeps_up_with_the_best_arm_of_every_category(judged: Verdict) -> None:
    """Which another device or another kind of text would not have."""
    category, share = judged.least_share("auto", Kind.FIXED, Kind.RULE)
    assert share >= 0.97, category


def test_auto_beats_every_single_arm(judged: Verdict) -> None:
    """By what mixing drafters is worth on a device; where it is worth nothing, by nothing."""
    least = {"cuda": 1.20, "mlx": 1.20, "cpu": 1.10, "metal": 1.00}[judged.profile]
    assert judged.means["auto"] >= least * judged.best(Kind.FIXED)[1]
    assert judged.means["auto"] >= judged.best(Kind.FIXED, Kind.RULE)[1]


def test_auto_is_near_the_best_arm_of_every_prompt(judged: Verdict) -> None:
    """Chosen with hindsight."""
    assert judged.hindsight_share("auto") >= 0.95


def test_a_replay_is_the_same_every_time() -> None:
    """To the last bit."""
    recordings = load(RECORDINGS)[:6]
    first, second = (judge(recordings, PROFILES["mlx"], parse_arms(ARMS)) for _ in range(2))
    assert first == second
