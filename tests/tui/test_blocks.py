"""Columns, bars and gauges of block characters."""

import pytest

from localspec.tui.blocks import bar, columns, gauge


def test_columns_grow_in_eighths() -> None:
    assert columns([0, 1, 2, 4, 8, 9], 8) == [" ▁▂▄██"]


def test_columns_of_two_lines_are_filled_from_below() -> None:
    assert columns([0, 1, 8, 12, 16], 16, rows=2) == ["   ▄█", " ▁███"]


def test_what_is_there_is_seen_however_small_it_is() -> None:
    assert columns([1], 1000) == ["▁"]
    assert bar(0.0001, 10) == "▏"
    assert gauge(0.0001, 4) == ("╸", "───")


def test_nothing_is_drawn_of_nothing() -> None:
    assert columns([], 4, rows=2) == ["", ""]
    assert columns([0.0], 0.0) == [" "]
    assert bar(0.0, 10) == ""
    assert gauge(0.0, 4) == ("", "────")


@pytest.mark.parametrize(("share", "drawn"), [(0.5, "██"), (0.53125, "██▏"), (1.0, "████"), (2.0, "████")])
def test_bars_grow_in_eighths_and_stay_in_their_place(share: float, drawn: str) -> None:
    assert bar(share, 4) == drawn


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.62, 0.99, 1.0])
def test_a_gauge_always_has_its_length(share: float) -> None:
    reached, rest = gauge(share, 7)
    assert len(reached + rest) == 7
