"""How the screens look. Nothing on them comes from the clock or the machine."""

from __future__ import annotations

import itertools
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.widgets import Label

from localspec.chat.store import STORE_FILE, Store
from localspec.chat.thread import Entry
from localspec.engine.errors import UserError
from localspec.tui.app import ChatApp
from localspec.tui.widgets import chat_list
from localspec.tui.widgets.prompt import Prompt
from scripted import HOLD, Script, ScriptedBackend, SlowLoad, chat, finished, loaded, seen, send, status_says, until
from snapshots import Snapshots

SMALL, LARGE = (80, 24), (120, 40)
NOW = 1_750_000_000.0
"""15 June 2025, 15:06 UTC."""
ANSWER = (
    "# Sorting\n\nA **stable** sort keeps the order of `equal` items:\n\n",
    "```python\ndef by_length(words: list[str]) -> list[str]:\n    return sorted(words, key=len)  # stable\n```\n\n",
    "- first\n- second\n\nSee <b>this</b> [bracket].",
)


@pytest.fixture(autouse=True)
def frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clocks that do not depend on the machine: a step ends every twentieth of a second, and it is a day in June."""
    ticks = itertools.count(1)
    steady = SimpleNamespace(perf_counter=lambda: next(ticks) / 20, monotonic=time.monotonic)
    monkeypatch.setattr("localspec.tui.engine_worker.time", steady)
    monkeypatch.setattr("localspec.chat.clock.time", SimpleNamespace(time=lambda: NOW))
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


class Day(datetime):
    """Today is always the same day."""

    @classmethod
    def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
        return datetime.fromtimestamp(NOW + 60, UTC)


@asynccontextmanager
async def opened(size: tuple[int, int], *scripts: Script, data: Path | None = None) -> AsyncIterator[Pilot[None]]:
    """The chat, its model loaded."""
    backend = ScriptedBackend(*scripts)
    app = ChatApp(lambda report: backend, data)
    async with app.run_test(size=size) as pilot:
        await loaded(pilot)
        chat(app).query_one(Prompt).cursor_blink = False
        yield pilot
    app.worker.join()
    app.close_store()


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["small", "large"])
async def test_the_empty_chat(snapshots: Snapshots, size: tuple[int, int]) -> None:
    """A chat begins with what it is, what is loaded, and where to write."""
    async with opened(size) as pilot:
        await snapshots.check(pilot, f"chat_empty_{size[0]}")


async def test_the_chat_while_the_model_loads(snapshots: Snapshots) -> None:
    """How far loading is, and that one can write already."""
    load = SlowLoad(ScriptedBackend())
    app = ChatApp(load)
    async with app.run_test(size=SMALL) as pilot:
        await until(pilot, lambda: "loading the model 25 %" in seen(app))
        await snapshots.check(pilot, "chat_loading_80")
        load.go.set()
    app.worker.join()


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["small", "large"])
async def test_an_answer_with_code(snapshots: Snapshots, size: tuple[int, int]) -> None:
    """Headings, code in colors, lists; tags and brackets are text."""
    async with opened(size, ANSWER) as pilot:
        await send(pilot, "What is a stable sort?\nIn short, please.")
        await finished(pilot, 1)
        await snapshots.check(pilot, f"chat_answer_{size[0]}")


async def test_the_styles_of_an_answer(snapshots: Snapshots) -> None:
    """The colors and weights of an answer with code."""
    async with opened((60, 24), ANSWER) as pilot:
        await send(pilot, "What is a stable sort?")
        await finished(pilot, 1)
        await snapshots.check(pilot, "chat_answer_styles", styles=True)


async def test_an_answer_while_it_is_written(snapshots: Snapshots) -> None:
    """Half an answer, how fast it is, and how to stop it."""
    async with opened(SMALL, [*ANSWER[:1], ANSWER[1][:80], HOLD, "more"]) as pilot:
        await send(pilot, "What is a stable sort?")
        await until(pilot, lambda: "return sorted" in seen(pilot.app) and status_says(pilot.app, "tokens/s"))
        await snapshots.check(pilot, "chat_streaming_80")


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["small", "large"])
async def test_the_figures_of_speculation(snapshots: Snapshots, size: tuple[int, int]) -> None:
    """What guessing ahead brings: a strip in a small terminal, a column in a large one."""
    async with opened(size, ANSWER) as pilot:
        await pilot.press("f2")
        await send(pilot, "What is a stable sort?")
        await finished(pilot, 1)
        await snapshots.check(pilot, f"chat_speculation_{size[0]}")


@pytest.fixture
def three_chats(tmp_path: Path) -> Path:
    """A folder with chats in it."""
    with Store(tmp_path / STORE_FILE) as store:
        for words, answer in (
            ("Why is the sky blue?", "Blue light is scattered most."),
            ("Write a haiku about rain", "Rain on the old roof"),
            ("Compare [red] and blue, please", "Red is warm, blue is cold."),
        ):
            number = store.create("big-model")
            store.save(number, Entry(1, None, "user", words))
            store.save(number, Entry(2, 1, "assistant", answer, finish="stop"))
    return tmp_path


@pytest.mark.parametrize("words", ["", "blue"], ids=["all", "search"])
async def test_the_list_of_chats(
    snapshots: Snapshots, three_chats: Path, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All chats, or those in which the words occur, with the place."""
    monkeypatch.setattr(chat_list, "datetime", Day)
    async with opened(SMALL, data=three_chats) as pilot:
        await pilot.press("ctrl+r")
        await until(pilot, lambda: "haiku" in seen(pilot.app))
        await pilot.press(*words)
        await until(pilot, lambda: not words or "haiku" not in seen(pilot.app))
        await snapshots.check(pilot, f"chats_{'search' if words else 'all'}_80")


@pytest.mark.parametrize(
    ("keys", "name"),
    [(["ctrl+o"], "settings"), (["f1"], "help"), ([*"/costs", "enter"], "costs"), ([*"/b"], "commands")],
)
async def test_the_other_screens(snapshots: Snapshots, keys: list[str], name: str) -> None:
    """The settings, the help, the costs, and the commands while one is written."""
    async with opened(SMALL) as pilot:
        await pilot.press(*keys)
        marks = {"settings": "temperature", "help": "Keys", "costs": "plain passes", "commands": "/branch"}
        await until(pilot, lambda: marks[name] in seen(pilot.app))
        await snapshots.check(pilot, f"{name}_80")


async def test_an_engine_that_has_died(snapshots: Snapshots) -> None:
    """One sentence, and how to go on; what was written is there."""
    dead = UserError("The engine has stopped (signal 9); your chat is untouched: press ctrl+r to start it again.")
    async with opened(SMALL, ["Half an ", dead]) as pilot:
        await send(pilot, "What is a stable sort?")
        await until(pilot, lambda: "signal 9" in seen(pilot.app))
        await finished(pilot, 1)
        await snapshots.check(pilot, "chat_crash_80")


async def test_a_selected_message(snapshots: Snapshots) -> None:
    """Which message is selected, and its keys."""
    async with opened(SMALL, ["First answer."]) as pilot:
        await send(pilot, "A question")
        await finished(pilot, 1)
        await pilot.press("ctrl+up")
        await until(pilot, lambda: chat(pilot.app)._transcript.chosen is not None)
        await snapshots.check(pilot, "chat_selected_80")


async def test_a_changed_screen_shows_what_has_changed(tmp_path: Path) -> None:
    """The failure names the screen, the lines, and the switch that takes the new ones."""
    app = LabelApp()
    async with app.run_test(size=(10, 2)) as pilot:
        (tmp_path / "name.txt").write_text("same\nold\n")
        with pytest.raises(AssertionError, match=r"(?s)name has changed.*--update-snapshots.*-old\n\+new"):
            await Snapshots(tmp_path, update=False).check(pilot, "name")
        await Snapshots(tmp_path, update=True).check(pilot, "name")
        await Snapshots(tmp_path, update=False).check(pilot, "name")
        assert (tmp_path / "name.txt").read_text() == "same\nnew\n"


class LabelApp(App[None]):
    """Two lines."""

    def compose(self) -> ComposeResult:
        yield Label("same\nnew")
