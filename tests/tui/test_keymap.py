"""Keys of a person's own."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.screen import Screen
from textual.widgets import TextArea

from localspec.tui.keymap import Keymap, load_keymap
from localspec.tui.screens.chat import ChatScreen
from localspec.tui.screens.chats import ChatsScreen
from localspec.tui.widgets.chat_list import ChatList
from localspec.tui.widgets.prompt import Prompt

GROUPS = [(App, ChatScreen, Prompt), (App, ChatsScreen, ChatList)]


def keymap(toml: str) -> Keymap:
    return load_keymap(tomllib.loads(toml).get("keys"), GROUPS)


def test_keys_are_taken_over() -> None:
    found = keymap('[keys]\n"chat.new" = "ctrl+t"\n"chat.help" = "f1, ctrl+b"\n"chat.colors" = "f3"\n')
    assert found == Keymap({"chat.new": "ctrl+t", "chat.help": "f1,ctrl+b", "chat.colors": "f3"})
    assert found.sentence == ""


def test_no_table_is_no_problem() -> None:
    assert keymap("") == Keymap()


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('"chat.neww" = "ctrl+t"', "There is no chat.neww in [keys]: did you mean chat.new?"),
        ('"zzz" = "ctrl+t"', "There is no zzz in [keys]: there are chat."),
        ('"chat.new" = 3', 'chat.new in [keys] is not a key: write it as "ctrl+t".'),
        ('"chat.new" = " , "', 'chat.new in [keys] is not a key: write it as "ctrl+t".'),
        ('"chat.new" = "control t"', 'chat.new in [keys]: control t is not a key; write it as "ctrl+t".'),
        ('"chat.new" = "n"', "chat.new in [keys]: n is needed for writing; choose another key."),
        ('"chat.new" = "enter"', "chat.new in [keys]: enter is needed for writing; choose another key."),
        ('"chat.new" = "ctrl+q"', "ctrl+q in [keys] cannot be for both quit and chat.new: chat.new keeps its own key."),
        (
            '"chat.new" = "ctrl+r"',
            "ctrl+r in [keys] cannot be for both chat.chats and chat.new: chat.new keeps its own key.",
        ),
        (
            '"chat.new" = "ctrl+b"\n"chat.help" = "ctrl+b"',
            "ctrl+b in [keys] cannot be for both chat.new and chat.help: chat.help keeps its own key.",
        ),
    ],
)
def test_what_cannot_be_meant_is_one_sentence_and_costs_nothing_else(line: str, sentence: str) -> None:
    found = keymap(f'[keys]\n{line}\n"chat.speculation" = "ctrl+y"\n')
    assert found.problems[0].startswith(sentence)
    assert len(found.problems) == 1
    assert found.keys["chat.speculation"] == "ctrl+y"


def test_keys_can_change_places_and_screens_have_keys_of_their_own() -> None:
    swapped = keymap('[keys]\n"chat.new" = "ctrl+r"\n"chat.chats" = "ctrl+n"\n"chats.rename" = "ctrl+n"\n')
    assert (len(swapped.keys), swapped.problems) == (3, [])


def test_a_key_may_be_given_to_what_has_it_already() -> None:
    assert keymap('[keys]\n"chat.interrupt" = "ctrl+c"\n').problems == []


def test_many_problems_are_still_one_message() -> None:
    found = keymap('[keys]\na = "x"\nb = "y"\nc = "z"\n')
    assert found.sentence.endswith(" 2 more lines need a change, too.")
    assert keymap("keys = 3").sentence.startswith("keys in config.toml is not a table")


@given(
    st.dictionaries(
        st.sampled_from(["chat.new", "chat.help", "chats.rename", "x"]) | st.text(),
        st.text(max_size=20) | st.sampled_from(["ctrl+n", "ctrl+r", "f1", "ctrl+t,f9"]) | st.integers(),
    )
)
def test_any_table_gives_keys_that_nobody_else_has(table: dict[str, object]) -> None:
    found = load_keymap(table, GROUPS)
    assert found.keys.keys() <= table.keys()
    assert len(found.keys) + len(found.problems) == len(table)


class Page(Screen[None]):
    """Writes what was done into the text."""

    BINDINGS = [
        Binding("f5", "note('new')", id="page.new", priority=True),
        Binding("f6", "note('help')", id="page.help", priority=True),
    ]

    def compose(self) -> ComposeResult:
        yield TextArea()

    def action_note(self, word: str) -> None:
        self.query_one(TextArea).insert(word)


Page.__module__ = "localspec.page"


async def test_the_app_does_what_the_keys_say() -> None:
    app: App[None] = App()
    found = load_keymap({"page.new": "f6", "page.help": "ctrl+b"}, [(Page,)])
    async with app.run_test() as pilot:
        app.set_keymap(found.keys)
        await app.push_screen(Page())
        await pilot.press("f6", "f5", "ctrl+b")
        assert app.screen.query_one(TextArea).text == "newhelp"
