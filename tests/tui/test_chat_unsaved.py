"""Leaving a chat that cannot be saved: with a database that another program has locked, or that cannot be written."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from test_chat_messages import ask, opened, saved, shown

from localspec.chat.store import STORE_FILE
from localspec.tui.screens.unsaved import UnsavedScreen
from scripted import chat, seen, until


@pytest.fixture(autouse=True)
def somewhere(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Exports go into a folder of their own; nobody waits long for another program."""
    folder = tmp_path_factory.mktemp("exports")
    monkeypatch.chdir(folder)
    monkeypatch.setattr("localspec.tui.open_chat._TOLD_SECONDS", 0.01)
    return folder


@contextmanager
def locked(data: Path) -> Iterator[None]:
    """Another program writes, and does not come to an end."""
    with closing(sqlite3.connect(data / STORE_FILE, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


async def test_a_chat_that_cannot_be_saved_is_not_left_without_asking(tmp_path: Path) -> None:
    """One sentence says why, esc stays, and when the file is free again all of it is saved."""
    async with opened(tmp_path, ["first"], ["second"]) as (pilot, _):
        await ask(pilot, "one", 1)
        with locked(tmp_path):
            await ask(pilot, "two", 2)
            await pilot.press("ctrl+n")
            await until(pilot, lambda: isinstance(pilot.app.screen, UnsavedScreen))
            assert "kept busy by another program" in " ".join(seen(pilot.app).split())
            await pilot.press("escape")
            await until(pilot, lambda: pilot.app.screen is chat(pilot.app))
            assert shown(pilot) == ["one", "first", "two", "second"]
        await pilot.press("ctrl+n")
        await until(pilot, lambda: shown(pilot) == [])
    assert saved(tmp_path) == ["one", "first", "two", "second"]


async def test_it_can_be_left_all_the_same(tmp_path: Path) -> None:
    """Whoever says so loses what could not be saved, and nothing else."""
    async with opened(tmp_path, ["first"], ["second"]) as (pilot, _):
        await ask(pilot, "one", 1)
        with locked(tmp_path):
            await ask(pilot, "two", 2)
            await pilot.press("ctrl+n")
            await until(pilot, lambda: isinstance(pilot.app.screen, UnsavedScreen))
            await pilot.press("up", "enter")
            await until(pilot, lambda: shown(pilot) == [])
    assert saved(tmp_path) == ["one", "first"]


@pytest.mark.parametrize(("downs", "ending"), [(1, ".md"), (2, ".json")])
async def test_quitting_offers_to_write_it_to_a_file(tmp_path: Path, somewhere: Path, downs: int, ending: str) -> None:
    """The file has all of it, and its name is said when the screen has gone."""
    async with opened(tmp_path, ["first"]) as (pilot, _):
        with locked(tmp_path):
            await ask(pilot, "one", 1)
            await pilot.press("ctrl+q")
            await until(pilot, lambda: isinstance(pilot.app.screen, UnsavedScreen))
            await pilot.press(*["down"] * downs, "enter")
            await until(pilot, lambda: not pilot.app.is_running or list(somewhere.iterdir()))
        file = somewhere / f"one{ending}"
        text = file.read_text()
        assert "first" in text
        if ending == ".json":
            assert [message["text"] for message in json.loads(text)["messages"]] == ["one", "first"]


async def test_a_chat_over_a_file_that_cannot_be_read_is_asked_about_too(tmp_path: Path) -> None:
    """The database is no database: nothing can be saved at all, and that is said before the words are lost."""
    (tmp_path / STORE_FILE).write_bytes(b"not a database, but long enough to be one " * 50)
    async with opened(tmp_path, ["first"]) as (pilot, _):
        await until(pilot, lambda: "This chat is not saved" in seen(pilot.app).replace("\n  ▌", ""))
        await ask(pilot, "one", 1)
        await pilot.press("ctrl+n")
        await until(pilot, lambda: isinstance(pilot.app.screen, UnsavedScreen))
        await pilot.press("escape")


async def test_an_empty_or_a_saved_chat_is_left_without_a_word(tmp_path: Path) -> None:
    """Nothing is asked where nothing would be lost."""
    async with opened(tmp_path, ["first"]) as (pilot, _):
        await pilot.press("ctrl+n")
        await ask(pilot, "one", 1)
        await pilot.press("ctrl+n")
        await until(pilot, lambda: shown(pilot) == [])
        await pilot.press("ctrl+q")
    assert saved(tmp_path) == ["one", "first"]
