"""Documents go along with what is written."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual import events
from textual.app import App
from textual.pilot import Pilot

from localspec.chat.messages import Document
from prompts import PromptBoxApp
from scripted import seen, until

LONG = "words [red] and more\r\n" * 50


async def paste(pilot: Pilot[None], app: PromptBoxApp, text: str, name: str) -> None:
    app.prompt.post_message(events.Paste(text))
    await until(pilot, lambda: name in names(app))


def names(app: PromptBoxApp) -> list[str]:
    return [document.name for document in app.prompt.documents]


async def test_a_long_paste_is_a_document_and_not_text() -> None:
    app = PromptBoxApp()
    async with app.run_test() as pilot:
        await pilot.press("h", "i")
        await paste(pilot, app, LONG, "pasted 1")
        assert app.prompt.text == "hi"
        assert app.prompt.documents == (Document("pasted 1", LONG.replace("\r\n", "\n")),)
        await until(pilot, lambda: "pasted 1  200 words, ~263 tokens" in seen(app))
        await pilot.press("enter")
        await until(pilot, lambda: app.sent)
        assert app.sent == [("hi", (Document("pasted 1", LONG.replace("\r\n", "\n")),))]
        assert app.prompt.documents == ()
        await until(pilot, lambda: "pasted" not in seen(app))


async def test_a_megabyte_is_there_and_the_text_stays_empty() -> None:
    app = PromptBoxApp()
    async with app.run_test() as pilot:
        await paste(pilot, app, "x" * 1_000_000, "pasted 1")
        assert app.prompt.text == ""
        await until(pilot, lambda: "1 word, ~250,000 tokens" in seen(app))


async def test_documents_alone_can_be_sent_and_nothing_goes_to_the_history() -> None:
    app = PromptBoxApp()
    async with app.run_test() as pilot:
        await paste(pilot, app, LONG, "pasted 1")
        await paste(pilot, app, LONG, "pasted 2")
        await pilot.press("enter")
        await until(pilot, lambda: app.sent)
        assert [document.name for document in app.sent[0][1]] == ["pasted 1", "pasted 2"]
        await pilot.press("up")
        assert app.prompt.text == ""


async def test_backspace_at_the_start_takes_the_last_one_away_and_undo_brings_it_back() -> None:
    app = PromptBoxApp()
    async with app.run_test() as pilot:
        await paste(pilot, app, LONG, "pasted 1")
        await paste(pilot, app, LONG, "pasted 2")
        await pilot.press("a", "b", "backspace")
        assert (app.prompt.text, names(app)) == ("a", ["pasted 1", "pasted 2"])
        await pilot.press("home", "backspace", "backspace", "backspace")
        assert (app.prompt.text, names(app)) == ("a", [])
        assert "ctrl+z" in app.said[0]
        await pilot.press("x")
        await pilot.press("ctrl+z")
        assert (app.prompt.text, names(app)) == ("a", [])
        await pilot.press("ctrl+z")
        assert names(app) == ["pasted 1"]
        await pilot.press("ctrl+z")
        assert names(app) == ["pasted 1", "pasted 2"]
        assert app.prompt.documents[1].text == LONG.replace("\r\n", "\n")


async def test_a_document_comes_back_even_when_the_text_can_no_longer_be_undone() -> None:
    app = PromptBoxApp()
    async with app.run_test() as pilot:
        await paste(pilot, app, LONG, "pasted 1")
        await pilot.press("backspace")
        app.prompt.text = "another text"
        await pilot.press("ctrl+z")
        assert names(app) == ["pasted 1"]


async def test_ctrl_d_does_not_quit_while_there_is_a_document() -> None:
    app = PromptBoxApp()
    async with app.run_test() as pilot:
        await paste(pilot, app, LONG, "pasted 1")
        await pilot.press("ctrl+d")
        assert app.asked_to_quit == 0
        await pilot.press("backspace", "ctrl+d")
        assert app.asked_to_quit == 1


async def test_what_was_not_sent_comes_back_before_what_is_there() -> None:
    app = PromptBoxApp()
    async with app.run_test() as pilot:
        await paste(pilot, app, LONG, "pasted 1")
        await pilot.press("b")
        app.prompt.give_back("a", (Document("one", "1"), Document("two", "2")))
        assert app.prompt.text == "a\nb"
        assert names(app) == ["one", "two", "pasted 1"]
        app.prompt.give_back("", (Document("zero", "0"),))
        assert app.prompt.text == "a\nb"


async def test_a_command_leaves_documents_where_they_are() -> None:
    app = PromptBoxApp()
    async with app.run_test() as pilot:
        await paste(pilot, app, LONG, "pasted 1")
        app.prompt.text = "/rename x"
        await pilot.press("enter")
        await until(pilot, lambda: app.calls)
        assert (app.prompt.text, names(app)) == ("", ["pasted 1"])


async def test_a_long_paste_after_a_command_is_its_argument() -> None:
    app = PromptBoxApp()
    async with app.run_test() as pilot:
        await pilot.press(*"/system", "space")
        app.prompt.post_message(events.Paste(LONG))
        await until(pilot, lambda: app.prompt.text == f"/system {LONG}".replace("\r\n", "\n"))
        assert names(app) == []


async def test_files_are_attached_once_and_what_goes_wrong_is_said(tmp_path: Path) -> None:
    app = PromptBoxApp()
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "my notes.md").write_text(f"in {folder}")
    async with app.run_test() as pilot:
        app.prompt.attach(f"'{tmp_path}/a/my notes.md'")
        await until(pilot, lambda: names(app) == ["my notes.md"])
        app.prompt.attach(tmp_path / "a" / "my notes.md")
        await until(pilot, lambda: app.said == ["my notes.md is attached already."])
        app.prompt.attach(tmp_path / "b" / "my notes.md")
        await until(pilot, lambda: names(app) == ["my notes.md", str(tmp_path / "b" / "my notes.md")])
        app.prompt.attach(tmp_path / "missing")
        await until(pilot, lambda: app.said[1:] == [f"There is no file {tmp_path / 'missing'}; check the path."])


async def test_a_file_that_breaks_reading_does_not_stop_sending(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(path: Path) -> Document:
        raise MemoryError

    monkeypatch.setattr("localspec.tui.widgets.prompt.read_document", broken)
    app = PromptBoxApp()
    async with app.run_test() as pilot:
        app.prompt.attach("notes.md")
        await until(pilot, lambda: app.said)
        assert app.said == ["notes.md cannot be read; the log says why."]
        await pilot.press("a", "enter")
        await until(pilot, lambda: app.sent == [("a", ())])


async def test_nothing_is_sent_while_a_file_is_being_read(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("x")
    app = PromptBoxApp()
    async with app.run_test() as pilot:
        app.prompt.text = "words"
        app.prompt.attach(tmp_path / "notes.md")
        app.prompt._send()
        await until(pilot, lambda: names(app) and app.said)
        assert "still being read" in app.said[0]
        assert app.sent == []
        await pilot.press("enter")
        await until(pilot, lambda: app.sent == [("words", (Document("notes.md", "x"),))])


async def test_only_the_newest_are_shown_and_a_too_long_one_says_so() -> None:
    app = PromptBoxApp()
    async with app.run_test() as pilot:
        app.prompt.chips.show_room(180)
        app.prompt.give_back("", [Document(f"[b]name {number}\x1b", "x" * 100 * number) for number in range(7)])
        await until(pilot, lambda: "and 4 more" in seen(app))
        assert "[b]name 5␛" in seen(app)
        assert "name 3" not in seen(app)
        assert "too long" in next(line for line in seen(app).splitlines() if "name 5" in line)
        assert "too long" not in next(line for line in seen(app).splitlines() if "name 4" in line)
        assert "f6" in next(line for line in seen(app).splitlines() if "name 6" in line)


@contextlib.contextmanager
def suspend(app: App[None]) -> Iterator[None]:
    """An app that hands over its terminal."""
    yield


async def test_f4_edits_the_last_in_the_editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "editor.py"
    script.write_text("import pathlib, sys; p = pathlib.Path(sys.argv[1]); p.write_text(p.read_text().upper())")
    monkeypatch.setenv("VISUAL", f"{sys.executable} {script}")
    monkeypatch.setattr(App, "suspend", suspend)
    app = PromptBoxApp()
    async with app.run_test() as pilot:
        app.prompt.give_back("", [Document("one", "first"), Document("two", "second")])
        await pilot.press("f4")
        assert app.prompt.documents == (Document("one", "first"), Document("two", "SECOND"))


async def test_emptied_in_the_editor_it_goes_and_can_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "editor.py"
    script.write_text("import pathlib, sys; pathlib.Path(sys.argv[1]).write_text('')")
    monkeypatch.setenv("VISUAL", f"{sys.executable} {script}")
    monkeypatch.setattr(App, "suspend", suspend)
    app = PromptBoxApp()
    async with app.run_test() as pilot:
        app.prompt.give_back("", [Document("one", "first")])
        await pilot.press("f4")
        assert app.prompt.documents == ()
        await pilot.press("ctrl+z")
        assert app.prompt.documents == (Document("one", "first"),)


async def test_without_an_editor_a_short_one_opens_in_the_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)
    app = PromptBoxApp()
    async with app.run_test() as pilot:
        await pilot.press("f4", "a")
        assert "no document" in app.said[0]
        app.prompt.chips.show_room(100)
        app.prompt.give_back("", [Document("long", "x" * 100_000), Document("short", "a\r\nb\x1b")])
        await pilot.press("f4")
        assert (app.prompt.text, names(app)) == ("a\nb␛\na", ["long"])
        await pilot.press("f4")
        await until(pilot, lambda: "too long" in app.said[-1])
        assert names(app) == ["long"]
        await pilot.press("ctrl+z")
        await pilot.press("ctrl+z")
        assert (app.prompt.text, names(app)) == ("a", ["long", "short"])
