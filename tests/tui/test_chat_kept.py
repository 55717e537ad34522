"""Chats that are kept: opening, going on, naming, exporting, settings, and what happens when keeping fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import OptionList

from localspec.chat.messages import Message
from localspec.chat.store import STORE_FILE, Store
from localspec.chat.thread import Thread
from localspec.engine.errors import UserError
from localspec.settings import Settings
from localspec.tui.app import ChatApp
from localspec.tui.messages import EngineGone
from localspec.tui.screens.settings import SettingsScreen
from localspec.tui.widgets.answer import Answer
from localspec.tui.widgets.prompt import Prompt
from localspec.tui.widgets.transcript import Transcript
from localspec.tui.widgets.turn import Mark, Turn
from scripted import HOLD, ScriptedBackend, SlowLoad, app_with, chat, finished, seen, send, status_says, until


def fill(data: Path, *turns: tuple[str, str]) -> None:
    """Keep a chat in `data`."""
    with Store(data / STORE_FILE) as store:
        id_, thread = store.create("old-model"), Thread()
        for question, answer in turns:
            store.save(id_, thread.add("user", question, after=thread.leaf))
            entry = thread.add("assistant", answer, after=thread.leaf)
            store.save(id_, thread.change(entry.id, finish="stop"))


def reopened(data: Path, *scripts: list[str], goes_on: bool = True) -> tuple[ChatApp, ScriptedBackend]:
    backend = ScriptedBackend(*scripts)
    return ChatApp(lambda report: backend, data, goes_on=goes_on), backend


async def test_the_last_chat_goes_on(tmp_path: Path) -> None:
    fill(tmp_path, ("one", "first **bold**"))
    app, backend = reopened(tmp_path, ["second"])
    async with app.run_test() as pilot:
        await until(pilot, lambda: "first bold" in seen(app))
        await send(pilot, "two")
        await finished(pilot, 2)
        assert backend.asked[0] == [
            Message("user", "one"),
            Message("assistant", "first **bold**"),
            Message("user", "two"),
        ]
        assert backend.chats == [1]
    app.worker.join()


async def test_a_chat_is_opened_from_the_list_and_the_old_answer_is_kept(tmp_path: Path) -> None:
    fill(tmp_path, ("the old question", "the old answer"))
    app, _ = reopened(tmp_path, ["a part", HOLD, "rest"], goes_on=False)
    async with app.run_test() as pilot:
        await send(pilot, "new")
        await until(pilot, lambda: "a part" in seen(app))
        await pilot.press("ctrl+r")
        await until(pilot, lambda: app.screen.query(OptionList))
        await pilot.press("down", "down", "enter")
        await until(pilot, lambda: "the old answer" in seen(app))
        assert [turn.words for turn in chat(app).query(Turn)] == ["the old question"]
        with Store(tmp_path / STORE_FILE) as store:
            texts = [entry.text for entry in store.load(2).thread.path()]
        assert texts == ["new", "a part"]
        assert "the old question" in seen(app).splitlines()[-3]
    app.worker.join()


async def test_a_chat_that_begins_while_the_model_loads_has_its_name_in_the_end(tmp_path: Path) -> None:
    load = SlowLoad(ScriptedBackend(["Here."]))
    app = ChatApp(load, tmp_path)
    async with app.run_test() as pilot:
        await send(pilot, "early")
        await until(pilot, lambda: status_says(app, "your message waits"))
        load.go.set()
        await finished(pilot, 1)
        with Store(tmp_path / STORE_FILE) as store:
            assert store.chats()[0].model == "big-model"
    app.worker.join()


async def test_a_chat_is_renamed_and_exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "exports"
    folder.mkdir()
    monkeypatch.chdir(folder)
    app, _ = reopened(tmp_path, ["the answer"])
    async with app.run_test(size=(120, 30)) as pilot:
        await send(pilot, "the question")
        await finished(pilot, 1)
        await send(pilot, "/rename Sky [and] sea")
        await until(pilot, lambda: status_says(app, "renamed"))
        assert "Sky [and] sea" in seen(app)
        await send(pilot, "/export")
        await until(pilot, lambda: list(folder.iterdir()))
        assert "the answer" in (folder / "Sky-and-sea.md").read_text()
        await send(pilot, f"/export {folder / 'all.json'}")
        await until(pilot, lambda: (folder / "all.json").exists())
        assert json.loads((folder / "all.json").read_text())["messages"][1]["text"] == "the answer"
    app.worker.join()


async def test_settings_of_the_chat_reach_the_engine(tmp_path: Path) -> None:
    app, backend = reopened(tmp_path, ["a"], ["b"], ["c"])
    async with app.run_test(size=(120, 30)) as pilot:
        await send(pilot, "one")
        await finished(pilot, 1)
        for command in ("/set temp 0.25", "/system Be brief."):
            await send(pilot, command)
            await until(pilot, lambda: status_says(app, "from the next answer on"))
            chat(app)._status.unsay()
        await send(pilot, "two")
        await finished(pilot, 2)
        assert backend.options[0] is None
        assert backend.options[1]
        assert backend.options[1].temp == 0.25
        assert backend.asked[1][0] == Message("system", "Be brief.")
        assert status_says(app, "temp 0.25")
        await send(pilot, "/set temp hot")
        await until(pilot, lambda: status_says(app, "number"))
        await send(pilot, "/set color red")
        await until(pilot, lambda: status_says(app, "There is no setting color"))
        with Store(tmp_path / STORE_FILE) as store:
            kept = store.load(store.chats()[0].id)
        assert (kept.system, kept.settings) == ("Be brief.", {"temp": 0.25})
    app.worker.join()


async def test_the_settings_screen_opens_and_leaves_everything_as_it_was(tmp_path: Path) -> None:
    app, _ = reopened(tmp_path)
    async with app.run_test(size=(100, 40)) as pilot:
        await pilot.press("ctrl+o")
        await until(pilot, lambda: isinstance(app.screen, SettingsScreen))
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, SettingsScreen))
        assert chat(app)._chat.settings == {}
    app.worker.join()


async def test_a_store_that_cannot_be_opened_costs_no_chat(tmp_path: Path) -> None:
    (tmp_path / STORE_FILE).write_bytes(b"this is no database, only some bytes" * 40)
    app, _ = reopened(tmp_path, ["the answer"])
    async with app.run_test(size=(120, 30)) as pilot:
        await until(pilot, lambda: "file is damaged" in seen(app))
        await send(pilot, "hi")
        await finished(pilot, 1)
        assert "the answer" in seen(app)
        assert "not saved" in seen(app).splitlines()[-3]
        await pilot.press("ctrl+r")
        await until(pilot, lambda: status_says(app, "none to open"))
    app.worker.join()


async def test_a_store_that_breaks_is_told_and_the_chat_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise UserError("The disk is full.")

    app, _ = reopened(tmp_path, ["first"], ["second"])
    async with app.run_test(size=(120, 30)) as pilot:
        await send(pilot, "one")
        await finished(pilot, 1)
        monkeypatch.setattr(Store, "save", fail)
        await send(pilot, "two")
        await finished(pilot, 2)
        await until(pilot, lambda: seen(app).count("This chat is not saved (The disk is full.)") == 1)
        assert "not saved" in seen(app).splitlines()[-3]
        assert "second" in seen(app)
    app.worker.join()


async def test_only_recent_messages_are_mounted_and_older_ones_come_with_scrolling(tmp_path: Path) -> None:
    fill(tmp_path, *((f"question {number}", f"answer {number}") for number in range(60)))
    app, _ = reopened(tmp_path, ["new"])
    async with app.run_test() as pilot:
        await until(pilot, lambda: "answer 59" in seen(app))
        await until(pilot, lambda: len(chat(app).query("Turn, Answer")) == 30)
        transcript = chat(app)._transcript
        await pilot.press(*["pageup"] * 12)
        await until(pilot, lambda: len(chat(app).query("Turn, Answer")) > 30)
        await until(pilot, lambda: transcript.scroll_y > 0)
        while transcript._first or transcript.scroll_y:
            await pilot.press("pageup")
        await until(pilot, lambda: "question 0" in seen(app))
        assert "is ready" in seen(app)
        await send(pilot, "more")
        await finished(pilot, len(chat(app).query(Answer)))
        assert "new" in seen(app)
    app.worker.join()


async def test_a_key_waits_for_a_few_messages_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening a chat and scrolling up put a handful of messages onto the screen at a time, and are laid out in between."""
    mounted: list[int] = []
    mount = Transcript._mount

    async def counted(self: Transcript, start: int, end: int, *rest: Any, **named: Any) -> None:
        mounted.append(end - start)
        await mount(self, start, end, *rest, **named)

    monkeypatch.setattr(Transcript, "_mount", counted)
    fill(tmp_path, *((f"question {number}", f"answer {number}\n" * 40) for number in range(60)))
    app, _ = reopened(tmp_path)
    async with app.run_test() as pilot:
        await until(pilot, lambda: len(chat(app).query("Turn, Answer")) == 30)
        transcript = chat(app)._transcript
        await until(pilot, lambda: not transcript._is_moving and transcript.is_vertical_scroll_end)
        before = transcript._first
        transcript.scroll_to(y=1, animate=False)
        await until(pilot, lambda: transcript._first < before and not transcript._is_moving)
        # What is read stays where it is: far below the new beginning.
        assert transcript.scroll_y > 100
    app.worker.join()
    assert max(mounted) <= 4
    assert sum(mounted) >= 60


async def test_the_first_message_is_selected_wherever_it_is(tmp_path: Path) -> None:
    fill(tmp_path, *((f"question {number}", f"answer {number}") for number in range(40)))
    app, _ = reopened(tmp_path)
    async with app.run_test() as pilot:
        await until(pilot, lambda: "answer 39" in seen(app))
        await pilot.press("ctrl+up", "home")
        await until(pilot, lambda: chat(app).query_one(".-chosen", Turn).words == "question 0")
        await until(pilot, lambda: "█ question 0" in seen(app))
        await pilot.press("end")
        await until(pilot, lambda: "answer 39" in seen(app))
    app.worker.join()


async def test_keys_in_quick_succession_scroll_to_the_last_that_was_asked_for(tmp_path: Path) -> None:
    """Whatever the first of them has not yet drawn."""
    fill(tmp_path, *((f"question {number}", f"answer {number}") for number in range(10)))
    app, _ = reopened(tmp_path)
    async with app.run_test() as pilot:
        await until(pilot, lambda: bool(chat(app)._transcript._path) and chat(app)._transcript._first == 0)
        chat(app)._transcript.choose_last()
        await until(pilot, lambda: "▌ question 9" in seen(app))
        transcript = chat(app)._transcript
        await transcript.action_move_to(0)
        await transcript.action_move_to(-1)
        await pilot.pause()
        assert "answer 9" in seen(app)
        await transcript.action_move_to(0)
        await pilot.pause()
        assert "█ question 0" in seen(app)
    app.worker.join()


async def test_a_very_long_answer_is_all_there(tmp_path: Path) -> None:
    lines = "".join(f"line {number} of a long answer\n\n" for number in range(2000))
    fill(tmp_path, ("long", lines))
    app, _ = reopened(tmp_path)
    async with app.run_test() as pilot:
        await until(pilot, lambda: "line 1999 of a long answer" in seen(app))
        assert len(chat(app).query("*")) < 400
        await pilot.press("ctrl+up", "y")
        assert app.clipboard == lines
    app.worker.join()


async def test_a_mark_shows_what_the_model_no_longer_sees(tmp_path: Path) -> None:
    fill(tmp_path, ("one", "first"), ("two", "second"))
    app, backend = reopened(tmp_path, ["third"], ["fourth"])
    backend.left_out = 2
    async with app.run_test(size=(100, 40)) as pilot:
        await send(pilot, "three")
        await finished(pilot, 3)
        lines = [line.strip() for line in seen(app).splitlines()]
        mark = next(place for place, line in enumerate(lines) if "no longer sees what is above" in line)
        assert any("first" in line for line in lines[:mark])
        assert any("two" in line for line in lines[mark:])
        backend.left_out = 0
        await send(pilot, "four")
        await finished(pilot, 4)
        assert "no longer sees" not in seen(app)
        assert [mark for mark in chat(app).query(Mark) if mark.display] == []
    app.worker.join()


async def test_a_dead_engine_is_started_again_and_the_chat_is_untouched() -> None:
    loads: list[ScriptedBackend | UserError] = [ScriptedBackend(["first"]), UserError("No memory is left.")]
    loads.append(ScriptedBackend(["second"]))

    def load(report: object) -> ScriptedBackend:
        loaded = loads.pop(0)
        if isinstance(loaded, UserError):
            raise loaded
        return loaded

    app = ChatApp(load)
    async with app.run_test(size=(100, 30)) as pilot:
        await send(pilot, "one")
        await finished(pilot, 1)
        app.worker._events.put(EngineGone("The engine has died."))
        await until(pilot, lambda: status_says(app, "the engine has stopped"))
        await send(pilot, "two")
        await until(pilot, lambda: status_says(app, "ctrl+r starts it again"))
        assert chat(app).query_one(Prompt).text == "two"
        chat(app)._status.unsay()
        await pilot.press("ctrl+r")
        await until(pilot, lambda: "No memory is left." in seen(app) and status_says(app, "the engine has stopped"))
        await pilot.press("ctrl+r")
        await until(pilot, lambda: chat(app)._loaded and not chat(app)._is_gone)
        await pilot.press("enter")
        await finished(pilot, 2)
        assert "first" in seen(app)
        assert "second" in seen(app)
    app.worker.join()


async def test_everything_is_in_the_command_palette() -> None:
    app, _ = app_with()
    async with app.run_test():
        screen = chat(app)
        names = [command.title for command in app.get_system_commands(screen)]
        assert len(names) == len(set(names))
        for command in app.get_system_commands(screen):
            assert callable(command.callback)
        assert {"Answer again", "Continue the answer", "Edit a message", "Earlier chats", "Settings"} <= set(names)
    app.worker.join()


async def test_colors_and_keys_are_those_of_the_config_file() -> None:
    backend = ScriptedBackend()
    look = {"theme": "textual-light", "keys": {"chat.new": "ctrl+b", "chat.nonsense": "x"}}
    app = ChatApp(lambda report: backend, look=look, start=Settings(temp=0.5))
    async with app.run_test(size=(120, 30)) as pilot:
        await until(pilot, lambda: "There is no chat.nonsense in [keys]" in seen(app))
        assert app.theme == "textual-light"
        await until(pilot, lambda: status_says(app, "temp 0.5"))
        assert "ctrl+b" in chat(app).active_bindings
    app.worker.join()


async def test_an_export_to_nobodys_home_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    app, _ = app_with(["an answer"])
    async with app.run_test(size=(120, 24)) as pilot:
        await send(pilot, "one")
        await finished(pilot, 1)
        await send(pilot, "/export ~nobody-at-all/chat.md")
        await until(pilot, lambda: status_says(app, "cannot be written"))
        await send(pilot, "/export ~chat.md")
        await until(pilot, lambda: (tmp_path / "chat.md").exists() or (tmp_path / "~chat.md").exists())
