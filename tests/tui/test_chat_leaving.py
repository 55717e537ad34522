"""Leaving a chat in the middle of something: nothing that was typed gets lost, and nothing gets into the wrong chat."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from test_chat_messages import ask, opened, prompt, saved, shown

from localspec.chat.messages import Document, Message
from localspec.chat.store import STORE_FILE, Store
from localspec.tui.screens.chat import ChatScreen
from localspec.tui.unsent import Draft, Unsent
from localspec.tui.widgets.prompt import Prompt
from scripted import HOLD, chat, finished, seen, send, until


async def test_an_edit_that_was_left_is_there_again_with_its_chat(tmp_path: Path) -> None:
    async with opened(tmp_path, ["first"]) as (pilot, _):
        await ask(pilot, "one", 1)
        await pilot.press("ctrl+up", "up", "e", "x", "escape")
        await pilot.press("ctrl+n")
        await until(pilot, lambda: shown(pilot) == [])
        assert prompt(pilot).text == ""
        await chat(pilot.app).open_chat(1)
        await send(pilot, "/edit")
        await until(pilot, lambda: prompt(pilot).text == "onex")


async def test_an_edit_that_was_left_outlives_the_app(tmp_path: Path) -> None:
    """What was written for a message, and left with esc, is there at the next start when the message is edited again."""
    async with opened(tmp_path, ["first"]) as (pilot, _):
        await ask(pilot, "one", 1)
        await pilot.press("ctrl+up", "up", "e", "x", "escape")
        await pilot.press("ctrl+q")
    async with opened(tmp_path) as (pilot, _):
        assert prompt(pilot).text == ""
        await chat(pilot.app).open_chat(1)
        await send(pilot, "/edit")
        await until(pilot, lambda: prompt(pilot).text == "onex")


async def test_an_edit_that_changed_nothing_leaves_only_the_draft(tmp_path: Path) -> None:
    async with opened(tmp_path, ["first"]) as (pilot, _):
        await ask(pilot, "one", 1)
        prompt(pilot).text = "a draft"
        await pilot.press("ctrl+up", "up", "e")
        await until(pilot, lambda: prompt(pilot).text == "one")
        await pilot.press("ctrl+n")
        await until(pilot, lambda: prompt(pilot).text == "a draft")


async def test_quitting_keeps_an_edit_and_the_draft_behind_it(tmp_path: Path) -> None:
    notes, more = Document("notes.txt", "one two three"), Document("more.txt", "four")
    async with opened(tmp_path, ["first"]) as (pilot, _):
        prompt(pilot).give_back("one", (notes,))
        await pilot.press("enter")
        await finished(pilot, 1)
        prompt(pilot).give_back("a draft", (more,))
        await pilot.press("ctrl+up", "up", "e", "x")
        await until(pilot, lambda: prompt(pilot).text == "onex")
        await pilot.press("ctrl+q")
    assert Unsent(tmp_path).take() == Draft("onex\na draft", (notes, more))


async def test_a_sent_edit_goes_along_into_the_next_chat_as_plain_text(tmp_path: Path) -> None:
    async with opened(tmp_path, ["first"], [HOLD, "late"], ["second"]) as (pilot, backend):
        await ask(pilot, "one", 1)
        prompt(pilot).text = "a draft"
        await pilot.press("ctrl+up", "up", "e", "!", "enter")
        await until(pilot, lambda: len(backend.asked) == 2)
        await pilot.press("ctrl+n")
        await until(pilot, lambda: prompt(pilot).text == "one!\na draft")
        assert shown(pilot) == []
        assert "editing" not in seen(pilot.app)
        await pilot.press("enter")
        await until(pilot, lambda: shown(pilot) == ["one!\na draft", "second"])
        await finished(pilot, 1)
        assert backend.asked[2] == [Message("user", "one!\na draft")]
    with Store(tmp_path / STORE_FILE) as store:
        assert [entry.text for entry in store.load(1).thread.entries.values()] == ["one", "first"]


class Gate:
    """Keeps what is to be shown from the screen until it is `opened`."""

    def __init__(self, screen: ChatScreen) -> None:
        self.reached, self.opened = asyncio.Event(), asyncio.Event()
        self._show = screen._transcript.show
        screen._transcript.show = self._wait  # type: ignore[method-assign]

    async def _wait(self, *arguments: Any) -> None:
        self.reached.set()
        await self.opened.wait()
        await self._show(*arguments)


async def test_a_new_chat_while_a_message_comes_onto_the_screen_gives_it_back(tmp_path: Path) -> None:
    async with opened(tmp_path, [HOLD, "words"], ["words"]) as (pilot, backend):
        gate = Gate(chat(pilot.app))
        prompt(pilot).text = "hi"
        pilot.app.simulate_key("enter")
        await gate.reached.wait()
        pilot.app.simulate_key("ctrl+n")
        # The key is taken meanwhile, and whatever it sets off.
        await asyncio.sleep(0.1)
        gate.opened.set()
        await until(pilot, lambda: prompt(pilot).text == "hi")
        backend.go.set()
        await pilot.press("enter")
        await until(pilot, lambda: shown(pilot) == ["hi", "words"])
        await finished(pilot, 1)
    assert saved(tmp_path) == ["hi", "words"]


async def test_a_message_sent_while_a_new_chat_comes_onto_the_screen_is_answered_there(tmp_path: Path) -> None:
    async with opened(tmp_path, ["first"], ["second"]) as (pilot, backend):
        await ask(pilot, "one", 1)
        gate = Gate(chat(pilot.app))
        pilot.app.simulate_key("ctrl+n")
        await gate.reached.wait()
        chat(pilot.app).post_message(Prompt.Sent("two"))
        await asyncio.sleep(0.1)
        gate.opened.set()
        await until(pilot, lambda: shown(pilot) == ["two", "second"])
        await finished(pilot, 1)
        assert backend.asked[1] == [Message("user", "two")]


async def test_a_message_sent_while_the_chat_is_left_is_given_back(tmp_path: Path) -> None:
    async with opened(tmp_path, [HOLD, "late"]) as (pilot, backend):
        await send(pilot, "one")
        await until(pilot, lambda: len(backend.asked) == 1)
        gate = Gate(chat(pilot.app))
        pilot.app.simulate_key("ctrl+n")
        await gate.reached.wait()
        prompt(pilot).text = "two"
        chat(pilot.app).post_message(Prompt.Sent("two"))
        await asyncio.sleep(0.1)
        gate.opened.set()
        await until(pilot, lambda: sorted(prompt(pilot).text.split("\n")) == ["one", "two"])
        assert shown(pilot) == []
        assert len(backend.asked) == 1
