"""Another program that keeps the chats locked: the screen goes on, and the words are saved when it is done."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest
from kept_chat import opened, prompt, said, saved, shown, unsent

from localspec.chat.store import STORE_FILE, Store
from localspec.chat.thread import Entry
from localspec.tui.screens.unsaved import UnsavedScreen
from scripted import HOLD, finished, send, until


@contextmanager
def locked(data: Path, how: str = "IMMEDIATE") -> Iterator[None]:
    """As a backup does it, or another app that hangs in the middle of its writing."""
    with closing(sqlite3.connect(data / STORE_FILE, isolation_level=None)) as other:
        other.execute(f"BEGIN {how}")
        yield
        other.execute("ROLLBACK")


async def test_the_screen_goes_on_while_nothing_can_be_saved(tmp_path: Path) -> None:
    """A message is sent, an answer streams, and keys arrive, all of it before the lock is gone."""
    async with opened(tmp_path, ["first"], ["a part ", HOLD, "and the rest"]) as (pilot, backend):
        app = pilot.app
        await send(pilot, "one")
        await finished(pilot, 1)
        with locked(tmp_path):
            await send(pilot, "two")
            await until(pilot, lambda: shown(app)[-1] == "a part ")
            await pilot.press(*"typed while locked")
            assert prompt(app).text == "typed while locked"
            backend.go.set()
            await finished(pilot, 2)
            await until(pilot, lambda: "kept busy by another program" in said(app))
            # For a crash at this moment, what was sent is written down beside what was typed.
            await until(pilot, lambda: "two\\ntyped while locked" in (tmp_path / "unsent.json").read_text())
        await until(pilot, lambda: "The chat is saved again." in said(app))
    assert saved(tmp_path) == ["one", "first", "two", "a part and the rest"]
    assert unsent(tmp_path) == "typed while locked"


async def test_no_key_waits_for_another_program(tmp_path: Path) -> None:
    """Five seconds are right for a command; whoever types waits for a tenth of one."""
    async with opened(tmp_path, ["first"]) as (pilot, _):
        store = pilot.app.chat.store  # type: ignore[attr-defined]
        assert store._database.execute("PRAGMA busy_timeout").fetchone()[0] <= 100


@pytest.mark.parametrize("how", ["IMMEDIATE", "EXCLUSIVE"])
async def test_a_start_while_the_chats_are_locked(how: str, tmp_path: Path) -> None:
    """What can be read is read, and what is said is saved later."""
    with Store(tmp_path / STORE_FILE) as store:
        store.save(store.create("m"), Entry(1, None, "user", "old"))
    with ExitStack() as stack:
        stack.enter_context(locked(tmp_path, how))
        async with opened(tmp_path, ["first"]) as (pilot, _):
            await send(pilot, "one")
            await finished(pilot, 1)
            assert shown(pilot.app) == ["one", "first"]
            await until(pilot, lambda: "not saved" in said(pilot.app))
            stack.close()
            await until(pilot, lambda: "The chat is saved again." in said(pilot.app))
    assert saved(tmp_path) == ["one", "first"]


async def test_who_leaves_all_the_same_is_asked_first(tmp_path: Path) -> None:
    """What was typed is in the prompt at the next start, whatever the answer is."""
    async with opened(tmp_path, ["first"]) as (pilot, _):
        await send(pilot, "one")
        await finished(pilot, 1)
        with locked(tmp_path):
            await send(pilot, "/rename another title")
            await pilot.press(*"typed", "ctrl+q")
            await until(pilot, lambda: isinstance(pilot.app.screen, UnsavedScreen))
            await pilot.press("up", "enter")
            await until(pilot, lambda: not pilot.app.is_running)
    assert saved(tmp_path) == ["one", "first"]
    assert unsent(tmp_path) == "typed"
