"""The saved chats, as a person finds, renames, deletes and exports them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, OptionList

from localspec.chat.new_file import file_stem, write_new
from localspec.chat.store import Store
from localspec.chat.thread import Thread
from localspec.engine.errors import UserError
from localspec.tui.dates import when
from localspec.tui.screens.chats import ChatsScreen
from scripted import seen, until
from stage import Stage


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "chats.db") as store:
        yield store


def put(store: Store, question: str, answer: str = "Fine.", model: str = "big-model") -> int:
    """A chat of two messages."""
    chat, thread = store.create(model), Thread()
    store.save(chat, thread.add("user", question, after=None))
    store.save(chat, thread.add("assistant", answer, after=thread.leaf))
    return chat


def titles(app: Stage) -> list[str]:
    """The titles in the list, as far as they are in view."""
    return re.findall(r"^.*?│?\s*(\w[\w .?-]*?)\s+today \d\d:\d\d", seen(app), re.MULTILINE)


async def typed(pilot: Pilot[None], words: str) -> None:
    await pilot.press(*("space" if letter == " " else letter for letter in words))
    await pilot.pause(0.15)


async def test_the_newest_chat_is_first_and_enter_opens_it(store: Store) -> None:
    put(store, "Old one")
    newest = put(store, "New one", model="tiny.Q4_1")
    app = Stage(ChatsScreen(store))
    async with app.run_test() as pilot:
        await until(pilot, lambda: titles(app) == ["New one", "Old one"])
        assert "2 messages, tiny.Q4_1" in seen(app)
        await pilot.press("enter")
        await until(pilot, lambda: app.results)
    assert app.results == [newest]


async def test_down_and_enter_open_the_one_below(store: Store) -> None:
    old = put(store, "Old one")
    put(store, "New one")
    app = Stage(ChatsScreen(store))
    async with app.run_test() as pilot:
        await pilot.press("down", "enter")
        await until(pilot, lambda: app.results)
    assert app.results == [old]


@pytest.mark.parametrize("keys", [["escape"], ["ctrl+c"], ["down", "escape"]])
async def test_esc_opens_none(store: Store, keys: list[str]) -> None:
    put(store, "A chat")
    app = Stage(ChatsScreen(store))
    async with app.run_test() as pilot:
        await pilot.press(*keys)
        await until(pilot, lambda: app.results)
    assert app.results == [None]


async def test_typing_searches_every_message_and_shows_where(store: Store) -> None:
    put(store, "A question", "The capital of Mongolia is Ulaanbaatar.")
    put(store, "Something else")
    app = Stage(ChatsScreen(store))
    async with app.run_test() as pilot:
        await typed(pilot, "ulaan")
        await until(pilot, lambda: titles(app) == ["A question"])
        assert "Mongolia is Ulaanbaatar" in seen(app)
        await typed(pilot, "zz")
        assert "Nothing has the words ulaanzz." in seen(app)
        await pilot.press("enter", *["backspace"] * 7)
        await until(pilot, lambda: titles(app) == ["Something else", "A question"])
    assert app.results == []


async def test_enter_right_after_a_word_opens_what_the_word_finds(store: Store) -> None:
    wanted = put(store, "bread")
    put(store, "newer")
    app = Stage(ChatsScreen(store))
    async with app.run_test() as pilot:
        await pilot.press(*"bread", "enter")
        await until(pilot, lambda: app.results)
    assert app.results == [wanted]


async def test_letters_typed_in_the_list_are_for_the_search(store: Store) -> None:
    put(store, "bread")
    put(store, "newer")
    app = Stage(ChatsScreen(store))
    async with app.run_test() as pilot:
        await pilot.press("down", "up", "down")
        await typed(pilot, "bread")
        await until(pilot, lambda: titles(app) == ["bread"])
        assert app.screen.query_one("#chats-search", Input).value == "bread"


async def test_up_leads_back_to_the_search_and_down_ends_at_the_last(store: Store) -> None:
    put(store, "one")
    put(store, "two")
    app = Stage(ChatsScreen(store))
    async with app.run_test() as pilot:
        await pilot.press("down", "down", "down")
        chats = app.screen.query_one(OptionList)
        assert (chats.highlighted, chats.has_focus) == (1, True)
        await pilot.press("up", "up")
        assert app.focused is app.screen.query_one("#chats-search")


@pytest.mark.parametrize("key", ["f2", "ctrl+e"])
async def test_a_chat_is_renamed_where_it_stands(store: Store, key: str) -> None:
    put(store, "Old one")
    put(store, "New one")
    app = Stage(ChatsScreen(store))
    async with app.run_test() as pilot:
        await pilot.press("down", key)
        await typed(pilot, " more")
        assert "Old one more" in seen(app)
        assert "esc leaves it as it was" in seen(app)
        await pilot.press("enter")
        await until(pilot, lambda: titles(app) == ["New one", "Old one more"])
        assert app.screen.query_one(OptionList).highlighted == 1
    assert [info.title for info in store.chats()] == ["New one", "Old one more"]
    assert app.results == []


async def test_esc_keeps_the_old_title_and_the_list_open(store: Store) -> None:
    put(store, "A chat")
    app = Stage(ChatsScreen(store))
    async with app.run_test() as pilot:
        await pilot.press("f2", "x", "escape")
        await until(pilot, lambda: titles(app) == ["A chat"])
        assert not app.screen.query("#chat-title")
    assert ([info.title for info in store.chats()], app.results) == (["A chat"], [])


async def test_a_title_that_is_left_is_kept(store: Store) -> None:
    put(store, "A chat")
    app = Stage(ChatsScreen(store))
    async with app.run_test() as pilot:
        await pilot.press("f2", "x", "tab")
        await until(pilot, lambda: titles(app) == ["A chatx"])
        await pilot.press("f2", "y")
        await pilot.resize_terminal(60, 20)
        await until(pilot, lambda: titles(app) == ["A chatxy"])


async def test_deleted_chats_come_back_one_after_the_other(store: Store) -> None:
    for name in ("one", "two", "three"):
        put(store, name)
    app = Stage(ChatsScreen(store))
    async with app.run_test() as pilot:
        await pilot.press("down", "delete")
        await until(pilot, lambda: titles(app) == ["three", "one"])
        assert "two deleted; u or ctrl+z brings it back." in seen(app)
        await pilot.press("delete")
        await until(pilot, lambda: titles(app) == ["three"])
        await pilot.press("u", "ctrl+z")
        await until(pilot, lambda: titles(app) == ["three", "two", "one"])
        assert "two is back." in seen(app)
        await pilot.press("u")
        assert "Nothing was deleted since this list was opened." in seen(app)
    assert [info.title for info in store.chats()] == ["three", "two", "one"]


async def test_the_last_chat_can_be_deleted_and_brought_back(store: Store) -> None:
    put(store, "one")
    app = Stage(ChatsScreen(store))
    async with app.run_test() as pilot:
        await pilot.press("down", "up", "down", "delete")
        await until(pilot, lambda: "No chat has been saved yet." in seen(app))
        assert "one deleted; ctrl+z brings it back." in seen(app)
        await pilot.press("enter", "f2", "ctrl+s", "ctrl+z")
        await until(pilot, lambda: titles(app) == ["one"])


async def test_delete_in_the_search_deletes_a_letter_only(store: Store) -> None:
    put(store, "one")
    app = Stage(ChatsScreen(store))
    async with app.run_test() as pilot:
        await pilot.press("o", "n", "home", "delete", "delete", "delete")
        await pilot.pause(0.15)
        assert titles(app) == ["one"]
    assert len(store.chats()) == 1


async def test_the_open_chat_is_marked_and_cannot_be_deleted(store: Store) -> None:
    open_chat = put(store, "one")
    put(store, "two")
    app = Stage(ChatsScreen(store, current=open_chat))
    async with app.run_test() as pilot:
        await pilot.press("down", "delete")
        await until(pilot, lambda: "This chat is open: begin a new one before you delete it." in seen(app))
        assert "open now" in seen(app)
    assert len(store.chats()) == 2


@pytest.mark.parametrize("keys", [["ctrl+s"], ["down", "x"]])
async def test_an_export_never_overwrites_a_file(store: Store, tmp_path: Path, keys: list[str]) -> None:
    put(store, "How to bake?", "Heat it **slowly**.")
    (tmp_path / "How-to-bake.md").write_text("mine")
    app = Stage(ChatsScreen(store, folder=tmp_path))
    async with app.run_test(size=(160, 30)) as pilot:
        await pilot.press(*keys)
        await until(pilot, lambda: f"Written to {tmp_path / 'How-to-bake-2.md'}."[:60] in seen(app))
    assert (tmp_path / "How-to-bake.md").read_text() == "mine"
    assert "Heat it **slowly**." in (tmp_path / "How-to-bake-2.md").read_text()


async def test_what_goes_wrong_is_one_sentence(store: Store, tmp_path: Path) -> None:
    put(store, "one")
    app = Stage(ChatsScreen(store, folder=tmp_path / "missing"))
    async with app.run_test(size=(160, 30)) as pilot:
        await pilot.press("ctrl+s")
        # The sentence names a path of any length, so that it breaks anywhere.
        await until(pilot, lambda: "cannot be written" in " ".join(seen(app).replace("│", " ").split()))
        store.delete(1)
        await pilot.press("down", "delete")
        await until(pilot, lambda: "Chat 1 has been deleted" in seen(app))
        await pilot.press("ctrl+s")
        await pilot.pause()


async def test_titles_words_and_models_are_shown_literally(store: Store) -> None:
    put(store, "[bold]loud[/] [/INST] \x1b[2Jgone", "[red]found[/red]", model="[link=x]model[/link]")
    app = Stage(ChatsScreen(store))
    async with app.run_test(size=(100, 24)) as pilot:
        await until(pilot, lambda: "[bold]loud[/] [/INST]" in seen(app))
        assert "2 messages, [link=x]model[/link]" in seen(app)
        assert "\x1b" not in seen(app)
        await typed(pilot, "found")
        await until(pilot, lambda: "[red]found[/red]" in seen(app))
        await pilot.press(*["backspace"] * 5)
        await typed(pilot, "[/b]")
        await pilot.press("down", "delete", "u")
        await pilot.pause(0.15)


@pytest.mark.parametrize("size", [(80, 24), (40, 12), (20, 8)])
async def test_two_thousand_chats_are_gone_through_at_any_size(
    store: Store, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, "one")
    info = store.chats()[0]
    many = [replace(info, id=number, title=f"Chat {number}") for number in range(1, 2001)]
    monkeypatch.setattr(store, "chats", lambda search, limit: many[:limit])
    app = Stage(ChatsScreen(store))
    async with app.run_test(size=size) as pilot:
        await pilot.press("down", "end")
        assert app.screen.query_one(OptionList).option_count == 2000
        await until(pilot, lambda: "Chat 2000"[:6] in seen(app))
        await pilot.press("enter")
        await until(pilot, lambda: app.results)
    assert app.results == [2000]


def test_times_are_said_as_a_person_would() -> None:
    now = datetime(2026, 3, 1, 9, 30).astimezone()

    def said(**ago: float) -> str:
        return when((now - timedelta(**ago)).timestamp(), now)

    assert said(minutes=5) == "today 09:25"
    assert said(hours=10) == "yesterday"
    assert said(days=2) == "27 Feb"
    assert said(days=70) == "21 Dec 2025"
    assert when(1e300, now) == ""


@pytest.mark.parametrize(
    ("title", "stem"),
    [
        ("How do I bake bread?", "How-do-I-bake-bread"),
        ("../../etc/passwd", "etc-passwd"),
        ("日本語の文法", "日本語の文法"),
        ("...", "chat"),
        ("", "chat"),
        ("CON", "chat-CON"),
        ("a" * 300, "a" * 60),
        ("\x1b[2J\ud800", "2J"),
    ],
)
def test_a_title_becomes_a_name_that_every_file_system_takes(title: str, stem: str) -> None:
    assert file_stem(title) == stem


def test_every_export_is_a_file_of_its_own(tmp_path: Path) -> None:
    written = [write_new(tmp_path, "A", ".md", f"{number}\ud800") for number in range(3)]
    assert [path.name for path in written] == ["A.md", "A-2.md", "A-3.md"]
    assert [path.read_text() for path in written] == ["0?", "1?", "2?"]
    with pytest.raises(UserError, match="cannot be written"):
        write_new(tmp_path / "A.md", "B", ".md", "")
