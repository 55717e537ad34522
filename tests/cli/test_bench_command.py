"""`localspec bench` as a person uses it: its three forms, its options, what it refuses, and Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from command import PATIENCE, Outcome, call, execute, read_json
from documented import undefined
from localspec.engine.stop import Stop

INTERRUPTED = 130
LINES = [
    {"question_id": 1, "category": "letters", "turns": ["the cat sat on the mat and the cat sat on the", "never"]},
    {"question_id": 2, "category": "sums", "turns": ["1 and 1 is 2, 1 and 2 is 3, 1 and 3 is"], "reference": ["4"]},
    {"question_id": 3, "category": "letters", "turns": ["Dear Sir or Madam, dear Sir or"]},
]


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    """Lines as in Spec-Bench."""
    file = tmp_path / "question.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in LINES))
    return file


@pytest.fixture
def compare(tiny_llama: Path, tiny_draft: Path, prompts: Path) -> Callable[..., Outcome]:
    """Calls the command with a pair, the prompts and short answers."""

    def called(*options: object) -> Outcome:
        return call("bench", "-m", tiny_llama, "-d", tiny_draft, "--prompts", prompts, "--max-tokens", 12, *options)

    return called


def test_the_document(compare: Callable[..., Outcome]) -> None:
    """Nothing but JSON on stdout, nothing on stderr, and all that was asked for in it."""
    values = compare("--arms", "auto,draft:3,lookup:n3k10,first", "--repeat", 2, "--json").document
    arms = ["plain", "auto", "draft:3", "lookup:n3k10", "first"]
    assert (values["arms"], values["repeat"], values["max_tokens"]) == (arms, 2, 12)
    assert (values["temp"], values["seed"], values["verification"]) == (0.0, 0, "match")
    assert (values["model"], values["draft"], values["threads"]) == ("llama", "draft", 1)
    assert {category: list(figures) for category, figures in values["categories"].items()} == {
        "letters": arms, "sums": arms,
    }  # fmt: skip
    assert values["categories"]["letters"]["plain"]["tokens"] == 2 * 2 * 12
    assert values["overall"]["plain"]["speedup"] == {"median": 1.0, "p10": 1.0, "p90": 1.0}
    assert values["overall"]["draft:3"]["drafted"] > 0
    assert [entry["id"] for entry in values["prompts"]] == ["1", "2", "3"] * 2
    assert values["complete"] is True
    # Measured for this comparison: several widths, and the draft model.
    assert len(values["cost_curve"]) > 3
    assert values["draft_ms"] > 0
    assert undefined(values, "`localspec bench`", *arms, "letters", "sums") == set()
    assert all(entry["ms"] > 0 for entry in values["cost_curve"])


def test_the_arms_by_default_are_those_that_the_models_allow(
    compare: Callable[..., Outcome], tiny_llama: Path, prompts: Path
) -> None:
    """With a draft model and without one."""
    with_draft = compare("--json", "--simulate", "cuda").document
    assert with_draft["arms"] == ["plain", "auto", "draft:3", "lookup", "lookup:n3k10"]
    for none in ([], ["-d", "none"]):
        without = call("bench", "-m", tiny_llama, "--prompts", prompts, *none, "--max-tokens", 4, "--json").document
        assert (without["arms"], without["draft"]) == (["plain", "auto", "lookup", "lookup:n3k10"], None)


def test_our_own_prompts_are_the_default(tiny_llama: Path) -> None:
    """All their categories, the first of each."""
    outcome = call(
        "bench", "-m", tiny_llama, "--ctx", 8192, "--arms", "plain", "--limit", 1, "--max-tokens", 2,
        "--json", "--simulate", "cpu",
    )  # fmt: skip
    assert [entry["id"] for entry in outcome.document["prompts"]] == [
        f"{category}-1" for category in ("chat", "code", "summarization", "document_qa", "rewriting", "code_editing")
    ]


def test_the_limit_is_for_each_category(compare: Callable[..., Outcome]) -> None:
    """In the order of the file."""
    values = compare("--limit", 1, "--arms", "plain", "--json", "--simulate", "cpu").document
    assert [entry["id"] for entry in values["prompts"]] == ["1", "2"]


@pytest.mark.parametrize("sampling", [(), ("--temp", 0.8), ("--temp", 0.8, "--seed", 3)])
def test_a_simulation_gives_the_same_bytes_every_time(
    sampling: tuple[object, ...], prompts: Path, tiny_llama, tiny_draft
) -> None:
    """In processes of their own, at any temperature."""
    options = ("bench", "-m", tiny_llama, "-d", tiny_draft, "--prompts", prompts, "--max-tokens", 12, "--json")
    first, second = (execute(*options, *sampling, "--simulate", "mlx", LOCALSPEC_THREADS="1") for _ in range(2))
    assert first == second
    values = first.document
    assert values["simulated"]["profile"] == "mlx"
    assert values["overall"]["plain"]["ms_per_token"] == 1.0
    # Without a seed drafts are judged as they would be without one.
    expected = "rejection" if len(sampling) == 2 else "match"
    assert (values["verification"], values["seed"]) == (expected, 3 if len(sampling) == 4 else 0)


def test_the_table_for_a_terminal(compare: Callable[..., Outcome]) -> None:
    """Every category, every arm, no line too long."""
    outcome = compare("--arms", "plain,auto,suffix")
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert "letters, 2 answers an arm" in lines
    for arm in ("plain", "auto", "suffix"):
        # In each of the two categories, in the means, and among the times outside the models' passes.
        assert sum(line.startswith(f"  {arm} ") for line in lines) == 4


def test_markdown(compare: Callable[..., Outcome]) -> None:
    """One table."""
    outcome = compare("--arms", "plain,auto", "--markdown")
    assert (outcome.code, outcome.err) == (0, "")
    rows = [line for line in outcome.out.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + 2 * 2 + 2
    assert {row.count("|") for row in rows} == {8}


def test_prompts_that_do_not_fit_are_left_out_and_named(compare: Callable[..., Outcome], prompts: Path) -> None:
    """And where none fits there is nothing to compare."""
    long = {"question_id": "long", "category": "long", "turns": ["x" * 600]}
    prompts.write_text(prompts.read_text() + json.dumps(long))
    values = compare("--ctx", 512, "--arms", "plain", "--json", "--simulate", "cpu").document
    assert (values["skipped"], values["complete"]) == (["long"], True)
    assert "long" not in values["categories"]
    prompts.write_text(json.dumps(long))
    outcome = compare("--ctx", 512, "--arms", "plain")
    assert outcome.code == 1
    assert outcome.sentence == (
        "No prompt fits into a context of 512 tokens with an answer of 12; choose a larger --ctx or a smaller --max-tokens."
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--arms", "nonsense"), "There is no arm nonsense; the arms are plain, auto,"),
        (("--arms", "draft:3", "-d", "none"), "The arm draft:3 needs a draft model; name one with --draft"),
        (("--arms", "draft:40"), "give a number from 1 to 32"),
        (("--repeat", 0), "give a whole number from 1 on"),
        (("--limit", -1), "give a whole number from 1 on"),
        (("--simulate", "vax"), "'cuda', 'mlx', 'cpu', 'metal'"),
        (("--json", "--markdown"), "choose one of --json and --markdown"),
        (("--drafter", "lookup"), "leave out --drafter"),
        (("--temp", "hot"), "--temp hot is not a number"),
    ],
)
def test_wrong_usage_is_said_before_anything_is_loaded(
    compare: Callable[..., Outcome], options: tuple[object, ...], words: str
) -> None:
    """One sentence, exit code 2."""
    outcome = compare(*options)
    assert (outcome.code, outcome.out) == (2, "")
    assert words in outcome.sentence


def test_a_file_that_is_missing_or_no_prompts(compare: Callable[..., Outcome], prompts: Path) -> None:
    """One sentence, exit code 1."""
    prompts.write_text('{"question_id": 1}\n')
    outcome = compare()
    assert (outcome.code, outcome.out) == (1, "")
    assert f"{prompts}, line 1" in outcome.sentence
    prompts.unlink()
    assert "cannot be read" in compare().sentence


def test_control_c_keeps_what_there_is(compare: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole rounds of all arms, in a document that says so."""
    noticed = threading.Event()
    ask = Stop.ask

    def note(stop: Stop) -> None:
        ask(stop)
        noticed.set()

    def show(_progress: object, shown: str) -> None:
        # Three prompts and two arms: the fourth answer is the second one of the second prompt.
        if shown.startswith("3 of 6 answers") and not noticed.is_set():
            os.kill(os.getpid(), signal.SIGINT)
            assert noticed.wait(PATIENCE)

    monkeypatch.setattr(Stop, "ask", note)
    monkeypatch.setattr("localspec.console.Progress.show", show)
    outcome = compare("--arms", "plain,lookup", "--json")
    assert (outcome.code, outcome.err) == (INTERRUPTED, "")
    values = read_json(outcome.out)
    assert values["complete"] is False
    assert [entry["id"] for entry in values["prompts"]] == ["1"]
    assert list(values["categories"]) == ["letters"]


def test_the_help_fits_a_terminal() -> None:
    """And its options stand under headings."""
    outcome = call("bench", "-h")
    assert (outcome.code, outcome.err) == (0, "")
    assert max(map(len, outcome.out.splitlines())) <= 80
    for option in (
        "--prompts FILE",
        "--arms LIST",
        "--repeat N",
        "--limit N",
        "--simulate PROFILE",
        "--edits",
        "--half HALF",
        "--json",
        "--markdown",
    ):
        assert f"  {option}" in outcome.out
