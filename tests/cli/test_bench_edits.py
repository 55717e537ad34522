"""`localspec bench --edits` as a person uses it: its three forms, what it refuses, and Ctrl-C."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from command import PATIENCE, Outcome, call, read_json
from localspec.engine.stop import Stop
from localspec.measure.edits import EditPair, Half

INTERRUPTED = 130
SENTENCE = "The cat sat on the mat, and the dog lay under the table until it was dark."
CHANGED = "The cat sat on the rug, and the dog lay under the table until it was late."


def few_pairs(half: Half) -> list[EditPair]:
    """Two classes in each half."""
    return [
        EditPair(f"{half}: words", half, "words", "Change two words.", SENTENCE, CHANGED),
        EditPair(f"{half}: verbatim", half, "verbatim", "Repeat this.", SENTENCE, SENTENCE),
        EditPair(f"{half} too: words", f"{half} too", "words", "Change them back.", CHANGED, SENTENCE),
    ]


@pytest.fixture
def compare(tiny_llama: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """Calls the command with a tiny model and few pairs."""
    monkeypatch.setattr("localspec.bench_edits.edit_pairs", few_pairs)

    def called(*options: object) -> Outcome:
        return call("bench", "--edits", "-m", tiny_llama, *options)

    return called


def test_every_arm_on_every_device_by_default(compare: Callable[..., Outcome]) -> None:
    """On the half that nobody has looked at, and with the verdict on each device."""
    values = compare("--json").document
    assert values["arms"] == [
        "plain", "lookup:n3k10", "longest5", "suffix", "votes", "myers", "levenshtein", "place",
    ]  # fmt: skip
    assert (values["half"], values["pairs"], values["complete"]) == ("held-out", 3, True)
    assert [device["profile"] for device in values["devices"]] == ["cuda", "mlx", "cpu", "metal"]
    for device in values["devices"]:
        assert list(device["classes"]) == ["words", "verbatim"]
        assert len(device["claims"]) == 3
        for pair in device["pairs"]:
            assert pair["arms"]["plain"]["steps"] == pair["tokens"] > 60
            assert pair["arms"]["place"]["steps"] < pair["tokens"]
        assert device["geometric_mean"]["plain"] == {"tokens_per_step": 1.0, "speed": 1.0}


def test_the_same_bytes_every_time(compare: Callable[..., Outcome]) -> None:
    """Nothing in it depends on the clock."""
    once, again = (compare("--simulate", "metal", "--json", "--half", "design") for _ in range(2))
    assert once.out == again.out
    assert read_json(once.out)["half"] == "design"


def test_the_other_forms(compare: Callable[..., Outcome]) -> None:
    """A table of the chosen arms on the chosen device, for a terminal and in Markdown."""
    options = ("--simulate", "cpu", "--arms", "suffix,votes")
    table, markdown = compare(*options), compare(*options, "--markdown")
    assert (table.code, table.err, markdown.code, markdown.err) == (0, "", 0, "")
    assert "cpu, speed over plain decoding" in table.out.splitlines()
    assert "### cpu" in markdown.out.splitlines()
    assert "| class | suffix | votes |" in markdown.out.splitlines()
    assert "cuda" not in table.out + markdown.out


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--edits", "--arms", "auto"], "There is no arm auto for edits; the arms are plain, "),
        (["--edits", "--limit", "2"], "The edits are our own and replayed once; leave out --prompts, --limit and "),
        (["--edits", "--json", "--markdown"], "A comparison has one form; choose one of --json and --markdown."),
        (["--half", "design"], "Only the edits have two halves; add --edits, or leave out --half."),
    ],
)
def test_wrong_usage_is_said_before_anything_is_loaded(options: list[str], sentence: str) -> None:
    """In one sentence."""
    outcome = call("bench", "-m", "there is no such model", *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.sentence.startswith(sentence)


def test_control_c_keeps_the_devices_that_are_done(
    compare: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device under way is left out, and the exit code says so."""
    noticed = threading.Event()
    ask = Stop.ask

    def note(stop: Stop) -> None:
        ask(stop)
        noticed.set()

    def show(_progress: object, shown: str) -> None:
        if shown == "mlx, suffix: 2 of 3 edits" and not noticed.is_set():
            os.kill(os.getpid(), signal.SIGINT)
            assert noticed.wait(PATIENCE)

    monkeypatch.setattr(Stop, "ask", note)
    monkeypatch.setattr("localspec.console.Progress.show", show)
    outcome = compare("--arms", "suffix", "--json")
    assert (outcome.code, outcome.err) == (INTERRUPTED, "")
    values = read_json(outcome.out)
    assert values["complete"] is False
    assert [device["profile"] for device in values["devices"]] == ["cuda"]
