"""Timings at load: what is measured, what is kept for the next start, and what is not trusted."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from localspec.engine.engine import Engine, EngineSettings
from localspec.engine.measuring import load_curve, load_kept, measure, save_curve

KEY = "model.gguf/7/CPU"
CURVE = {1: 4.0, 2: 5.0, 5: 9.5}


def test_a_curve_is_there_at_the_next_start(tmp_path: Path) -> None:
    """Beside those of other models."""
    file = tmp_path / "costs.json"
    save_curve(file, "other", {**CURVE, 9: 20.0})
    save_curve(file, KEY, CURVE)
    found = load_curve(file, KEY)
    assert found is not None
    assert [found.ms(width) for width in CURVE] == [4.0, 5.0, 9.5]
    assert load_curve(file, "other") is not None
    assert load_curve(file, "none") is None
    assert load_curve(None, KEY) is None


def test_nobody_else_reads_what_is_kept(tmp_path: Path) -> None:
    """Also where an earlier version let others."""
    file = tmp_path / "costs.json"
    file.write_text("{}")
    file.chmod(0o644)
    save_curve(file, KEY, CURVE)
    assert load_curve(file, KEY) is not None
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_curve_says_when_it_was_measured(tmp_path: Path) -> None:
    """One of an earlier version does not know, and is used all the same; so is one whose day is nonsense."""
    file = tmp_path / "costs.json"
    began = int(time.time())
    save_curve(file, KEY, CURVE)
    kept = load_kept(file, KEY)
    assert kept is not None
    assert kept.measured is not None
    assert began <= kept.measured <= time.time() + 1
    for old in ({}, {"measured": -5}, {"measured": 1e400}):
        file.write_text(json.dumps({KEY: {**{str(width): ms for width, ms in CURVE.items()}, **old}}))
        found = load_kept(file, KEY)
        assert found is not None
        assert (found.measured, found.curve.ms(2)) == (None, 5.0)


def test_what_is_known_can_be_measured_anew(tiny_llama: Path, tmp_path: Path) -> None:
    """A kept curve is used as it is, unless it is asked for again; then the new one is kept."""
    file = tmp_path / "costs.json"
    settings = EngineSettings(tiny_llama, context_length=256, threads=1, measure_costs=True, cost_file=file)
    with Engine(settings):
        pass
    (key,) = json.loads(file.read_text())
    planted = {"1": 1000.0, "2": 2000.0, "5": 3000.0, "measured": 86_400}
    file.write_text(json.dumps({key: planted}))
    with Engine(settings) as engine:
        assert engine.costs.plain_ms == pytest.approx(1000.0)
        assert engine.costs_measured == 86_400
    with Engine(replace(settings, measure_anew=True)) as engine:
        assert engine.costs.plain_ms < 1000.0
        assert engine.costs_measured is not None
        assert engine.costs_measured > 86_400
    assert json.loads(file.read_text())[key]["1"] < 1000.0
    with Engine(replace(settings, measure_costs=False, cost_file=None)) as engine:
        assert engine.costs_measured is None


def test_a_curve_that_was_cut_short_is_measured_again(tmp_path: Path) -> None:
    """One or two widths say nothing about drafts: neither written nor, by an earlier version, read."""
    file = tmp_path / "costs.json"
    save_curve(file, KEY, {1: 764.0})
    assert not file.exists()
    file.write_text(json.dumps({KEY: {"1": 764.0, "2": 800.0}}), encoding="utf-8")
    assert load_curve(file, KEY) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        json.dumps({KEY: []}),
        json.dumps({KEY: {"1": 1, "2": 2, "x": 3}}),
        json.dumps({KEY: {"1": 1, "2": -2, "5": 3}}),
        json.dumps({KEY: {"2": 1, "5": 2, "9": 3}}),
        '{"model.gguf/7/CPU": {"1": 1, "2": Infinity, "5": 3}}',
    ],
)
def test_nonsense_is_measured_again(tmp_path: Path, text: str) -> None:
    """And overwritten then."""
    file = tmp_path / "costs.json"
    file.write_text(text, encoding="utf-8")
    assert load_curve(file, KEY) is None
    save_curve(file, KEY, CURVE)
    assert load_curve(file, KEY) is not None


def test_width_one_is_always_measured() -> None:
    """However little time there is; and nothing stays in the context."""
    told: list[float] = []
    context = Timed()
    assert list(measure(context, (1, 2, 5), budget_seconds=0.0)) == [1]
    assert context.tokens == []
    assert measure(context, (1, 2, 5), 60.0, told.append) == pytest.approx({1: 1.0, 2: 2.0, 5: 5.0})
    assert told == [pytest.approx(share / 9) for share in range(1, 10)]
    assert list(measure(context, (1, 2, 5), 60.0, lambda _share: False)) == [1]


class Timed:
    """A context in which every token takes a millisecond."""

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.busy_seconds = 0.0

    def decode(self, tokens: list[int], rows: int = 0) -> None:
        self.tokens += tokens
        self.busy_seconds += len(tokens) / 1000

    def truncate(self, length: int) -> None:
        del self.tokens[length:]
