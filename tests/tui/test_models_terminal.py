"""Choosing models in a pseudo-terminal, with real engines in processes of their own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_terminal import Terminal

import tiny
from localspec.chat.messages import Message
from localspec.chat.service import Answerer
from localspec.chat.store import STORE_FILE, Store
from localspec.engine.engine import Engine, EngineSettings, Options
from localspec.engine.sampling import Sampling
from localspec.settings import find_folders
from localspec.tui.literal import literal

pytestmark = pytest.mark.terminal

OPTIONS = ("--temp", "0", "--drafter", "none", "--max-tokens", "20")


@pytest.fixture
def folder() -> Path:
    """Two models that answer differently, and one that is none."""
    models = find_folders().models
    models.mkdir(parents=True)
    tiny.llama(models / "one.gguf", chat_template=tiny.CHAT_TEMPLATE)
    tiny.llama(models / "two.gguf", seed=5, chat_template=tiny.CHAT_TEMPLATE)
    (models / "broken.gguf").write_bytes(b"no model")
    return models


@pytest.fixture
def terminal(folder: Path) -> Iterator[Terminal]:
    """The program as it is started."""
    opened = Terminal([sys.executable, "-m", "localspec", "-m", "one", *OPTIONS])
    yield opened
    opened.close()


def answers(number: int) -> list[str]:
    """What is saved of a chat."""
    with Store(find_folders().data / STORE_FILE) as store:
        return [entry.text for entry in store.load(number).thread.path() if entry.role == "assistant"]


def alone(model: Path, turns: list[str]) -> str:
    """What a model answers that has seen nothing else."""
    options = Options(sampling=Sampling(temperature=0.0), drafter="none", max_tokens=20)
    messages = [Message("assistant" if number % 2 else "user", turn) for number, turn in enumerate(turns)]
    with Engine(EngineSettings(model)) as engine:
        answerer = Answerer(engine, options, None)
        return literal("".join(step.text for step in answerer.answer(messages, lambda done, total: None)))


def test_a_chat_goes_from_one_model_to_another_and_back_from_a_broken_one(terminal: Terminal, folder: Path) -> None:
    """The second reads the chat anew and answers as it does alone; a file that is no model brings the one before back."""
    terminal.until(lambda: "one is ready." in terminal.shown)
    terminal.type(b"Hello\r")
    terminal.until(lambda: "cut off here" in terminal.shown)
    terminal.type(b"/model two\r")
    terminal.until(lambda: "two answers from now on." in terminal.shown)
    terminal.type(b"Hello again\r")
    terminal.until(lambda: terminal.shown.count("cut off here") == 2)
    terminal.type(b"/model broken\r")
    terminal.until(lambda: "two is loaded again" in " ".join(terminal.shown.split()))
    terminal.type(b"half a thought")
    terminal.until(lambda: "two is ready" in terminal.shown or "half a thought" in terminal.shown)
    terminal.type(b"\x11")
    terminal.until(lambda: terminal.program.poll() is not None)
    assert terminal.program.returncode == 0
    first, second = answers(1)
    with Store(find_folders().data / STORE_FILE) as store:
        chat = store.load(1)
        assert chat.settings == {"model": "two", "draft": "none"}
    assert literal(second) == alone(folder / "two.gguf", ["Hello", first, "Hello again"])
    assert literal(first) == alone(folder / "one.gguf", ["Hello"])


def test_without_a_model_the_program_asks_for_one(tmp_path: Path) -> None:
    """Nothing is downloaded before enter, and what is typed is there at the next start."""
    opened = Terminal([sys.executable, "-m", "localspec"])
    try:
        opened.until(lambda: "There is no model on this machine yet." in opened.shown)
        opened.type(b"my first words")
        opened.until(lambda: "my first words" in opened.shown)
        opened.until(lambda: "qwen2.5-1.5b" in opened.shown)
        opened.type(b"\x11")
        opened.until(lambda: opened.program.poll() is not None)
        assert opened.program.returncode == 0
    finally:
        opened.close()
    assert not find_folders().models.exists()
    again = Terminal([sys.executable, "-m", "localspec"])
    try:
        again.until(lambda: "my first words" in again.shown)
    finally:
        again.close()
