"""The rewrite screen, opened for a document, and what is done there in every test."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from textual.app import App
from textual.pilot import Pilot

from localspec.chat.messages import Document
from localspec.tui.app import ChatApp
from localspec.tui.screens.rewrite import RewriteScreen
from localspec.tui.widgets.chips import Chip
from localspec.tui.widgets.prompt import Prompt
from scripted import Script, ScriptedBackend, chat, seen, until

SIZES = [(80, 24), (120, 40)]
SOURCE = "The [bold]quik[/bold] fox jumps.\n\nThe lasy dog sleps all day.\n"
RESULT = "The [bold]quick[/bold] fox jumps.\n\nThe lazy dog sleeps all day.\n"
NAME = "story.md"


@contextlib.asynccontextmanager
async def rewriting(
    data: Path, size: tuple[int, int], *scripts: Script, path: Path | None = None
) -> AsyncIterator[tuple[ChatApp, Pilot[None], ScriptedBackend]]:
    """The screen, opened for a document that is attached."""
    backend = ScriptedBackend(*scripts)
    app = ChatApp(lambda report: backend, data)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: chat(app)._loaded)
        chat(app).query_one(Prompt).chips.insert(0, Chip.of(Document(NAME, SOURCE, path)))
        await pilot.press("f6", "w")
        await until(pilot, lambda: isinstance(app.screen, RewriteScreen))
        yield app, pilot, backend
    app.worker.join()
    app.close_store()


def pieces(text: str) -> list[str]:
    """As a model would write it."""
    return [text[start : start + 9] for start in range(0, len(text), 9)]


def screen(app: App[None]) -> RewriteScreen:
    """The rewrite screen, also under a dialog."""
    return next(shown for shown in app.screen_stack if isinstance(shown, RewriteScreen))


async def instruct(pilot: Pilot[None], words: str) -> None:
    """Write an instruction and begin."""
    screen(pilot.app)._instruction.put(words)
    screen(pilot.app)._instruction.focus()
    await pilot.press("enter")


async def reviewed(pilot: Pilot[None], words: str = "change 1 of 3") -> None:
    """Wait until the changes are there."""
    await until(pilot, lambda: words in seen(pilot.app))
