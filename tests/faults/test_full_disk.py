"""A disk that is full: what was typed and what was written stays on the screen, one sentence says why it is not kept, and it
is kept as soon as there is room. A file that is replaced is the old one or the new one, never half of one."""

from __future__ import annotations

import contextlib
import json
import logging
import shutil
import sqlite3
from collections import namedtuple
from pathlib import Path

import pytest
from kept_chat import opened, prompt, said, saved, shown, unsent
from small_disk import Disk

import hub_server
from command import call
from hub_fetch import NAME, SIZE, Fetch, whole
from localspec.chat import database
from localspec.chat.kept_states import KeptStates
from localspec.chat.messages import Document
from localspec.chat.rewritten_file import save_rewritten
from localspec.chat.store import STORE_FILE, Store
from localspec.chat.thread import Entry
from localspec.chat.versions import Versions
from localspec.config_file import update_config
from localspec.engine.engine import Engine, EngineSettings, Options
from localspec.engine.errors import UserError
from localspec.engine.measuring import load_curve, save_curve
from localspec.logs import LOG_FILE, log_to_file
from localspec.measure.audit_file import AUDIT_FILE
from localspec.tui.history import History
from localspec.tui.screens.rewrite import RewriteScreen
from localspec.whole_file import write_whole
from rewrite_screen import NAME as NAME_OF_TEXT
from rewrite_screen import RESULT, SOURCE, instruct, rewriting, screen
from rewrite_screen import pieces as in_pieces
from rewriting import Answers
from scripted import HOLD, finished, seen, send, until
from tiny_checks import GREEDY, PROMPT, write

Usage = namedtuple("Usage", "total used free")


# --- the chat ---------------------------------------------------------------------------------------------------------


async def test_a_message_and_its_answer_are_kept_once_there_is_room(disk: Disk) -> None:
    """The disk fills while an answer is written; both stay on the screen, and so does what is typed after them."""
    data = disk.folder / "data"
    async with opened(data, ["first"], ["a part ", HOLD, "and the rest"]) as (pilot, backend):
        app = pilot.app
        await send(pilot, "one")
        await finished(pilot, 1)
        await send(pilot, "two")
        await until(pilot, lambda: shown(app)[-1:] == ["a part "])
        with disk.full():
            backend.go.set()
            await finished(pilot, 2)
            await until(pilot, lambda: "This chat is not saved" in said(app))
            await pilot.press(*"three")
            await until(pilot, lambda: "What you type cannot be written down" in said(app))
            assert shown(app) == ["one", "first", "two", "a part and the rest"]
            assert prompt(app).text == "three"
        await until(pilot, lambda: "The chat is saved again." in said(app))
    assert saved(data) == ["one", "first", "two", "a part and the rest"]
    assert unsent(data) == "three"


async def test_a_disk_that_was_full_before_the_start(disk: Disk) -> None:
    """There is no file for the chats yet, and none can be made; all is saved when one can."""
    data = disk.folder / "data"
    with contextlib.ExitStack() as stack:
        stack.enter_context(disk.full())
        async with opened(data, ["first"]) as (pilot, _):
            app = pilot.app
            await until(pilot, lambda: "This chat is not saved yet" in said(app))
            await send(pilot, "one")
            await finished(pilot, 1)
            assert shown(app) == ["one", "first"]
            stack.close()
            await until(pilot, lambda: "The chat is saved again." in said(app))
    assert saved(data) == ["one", "first"]


async def test_an_export_leaves_no_half_of_a_file(disk: Disk, tmp_path: Path) -> None:
    """The sentence names the file, and the chat is as it was."""
    async with opened(tmp_path / "data", ["first " * 200]) as (pilot, _):
        await send(pilot, "one")
        await finished(pilot, 1)
        with disk.full():
            await send(pilot, f"/export {disk.folder}/chat.md")
            await until(pilot, lambda: "chat.md cannot" in said(pilot.app))
            assert not (disk.folder / "chat.md").exists()
        await send(pilot, f"/export {disk.folder}/chat.md")
        await until(pilot, (disk.folder / "chat.md").exists)
        assert len(shown(pilot.app)) == 2
    assert "first first" in (disk.folder / "chat.md").read_text()


def test_an_old_database_is_not_changed_without_a_copy(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no room for one; the file is what it was, and brought up to date later."""
    path = disk.folder / STORE_FILE
    with Store(path) as store:
        store.save(store.create("model"), Entry(1, None, "user", "kept " * 1000))
    with contextlib.closing(sqlite3.connect(path)) as raw:
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    monkeypatch.setattr(database, "_MIGRATIONS", (*database._MIGRATIONS, ("ALTER TABLE chats ADD COLUMN more",)))
    monkeypatch.setattr(database, "VERSION", database.VERSION + 1)
    before = path.read_bytes()
    with disk.full(), pytest.raises(UserError, match=r"space|disk is full|cannot be opened"):
        Store(path)
    assert path.read_bytes() == before
    assert list(disk.folder.glob("*.part")) == []
    with Store(path) as store:
        assert store.load(1).thread.entries[1].text == "kept " * 1000
    assert len(list(disk.folder.glob("chats-version-*.db"))) == 1


# --- rewriting --------------------------------------------------------------------------------------------------------


def test_a_rewriting_in_place_that_finds_no_room_loses_no_word(
    disk: Disk, tiny_llama: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk fills while the text is written: the file stays, and what was written is on stdout."""
    monkeypatch.setenv("LOCALSPEC_DRAFTER", "lookup")
    path = disk.folder / "text.md"
    path.write_text("a text\nof two lines\n")
    with contextlib.ExitStack() as stack:

        def shout(text: str) -> str:
            stack.enter_context(disk.full())
            return text.upper()

        answers = Answers(shout, size=50)
        monkeypatch.setattr("localspec.rewrite._Writer.ask", lambda _, request, on_prompt: answers(request, on_prompt))
        outcome = call("rewrite", "--quiet", "-m", tiny_llama, "-i", "Shout.", "--in-place", path)
    assert outcome.code == 1
    assert "cannot be written (" in outcome.sentence
    assert outcome.out == "A TEXT\nOF TWO LINES\n"
    assert path.read_text() == "a text\nof two lines\n"
    assert list(disk.folder.iterdir()) == [path]
    monkeypatch.undo()


def test_a_rewriting_is_not_begun_where_nothing_can_be_written(
    disk: Disk, tiny_llama: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for a text that has no place to go."""
    monkeypatch.setenv("LOCALSPEC_DRAFTER", "lookup")
    path = disk.folder / "text.md"
    path.write_text("a text\n")
    answers = Answers(str.upper)
    monkeypatch.setattr("localspec.rewrite._Writer.ask", lambda _, request, on_prompt: answers(request, on_prompt))
    with disk.full():
        outcome = call("rewrite", "--quiet", "-m", tiny_llama, "-i", "Shout.", "--in-place", path)
    assert (outcome.code, outcome.out, answers.requests) == (1, "", [])
    assert "cannot be written (" in outcome.sentence
    assert list(disk.folder.iterdir()) == [path]


@pytest.mark.parametrize("there", [True, False])
def test_a_rewritten_text_that_cannot_be_saved_is_one_sentence(there: bool, disk: Disk) -> None:
    """The screen keeps the text; the file is what it was, and nothing is left beside it."""
    path = disk.folder / "text.md"
    if there:
        path.write_text("old")
    with disk.full(), pytest.raises(UserError, match=r"text\.md cannot be written \(.*\); choose another name\.$"):
        save_rewritten(path, "new", {"old"})
    assert [file.read_text() for file in disk.folder.iterdir()] == ["old"] * there


# --- downloads --------------------------------------------------------------------------------------------------------


def test_a_download_that_finds_no_room_is_gone_on_with(
    disk: Disk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The disk fills in the middle: what has come is kept, and the rest is fetched when there is room."""
    content = hub_server.long_content(SIZE)
    with hub_server.serving() as hub, contextlib.ExitStack() as stack:
        hub_server.isolate_hub(monkeypatch, tmp_path / "home", hub.url)
        hub.add("user/repo", {NAME: content})
        fetch = Fetch(disk.folder / "models")
        file = fetch.file()
        progress, fetch.seen = fetch.seen, _Watched(lambda: stack.enter_context(disk.full()))
        sentence = ""
        with pytest.raises(UserError) as caught:
            fetch.run(file)
        sentence = str(caught.value)
        assert f"{disk.folder / 'models'} takes no more (" in sentence
        assert "are here and kept." in sentence
        kept = fetch.part.stat().st_size
        assert 1_000_000 <= kept < SIZE
        stack.close()
        fetch.seen = progress
        fetch.run(file)
        assert whole(fetch.target, content)
        assert hub.ranges_asked()[-1] == f"bytes={kept}-"
        assert list(fetch.target.parent.iterdir()) == [fetch.target]


class _Watched(list[int]):
    """Acts once a megabyte is here."""

    def __init__(self, act: object) -> None:
        super().__init__()
        self._act, self._done = act, False

    def append(self, count: int) -> None:
        super().append(count)
        if count > 1_000_000 and not self._done:
            self._done = True
            self._act()  # type: ignore[operator]


# --- what can be made again -------------------------------------------------------------------------------------------


def test_a_state_that_finds_no_room_is_not_kept(
    disk: Disk, tiny_llama: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The answer goes on; nothing half written stays; and it is kept when there is room."""
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(1 << 40, 0, 1 << 40))
    states = KeptStates(disk.folder)
    with Engine(EngineSettings(tiny_llama, context_length=1024, threads=1)) as engine:
        write(engine, Options(GREEDY, "lookup", max_tokens=4), [7, *PROMPT * 11])
        monkeypatch.undo()
        with disk.full():
            with pytest.MonkeyPatch.context() as patch, caplog.at_level(logging.WARNING):
                patch.setattr(shutil, "disk_usage", lambda path: Usage(1 << 40, 0, 1 << 40))
                assert not states.save(1, engine)
            assert not list(disk.folder.glob("*.state*"))
            assert "not kept" in caplog.text
        monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(1 << 40, 0, 1 << 40))
        assert states.save(1, engine)
        assert KeptStates(disk.folder).load(1, engine) == len(engine.target_context.tokens)


def test_files_that_are_replaced_are_whole(disk: Disk) -> None:
    """Costs, settings, verdicts, the history: the old one is there, and the next one is written when there is room."""
    costs, config, history = (disk.folder / name for name in ("costs.json", "config.toml", "history.jsonl"))
    audits = disk.folder / AUDIT_FILE
    curve = {1: 1.0, 2: 2.0, 5: 3.0}
    save_curve(costs, "old", curve)
    update_config(config, {"temp": 0.5})
    History(history).add("old")
    write_whole(audits, b"{}")
    before = {path: path.read_bytes() for path in (costs, config, history, audits)}
    with disk.full():
        save_curve(costs, "new", curve)
        with pytest.raises(UserError, match=r"cannot be (written|changed|saved)"):
            update_config(config, {"temp": 0.7})
        with pytest.raises(OSError, match=r"No space left|File too large"):
            write_whole(audits, b"x" * 10)
        unsaved = History(history)
        unsaved.add("new")
        assert unsaved.older("") == "new"
        # What fits behind the end may still be written.
        assert {path: path.read_bytes()[: len(data)] for path, data in before.items()} == before
        assert {path for path in disk.folder.iterdir() if path.name != "filler"} == set(before)
    save_curve(costs, "new", curve)
    assert load_curve(costs, "new")
    History(history).add("later")
    assert History(history).older("") == "later"
    assert json.loads(costs.read_text()).keys() == {"old", "new"}


def test_a_log_that_cannot_be_written_says_nothing(disk: Disk, capfd: pytest.CaptureFixture[str]) -> None:
    """And goes on when it can: a log is no reason to stop or to draw over the screen."""
    logger = logging.getLogger("localspec.full-disk")
    log_to_file(disk.folder / "logs", logger.name)
    try:
        logger.error("before")
        with disk.full():
            for _ in range(50):
                logger.error("x" * 100_000)
        logger.error("after")
        text = (disk.folder / "logs" / LOG_FILE).read_text()
        assert "before" in text
        assert text.endswith("after\n")
        assert capfd.readouterr() == ("", "")
    finally:
        for handler in list(logger.handlers):
            handler.close()
            logger.removeHandler(handler)


async def test_a_rewriting_on_the_screen_is_kept_once_there_is_room(disk: Disk) -> None:
    """The result stays to be looked at, leaving is warned of once, and it is saved without another word."""
    data = disk.folder / "data"
    async with rewriting(data, (120, 40), in_pieces(RESULT)) as (app, pilot, _):
        with disk.full():
            await instruct(pilot, "Fix it.")
            await until(pilot, lambda: "change 1 of" in seen(app))
            await until(pilot, lambda: "The versions are not saved" in seen(app))
            await pilot.press("escape")
            await until(pilot, lambda: "Not everything is saved yet" in seen(app))
            assert isinstance(app.screen, RewriteScreen)
        await until(pilot, lambda: not screen(app)._history._unsaved)
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, RewriteScreen))
    with Store(data / STORE_FILE) as store:
        assert [version.result for version in Versions(store, Document(NAME_OF_TEXT, SOURCE)).load()] == [RESULT]
