"""No figure is ever NaN, infinite or a division by nothing: not on the screen and not in a document, whatever clocks say."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from command import ROOT, call, read_json
from localspec.console import json_text
from localspec.durations import clock
from localspec.engine.costs import CostCurve
from localspec.engine.errors import UserError
from localspec.engine.options import Options
from localspec.engine.rates import elapsed, finite, ratio, share
from localspec.engine.step import Decision, Step, Totals
from localspec.hub.catalog import load_catalog
from localspec.output import Output
from localspec.pull_bars import Speed
from localspec.report import answer_report
from localspec.tui.blocks import bar, columns, gauge
from localspec.tui.figures import Figures, in_words
from localspec.tui.screens.costs import chart, meaning
from localspec.tui.speculation import Tally
from localspec.tui.widgets.speculation import _Picture
from localspec.tui.widgets.status import _meter

CATALOG = """
[models."mine"]
repository = "me/mine-GGUF"
parameters = 0
context_length = 4096
vocabulary = "qwen2.5"
files = [{ quantization = "Q4_K_M", bytes = 4_000, file = "mine-Q4_K_M.gguf" }]
shape = { layers = 28, embedding = 3584, feed_forward = 18944, heads = 28, kv_heads = 4, key_length = 128,\
 value_length = 128, vocabulary = 152064, trained_context = 4096 }
"""

TIMES = some.sampled_from([0.0, -0.0, -5.0, 5e-324, 1e-9, 0.1, 20.0, 1e9, 1e308, math.inf, -math.inf, math.nan])
COUNTS = some.sampled_from([0, 1, 2, 33, 10**6, 10**400])
NUMBERS = TIMES | some.floats() | COUNTS
PALETTE: Any = SimpleNamespace(style=lambda name: "", colors=False)


SHOWN = ("tui/**/*.py", "report.py", "output.py", "run.py", "rewrite*.py", "pull*.py", "console.py", "engine/step.py")
"""Modules whose figures go to a screen or a document."""


def is_fit(words: str) -> bool:
    """Whether a person may see it."""
    lower = words.lower()
    return not any(bad in lower.split() or f"{bad}%" in lower or f"{bad}x" in lower for bad in ("nan", "inf", "-inf"))


def is_sound(value: float | None) -> bool:
    return value is None or (math.isfinite(value) and value >= 0)


@some.composite
def steps(draw: some.DrawFn) -> Step:
    drafted = draw(some.integers(0, 32))
    accepted = draw(some.integers(0, drafted))
    emitted = draw(some.sampled_from([0, accepted, accepted + 1]))
    rate = draw(TIMES)
    decision = draw(some.none() | some.just(Decision("lookup", drafted, rate, rate, "no room for a draft")))
    return Step(
        tuple(range(emitted)),
        "x",
        "lookup" if drafted else "none",
        drafted,
        accepted,
        draw(some.sampled_from([0, 1 + drafted])),
        draw(TIMES),
        draw(TIMES),
        draw(TIMES),
        draw(TIMES),
        decision=decision,
    )


ANSWERS = some.lists(some.tuples(steps(), TIMES), max_size=20)
"""Steps, and when they ended: by a clock that stands still, jumps, and goes back."""


@given(NUMBERS, NUMBERS)
def test_a_ratio_is_a_number_or_nothing(part: float, whole: float) -> None:
    value = ratio(part, whole)
    assert value is None or math.isfinite(value)
    assert 0 <= share(part, whole) <= 1
    assert is_sound(elapsed(float(min(part, 1e300)), float(min(whole, 1e300))))
    if value is not None:
        assert value == part / whole


@given(some.recursive(NUMBERS | some.text(), lambda inner: some.lists(inner) | some.dictionaries(some.text(), inner)))
def test_every_document_is_json(value: Any) -> None:
    read = read_json(json_text({"value": value}))["value"]
    assert read == json.loads(json.dumps(finite(value)))


@given(ANSWERS, some.booleans())
def test_the_status_line(answer: list[tuple[Step, float]], begun: bool) -> None:
    figures = Figures()
    if begun and answer:
        figures.begin(answer[0][1] if math.isfinite(answer[0][1]) else 0.0)
    for step, at in answer:
        figures.add(step, at if math.isfinite(at) else 0.0)
        for running in (True, False):
            words = in_words(figures, running=running)
            assert all(is_fit(word) for word in words), words
        assert is_sound(figures.recent_speed)
        assert is_sound(figures.mean_speed)


@given(ANSWERS, some.integers(10, 120), some.integers(1, 40))
def test_the_speculation_view(answer: list[tuple[Step, float]], width: int, height: int) -> None:
    tally = Tally()
    for running in (True, False):
        tally.begin()
        for step, at in answer:
            tally.add(step, at)
        if not running:
            tally.end()
        for lines in (_Picture(tally, width, PALETTE).column(height), _Picture(tally, width, PALETTE).strip()):
            for line in lines:
                words = "".join(text for text, _style in line)
                assert is_fit(words), words
        for sums in (tally.now, tally.answer, tally.chat):
            assert is_sound(sums.tokens_per_second)
            assert is_sound(sums.speedup(tally.plain_token_ms))
    kept = json.loads(json.dumps(finite(tally.figures())))
    tally.load([kept, None])
    assert is_sound(tally.chat.tokens_per_second)


FIGURES = ("tokens", "steps", "drafts", "drafted", "accepted", "clock_ms", "engine_ms", "plain_ms")


@given(some.lists(some.dictionaries(some.sampled_from(FIGURES), NUMBERS | some.text() | some.none())))
def test_figures_that_were_kept_in_a_chat_may_be_nonsense(kept: list[dict[str, Any]]) -> None:
    tally = Tally()
    tally.load(kept)
    assert is_sound(tally.chat.tokens_per_second)
    assert is_sound(tally.chat.tokens_per_step)
    for line in _Picture(tally, 48, PALETTE).column(40):
        assert is_fit("".join(text for text, _style in line))


@given(NUMBERS, NUMBERS, some.integers(0, 50))
def test_drawings(value: float, top: float, cells: int) -> None:
    assert len(bar(value, cells)) <= cells
    assert sum(map(len, gauge(value, cells))) == cells
    assert len(columns([value], top, 2)) == 2
    assert len(_meter(share(value, top), "$primary").plain) == 8


@given(some.dictionaries(some.integers(1, 33), NUMBERS, min_size=1))
def test_the_screen_of_costs(curve: dict[int, float]) -> None:
    shown = {width: float(min(ms, 1e300)) for width, ms in curve.items() if math.isfinite(min(ms, 1e300)) and ms >= 0}
    if shown:
        assert is_fit(chart(shown).plain)
        assert all(is_fit(sentence) for sentence in meaning(shown))


@given(some.lists(some.tuples(some.integers(1, 33), TIMES), max_size=60), TIMES)
def test_a_cost_curve_by_a_clock_that_is_wrong(passes: list[tuple[int, float]], plain: float) -> None:
    curve = CostCurve.measured({1: plain, 2: 0.0, 5: 1.0})
    for width, ms in passes:
        curve.observe(width, ms)
    for width in (1, 2, 3, 8, 33, 64):
        assert 0 < curve.ms(width) < math.inf


@given(NUMBERS)
def test_a_time_in_words(seconds: float) -> None:
    words = clock(seconds)
    assert is_fit(words)
    assert len(words) < 10


@given(some.lists(some.tuples(TIMES.filter(math.isfinite), some.integers(0, 10**12)), min_size=1))
def test_the_speed_of_a_download(seen: list[tuple[float, int]]) -> None:
    speed = Speed()
    for now, done in seen:
        speed.at(now, done)
        assert is_sound(speed.bytes_per_second)


@given(some.lists(steps(), max_size=20), TIMES)
def test_the_documents_of_an_answer(answer: list[Step], seconds: float) -> None:
    totals = Totals()
    written: list[bytes] = []
    stream: Any = SimpleNamespace(
        isatty=lambda: False, buffer=SimpleNamespace(write=written.append, flush=lambda: None), fileno=lambda: 1
    )
    out = Output("jsonl", stream)
    for step in answer:
        totals.add(step)
        out.step(step)
    settings = SimpleNamespace(draft=None, target=Path("model.gguf"))
    engine: Any = SimpleNamespace(
        settings=settings, prompt_tokens=0, reused_tokens=0, prompt_seconds=seconds, load_seconds=seconds, seed=1
    )
    Output("json", stream).end(lambda: answer_report(engine, totals, answer, Options()))
    for line in written[:-1]:
        read_json(line.decode())
    values = read_json(written[-1].decode())
    assert values["tokens_per_step"] is None or values["tokens_per_step"] >= 0


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every clock stands still."""
    for name in ("perf_counter", "monotonic"):
        monkeypatch.setattr(f"time.{name}", lambda: 1000.0)
    yield
    monkeypatch.undo()


@pytest.mark.parametrize(
    "options",
    [
        ("run", "--json", "--max-tokens", 20, "--drafter", "auto", "Hi"),
        ("run", "--jsonl", "--max-tokens", 20, "Hi"),
        ("run", "--json", "--max-tokens", 1, "--drafter", "none", "Hi"),
        ("bench", "--json", "--limit", 1, "--max-tokens", 4, "--arms", "plain,auto"),
        ("doctor", "--json"),
    ],
)
def test_commands_by_a_clock_that_stands_still(options: tuple[object, ...], tiny_llama: Path, still: None) -> None:
    command, *more = options
    outcome = call(command, "-m", tiny_llama, "--quiet", *more)
    assert (outcome.code, outcome.err) == (0, "")
    for text in outcome.out.splitlines() if "--jsonl" in more else [outcome.out]:
        assert read_json(text)


def is_something(divisor: ast.expr) -> bool:
    """Whether it cannot be 0: a number, a constant by its name, or a maximum of a number and something."""
    if isinstance(divisor, ast.Call) and isinstance(divisor.func, ast.Name) and divisor.func.id == "max":
        return isinstance(divisor.args[0], ast.Constant)
    return isinstance(divisor, ast.Constant) or (isinstance(divisor, ast.Name) and divisor.id.isupper())


def test_what_is_shown_is_divided_by_ratio_alone() -> None:
    package = ROOT / "localspec"
    found = []
    for path in (path for pattern in SHOWN for path in package.glob(pattern)):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and not is_something(node.right):
                words = ast.unparse(node)
                if "folder" not in words and "cache" not in words:
                    found.append(f"{path.relative_to(package)}:{node.lineno}: {words}")
    assert found == []


def test_a_model_of_no_parameters_is_no_model(tmp_path: Path) -> None:
    """Its draft model would be any number of times smaller."""
    own = tmp_path / "catalog.toml"
    own.write_text(CATALOG)
    with pytest.raises(UserError, match="parameters of the model mine is not a possible size"):
        load_catalog(own)
    own.write_text(CATALOG.replace("parameters = 0", "parameters = 7_000_000"))
    load_catalog(own)
