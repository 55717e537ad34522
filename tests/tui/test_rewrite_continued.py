"""A rewriting that was stopped, broke off or failed: what was written of it is of use."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from textual.pilot import Pilot

from localspec.chat.messages import Document
from localspec.chat.store import STORE_FILE, Store
from localspec.chat.versions import Versions
from localspec.engine.process import EngineDied
from localspec.tui.app import ChatApp
from localspec.tui.screens.choice import ChoiceScreen
from localspec.tui.screens.rewrite import RewriteScreen
from localspec.tui.unsent import UNSENT_FILE
from localspec.tui.widgets.chips import Chip
from localspec.tui.widgets.prompt import Prompt
from rewrite_screen import NAME, RESULT, SIZES, SOURCE, instruct, pieces, reviewed, rewriting, screen
from scripted import HOLD, Script, ScriptedBackend, chat, said, seen, send, until


@pytest.fixture(params=SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def size(request: pytest.FixtureRequest) -> tuple[int, int]:
    """Of the terminal."""
    return request.param


PARTS = [f"Chapter {number} is about teh sea.\n{'It was blue and cold. ' * 90}\n\n" for number in range(3)]
LONG = "".join(PARTS)
FIXED = [part.replace("teh", "the").strip() for part in PARTS]


@contextlib.asynccontextmanager
async def long_text(
    data: Path, size: tuple[int, int], *scripts: Script
) -> AsyncIterator[tuple[ChatApp, Pilot[None], ScriptedBackend]]:
    """The same for a text in three parts."""
    backend = ScriptedBackend(*scripts)
    backend.context_length = 2400
    app = ChatApp(lambda report: backend, data)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: chat(app)._loaded)
        chat(app).query_one(Prompt).chips.insert(0, Chip.of(Document("sea.md", LONG)))
        await pilot.press("f6", "w")
        await until(pilot, lambda: isinstance(app.screen, RewriteScreen))
        yield app, pilot, backend
    app.worker.join()
    app.close_store()


async def test_a_stopped_text_is_continued_behind_its_last_word(tmp_path: Path, size: tuple[int, int]) -> None:
    """Nothing is asked for twice, what was rejected stays so, and then nothing is left to be continued."""
    begun = FIXED[1][:39]
    scripts = (pieces(FIXED[0]), [*pieces(begun), HOLD, "never"], pieces(FIXED[1][39:]), pieces(FIXED[2]))
    async with long_text(tmp_path, size, *scripts) as (app, pilot, backend):
        await instruct(pilot, "Fix it.")
        await until(pilot, lambda: screen(app)._written.text.endswith(begun))
        await pilot.press("escape")
        await reviewed(pilot, "of 1, stopped: Fix")
        assert "c continues" in seen(app)
        assert screen(app)._history.text == LONG.replace("teh", "the", 2)
        await pilot.press("p", "r", "c")
        await reviewed(pilot, "change 1 of 3, rejected   2 accepted")
        assert backend.goes_on == [False, False, True, False]
        assert backend.asked[2][-1].content == begun
        assert [version.result for version in screen(app)._history.versions] == [LONG.replace("teh", "the")]
        assert "c continues" not in seen(app)
        await pilot.press("c")
        await until(pilot, lambda: "Nothing is left to be written" in seen(app))
    with Store(tmp_path / STORE_FILE) as store:
        (version,) = Versions(store, Document("sea.md", LONG)).load()
        assert (version.finish, version.state, version.rejected) == ("stop", None, (0,))


async def test_a_text_is_continued_after_the_app_was_killed(tmp_path: Path, size: tuple[int, int]) -> None:
    """A new app has what was saved last, of the part under way too; by a command as well."""
    begun = FIXED[1][:39]
    async with long_text(tmp_path, size, pieces(FIXED[0]), [*pieces(begun), HOLD, "never"]) as (app, pilot, _):
        await instruct(pilot, "Fix it.")
        await until(pilot, lambda: screen(app)._written.text.endswith(begun))
        screen(app)._grow()
        screen(app)._history._save(0)
        killed = tmp_path / "killed"
        killed.mkdir()
        with contextlib.closing(sqlite3.connect(tmp_path / STORE_FILE)) as live:
            live.execute("VACUUM INTO ?", (str(killed / STORE_FILE),))
    async with long_text(killed, size, pieces(FIXED[1][39:]), pieces(FIXED[2])) as (app, pilot, backend):
        await reviewed(pilot, "change 1 of 2")
        assert "of 1, broken off: Fix" in seen(app)
        assert "c goes on with it" in seen(app)
        titles = [command.title for command in app.get_system_commands(app.screen)]
        assert "Continue the writing" in titles
        await screen(app).run_action("go_on")
        await reviewed(pilot, "change 1 of 3")
        assert [messages[-1].content for messages in backend.asked[:1]] == [begun]
        assert screen(app)._history.text == LONG.replace("teh", "the")
        assert len(screen(app)._history.versions) == 1


async def test_a_text_is_continued_after_the_engine_has_died_at_once(tmp_path: Path, size: tuple[int, int]) -> None:
    """An engine that dies again before a word costs nothing of what was there."""
    died = EngineDied("The engine has stopped working; press ctrl+r to start it again.")
    scripts = (pieces(FIXED[0]), [*pieces(FIXED[1][:39]), died], [died], pieces(FIXED[1][39:]), pieces(FIXED[2]))
    async with long_text(tmp_path, size, *scripts) as (app, pilot, backend):
        await instruct(pilot, "Fix it.")
        for asked in (2, 3):
            await reviewed(pilot, "change 1 of 2")
            await until(pilot, lambda asked=asked: len(backend.asked) == asked and not screen(app).is_writing)
            assert screen(app)._history.text == LONG.replace("teh", "the", 2)
            await pilot.press("c")
        await reviewed(pilot, "change 1 of 3")
        assert screen(app)._history.text == LONG.replace("teh", "the")


async def test_what_was_good_of_a_part_that_failed_is_a_version_of_its_own(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    """The part keeps its text, which is said, and so is where the beginning is."""
    loop = "The [bold]quick[/bold] fox jumps.\n\n" + "And then it jumps again. " * 60
    async with rewriting(tmp_path, size, pieces(loop)) as (app, pilot, _):
        await instruct(pilot, "Fix it.")
        await reviewed(pilot, "nothing is changed")
        await until(pilot, lambda: "repeats itself, so the text stays; version 2 has more." in seen(app))
        assert "version 1 of 2" in seen(app)
        assert screen(app)._history.text == SOURCE
        await pilot.press("right")
        await reviewed(pilot, "[-quik-]{+quick+}")
        assert "with the beginning of what failed" in seen(app)
        assert screen(app)._history.text.startswith("The [bold]quick[/bold] fox jumps.\n\nAnd then it jumps again.")
        assert screen(app)._history.text.count("again") == 1


async def test_the_file_of_a_document_is_known_after_a_restart(tmp_path: Path, size: tuple[int, int]) -> None:
    """Also where the document is no longer at hand; and it is not written over when it has changed."""
    file = tmp_path / NAME
    file.write_text(SOURCE)
    async with rewriting(tmp_path, size, pieces(RESULT), path=file) as (app, pilot, _):
        await instruct(pilot, "Fix it.")
        await reviewed(pilot)
    (tmp_path / UNSENT_FILE).unlink()
    app = ChatApp(lambda report: ScriptedBackend(), tmp_path)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: chat(app)._loaded)
        await send(pilot, "/rewrite")
        await until(pilot, lambda: isinstance(app.screen, ChoiceScreen) and NAME in seen(app))
        await pilot.press("enter")
        await reviewed(pilot, "version 1 of 1")
        await pilot.press("escape", "tab")
        for text, expected in ((SOURCE, RESULT), ("changed", "changed")):
            file.write_text(text)
            await pilot.press("s")
            await until(pilot, lambda: app.screen is not screen(app))
            await pilot.press("enter")
            await until(pilot, lambda e=expected: app.screen is screen(app) and file.read_text() == e)
        await until(pilot, lambda: "another text than the one" in said(app))
    app.worker.join()
    app.close_store()
