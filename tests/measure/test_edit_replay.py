"""Edits replayed on simulated devices: the steps that every way of drafting takes, pair by pair and whatever came before."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from edit_words import WordVocabulary
from localspec.engine.drafters.base import Drafter
from localspec.engine.errors import UserError
from localspec.engine.fixed import Fixed
from localspec.engine.policy import Chooser
from localspec.measure.edit_arms import EDIT_ARMS, PLACE, PLAIN, chosen_edit_arms
from localspec.measure.edit_replay import EditAnswer, EditArm, Replay, Replayed
from localspec.measure.edits import edit_pairs
from localspec.measure.profiles import PROFILES

PAIRS = ("late-parcel: typos", "lentil-soup: rename", "ring-buffer-c: rename code", "harbour-survey: delete")
TRAINING = ("allotment-letter: typos", "cart-js: rename code", "board-minutes: rename")
CUDA = PROFILES["cuda"]


@pytest.fixture(scope="module")
def words() -> WordVocabulary:
    """Shared, because numbers are given as words come."""
    return WordVocabulary()


@pytest.fixture(scope="module")
def edits(words: WordVocabulary) -> list[EditAnswer]:
    """Four pairs of four classes."""
    return answers(words, PAIRS)


@pytest.fixture(scope="module")
def training(words: WordVocabulary) -> list[EditAnswer]:
    """Three others."""
    return answers(words, TRAINING)


def answers(words: WordVocabulary, names: Sequence[str]) -> list[EditAnswer]:
    """Pairs of the design half by their names."""
    pairs = {pair.name: pair for pair in edit_pairs("design")}
    return words.answers([pairs[name] for name in names])


def replayed(
    words: WordVocabulary, arm: str, edits: Sequence[EditAnswer], training: Sequence[EditAnswer] = ()
) -> list[Replayed]:
    """What an arm makes of some pairs on the CUDA curve."""
    return list(Replay(EDIT_ARMS[arm], CUDA, words.piece).run(edits, training))


def steps(found: Sequence[Replayed]) -> list[int]:
    return [one.steps for one in found]


def test_an_answer_is_the_edited_text_and_its_end(words: WordVocabulary, edits: list[EditAnswer]) -> None:
    """And the document stands in the prompt where it is said to."""
    for edit in edits:
        start, stop = edit.document
        assert b"".join(map(words.piece, edit.prompt[start:stop])).decode() == f"{edit.pair.source}\n"
        assert b"".join(map(words.piece, edit.answer)).decode() == edit.pair.target
        assert edit.answer[-1] == words.eos


@pytest.mark.parametrize(
    ("arm", "wanted"),
    [
        ("plain", [110, 342, 563, 304]),
        ("lookup:n3k10", [23, 46, 156, 38]),
        ("longest5", [42, 56, 215, 37]),
        ("suffix", [33, 38, 160, 26]),
        ("votes", [23, 29, 146, 21]),
        ("myers", [21, 34, 120, 118]),
        ("levenshtein", [15, 27, 99, 125]),
    ],
)
def test_the_baselines_take_as_many_steps_as_ever(
    words: WordVocabulary, edits: list[EditAnswer], training: list[EditAnswer], arm: str, wanted: list[int]
) -> None:
    """A change of the engine that makes a baseline weaker would flatter what is measured against it."""
    assert steps(replayed(words, arm, edits, training)) == wanted


def test_the_place_in_the_document_saves_steps(
    words: WordVocabulary, edits: list[EditAnswer], training: list[EditAnswer]
) -> None:
    """On each pair no more than the best baseline takes, and less than half on the one with many equal edits."""
    typos, names, code, deleted = steps(replayed(words, PLACE, edits, training))
    assert typos <= 15
    assert names <= 27
    assert 2 * code < 99
    assert deleted <= 21


def test_plain_decoding_is_a_token_a_step(words: WordVocabulary, edits: list[EditAnswer]) -> None:
    """At speed 1 on every device."""
    for profile in PROFILES.values():
        for one in Replay(EDIT_ARMS[PLAIN], profile, words.piece).run(edits):
            assert (one.tokens_per_step, one.speed) == (1.0, pytest.approx(1.0))


@pytest.mark.parametrize("arm", [name for name, arm in EDIT_ARMS.items() if arm.learns])
def test_a_pair_is_not_told_of_the_one_before(words: WordVocabulary, edits: list[EditAnswer], arm: str) -> None:
    """Each starts from the same state, so their order changes nothing."""
    forward = replayed(words, arm, edits)
    backward = replayed(words, arm, edits[::-1])
    assert forward == backward[::-1]


@pytest.mark.parametrize("arm", [name for name, arm in EDIT_ARMS.items() if arm.learns])
def test_what_was_learned_before_counts(
    words: WordVocabulary, edits: list[EditAnswer], training: list[EditAnswer], arm: str
) -> None:
    """Arms that learn do not do the same after other edits as without them."""
    without, after = replayed(words, arm, edits), replayed(words, arm, edits, training)
    assert steps(without) != steps(after)


class _Diary:
    """A way of drafting that drafts nothing; each copy of it writes down which texts were met before its own."""

    def __init__(self, pages: list[tuple[list[str], str]], before: Sequence[str] = (), copied: bool = False) -> None:
        self._pages, self._before, self._copied = pages, list(before), copied

    def begin(self, edit: EditAnswer) -> tuple[Chooser, Sequence[Drafter]]:
        if self._copied:
            self._pages.append((self._before, edit.pair.document))
        else:
            self._before.append(edit.pair.document)
        return Fixed(), ()

    def __deepcopy__(self, _memo: object) -> _Diary:
        return _Diary(self._pages, self._before, copied=True)


def test_nobody_learns_from_the_text_that_is_replayed(words: WordVocabulary) -> None:
    """Within one half every pair follows the pairs of other texts only, and comes out in its place."""
    names = ("late-parcel: typos", "lentil-soup: rename", "late-parcel: insert", "cart-js: rename code")
    pages: list[tuple[list[str], str]] = []
    arm = EditArm("diary", True, lambda _costs, _piece: _Diary(pages))
    found = list(Replay(arm, CUDA, words.piece).run_folds(answers(words, names)))
    assert [one.pair.name for one in found] == list(names)
    assert pages == [
        (["lentil-soup"], "late-parcel"),
        (["late-parcel", "late-parcel", "cart-js"], "lentil-soup"),
        (["lentil-soup"], "late-parcel"),
        (["lentil-soup"], "cart-js"),
    ]


@pytest.fixture(scope="module")
def telling(words: WordVocabulary) -> list[EditAnswer]:
    """Pairs in which every part has something to do."""
    return answers(words, (*PAIRS, "ring-buffer-c: reformat"))


@pytest.mark.parametrize("arm", [name for name in EDIT_ARMS if name.startswith("no-")])
def test_a_part_that_is_left_out_is_missing(
    words: WordVocabulary, telling: list[EditAnswer], training: list[EditAnswer], arm: str
) -> None:
    """Without it answers take another time."""
    times, usual = ([one.ms for one in replayed(words, name, telling, training)] for name in (arm, PLACE))
    assert times != usual


def test_arms_by_name() -> None:
    """Plain decoding always takes part, none does twice, and a wrong name is refused with all right ones. Arms with a part
    left out take part when they are asked for."""
    usual = [arm.name for arm in chosen_edit_arms(None)]
    assert usual == [name for name in EDIT_ARMS if not name.startswith("no-")]
    assert [arm.name for arm in chosen_edit_arms("no-votes")] == ["plain", "no-votes"]
    assert [arm.name for arm in chosen_edit_arms(" Votes,suffix,votes")] == ["plain", "votes", "suffix"]
    with pytest.raises(UserError, match="There is no arm draft:3 for edits; the arms are plain,"):
        chosen_edit_arms("draft:3")
