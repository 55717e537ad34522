"""Options, variables and config.toml on their way to the engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from command import call

QUESTION = "the cat sat on the mat and the cat sat"


@pytest.fixture
def config(own_folders: Path) -> Path:
    """config.toml; its folder is there, the file is not."""
    (own_folders / "config").mkdir()
    return own_folders / "config" / "config.toml"


def figures(*arguments: object) -> dict[str, Any]:
    return call(*arguments).document


def test_the_nearest_layer_wins(config, tiny_llama, monkeypatch):
    monkeypatch.setenv("LOCALSPEC_MODEL", str(tiny_llama))
    run = ("run", "--json", QUESTION)
    config.write_text("max_tokens = 3\nseed = 7\ntemp = 1.0\n")
    assert (figures(*run)["tokens"], figures(*run)["seed"]) == (3, 7)
    monkeypatch.setenv("LOCALSPEC_MAX_TOKENS", "4")
    assert (figures(*run)["tokens"], figures(*run)["seed"]) == (4, 7)
    assert figures("--max-tokens", 5, *run)["tokens"] == 5
    assert figures("--max-tokens", 5, *run, "--max-tokens", 6)["tokens"] == 6
    assert figures("--seed", 8, *run, "--max-tokens", 6)["seed"] == 8


def test_options_may_stand_before_the_command_or_behind_it(tiny_llama):
    options = ("-m", tiny_llama, "--temp", 0, "--max-tokens", 12)
    before = figures(*options, "run", "--json", QUESTION)
    behind = figures("run", "--json", QUESTION, *options)
    among = figures(*options[:2], "run", *options[2:], "--json", QUESTION)
    assert before["text"] == behind["text"] == among["text"]
    assert before["tokens"] == 12


def test_every_kind_of_setting_reaches_the_engine_from_the_file(config, tiny_llama, tiny_draft):
    config.write_text(
        f"model = '{tiny_llama}'\ndraft = '{tiny_draft}'\ndrafter = 'draft'\ndraft_max = 2\nctx = 256\n"
        "verification = 'rejection'\ntemp = 0.9\nseed = 3\nsystem = 'Be kind.'\nmax_tokens = 30\n"
    )
    values = figures("run", "--json", QUESTION)
    assert (values["model"], values["draft"]) == (tiny_llama.stem, tiny_draft.stem)
    assert (values["verification"], values["seed"], values["tokens"]) == ("rejection", 3, 30)
    assert values["prompt_tokens"] == len(f"#system\nBe kind.#\n#user\n{QUESTION}#\n#assistant\n")
    assert 0 < values["drafted"] <= 2 * values["steps"]
    too_long = call("run", "x" * 300)
    assert "the context holds 256" in too_long.sentence


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("temp", "1.7"),
        ("top_k", "2"),
        ("top_p", "0.2"),
        ("min_p", "0.9"),
        ("repeat_penalty", "3"),
        ("frequency_penalty", "2"),
        ("presence_penalty", "2"),
    ],
)
def test_every_sampling_setting_changes_the_answer_in_the_same_way_from_everywhere(
    setting, value, config, tiny_llama, monkeypatch
):
    run = ("run", "-m", tiny_llama, "--json", "--seed", 2, "--max-tokens", 60, QUESTION)
    usual = figures(*run)["text"]
    given = figures(*run, f"--{setting.replace('_', '-')}", value)["text"]
    assert given != usual
    config.write_text(f"{setting} = {value}\n")
    assert figures(*run)["text"] == given
    config.unlink()
    monkeypatch.setenv(f"LOCALSPEC_{setting.upper()}", value)
    assert figures(*run)["text"] == given


def test_none_takes_a_configured_draft_model_away(config, tiny_llama, tiny_draft):
    config.write_text(f"draft = '{tiny_draft}'\n")
    run = ("run", "-m", tiny_llama, "--json", "--max-tokens", 3, QUESTION)
    assert figures(*run)["draft"] == tiny_draft.stem
    assert figures(*run, "-d", "none")["draft"] is None


def test_a_model_is_found_by_its_name(own_folders, tiny_llama):
    folder = own_folders / "data" / "models"
    folder.mkdir(parents=True)
    (folder / "Little-Llama.gguf").write_bytes(tiny_llama.read_bytes())
    for name in (("-m", "little-llama"), ("-m", "little"), ()):
        assert figures("run", *name, "--json", "--max-tokens", 3, QUESTION)["model"] == "Little-Llama"
    unknown = call("run", "-m", "litle-lama", QUESTION)
    assert "No model called litle-lama is installed" in unknown.sentence
    assert "the nearest: Little-Llama" in unknown.sentence


@pytest.mark.parametrize(
    "options", [("--kv-type", "q8_0"), ("--threads", 2), ("--gpu-layers", 3), ("--gpu-layers", "all")]
)
def test_what_changes_only_the_machine_is_taken(options, tiny_llama):
    assert figures("run", "-m", tiny_llama, "--json", "--max-tokens", 5, *options, QUESTION)["tokens"] == 5
