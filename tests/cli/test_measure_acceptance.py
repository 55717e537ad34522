"""`localspec measure acceptance` as a person uses it: its forms, going on after Ctrl-C, and what it refuses."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from command import Outcome, call, read_json
from documented import undefined

INTERRUPTED = 130
LINES = [
    {"question_id": 1, "category": "letters", "turns": ["the cat sat on the mat and the cat sat on the", "never"]},
    {"question_id": 2, "category": "sums|\x1b[31m", "turns": ["1 and 1 is 2, 1 and 2 is 3, 1 and 3 is"]},
    {"question_id": 3, "category": "letters", "turns": ["Dear Sir or Madam, dear Sir or"]},
]
TASK = {
    "answers", "tokens", "greedy_acceptance", "sampled_acceptance", "lookup_acceptance", "sampled_text_acceptance",
    "acceptance_by_position", "tokens_per_step", "lookup", "auto", "modelled_speedup", "wall_clock",
}  # fmt: skip


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    """Lines as in Spec-Bench."""
    file = tmp_path / "question.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in LINES))
    return file


@pytest.fixture
def measure(tiny_llama: Path, tiny_draft: Path, prompts: Path) -> Callable[..., Outcome]:
    """Calls the command with a pair, the prompts and short answers."""

    def called(*options: object) -> Outcome:
        return call(
            "measure", "acceptance", "-m", tiny_llama, "-d", tiny_draft, "--prompts", prompts, "--max-tokens", 12,
            "--ctx", 512, *options,
        )  # fmt: skip

    return called


def test_the_document(measure: Callable[..., Outcome]) -> None:
    """Every task with every figure, and nothing else on stdout or stderr."""
    values = measure("--json").document
    assert (values["model"], values["draft"], values["max_tokens"], values["seed"]) == ("llama", "draft", 12, 0)
    assert (values["complete"], values["skipped"], values["threads"]) == (True, [], 1)
    assert values["draft_cost"] == pytest.approx(values["draft_ms"] / values["cost_curve"][0]["ms"], rel=1e-3)
    assert list(values["tasks"]) == ["letters", LINES[1]["category"]]
    for task in (*values["tasks"].values(), values["overall"]):
        assert set(task) == TASK
        for column in ("greedy_acceptance", "sampled_acceptance", "lookup_acceptance", "sampled_text_acceptance"):
            assert 0 <= task[column]["min"] <= task[column]["mean"] <= task[column]["max"] <= 1
        for length in ("4", "8"):
            assert 1 <= task["tokens_per_step"][length]["replayed"] <= int(length) + 1
            assert 1 <= task["tokens_per_step"][length]["formula"] <= int(length) + 1
        assert set(task["lookup"]) == {"tokens_per_step", "steps_with_proposal", "proposals_with_hit"}
        assert set(task["modelled_speedup"]) == {"draft:4", "draft:8", "lookup", "auto"}
        assert all(speedup > 0 for speedup in task["modelled_speedup"].values())
        assert len(task["acceptance_by_position"]) == 8
    assert values["tasks"]["letters"]["answers"] == 2
    assert values["overall"]["tokens"] == sum(task["tokens"] for task in values["tasks"].values())
    assert [prompt["id"] for prompt in values["prompts"]] == ["1", "2", "3"]
    assert set(values["prompts"][0]["steps"]) == {"draft:4", "draft:8", "lookup", "auto"}


def test_every_width_is_measured_that_is_not_called_estimated(measure: Callable[..., Outcome]) -> None:
    """A tiny model has time for all of them."""
    assert all(entry["measured"] for entry in measure("--json").document["cost_curve"])


def test_widths_without_time_are_called_estimated(
    measure: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is modelled from them is not passed off as measured."""
    monkeypatch.setattr("localspec.measure_acceptance.MOST_MEASURING", 0.0)
    values = measure("--json").document
    assert [entry["width"] for entry in values["cost_curve"] if entry["measured"]] == [1]
    said = " ".join(measure().out.split())
    assert "passes over 2, 3, 4, 5, 6, 8, 9, 12, 17, 33 tokens are not measured but estimated" in said


ARMS = ("plain", "draft:4", "draft:8", "lookup", "auto")


def test_timed_speedups_stand_beside_the_modelled_ones(measure: Callable[..., Outcome]) -> None:
    """Of the same prompts and the same ways of drafting, in all three forms."""
    values = measure("--wall-clock", "--json").document
    for prompt in values["prompts"]:
        timed = prompt["wall_clock"]["arms"]
        assert set(timed) == set(ARMS)
        assert timed["plain"]["steps"] == timed["plain"]["tokens"] == prompt["tokens"]
        for arm in ("draft:4", "draft:8", "lookup"):
            # What was replayed is what really happens.
            assert timed[arm]["same"]
            assert timed[arm]["steps"] == prompt["steps"][arm]
    for task in (*values["tasks"].values(), values["overall"]):
        found = task["wall_clock"]
        assert set(found) == set(ARMS)
        assert found["plain"]["speedup"] == 1.0
        for arm in ARMS[1:]:
            assert found[arm]["speedup"] == pytest.approx(
                found["plain"]["ms_per_token"] / found[arm]["ms_per_token"], rel=1e-3
            )
        assert found["plain"]["tokens"] == task["tokens"]
    both = values["tasks"]["letters"]["wall_clock"]["draft:4"]
    arms = [prompt["wall_clock"]["arms"]["draft:4"] for prompt in values["prompts"] if prompt["category"] == "letters"]
    assert both["ms_per_token"] == pytest.approx(
        sum(arm["ms"] for arm in arms) / sum(arm["tokens"] for arm in arms), 1e-3
    )

    said = measure("--wall-clock").out
    assert sum(line.endswith(" modelled    timed") for line in said.splitlines()) == 3
    assert max(map(len, said.splitlines())) <= 80
    rows = [line for line in measure("--wall-clock", "--markdown").out.splitlines() if line.startswith("|")]
    assert rows[0].endswith("| timed speedup, auto |")
    assert len({row.replace("\\|", "").count("|") for row in rows}) == 1
    assert read_json(measure("--json").out)["overall"]["wall_clock"] is None


def test_every_number_is_defined(measure: Callable[..., Outcome]) -> None:
    """In docs/measure.md."""
    values = measure("--wall-clock", "--json").document
    names = (*ARMS, "4", "8", *values["tasks"])
    assert undefined(values, "`localspec measure acceptance`", *names) == set()
    assert undefined({"made_up": 1.0}, "`localspec measure acceptance`") == {"made_up"}


def test_nothing_is_timed_without_a_draft_model_that_needs_one(measure: Callable[..., Outcome]) -> None:
    """Lookup and auto remain."""
    values = measure("-d", "none", "--wall-clock", "--json").document
    assert set(values["overall"]["wall_clock"]) == {"plain", "lookup", "auto"}


def test_what_is_timed_stays(measure: Callable[..., Outcome], own_folders: Path) -> None:
    """A second call says since when, and where it is kept; damaged times are taken again."""
    first = measure("--wall-clock", "--json").document
    again = measure("--wall-clock", "--json")
    assert "3 of 3 prompts were timed before, since 20" in again.err
    kept = sorted(own_folders.glob("cache/acceptance/*/*.json"))
    assert len(kept) == 3
    assert str(kept[0].parent) in again.err
    assert read_json(again.out)["overall"]["wall_clock"] == first["overall"]["wall_clock"]
    kept[0].write_text("{")
    kept[1].write_text(kept[1].read_text().replace('"lookup"', '"another"'))
    kept[2].write_text(kept[2].read_text().replace('"tokens": 12', '"tokens": 0'))
    assert "timed before" not in measure("--wall-clock", "--json").err


def test_control_c_keeps_what_was_timed(
    measure: Callable[..., Outcome], press: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task of which a prompt is missing has no timed speedup; the next call times the others."""

    def show(_progress: object, shown: str) -> None:
        if shown.startswith("7 of 15 timed answers"):
            press()

    with monkeypatch.context() as pressing:
        pressing.setattr("localspec.console.Progress.show", show)
        stopped = measure("--wall-clock", "--json")
    assert stopped.code == INTERRUPTED
    values = read_json(stopped.out)
    assert values["complete"] is False
    assert [bool(prompt["wall_clock"]) for prompt in values["prompts"]] == [True, False, False]
    assert (values["tasks"]["letters"]["wall_clock"], values["overall"]["wall_clock"]) == (None, None)
    assert values["overall"]["greedy_acceptance"] is not None
    rest = measure("--wall-clock", "--json")
    assert "1 of 3 prompts were timed before" in rest.err
    assert read_json(rest.out)["complete"] is True


def test_without_a_draft_model(measure: Callable[..., Outcome]) -> None:
    """What needs one is null, and the picture of it is refused."""
    values = measure("-d", "none", "--json").document
    assert (values["draft"], values["draft_ms"], values["draft_cost"]) == (None, None, None)
    task = values["overall"]
    assert task["greedy_acceptance"] is task["sampled_acceptance"] is task["sampled_text_acceptance"] is None
    assert task["acceptance_by_position"] == []
    assert task["tokens_per_step"]["4"] == {"replayed": None, "formula": None}
    assert task["lookup_acceptance"]["mean"] >= 0
    assert task["auto"]["tokens_per_step"] >= 1
    assert task["modelled_speedup"]["draft:4"] is None
    assert "first choice" not in measure("-d", "none").out


def test_the_table_for_a_terminal(measure: Callable[..., Outcome]) -> None:
    """A block for each task and one for all, no line too long, nothing that commands the terminal."""
    outcome = measure()
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in outcome.out
    assert any(re.fullmatch(r"letters, 2 answers, \d+ tokens", line) for line in lines)
    assert any(line.startswith("all tasks, 3 answers, ") for line in lines)
    for label in ("draft's first choice is the target's", "2-gram lookup", "draft model, 4 tokens", "localspec (auto)"):
        assert sum(line.startswith(f"  {label} ") for line in lines) == 3
    assert "Acceptance by position in the draft" in lines
    assert "Modelled speedups come from what passes cost above; --wall-clock times real" in outcome.out
    assert " timed" not in outcome.out


def test_markdown(measure: Callable[..., Outcome]) -> None:
    """One table, which names out of a file do not break."""
    outcome = measure("--markdown")
    rows = [line for line in outcome.out.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + 2 + 1
    assert len({row.replace("\\|", "").count("|") for row in rows}) == 1


def test_what_is_measured_stays(measure: Callable[..., Outcome], prompts: Path) -> None:
    """A second call takes it from the cache and says so; a prompt or a setting that is new is measured."""
    first = measure("--json").document
    again = measure("--json")
    assert again.sentence == "3 of 3 prompts were measured before and are not measured again."
    assert _lasting(read_json(again.out)) == _lasting(first)
    assert measure("--json", "--quiet").err == ""
    assert measure("--json", "--seed", 5).err == ""
    assert measure("--json", "-d", "none").err == ""
    prompts.write_text(prompts.read_text() + json.dumps({"question_id": 4, "category": "new", "turns": ["one"]}))
    more = measure("--json")
    assert "3 of 4 prompts" in more.sentence
    assert [prompt["id"] for prompt in read_json(more.out)["prompts"]] == ["1", "2", "3", "4"]


def test_control_c_keeps_what_there_is(
    measure: Callable[..., Outcome], press: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table of the prompts that are finished, and the next call goes on with the others."""
    whole = measure("--seed", 7, "--json").document

    def show(_progress: object, shown: str) -> None:
        if shown.startswith("1 of 3 prompts"):
            press()

    monkeypatch.setattr("localspec.console.Progress.show", show)
    stopped = measure("--json")
    assert (stopped.code, stopped.err) == (INTERRUPTED, "")
    values = read_json(stopped.out)
    assert (values["complete"], [prompt["id"] for prompt in values["prompts"]]) == (False, ["1"])
    rest = measure("--json")
    assert rest.sentence == "1 of 3 prompts were measured before and are not measured again."
    # Greedy figures do not depend on the seed.
    for one, other in zip(read_json(rest.out)["prompts"], whole["prompts"], strict=True):
        assert one["greedy_acceptance"] == other["greedy_acceptance"]
        assert one["lookup_acceptance"] == other["lookup_acceptance"]


def test_a_damaged_cache_is_measured_again(measure: Callable[..., Outcome], own_folders: Path) -> None:
    """Without a word: it is only a cache."""
    first = measure("--json").document
    kept = sorted(own_folders.glob("cache/acceptance/*/*.npz"))
    assert len(kept) == 3
    kept[0].write_bytes(kept[0].read_bytes()[:100])
    kept[1].write_bytes(b"")
    again = measure("--json")
    assert "1 of 3 prompts" in again.sentence
    assert _lasting(read_json(again.out)) == _lasting(first)


def test_prompts_that_do_not_fit_are_left_out_and_named(measure: Callable[..., Outcome], prompts: Path) -> None:
    """And where none fits there is nothing to measure."""
    long = {"question_id": "long", "category": "long", "turns": ["x" * 600]}
    prompts.write_text(prompts.read_text() + json.dumps(long))
    values = measure("--json").document
    assert (values["skipped"], values["complete"]) == (["long"], True)
    prompts.write_text(json.dumps(long))
    outcome = measure()
    assert outcome.code == 1
    assert "No prompt fits into a context of 512 tokens with an answer of 12" in outcome.sentence


@pytest.mark.parametrize("name", ["it.svg", "it.png"])
def test_a_picture(measure: Callable[..., Outcome], tmp_path: Path, name: str) -> None:
    """Of acceptance by position."""
    pytest.importorskip("matplotlib")
    outcome = measure("--plot", tmp_path / name)
    assert (outcome.code, outcome.err) == (0, "")
    assert (tmp_path / name).read_bytes()[:5] in (b"<?xml", b"\x89PNG\r")


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--limit", 0), 2, "give a number from 1"),
        (("--json", "--markdown"), 2, "choose one of --json and --markdown"),
        (("--temp", 0.8), 2, "leave out --temp"),
        (("--drafter", "lookup"), 2, "leave out --drafter"),
        (("--prompts", "nowhere.jsonl"), 1, "nowhere.jsonl cannot be read"),
        (("--plot", "it.gif"), 2, "has to end in .svg or .png"),
    ],
)
def test_what_makes_no_sense_is_said_before_anything_is_loaded(
    measure: Callable[..., Outcome], options: tuple[object, ...], code: int, words: str
) -> None:
    """In one sentence."""
    outcome = measure(*options)
    assert (outcome.code, outcome.out) == (code, "")
    assert words in outcome.err
    assert outcome.err.count("\n") == 1


def test_the_help_fits_a_terminal() -> None:
    """And says what is modelled."""
    outcome = call("measure", "acceptance", "-h")
    assert (outcome.code, outcome.err) == (0, "")
    assert max(map(len, outcome.out.splitlines())) <= 80
    assert "modelled" in outcome.out
    for option in ("--prompts FILE", "--limit N", "--wall-clock", "--plot FILE", "--json", "--markdown", "--quiet"):
        assert f"  {option}" in outcome.out


def _lasting(values: dict[str, Any]) -> list[dict[str, Any]]:
    """What does not depend on how long passes took this time."""
    return [
        {name: value for name, value in prompt.items() if name != "steps"}
        | {"steps": {arm: steps for arm, steps in prompt["steps"].items() if arm != "auto"}}
        for prompt in values["prompts"]
    ]
