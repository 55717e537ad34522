"""The help: every figure and every command is explained."""

from pathlib import Path

from textual.app import App, ComposeResult
from textual.widgets import Static

import localspec.tui
from localspec.tui.commands import Command
from localspec.tui.screens.help import HelpScreen


class _App(App[None]):
    CSS_PATH = Path(localspec.tui.__file__).with_name("localspec.tcss")

    def compose(self) -> ComposeResult:
        yield Static("chat")


def _words(app: App[None]) -> str:
    return "\n".join(str(each.render()) for each in app.screen.query(Static))


async def test_every_command_and_every_figure_is_explained() -> None:
    app = _App()
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(HelpScreen())
        await pilot.pause()
        words = _words(app)
        for command in Command:
            assert command.usage in words
            assert command.description in words
        view = (
            "tokens/step",
            "tokens/s",
            "speedup",
            "draft length",
            "tokens of the last steps",
            "lookup",
            "draft model",
        )
        for figure in (*view, "accepted tokens of each draft", "now, answer, chat"):
            assert figure in words


async def test_it_scrolls_and_closes() -> None:
    app = _App()
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(HelpScreen())
        await pilot.pause()
        box = app.screen.query_one("#help")
        await pilot.press("down")
        assert box.scroll_y == 1
        await pilot.press("up")
        assert box.scroll_y == 0
        await pilot.press("escape")
        assert not isinstance(app.screen, HelpScreen)
