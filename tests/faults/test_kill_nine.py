"""SIGKILL at any moment: the chats open again, no message is lost or there twice; of what was not sent, a second is lost."""

from __future__ import annotations

import contextlib
import json
import os
import random
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import killed_session
import pytest
from terminals import Terminal

from command import PATIENCE, command, surroundings
from localspec.chat.store import STORE_FILE, Store
from localspec.settings import find_folders
from localspec.tui.unsent import Unsent

Scale = Callable[[int, int], int]


@dataclass
class Truth:
    """What a person has seen happen."""

    messages: dict[str, str] = field(default_factory=dict)
    """The text of each by its tag."""
    gone: set[str] = field(default_factory=set)
    draft: str = ""
    under_way: dict[str, Any] = field(default_factory=dict)
    """What had begun and was not done."""
    hits: Counter[str] = field(default_factory=Counter)
    """How many kills came in the middle of what."""

    def note(self, line: dict[str, Any]) -> None:
        if "took" in line:
            assert line["took"] in self.drafts()
            self.draft = line["took"]
        elif "begun" in line:
            self.under_way = line
        elif line["tag"]:
            self._done(line["tag"], line["text"])
            self.under_way = {}

    def _done(self, tag: str, text: str) -> None:
        if tag == "draft":
            self.draft = text
        elif text:
            self.messages[tag] = text
            self.gone.discard(tag)
        else:
            self.messages.pop(tag, None)
            self.gone.add(tag)

    def drafts(self) -> tuple[str, ...]:
        """What may stand in the prompt."""
        return (self.draft, self.under_way["text"]) if self.under_way.get("tag") == "draft" else (self.draft,)

    def check(self, folder: Path) -> None:
        """Everything that was done is there once, and what was under way is as it was before or after."""
        with Store(folder / STORE_FILE) as store:
            found = [entry.text for info in store.chats() for entry in store.load(info.id).thread.entries.values()]
        by_tag = {text.split()[0]: text for text in found}
        assert len(by_tag) == len(found), "a message is there twice"
        tag, text = self.under_way.get("tag", ""), self.under_way.get("text", "")
        lost = [each for each in self.messages if each not in by_tag and not (each == tag and not text)]
        assert not lost, f"{len(lost)} messages are lost: {lost}"
        for each, kept in by_tag.items():
            assert kept == self.messages.get(each) or (each == tag and kept in (text, self.messages.get(each)))
        if tag and tag != "draft":
            # The next process goes on from what is there.
            self._done(tag, by_tag.get(tag, ""))
        unsent = Unsent(folder)
        self.draft = self._known_draft(unsent.take().text)
        unsent.close()
        self.under_way = {}

    def _known_draft(self, text: str) -> str:
        assert text in self.drafts()
        return text


def live_until_killed(folder: Path, run: int, dice: random.Random, truth: Truth) -> None:
    """One process; two of three are killed from outside, the others in the middle of a statement of the database."""
    inside = dice.randint(1, 40_000) if dice.random() < 1 / 3 else 0
    lines = dice.randint(1, 120)
    arguments = [sys.executable, killed_session.__file__, str(folder), str(run), str(inside)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=surroundings()) as process:
        assert process.stdout
        assert process.stderr
        try:
            for number, line in enumerate(iter(process.stdout.readline, b"")):
                truth.note(json.loads(line))
                if not inside and number == lines:
                    # It works on for as long as this takes.
                    for _ in range(dice.randint(0, 20_000)):
                        pass
                    process.kill()
        finally:
            process.kill()
        errors = process.stderr.read().decode()
        assert process.wait(PATIENCE) == -9, errors
        assert errors == ""
    truth.hits[truth.under_way.get("begun", "between two")] += 1


def test_no_kill_costs_a_message(tmp_path: Path, scale: Scale) -> None:
    """One folder, killed again and again; each process goes on where the one before was killed."""
    dice, truth = random.Random(9), Truth()
    kills = scale(15, 200)
    for run in range(kills):
        live_until_killed(tmp_path, run, dice, truth)
        truth.check(tmp_path)
    with contextlib.closing(sqlite3.connect(tmp_path / STORE_FILE)) as raw:
        assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    print(f"{kills} kills in {dict(truth.hits)}; {len(truth.messages)} messages, none lost, none twice")
    assert len(truth.messages) > kills
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("lost", ["message", "word", "draft"])
def test_the_judge_sees_what_is_lost(tmp_path: Path, lost: str) -> None:
    """A message taken out of the file, one cut short, one doubled: each is found."""
    truth = Truth()
    live_until_killed(tmp_path, 1, random.Random(5), truth)
    truth.check(tmp_path)
    with contextlib.closing(sqlite3.connect(tmp_path / STORE_FILE)) as raw, raw:
        if lost == "message":
            raw.execute("DELETE FROM entries WHERE key = (SELECT max(key) FROM entries)")
        elif lost == "word":
            raw.execute("UPDATE entries SET text = substr(text, 1, length(text) - 2)")
        else:
            truth.draft = "something else"
    with pytest.raises(AssertionError):
        truth.check(tmp_path)


STATES = """
import os, sys
from pathlib import Path
from localspec.chat.kept_states import KeptStates
from localspec.engine.engine import Engine, EngineSettings, Options
from localspec.engine.sampling import Sampling

states, number = KeptStates(Path(sys.argv[2])), 0
with Engine(EngineSettings(Path(sys.argv[1]), context_length=2048, threads=1)) as engine:
    while True:
        number += 1
        prompt = [1 + number % 7, *(bytes(range(32, 120)) * 10)[: 600 + number]]
        for step in engine.generate(prompt, Options(Sampling(temperature=0.0), "none", max_tokens=4)):
            pass
        os.write(1, b"saving\\n")
        assert states.save(number % 3, engine)
        os.write(1, b"saved\\n")
"""
"""Keeps the states of three chats, one after the other."""


def test_a_kill_while_a_state_is_written_leaves_a_whole_one_or_none(
    tiny_llama: Path, tmp_path: Path, scale: Scale
) -> None:
    """Whatever is there is put back whole; half a file has another name, and does not stay for ever."""
    from localspec.chat.kept_states import KeptStates
    from localspec.engine.engine import Engine, EngineSettings

    dice, usable = random.Random(3), 0
    folder = tmp_path / "states"
    with Engine(EngineSettings(tiny_llama, context_length=2048, threads=1)) as engine:
        for _ in range(scale(3, 30)):
            arguments = [sys.executable, "-c", STATES, str(tiny_llama), str(folder)]
            with subprocess.Popen(arguments, stdout=subprocess.PIPE, env=surroundings()) as process:
                assert process.stdout
                for _ in range(2 * dice.randint(2, 8) + dice.randint(0, 1)):
                    assert process.stdout.readline()
                for _ in range(dice.randint(0, 100_000)):
                    pass
                process.kill()
            states = KeptStates(folder)
            for chat in range(3):
                if states.path(chat).exists():
                    assert states.load(chat, engine) == len(engine.target_context.tokens) > 600
                    usable += 1
    assert usable
    halves = [path for path in folder.iterdir() if path.suffix == ".part"]
    for path in halves:
        os.utime(path, (0, 0))
    states._make_room(states.path(0))
    assert not [path for path in halves if path.exists()]


def in_chats(data: Path) -> list[str]:
    """The person's messages in all chats."""
    with Store(data / STORE_FILE) as store:
        chats = [store.load(info.id).thread.entries.values() for info in store.chats()]
    return [entry.text for entries in chats for entry in entries if entry.role == "user"]


def in_the_prompt(data: Path) -> str:
    """What was not sent."""
    unsent = Unsent(data)
    text = unsent.take().text
    unsent.close()
    return text


def is_written_down(words: str, data: Path) -> bool:
    """Whether the app has kept what stands in its prompt."""
    for file in data.glob("unsent.json*"):
        # It is replaced while it is looked at.
        with contextlib.suppress(FileNotFoundError):
            if words in file.read_text():
                return True
    return False


@pytest.mark.terminal
def test_the_app_itself_is_killed(tiny_llama: Path, tmp_path: Path, scale: Scale) -> None:
    """In a terminal, with a real engine. What has stood in the prompt for a second is there at the next start, in the prompt
    or in the chat, and never twice in the chat."""
    data, dice = find_folders().data, random.Random(2)
    written: list[str] = []
    for run in range(scale(2, 20)):
        app = Terminal(command("-m", tiny_llama, "--temp", "0", "--max-tokens", "60", "-c"), surroundings())
        try:
            app.until(lambda app=app: "╰" in app.shown)  # type: ignore[misc]
            for part in range(dice.randint(1, 2)):
                words = f"say{run}x{part}"
                app.type(b" " + words.encode())
                app.until(lambda words=words: is_written_down(words, data))  # type: ignore[misc]
                written.append(words)
                if dice.random() < 0.8:
                    app.type(b"\r")
                    app.read(dice.random() / 2)
            app.read(dice.random() / 3)
            app.program.kill()
            assert app.program.wait(PATIENCE) == -9
        finally:
            app.close()
        sent, left = in_chats(data), in_the_prompt(data)
        counts = [sum(text.split().count(words) for text in sent) for words in written]
        assert max(counts) <= 1
        assert [words for words, count in zip(written, counts, strict=True) if not count and words not in left] == []
        # It is in one place or, for the moment between the two, in both.
        assert sum(words in left for words, count in zip(written, counts, strict=True) if count) <= 1
    print(f"{run + 1} kills of the app; {len(written)} messages, {sum(counts)} in the chat, the rest in the prompt")
