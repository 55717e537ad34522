"""`localspec rewrite` where something is wrong: one sentence that says what to do, before a model is loaded in vain."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from command import call

NOTHING = "no-such-model.gguf"
"""Loading it would fail, and be told."""


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("a")
    Path("b.txt").write_text("b")
    Path("blank.txt").write_text(" \n")
    Path("picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00")
    Path("folder").mkdir()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("a.txt",), 'What is to be done is missing; say it with -i "Fix the spelling.", or use --preset.'),
        (("a.txt", "-i", " "), "The instruction is empty; say what is to be done"),
        (("-i", "x", "a.txt", "b.txt"), "Several files need a place each; give --in-place, --diff or --json"),
        (("-i", "x", "a.txt", "-o", "c", "--diff"), "The result goes to one place; choose one of"),
        (("-i", "x", "a.txt", "--in-place", "--diff"), "The result goes to one place; choose one of"),
        (("-i", "x", "a.txt", "--backup"), "Only what is replaced needs a copy; give --backup together with"),
        (("-i", "x", "--in-place"), "What is piped in has no place; name a file"),
        (("-i", "x", "-", "--in-place"), "What is piped in has no place; name a file"),
        (("-i", "x", "a.txt", "-", "--diff"), "Stdin is rewritten alone; leave out - or the files."),
        (("--preset", "boss", "a.txt"), "There is no preset 'boss'; there are fix-grammar, shorten"),
        (("--preset", "fix-gramar", "a.txt"), "There is no preset 'fix-gramar'; perhaps fix-grammar is meant."),
        (("--preset", "translate", "a.txt"), "The preset translate needs more; write translate:LANG"),
        (("--preset", "shorten:much", "a.txt"), "The preset shorten takes nothing behind a colon; leave out :much."),
        (("-i", "x", "a.txt", "--temp", "hot"), "--temp hot is not a number"),
        (("-i", "x", "a.txt", "--wings"), "There is no option --wings"),
    ],
)
def test_what_cannot_be_meant_is_wrong_usage(options, sentence):
    """With the exit code of its kind."""
    outcome = call("rewrite", "-m", NOTHING, *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.sentence.startswith(sentence)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("c.txt",), "There is no file c.txt; check the path."),
        (("a.txt", "c.txt", "--in-place"), "There is no file c.txt; check the path."),
        (("folder",), "folder is a folder; give the files in it."),
        (("picture.png",), "picture.png is not a text file; give one with the text alone."),
        (("blank.txt",), "blank.txt is empty; there is nothing to rewrite."),
        ((), "The text on stdin is empty; there is nothing to rewrite."),
        (("a.txt", "-o", "folder"), "folder is a folder; give the name of a file."),
        (("a.txt", "-o", "no/out"), "There is no folder"),
        (("a.txt", "-o", os.devnull), f"{os.devnull} is not a file; give another name."),
    ],
)
def test_what_cannot_work_is_said_before_a_model_is_loaded(options, sentence):
    """And nothing has been touched."""
    before = sorted(Path().iterdir())
    outcome = call("rewrite", "-m", NOTHING, "-i", "x", *options)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.sentence.startswith(sentence)
    assert sorted(Path().iterdir()) == before


def test_the_model_is_looked_for_when_all_else_is_well():
    """So that the tests above mean something."""
    outcome = call("rewrite", "-m", NOTHING, "-i", "x", "a.txt")
    assert outcome.code == 1
    assert NOTHING in outcome.sentence


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ("rewrite = 3", "[rewrite] in config.toml holds presets only"),
        ("[rewrite]\nspeed = 3", "[rewrite] in config.toml holds presets only"),
        ("[rewrite]\npresets = 3", "rewrite.presets in config.toml is no table"),
        ("[rewrite.presets]\nboss = 3", "The preset boss in config.toml is no instruction"),
        ('[rewrite.presets]\n"" = "x"', "The preset '' in config.toml has no name"),
    ],
)
def test_presets_that_are_none_are_told(config, sentence, own_folders):
    """A slip in config.toml is easy to find."""
    (own_folders / "config").mkdir(parents=True)
    (own_folders / "config" / "config.toml").write_text(config)
    outcome = call("rewrite", "-m", NOTHING, "--preset", "shorten", "a.txt")
    assert outcome.code in (1, 2)
    assert outcome.sentence.startswith(sentence)


def test_a_context_too_short_for_parts_is_told(tiny_llama):
    """With what helps."""
    outcome = call("rewrite", "-m", tiny_llama, "--ctx", 256, "--drafter", "none", "-i", "x", "a.txt")
    assert outcome.code == 1
    assert "too short to rewrite anything in; choose a larger --ctx." in outcome.sentence
