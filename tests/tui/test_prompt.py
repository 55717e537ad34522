"""Where the person writes."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual import events
from textual.app import App, ComposeResult
from textual.widgets import TextArea

from localspec.chat.messages import Document
from localspec.tui.widgets.prompt import Prompt
from scripted import until


class PromptApp(App[None]):
    """Nothing but a prompt; what is sent is accepted."""

    CSS = "Prompt { height: auto; max-height: 10; }"

    def __init__(self, history: Path | None = None) -> None:
        super().__init__()
        self.sent: list[str] = []
        self._history = history
        self.said: list[str] = []
        self.asked_to_quit = 0

    def compose(self) -> ComposeResult:
        yield Prompt(self._history)

    @property
    def prompt(self) -> Prompt:
        return self.query_one(Prompt)

    def on_prompt_sent(self, event: Prompt.Sent) -> None:
        self.sent.append(event.text)
        self.prompt.accept()

    def on_prompt_said(self, event: Prompt.Said) -> None:
        self.said.append(event.sentence)

    def on_prompt_quit_asked(self) -> None:
        self.asked_to_quit += 1


async def test_enter_sends_and_ctrl_j_makes_a_new_line() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        await pilot.press("a", "ctrl+j", "b", "shift+enter", "c", "enter")
        await until(pilot, lambda: app.sent)
        assert app.sent == ["a\nb\nc"]
        assert app.prompt.text == ""


async def test_nothing_is_not_sent() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        await pilot.press("space", "enter")
        await pilot.pause(0.05)
        assert app.sent == []


async def test_an_enter_within_a_burst_of_keys_is_a_line_end() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        for key, character in (("a", "a"), ("enter", "\r"), ("enter", "\r"), ("b", "b")):
            app.prompt.post_message(events.Key(key, character))
        await until(pilot, lambda: app.prompt.text == "a\n\nb")
        await pilot.pause(0.05)
        assert app.sent == []


async def test_a_short_paste_goes_in_as_it_is_and_is_not_sent() -> None:
    app = PromptApp()
    text = "\n".join(f"line {number} [red] {'x' * 40}" for number in range(8))
    async with app.run_test() as pilot:
        await pilot.press("a", "b", "left")
        app.prompt.post_message(events.Paste(text))
        await until(pilot, lambda: app.prompt.text == f"a{text}b")
        assert app.sent == []
        assert app.prompt.get_cursor_right_location()[0] == 7


async def test_control_characters_of_a_paste_are_made_visible() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        app.prompt.post_message(events.Paste("a\r\n\x1b[31mb\x00\ud800"))
        await until(pilot, lambda: app.prompt.text == "a\n␛[31mb␀\ufffd")


async def test_a_paste_replaces_what_is_selected() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        app.prompt.text = "old"
        app.prompt.select_all()
        app.prompt.post_message(events.Paste("new"))
        await until(pilot, lambda: app.prompt.text == "new")


async def test_up_and_down_go_through_what_was_sent_from_the_first_and_last_line_only() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        for text in ("one", "two\nlines"):
            app.prompt.text = text
            await pilot.press("enter")
            await until(pilot, lambda text=text: text in app.sent)
        await pilot.press("x", "up")
        assert app.prompt.text == "two\nlines"
        assert app.prompt.cursor_at_end_of_text
        await pilot.press("up")
        assert app.prompt.text == "two\nlines"
        assert app.prompt.cursor_location[0] == 0
        await pilot.press("up")
        assert app.prompt.text == "one"
        await pilot.press("down", "down", "down")
        assert app.prompt.text == "x"


async def test_up_moves_within_a_wrapped_line_first() -> None:
    app = PromptApp()
    async with app.run_test(size=(20, 20)) as pilot:
        app.prompt.text = "sent"
        await pilot.press("enter")
        await until(pilot, lambda: app.sent)
        app.prompt.text = "word " * 8
        await pilot.pause()
        app.prompt.move_cursor(app.prompt.document.end)
        await pilot.press("up")
        assert app.prompt.text != "sent"


async def test_text_that_was_not_taken_comes_back_before_what_was_written_since() -> None:
    app = PromptApp()
    async with app.run_test():
        app.prompt.give_back("first")
        assert app.prompt.text == "first"
        app.prompt.text = "second"
        app.prompt.give_back("first")
        assert app.prompt.text == "first\nsecond"


async def test_ctrl_d_deletes_and_asks_to_quit_only_when_there_is_nothing() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        await pilot.press("a", "left", "ctrl+d")
        assert (app.prompt.text, app.asked_to_quit) == ("", 0)
        await pilot.press("ctrl+d")
        assert app.asked_to_quit == 1


async def test_it_grows_with_the_text_up_to_eight_lines() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        heights = []
        for lines in (1, 3, 8, 30):
            app.prompt.text = "\n".join(["x"] * lines)
            await pilot.pause()
            heights.append(app.prompt.content_size.height)
        assert heights == [1, 3, 8, 8]
        assert isinstance(app.prompt, TextArea)


async def test_what_was_sent_is_there_after_the_next_start(tmp_path: Path) -> None:
    app = PromptApp(tmp_path / "history.jsonl")
    async with app.run_test() as pilot:
        app.prompt.text = "words [of] mine"
        await pilot.press("enter")
        await until(pilot, lambda: app.sent)
    again = PromptApp(tmp_path / "history.jsonl")
    async with again.run_test() as pilot:
        await pilot.press("x", "up")
        assert again.prompt.text == "words [of] mine"
        await pilot.press("down")
        assert again.prompt.text == "x"


async def test_what_is_typed_before_the_screen_takes_the_text_stays() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        app.prompt.text = "sent"
        app.prompt.move_cursor(app.prompt.document.end)
        app.prompt._send()
        app.prompt.insert(" and more")
        await until(pilot, lambda: app.sent)
        assert app.sent == ["sent"]
        assert app.prompt.text == " and more"
        await pilot.press("up")
        assert app.prompt.text == "sent"


async def test_put_replaces_everything() -> None:
    app = PromptApp()
    async with app.run_test():
        app.prompt.give_back("old", (Document("old", "x"),))
        app.prompt.put("new", (Document("new", "y"),))
        assert app.prompt.text == "new"
        assert app.prompt.documents == (Document("new", "y"),)


@contextlib.contextmanager
def suspend(app: App[None]) -> Iterator[None]:
    """An app that hands over its terminal."""
    yield


async def test_ctrl_g_writes_in_the_editor_and_can_be_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "editor.py"
    script.write_text(
        "import pathlib, sys; p = pathlib.Path(sys.argv[1]); p.write_text(p.read_text() + ' more\\x1b\\n')"
    )
    monkeypatch.setenv("VISUAL", f"{sys.executable} {script}")
    monkeypatch.setattr(App, "suspend", suspend)
    app = PromptApp()
    async with app.run_test() as pilot:
        app.prompt.text = "some"
        await pilot.press("ctrl+g")
        assert app.prompt.text == "some more␛"
        assert app.prompt.cursor_at_end_of_text
        await pilot.press("ctrl+z")
        assert app.prompt.text == "some"


async def test_without_an_editor_the_text_stays_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)
    app = PromptApp()
    async with app.run_test() as pilot:
        app.prompt.text = "some"
        await pilot.press("ctrl+g")
        await until(pilot, lambda: app.said)
        assert app.said == ["No editor is set: set EDITOR to one, for example EDITOR=nano."]
        assert app.prompt.text == "some"
