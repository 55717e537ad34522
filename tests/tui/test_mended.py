"""What Textual does not survive by itself: this app does."""

from __future__ import annotations

import codecs
import itertools
import os
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events
from textual._context import active_message_pump
from textual._xterm_parser import XTermParser
from textual.app import App, ComposeResult
from textual.content import Content
from textual.css.query import NoMatches
from textual.message import Message
from textual.screen import Screen
from textual.widget import MountError
from textual.widgets import Static, TextArea

from localspec.tui.mended import PasteParser, is_late, mend
from scripted import app_with, loaded, seen, send, until

TEXTS = st.text(
    st.characters(exclude_characters="\0\ufdd0", exclude_categories=["Cs"]) | st.sampled_from("\x1b[~0123;")
)


@pytest.fixture(autouse=True)
def mended() -> None:
    mend()
    mend()


def parsed(parser: XTermParser, text: str, cuts: list[int]) -> Iterator[Message]:
    """What comes of a text that arrives in pieces."""
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    for start, end in itertools.pairwise(places):
        yield from parser.feed(text[start:end])
    yield from parser.feed("")


@given(TEXTS.filter(lambda text: text and "\x1b[201~" not in text), st.lists(st.integers(0, 500)))
def test_a_paste_is_text_whatever_is_in_it(text: str, cuts: list[int]) -> None:
    came = list(parsed(PasteParser(), f"a\x1b[200~{text}\x1b[201~b", cuts))
    assert [event.text for event in came if isinstance(event, events.Paste)] == [text]
    assert [event.key for event in came if isinstance(event, events.Key)] == ["a", "b"]


def test_keys_hidden_in_a_paste_are_the_fault_that_is_mended() -> None:
    """When Textual has mended it, this can go."""
    came = list(parsed(XTermParser(), "\x1b[200~first \x1b line \x11 tail\x1b[201~", []))
    assert "ctrl+q" in [event.key for event in came if isinstance(event, events.Key)]


@given(st.lists(st.sampled_from(["\x1b", "\x1b[A", "x", "\x11", "\x1b[20", "\x1b[200", "\x1b[<0;3;4M", "é"])))
def test_keys_stay_keys(keys: list[str]) -> None:
    ours, theirs = PasteParser(), XTermParser()
    came = [[repr(event) for key in keys for event in parser.feed(key)] for parser in (ours, theirs)]
    assert came[0] == came[1]


@pytest.mark.skipif(os.name != "posix", reason="Windows gives text, not bytes")
def test_bytes_that_are_no_text_are_shown_as_such() -> None:
    from textual.drivers import linux_driver

    decoder = vars(linux_driver)["getincrementaldecoder"]("utf-8")()
    assert decoder.decode(b"x\xe9y \xf0\x9f") + decoder.decode(b"\x98\x80", final=True) == "x\ufffdy \U0001f600"
    assert codecs.getincrementaldecoder("utf-8")().errors == "strict"
    assert vars(linux_driver)["XTermParser"] is PasteParser


def test_there_is_always_room_for_one_character() -> None:
    assert [line.plain for line in Content("ab").wrap(0)] == ["a", "b"]


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5])
async def test_the_chat_survives_any_width(width: int) -> None:
    app, _ = app_with(["words"])
    async with app.run_test() as pilot:
        await loaded(pilot)
        await pilot.resize_terminal(width, 3)
        await pilot.pause()
        await pilot.press("ctrl+p")
        await pilot.pause()
        await pilot.press("escape")
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: "Write here." in seen(app))
    app.worker.join()


async def test_what_comes_too_late_for_a_screen_that_was_left_is_nothing() -> None:
    """A list that is closed at once has no widgets any more when it wants to show what it holds."""
    app, _ = app_with(["words"])
    async with app.run_test() as pilot:
        await loaded(pilot)
        left: Screen[None] = Screen()
        await app.push_screen(left)
        await app.pop_screen()
        before = active_message_pump.set(left)
        try:
            assert is_late(NoMatches("#chats-none")) and is_late(MountError("no place"))
            assert not is_late(ValueError("another fault"))
            app._handle_exception(NoMatches("#chats-none"))
        finally:
            active_message_pump.reset(before)
        await send(pilot, "still there?")
        await until(pilot, lambda: "words" in seen(app))
    app.worker.join()


async def test_what_is_missing_on_a_screen_that_is_there_is_a_fault() -> None:
    class Wrong(Screen[None]):
        def on_mount(self) -> None:
            self.query_one("#nothing")

    app, _ = app_with(["words"])
    with pytest.raises(NoMatches):
        async with app.run_test() as pilot:
            await loaded(pilot)
            app.push_screen(Wrong())
            await pilot.pause()
    app.worker.close()
    app.worker.join()


class Editor(App[None]):
    """A text area that says what may be written."""

    def compose(self) -> ComposeResult:
        yield TextArea(placeholder="Write here.")
        yield Static("words")


async def test_a_text_area_without_width() -> None:
    app = Editor()
    async with app.run_test(size=(1, 4)) as pilot:
        await pilot.pause()
        assert app.is_running
