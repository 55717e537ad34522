"""What a chat sets for itself."""

from __future__ import annotations

from localspec.chat.answer_options import AnswerOptions
from localspec.settings import Settings
from localspec.tui.chat_settings import answer_options, changed, temperature_and_seed


def test_what_a_chat_sets_reaches_the_engine_and_nonsense_does_not() -> None:
    settings = {"temp": 1, "top_k": 5, "seed": -1, "drafter": "lookup", "top_p": [1], "other": 3, "min_p": None}
    assert answer_options(settings) == AnswerOptions(temp=1.0, top_k=5, drafter="lookup")
    assert answer_options({}) is None
    assert answer_options({"other": 1, "temp": "hot"}) is None


def test_changes_are_merged_and_what_is_none_goes() -> None:
    before = {"temp": 0.5, "top_k": 5}
    assert changed("Mine.", before, {"temp": None, "seed": 7}) == ("Mine.", {"top_k": 5, "seed": 7})
    assert changed("Mine.", before, {"system": None}) == (None, before)
    assert changed(None, {}, {"system": ""}) == ("", {})
    assert before == {"temp": 0.5, "top_k": 5}


def test_the_nearest_temperature_and_seed_are_shown() -> None:
    start = Settings(temp=0.5, seed=7)
    assert temperature_and_seed(start, {"temp": 0.25, "seed": 8}, {}) == (0.25, 8)
    assert temperature_and_seed(start, {}, {"temp": 0.6}) == (0.5, 7)
    assert temperature_and_seed(Settings(), {}, {"temp": 0.6}) == (0.6, None)
    assert temperature_and_seed(Settings(), {}, {}) == (None, None)
