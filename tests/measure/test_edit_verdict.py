"""What a comparison of edits says: geometric means over classes, and whether what is asked of an arm holds."""

from __future__ import annotations

import json
from math import sqrt

import numpy as np
import pytest

from localspec.measure.edit_replay import EditAnswer, Replayed
from localspec.measure.edit_report import EditSummary, document, markdown, text
from localspec.measure.edit_verdict import Claim, EditVerdict, Pace
from localspec.measure.edits import EditPair

CLASSES = ("typos", "typos", "rename")


def pair(index: int) -> EditPair:
    """The first two are of one class."""
    return EditPair(f"text {index}: {CLASSES[index]}", f"text {index}", CLASSES[index], "Do it.", "a", "b")


def found(*figures: tuple[int, float]) -> list[Replayed]:
    """Steps and time of each pair, all of 100 tokens."""
    return [Replayed(pair(index), 100, steps, ms) for index, (steps, ms) in enumerate(figures)]


def verdict_of(profile: str = "cuda", **place: tuple[int, float]) -> EditVerdict:
    """Arms of which place is the one that changes."""
    return EditVerdict(
        profile,
        {
            "plain": found((100, 100.0), (100, 100.0), (100, 100.0)),
            "suffix": found((25, 50.0), (25, 50.0), (25, 50.0)),
            "votes": found((20, 80.0), (20, 80.0), (20, 80.0)),
            "myers": found((50, 100.0), (50, 100.0), (50, 100.0)),
            "levenshtein": found((25, 50.0), (25, 50.0), (25, 50.0)),
            "place": found(*[place.get(name, (10, 40.0)) for name in ("one", "two", "three")]),
        },
    )


def summary_of(verdict: EditVerdict, complete: bool = True) -> EditSummary:
    """A comparison on one device."""
    edits = tuple(EditAnswer(pair(index), np.zeros(3, np.int32), (0, 1), np.zeros(100, np.int32)) for index in range(3))
    return EditSummary("a-model", "held-out", tuple(verdict.replayed), edits, (verdict,), complete)


def test_means_are_geometric_over_pairs_and_then_over_classes() -> None:
    """A class of many pairs counts as much as one of few."""
    verdict = verdict_of(one=(10, 50.0), two=(40, 100.0), three=(20, 25.0))
    assert verdict.by_class["typos"]["place"] == Pace(pytest.approx(5.0), pytest.approx(sqrt(2.0)))
    assert verdict.by_class["rename"]["place"] == Pace(pytest.approx(5.0), pytest.approx(4.0))
    assert verdict.means["place"] == Pace(pytest.approx(5.0), pytest.approx(sqrt(sqrt(2.0) * 4.0)))
    assert verdict.count("typos") == 2


def test_the_better_of_two_is_chosen_for_each_figure() -> None:
    """One may take fewer steps and the other less time."""
    assert verdict_of().best(("suffix", "votes")) == Pace(pytest.approx(5.0), pytest.approx(2.0))


@pytest.mark.parametrize(
    ("profile", "place", "held"),
    [
        ("cuda", (10, 40.0), [True, True, True]),
        ("cuda", (16, 40.0), [False, True, True]),
        ("cuda", (20, 40.0), [False, False, True]),
        ("mlx", (10, 44.0), [False, False, True]),
        ("cpu", (24, 49.0), [True, True, True]),
        ("metal", (10, 51.0), [False, False, True]),
        ("metal", (10, 106.0), [False, False, False]),
    ],
)
def test_what_is_asked(profile: str, place: tuple[int, float], held: list[bool]) -> None:
    """Much where long drafts are cheap, elsewhere not to be behind; and never to be slower than plain decoding."""
    claims = verdict_of(profile, one=place, two=place, three=place).claims()
    assert [claim.holds for claim in claims] == held


def test_one_slow_class_is_enough_to_miss() -> None:
    """However fast the others are."""
    *_, claim = verdict_of(three=(90, 110.0)).claims()
    assert (claim.what, claim.holds) == ("place over plain decoding, slowest class (rename)", False)


def test_nothing_is_claimed_without_the_arms_for_it() -> None:
    """Each comparison needs both of its baselines."""
    full = verdict_of()
    some = EditVerdict("cuda", {name: full.replayed[name] for name in ("plain", "suffix", "place")})
    assert [claim.what.split(",")[0] for claim in some.claims()] == ["place over plain decoding"]
    assert list(EditVerdict("cuda", {"plain": full.replayed["plain"]}).claims()) == []


def test_a_claim_holds_from_the_figure_asked_on() -> None:
    """Exactly as much is enough."""
    assert Claim("it", {"speed": (1.15, 1.15)}).holds
    assert not Claim("it", {"speed": (1.1499, 1.15), "tokens per step": (2.0, 1.3)}).holds


def test_the_table_fits_a_terminal() -> None:
    """Both figures by class, the means, the slowest pair and the verdict, in 80 columns."""
    lines = text(summary_of(verdict_of(three=(90, 110.0)))).splitlines()
    assert max(map(len, lines)) <= 80
    assert "cuda, tokens per step" in lines
    assert "cuda, speed over plain decoding" in lines
    assert ["typos", "4.00", "5.00", "2.00", "4.00", "10.00"] in [line.split() for line in lines]
    assert ["slowest", "pair", "2.00", "1.25", "1.00", "2.00", "0.91"] in [line.split() for line in lines]
    assert any(line.startswith("  MISSED: place over plain decoding, slowest class (rename)") for line in lines)


def test_markdown_has_one_table_a_device() -> None:
    """A row a class, and all of its cells."""
    lines = markdown(summary_of(verdict_of())).splitlines()
    assert "| class | suffix | votes | myers | levenshtein | place |" in lines
    assert "| typos | 4.00/2.00 | 5.00/1.25 | 2.00/1.00 | 4.00/2.00 | 10.00/2.50 |" in lines
    assert {line.count("|") for line in lines if line.startswith("|")} == {7}


def test_the_document_has_every_pair() -> None:
    """With the steps and the time of every arm, in plain JSON."""
    values = json.loads(json.dumps(document(summary_of(verdict_of(), complete=False)), allow_nan=False))
    assert (values["half"], values["pairs"], values["tokens"], values["complete"]) == ("held-out", 3, 300, False)
    device = values["devices"][0]
    assert device["geometric_mean"]["place"] == {"tokens_per_step": 10.0, "speed": 2.5}
    assert device["pairs"][2]["arms"]["votes"] == {"steps": 20, "ms": 80.0}
    assert [claim["holds"] for claim in device["claims"]] == [True, True, True]
    assert device["claims"][0]["figures"]["speed"] == {"figure": 1.25, "asked": 1.15}
