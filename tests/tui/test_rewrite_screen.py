"""The rewrite mode: an instruction in, the result out, its changes reviewed, and nothing lost."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.app import App
from textual.widgets import TextArea

from localspec.chat.messages import Document
from localspec.chat.store import STORE_FILE, Store
from localspec.chat.versions import Version, Versions
from localspec.engine.process import EngineDied
from localspec.tui.app import ChatApp
from localspec.tui.screens.choice import ChoiceScreen
from localspec.tui.screens.rewrite import RewriteScreen
from localspec.tui.widgets.chips import Chip
from localspec.tui.widgets.prompt import Prompt
from rewrite_screen import NAME, RESULT, SIZES, SOURCE, instruct, pieces, reviewed, rewriting, screen
from scripted import HOLD, ScriptedBackend, chat, finished, said, seen, send, until


@pytest.fixture(params=SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def size(request: pytest.FixtureRequest) -> tuple[int, int]:
    """Of the terminal."""
    return request.param


async def test_a_text_is_rewritten_and_its_changes_are_shown_with_signs(tmp_path: Path, size: tuple[int, int]) -> None:
    """Nothing in it is taken for markup, and the figures of speculation are there."""
    async with rewriting(tmp_path, size, pieces(RESULT)) as (app, pilot, backend):
        await instruct(pilot, "Fix the spelling.")
        await reviewed(pilot)
        shown = seen(app)
        for words in ("[bold][-quik-]{+quick+}[/bold]", "[-lasy-]{+lazy+}", "[-sleps-]{+sleeps+}", "2.00 tokens/step"):
            assert words in shown
        assert "version 1 of 1: Fix the spelling." in shown
        assert SOURCE.strip() in backend.words()[0]
        assert "Fix the spelling." in "".join(message.content for message in backend.asked[0])
        assert backend.chats == [None]


async def test_the_result_streams_and_a_stop_keeps_it(tmp_path: Path, size: tuple[int, int]) -> None:
    """What was not rewritten is as it was, and the chat goes on with the same engine."""
    begun = "The [bold]quick[/bold] fox jumps.\n\nThe lazy"
    async with rewriting(tmp_path, size, [*pieces(begun), HOLD, "never"], ["an answer"]) as (app, pilot, _):
        await instruct(pilot, "Fix it.")
        await until(pilot, lambda: "The [bold]quick[/bold] fox" in seen(app) and "tokens/step" in seen(app))
        assert " % " in seen(app)
        await pilot.press("escape")
        await until(pilot, lambda: "of 1, stopped: Fix" in seen(app) or "change 1 of 2" in seen(app))
        await reviewed(pilot, "change 1 of 2")
        assert screen(app)._history.text == RESULT.replace("sleeps", "sleps")
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is chat(app))
        chat(app).query_one(Prompt).put("")
        await send(pilot, "hello")
        await finished(pilot, 1)
        assert "an answer" in seen(app)


async def test_changes_are_taken_and_left_one_by_one_and_all_at_once(tmp_path: Path, size: tuple[int, int]) -> None:
    """The cursor goes on to the next change."""
    async with rewriting(tmp_path, size, pieces(RESULT)) as (app, pilot, _):
        await instruct(pilot, "Fix it.")
        await reviewed(pilot)
        await pilot.press("r")
        await until(pilot, lambda: "change 2 of 3, accepted   2 accepted" in seen(app))
        assert "[=quik=]{-quick-}" in seen(app)
        await pilot.press("a", "space")
        await until(pilot, lambda: "change 3 of 3, rejected   1 accepted" in seen(app))
        assert screen(app)._history.text == SOURCE.replace("lasy", "lazy")
        await pilot.press("n", "p", "p", "p")
        await until(pilot, lambda: "That was the first change." in seen(app) and "change 1 of 3" in seen(app))
        await pilot.press("A")
        assert screen(app)._history.text == RESULT
        await pilot.press("R")
        assert screen(app)._history.text == SOURCE
        await pilot.press("y")
        assert app.clipboard == SOURCE


async def test_it_is_saved_to_the_file_it_came_from_unless_that_has_changed(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    """Again after more decisions, with its own line ends; and to another file."""
    file = tmp_path / NAME
    file.write_bytes(SOURCE.replace("\n", "\r\n").encode())
    async with rewriting(tmp_path, size, pieces(RESULT), path=file) as (app, pilot, _):
        await instruct(pilot, "Fix it.")
        await reviewed(pilot)
        await pilot.press("s")
        await until(pilot, lambda: "Save to" in seen(app))
        await pilot.press("enter")
        await until(pilot, lambda: file.read_bytes() == RESULT.replace("\n", "\r\n").encode())
        await until(pilot, lambda: app.screen is screen(app))
        await pilot.press("R", "s")
        await until(pilot, lambda: app.screen is not screen(app))
        await pilot.press("enter")
        await until(pilot, lambda: file.read_bytes() == SOURCE.replace("\n", "\r\n").encode())
        file.write_text("changed meanwhile")
        await until(pilot, lambda: app.screen is screen(app))
        await pilot.press("s")
        await until(pilot, lambda: app.screen is not screen(app))
        await pilot.press("enter")
        await until(pilot, lambda: "another text than the one" in said(app))
        assert file.read_text() == "changed meanwhile"


async def test_a_refinement_works_on_what_is_accepted_and_versions_go_back_and_forth(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    """And all of them are there at the next start, decisions included."""
    refined = RESULT.replace("quick", "quik").replace("dog", "cat")
    async with rewriting(tmp_path, size, pieces(RESULT), pieces(refined)) as (app, pilot, backend):
        await instruct(pilot, "Fix it.")
        await reviewed(pilot)
        await pilot.press("r", "i")
        await pilot.press(*"Cats.", "enter")
        await reviewed(pilot, "version 2 of 2: Cats.")
        assert RESULT.replace("quick", "quik").strip() in backend.words()[1]
        assert "[-dog-]{+cat+}" in seen(app)
        await pilot.press("left")
        await reviewed(pilot, "version 1 of 2")
        await pilot.press("left")
        await until(pilot, lambda: "the document itself" in seen(app))
        await pilot.press("escape")
    async with rewriting(tmp_path, size) as (app, pilot, _):
        await reviewed(pilot, "version 2 of 2: Cats.")
        assert [version.rejected for version in screen(app)._history.versions] == [(0,), ()]


async def test_a_text_that_was_being_rewritten_when_the_program_died_is_there(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    """Without a document at hand, /rewrite lists what was rewritten lately."""
    with Store(tmp_path / STORE_FILE) as store:
        Versions(store, Document(NAME, SOURCE)).add(Version(0, "Fix it.", SOURCE, RESULT))
    backend = ScriptedBackend()
    app = ChatApp(lambda report: backend, tmp_path)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: chat(app)._loaded)
        await send(pilot, "/rewrite")
        await until(pilot, lambda: isinstance(app.screen, ChoiceScreen) and NAME in seen(app))
        await pilot.press("enter")
        await reviewed(pilot, "version 1 of 1, broken off: Fix it.")
    app.worker.join()


@contextlib.contextmanager
def suspend(app: App[None]) -> Iterator[None]:
    """An app that hands over its terminal."""
    yield


async def test_it_is_edited_by_hand(tmp_path: Path, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """In the person's editor, or in the screen: a version of its own."""
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)
    async with rewriting(tmp_path, size, pieces(RESULT)) as (app, pilot, _):
        await instruct(pilot, "Fix it.")
        await reviewed(pilot)
        await pilot.press("e")
        await until(pilot, lambda: app.screen is not screen(app) and app.screen.query(TextArea))
        await pilot.press(*"Oh. ", "ctrl+s")
        await reviewed(pilot, "version 2 of 2: by hand")
        assert screen(app)._history.text == f"Oh. {RESULT}"
        script = tmp_path / "editor.py"
        script.write_text("import pathlib, sys; p = pathlib.Path(sys.argv[1]); p.write_text(p.read_text().upper())")
        monkeypatch.setenv("VISUAL", f"{sys.executable} {script}")
        monkeypatch.setattr(App, "suspend", suspend)
        await pilot.press("e")
        await reviewed(pilot, "version 3 of 3: by hand")
        assert screen(app)._history.text == f"Oh. {RESULT}".upper()


async def test_presets_are_listed_and_taken(tmp_path: Path, size: tuple[int, int]) -> None:
    """An empty line shows all of them; one that needs more waits for it."""
    async with rewriting(tmp_path, size, pieces(RESULT)) as (app, pilot, backend):
        await until(pilot, lambda: "fix grammar" in seen(app) and "translate:LANG" in seen(app))
        await pilot.press(*"transl", "tab")
        assert screen(app)._instruction.value == "translate: "
        await pilot.press("enter")
        await until(pilot, lambda: "The preset translate needs more" in seen(app))
        await pilot.press(*"French", "enter")
        await until(pilot, lambda: backend.asked)
        assert "Translate it into French." in "".join(message.content for message in backend.asked[0])


async def test_the_other_text_is_shown_by_a_key_where_there_is_room_for_one(tmp_path: Path) -> None:
    """At 80 columns; a wide terminal has both."""
    async with rewriting(tmp_path, (80, 24), pieces(RESULT)) as (app, pilot, _):
        await instruct(pilot, "Fix it.")
        await reviewed(pilot)
        assert NAME not in seen(app)
        await pilot.press("v")
        await until(pilot, lambda: NAME in seen(app) and "quik[/bold] fox" in seen(app))
        await pilot.press("v")
        await reviewed(pilot)
        await pilot.resize_terminal(120, 40)
        await until(pilot, lambda: NAME in seen(app) and "change 1 of 3" in seen(app))


async def test_an_engine_that_dies_costs_nothing_that_was_written(tmp_path: Path, size: tuple[int, int]) -> None:
    """The sentence says how to go on."""
    died = EngineDied("The engine has stopped working; press ctrl+r to start it again.")
    async with rewriting(tmp_path, size, [*pieces("The [bold]quick[/bold] fox jumps.\n\nThe la"), died]) as (
        app,
        pilot,
        _,
    ):
        await instruct(pilot, "Fix it.")
        await until(pilot, lambda: "The engine has stopped working" in seen(app))
        assert screen(app)._history.text == SOURCE.replace("quik", "quick")


async def test_nothing_is_begun_while_the_chat_is_answering(tmp_path: Path) -> None:
    """One engine writes one text at a time."""
    backend = ScriptedBackend(["part", HOLD, "rest"])
    app = ChatApp(lambda report: backend, tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await send(pilot, "hello")
        await until(pilot, lambda: "part" in seen(app))
        chat(app).query_one(Prompt).chips.insert(0, Chip.of(Document(NAME, SOURCE)))
        await send(pilot, "/rewrite Fix it.")
        await until(pilot, lambda: isinstance(app.screen, RewriteScreen) and "still being written" in seen(app))
        assert not screen(app).is_writing
        await pilot.press("escape", "escape")
    app.worker.join()
