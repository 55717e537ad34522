"""What can be done with messages, with a scripted engine and a real store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot

from localspec.chat.messages import Document, Message
from localspec.chat.store import STORE_FILE, Store
from localspec.engine.errors import UserError
from localspec.tui.app import ChatApp
from localspec.tui.widgets.answer import Answer
from localspec.tui.widgets.prompt import Prompt
from localspec.tui.widgets.turn import Turn
from scripted import HOLD, Script, ScriptedBackend, chat, finished, loaded, seen, send, status_says, until


@asynccontextmanager
async def opened(data: Path, *scripts: Script) -> AsyncIterator[tuple[Pilot[None], ScriptedBackend]]:
    """A chat that keeps its messages in `data`."""
    backend = ScriptedBackend(*scripts)
    app = ChatApp(lambda report: backend, data)
    async with app.run_test() as pilot:
        await loaded(pilot)
        yield pilot, backend
    app.worker.join()
    app.close_store()


def saved(data: Path) -> list[str]:
    """The texts of the branch that is shown of the newest chat."""
    with Store(data / STORE_FILE) as store:
        return [entry.text for entry in store.load(store.chats()[0].id).thread.path()]


def shown(pilot: Pilot[None]) -> list[str]:
    """The messages on the screen."""
    widgets = chat(pilot.app).query("Turn, Answer").results()
    return [widget.words if isinstance(widget, Turn) else widget.text for widget in widgets]  # type: ignore[attr-defined]


def prompt(pilot: Pilot[None]) -> Prompt:
    return chat(pilot.app).query_one(Prompt)


async def ask(pilot: Pilot[None], words: str, answers: int) -> None:
    await send(pilot, words)
    await finished(pilot, answers)


async def test_messages_are_kept_with_their_figures(tmp_path: Path) -> None:
    async with opened(tmp_path, ["Hello ", "world."]) as (pilot, _):
        await ask(pilot, "hi", 1)
        assert saved(tmp_path) == ["hi", "Hello world."]
        with Store(tmp_path / STORE_FILE) as store:
            info = store.chats()[0]
            figures = store.load(info.id).thread.path()[-1].figures
            assert figures
            assert (info.title, info.model, figures["tokens"]) == ("hi", "big-model", 4)


async def test_the_message_is_saved_before_the_first_word_and_the_answer_while_it_grows(tmp_path: Path) -> None:
    async with opened(tmp_path, [HOLD, "late"], ["a part", HOLD, "rest"]) as (pilot, backend):
        await send(pilot, "hi")
        await until(pilot, lambda: backend.asked)
        assert saved(tmp_path) == ["hi"]
        backend.go.set()
        await finished(pilot, 1)
        backend.go.clear()
        await send(pilot, "more")
        await until(pilot, lambda: saved(tmp_path)[-1] == "a part")


async def test_leaving_in_the_middle_saves_what_is_written(tmp_path: Path) -> None:
    async with opened(tmp_path, ["a part", HOLD, "rest"]) as (pilot, _):
        await send(pilot, "hi")
        await until(pilot, lambda: "a part" in seen(pilot.app))
        await pilot.press("ctrl+q")
    assert saved(tmp_path) == ["hi", "a part"]


async def test_an_answer_is_regenerated_beside_the_old_one(tmp_path: Path) -> None:
    async with opened(tmp_path, ["first"], ["second"]) as (pilot, backend):
        await ask(pilot, "hi", 1)
        await pilot.press("ctrl+up", "r")
        await until(pilot, lambda: "second" in seen(pilot.app))
        await finished(pilot, 1)
        assert backend.asked[1] == [Message("user", "hi")]
        assert "2/2" in seen(pilot.app)
        assert "first" not in seen(pilot.app)
        await pilot.press("ctrl+up", "left")
        await until(pilot, lambda: "first" in seen(pilot.app))
        assert "1/2" in seen(pilot.app)
        assert saved(tmp_path) == ["hi", "first"]
        await pilot.press("right")
        await until(pilot, lambda: "second" in seen(pilot.app))
        assert saved(tmp_path) == ["hi", "second"]


async def test_a_message_of_the_person_is_edited_and_answered_in_a_branch(tmp_path: Path) -> None:
    async with opened(tmp_path, ["first"], ["second"], ["third"]) as (pilot, backend):
        await ask(pilot, "one", 1)
        await ask(pilot, "two", 2)
        prompt(pilot).text = "a draft"
        await pilot.press("ctrl+up", "up", "up", "up", "e")
        await until(pilot, lambda: prompt(pilot).text == "one")
        assert "editing message 1: enter saves, esc cancels" in seen(pilot.app)
        await pilot.press("!", "enter")
        await until(pilot, lambda: shown(pilot) == ["one!", "third"])
        assert backend.asked[2] == [Message("user", "one!")]
        assert prompt(pilot).text == "a draft"
        assert "editing" not in seen(pilot.app)
        await finished(pilot, 1)
        await pilot.press("ctrl+up", "up", "left")
        await until(pilot, lambda: shown(pilot) == ["one", "first", "two", "second"])


async def test_an_edit_is_left_with_escape_and_the_draft_is_there_again(tmp_path: Path) -> None:
    async with opened(tmp_path, ["first"]) as (pilot, _):
        await ask(pilot, "one", 1)
        prompt(pilot).text = "a draft"
        await pilot.press("ctrl+up", "up", "e", "x", "escape")
        await until(pilot, lambda: prompt(pilot).text == "a draft")
        assert shown(pilot) == ["one", "first"]
        await pilot.press("ctrl+up", "up", "e")
        await until(pilot, lambda: prompt(pilot).text == "onex")
        await pilot.press("ctrl+n")
        await until(pilot, lambda: prompt(pilot).text == "onex\na draft")
        assert "editing" not in seen(pilot.app)


async def test_an_edit_that_is_stopped_before_the_first_word_is_still_an_edit(tmp_path: Path) -> None:
    async with opened(tmp_path, ["first"], [HOLD, "late"], ["second"]) as (pilot, backend):
        await ask(pilot, "one", 1)
        await send(pilot, "/edit")
        await until(pilot, lambda: prompt(pilot).text == "one")
        await pilot.press("!", "enter")
        await until(pilot, lambda: len(backend.asked) == 2)
        await pilot.press("escape")
        await until(pilot, lambda: prompt(pilot).text == "one!")
        assert shown(pilot) == ["one", "first"]
        await pilot.press("enter")
        await until(pilot, lambda: shown(pilot) == ["one!", "second"])


async def test_an_answer_is_edited_and_goes_on_from_there(tmp_path: Path) -> None:
    async with opened(tmp_path, ["The sky is green"], [" because."]) as (pilot, backend):
        await ask(pilot, "hi", 1)
        await pilot.press("ctrl+up", "e")
        await until(pilot, lambda: prompt(pilot).text == "The sky is green")
        prompt(pilot).text = "The sky is blue"
        await pilot.press("enter")
        await until(pilot, lambda: shown(pilot) == ["hi", "The sky is blue"])
        assert "2/2   edited" in seen(pilot.app)
        assert len(backend.asked) == 1
        await pilot.press("ctrl+up", "c")
        await until(pilot, lambda: shown(pilot) == ["hi", "The sky is blue because."])
        assert backend.goes_on == [False, True]
        assert backend.asked[1][-1] == Message("assistant", "The sky is blue")
        await finished(pilot, 1)
        assert saved(tmp_path) == ["hi", "The sky is blue because."]


async def test_a_stopped_answer_is_continued_and_a_complete_one_is_not(tmp_path: Path) -> None:
    async with opened(tmp_path, ["A part", HOLD], [" and the rest."]) as (pilot, backend):
        await send(pilot, "hi")
        await until(pilot, lambda: "A part" in seen(pilot.app))
        await pilot.press("escape")
        await finished(pilot, 1)
        await send(pilot, "/continue")
        await until(pilot, lambda: "A part and the rest." in seen(pilot.app))
        await finished(pilot, 1)
        assert "stopped" not in seen(pilot.app)
        await send(pilot, "/continue")
        await until(pilot, lambda: status_says(pilot.app, "The model ended this answer itself"))
        assert len(backend.asked) == 2


async def test_messages_and_code_are_copied_without_thoughts(tmp_path: Path) -> None:
    answer = "<think>hm</think>\nRun:\n\n```sh\nls\n```\n\nor\n\n```sh\ndf\n```\n"
    async with opened(tmp_path, [answer]) as (pilot, _):
        await ask(pilot, "how", 1)
        await send(pilot, "/copy")
        await until(pilot, lambda: pilot.app.clipboard == answer.removeprefix("<think>hm</think>\n"))
        await pilot.press("ctrl+up", "b")
        assert pilot.app.clipboard == "ls"
        await pilot.press("b")
        assert pilot.app.clipboard == "df"
        await pilot.press("b")
        assert pilot.app.clipboard == "ls"
        await pilot.press("up", "y")
        assert pilot.app.clipboard == "how"


async def test_thoughts_are_folded_until_they_are_asked_for(tmp_path: Path) -> None:
    async with opened(tmp_path, ["<think>It is ", "a secret.</think>The answer."]) as (pilot, _):
        await ask(pilot, "hi", 1)
        assert "thought for 4 words" in seen(pilot.app)
        assert "a secret" not in seen(pilot.app)
        assert saved(tmp_path)[-1] == "<think>It is a secret.</think>The answer."
        await pilot.press("ctrl+up", "t")
        await until(pilot, lambda: "a secret" in seen(pilot.app))
        await pilot.press("t")
        await until(pilot, lambda: "a secret" not in seen(pilot.app))
        await pilot.click(".line")
        await until(pilot, lambda: "a secret" in seen(pilot.app))


async def test_typing_leaves_the_messages_and_loses_no_letter(tmp_path: Path) -> None:
    async with opened(tmp_path, ["first"]) as (pilot, _):
        await ask(pilot, "hi", 1)
        await pilot.click(Turn)
        await until(pilot, lambda: chat(pilot.app).query_one(Turn).has_class("-chosen"))
        assert status_says(pilot.app, "e edit")
        await pilot.press("w", "e", "r")
        await until(pilot, lambda: prompt(pilot).text == "wer")
        assert not chat(pilot.app).query(".-chosen")
        await pilot.press("ctrl+up", "escape", "a")
        await until(pilot, lambda: prompt(pilot).text == "wera")


async def test_actions_without_a_message_say_so(tmp_path: Path) -> None:
    async with opened(tmp_path) as (pilot, _):
        for command, sentence in (
            ("/regenerate", "nothing to answer yet"),
            ("/continue", "no answer to continue"),
            ("/edit", "no message to edit"),
            ("/copy", "no answer to copy"),
            ("/colors", "no answer yet"),
            ("/export", "nothing to export"),
        ):
            await send(pilot, command)
            await until(pilot, lambda sentence=sentence: status_says(pilot.app, sentence))  # type: ignore[misc]


async def test_nothing_is_branched_while_an_answer_is_written(tmp_path: Path) -> None:
    async with opened(tmp_path, ["part", HOLD, "rest"]) as (pilot, backend):
        await send(pilot, "hi")
        await until(pilot, lambda: "part" in seen(pilot.app))
        for key in "erc":
            await pilot.press("ctrl+up", key)
            await until(pilot, lambda: status_says(pilot.app, "still being written"))
            chat(pilot.app)._status.unsay()
        await pilot.press("escape", "escape")
        await finished(pilot, 1)
        assert len(backend.asked) == 1


async def test_a_refused_answer_to_a_regeneration_leaves_the_old_one(tmp_path: Path) -> None:
    async with opened(tmp_path, ["first"], [UserError("Too long; shorten it.")]) as (pilot, _):
        await ask(pilot, "hi", 1)
        await send(pilot, "/regen")
        await until(pilot, lambda: "Too long; shorten it." in seen(pilot.app))
        assert shown(pilot) == ["hi", "first"]
        assert prompt(pilot).text == ""


async def test_documents_go_along_and_come_back_with_the_message(tmp_path: Path) -> None:
    notes = Document("notes.txt", "one two three")
    async with opened(tmp_path, [UserError("Too long; shorten it.")], ["Read."]) as (pilot, backend):
        prompt(pilot).give_back("what is this", (notes,))
        await pilot.press("enter")
        await until(pilot, lambda: prompt(pilot).documents == (notes,))
        assert prompt(pilot).text == "what is this"
        await pilot.press("enter")
        await finished(pilot, 1)
        assert "notes.txt, 3 words" in seen(pilot.app)
        assert "one two three" in backend.asked[1][-1].content
        assert prompt(pilot).documents == ()
        await send(pilot, "/edit")
        await until(pilot, lambda: prompt(pilot).documents == (notes,))


async def test_the_tokens_of_an_answer_are_colored_by_who_drafted_them(tmp_path: Path) -> None:
    async with opened(tmp_path, ["**bold** words\n\n```sh\nls\n```\n"]) as (pilot, _):
        await ask(pilot, "hi", 1)
        await pilot.press("f3")
        await until(pilot, lambda: "**bold** words" in seen(pilot.app))
        assert "drafted by" in seen(pilot.app)
        assert seen(pilot.app).count("bold") == 1
        await pilot.press("f3")
        await until(pilot, lambda: "**bold** words" not in seen(pilot.app))
        assert seen(pilot.app).count("bold") == 1
        assert chat(pilot.app).query_one(Answer).text.startswith("**bold** words")


@pytest.mark.parametrize("width", [80, 120])
async def test_the_figures_of_speculation_come_and_go(tmp_path: Path, width: int) -> None:
    async with opened(tmp_path, ["words"]) as (pilot, _):
        await pilot.resize_terminal(width, 30)
        await ask(pilot, "hi", 1)
        before = seen(pilot.app)
        await pilot.press("f2")
        await until(pilot, lambda: seen(pilot.app).count("tokens/step") == 2)
        await pilot.press("f2")
        await until(pilot, lambda: seen(pilot.app) == before)
