"""Commands and paths are completed while they are written."""

from pathlib import Path

import pytest
from textual.pilot import Pilot

from localspec.chat.messages import Document
from localspec.tui.commands import Call, Command
from localspec.tui.widgets.suggestions import Suggestions
from prompts import PromptBoxApp
from scripted import seen, until


def is_open(app: PromptBoxApp) -> bool:
    return app.query_one(Suggestions).display


def chosen(app: PromptBoxApp) -> str:
    suggestion = app.query_one(Suggestions).chosen
    return suggestion.value if suggestion else ""


async def typed(pilot: Pilot[None], app: PromptBoxApp, text: str) -> None:
    await pilot.press(*("space" if character == " " else character for character in text))
    await until(pilot, lambda: app.prompt.text.endswith(text))


async def test_a_slash_lists_commands_with_what_they_do_right_above_the_prompt() -> None:
    app = PromptBoxApp()
    async with app.run_test() as pilot:
        await typed(pilot, app, "/re")
        await until(pilot, lambda: "answer the last message again" in seen(app))
        lines = seen(app).splitlines()
        assert [line.split()[0] for line in lines if line.lstrip().startswith("/re")] == [
            "/regenerate",
            "/read",
            "/rewrite",
            "/resume",
            "/rename",
        ]
        assert "esc closes" in lines[next(at for at, line in enumerate(lines) if "╭" in line) - 1]
        await typed(pilot, app, "x")
        await until(pilot, lambda: not is_open(app))


async def test_enter_runs_the_marked_command() -> None:
    app = PromptBoxApp()
    async with app.run_test() as pilot:
        await typed(pilot, app, "/s")
        await until(pilot, lambda: is_open(app))
        assert chosen(app) == "/stop"
        await pilot.press("enter")
        await until(pilot, lambda: app.calls == [Call(Command.STOP)])
        assert app.prompt.text == ""
        await until(pilot, lambda: not is_open(app))


async def test_up_and_down_move_round_and_tab_completes() -> None:
    app = PromptBoxApp()
    async with app.run_test() as pilot:
        await typed(pilot, app, "/c")
        await until(pilot, lambda: is_open(app))
        marks = []
        for key in (*["down"] * 6, "up"):
            marks.append(chosen(app))
            await pilot.press(key)
        assert marks == ["/continue", "/copy", "/code", "/chats", "/colors", "/costs", "/continue"]
        assert chosen(app) == "/costs"
        await pilot.press("tab")
        assert app.prompt.text == "/costs"
        assert app.prompt.has_focus
        assert not is_open(app)
        assert app.calls == []
        await pilot.press("enter")
        await until(pilot, lambda: app.calls == [Call(Command.COSTS)])


@pytest.mark.parametrize("key", ["enter", "tab"])
async def test_a_command_that_needs_something_waits_for_it(key: str) -> None:
    app = PromptBoxApp()
    async with app.run_test() as pilot:
        await typed(pilot, app, "/ren")
        await pilot.press(key)
        await until(pilot, lambda: app.prompt.text == "/rename ")
        await typed(pilot, app, "my chat")
        await pilot.press("enter")
        await until(pilot, lambda: app.calls == [Call(Command.RENAME, "my chat")])


async def test_esc_closes_the_list_and_only_that() -> None:
    app = PromptBoxApp()
    async with app.run_test() as pilot:
        await typed(pilot, app, "/ne")
        await until(pilot, lambda: is_open(app))
        await pilot.press("escape")
        assert (is_open(app), app.prompt.text, app.escapes) == (False, "/ne", 0)
        await typed(pilot, app, "w")
        await pilot.pause()
        assert not is_open(app)
        await pilot.press("escape")
        await until(pilot, lambda: app.escapes == 1)
        await pilot.press("backspace", "backspace", "backspace", "backspace")
        await typed(pilot, app, "/")
        await until(pilot, lambda: is_open(app))


@pytest.mark.parametrize("text", ["a /", "//", " /", "/x", "/new x", "a@b"])
async def test_other_text_is_left_alone(text: str) -> None:
    app = PromptBoxApp()
    async with app.run_test() as pilot:
        await typed(pilot, app, text)
        await pilot.pause(0.05)
        assert not is_open(app)


async def test_what_comes_back_from_before_is_left_alone() -> None:
    app = PromptBoxApp()
    async with app.run_test() as pilot:
        for text in ("/new", "first"):
            app.prompt.text = text
            await pilot.press("enter")
            await until(pilot, lambda: app.prompt.text == "")
        await pilot.press("up", "up")
        await pilot.pause()
        assert (app.prompt.text, is_open(app)) == ("/new", False)
        await pilot.press("down", "down")
        assert app.prompt.text == ""


async def test_a_click_chooses() -> None:
    app = PromptBoxApp()
    async with app.run_test() as pilot:
        await typed(pilot, app, "/q")
        await until(pilot, lambda: is_open(app))
        await pilot.pause()
        await pilot.click(Suggestions, offset=(3, 0))
        await until(pilot, lambda: app.calls == [Call(Command.QUIT)])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be in."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main [x].py").write_text("print()\n")
    for number in range(12):
        (tmp_path / f"note{number:02}.md").write_text(f"note {number}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


async def test_a_file_is_found_and_becomes_a_document(folder: Path) -> None:
    app = PromptBoxApp()
    async with app.run_test() as pilot:
        await typed(pilot, app, "sum up @not")
        await until(pilot, lambda: is_open(app))
        assert "1 of 12" in seen(app)
        await pilot.press("up")
        await until(pilot, lambda: "note11.md" in seen(app))
        await pilot.press("tab")
        await until(pilot, lambda: app.prompt.documents == (Document("note11.md", "note 11"),))
        assert app.prompt.text == "sum up "
        assert not is_open(app)
        await pilot.press("enter")
        await until(pilot, lambda: app.sent == [("sum up ", (Document("note11.md", "note 11"),))])


async def test_a_folder_opens_and_names_are_shown_literally(folder: Path) -> None:
    app = PromptBoxApp()
    async with app.run_test() as pilot:
        await typed(pilot, app, "@sr")
        await until(pilot, lambda: chosen(app) == "src/")
        await pilot.press("enter")
        await until(pilot, lambda: app.prompt.text == "@src/" and chosen(app) == "src/main [x].py")
        await until(pilot, lambda: "src/main [x].py" in seen(app))
        await pilot.press("enter")
        await until(pilot, lambda: app.prompt.documents == (Document("main [x].py", "print()\n"),))
        assert app.sent == []
        await pilot.press("ctrl+z")
        assert app.prompt.text.startswith("@")


async def test_an_at_that_is_no_file_is_text(folder: Path) -> None:
    app = PromptBoxApp()
    async with app.run_test() as pilot:
        await typed(pilot, app, "thanks @nobody-here")
        await pilot.pause(0.05)
        assert not is_open(app)
        await pilot.press("enter")
        await until(pilot, lambda: app.sent == [("thanks @nobody-here", ())])


async def test_the_list_closes_when_the_cursor_leaves(folder: Path) -> None:
    app = PromptBoxApp()
    async with app.run_test() as pilot:
        await typed(pilot, app, "a @no")
        await until(pilot, lambda: is_open(app))
        await pilot.press("home")
        await until(pilot, lambda: not is_open(app))
        await pilot.press("end")
        await typed(pilot, app, "t")
        await until(pilot, lambda: is_open(app))
        await typed(pilot, app, " ")
        await until(pilot, lambda: not is_open(app))
