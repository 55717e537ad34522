"""An app that keeps its chats in a folder, and what is on its screen and in its file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from textual.app import App
from textual.pilot import Pilot

from localspec.chat.store import STORE_FILE, Store
from localspec.tui.app import ChatApp
from localspec.tui.unsent import Unsent
from localspec.tui.widgets.prompt import Prompt
from localspec.tui.widgets.status import Status
from localspec.tui.widgets.turn import Turn
from scripted import Script, ScriptedBackend, chat, seen, until


@asynccontextmanager
async def opened(data: Path, *scripts: Script) -> AsyncIterator[tuple[Pilot[None], ScriptedBackend]]:
    """A chat that keeps its messages in `data`. What it says stays on the screen, however busy the machine is."""
    backend = ScriptedBackend(*scripts)
    app = ChatApp(lambda report: backend, data)
    usual, Status.MESSAGE_SECONDS = Status.MESSAGE_SECONDS, 600.0
    try:
        async with app.run_test(size=(160, 40)) as pilot:
            await until(pilot, lambda: chat(app)._loaded)
            yield pilot, backend
        app.worker.join()
        app.close_store()
    finally:
        Status.MESSAGE_SECONDS = usual


def said(app: App[None]) -> str:
    """All that is on the screen, on one line."""
    return " ".join(seen(app).replace("▌", " ").split())


def shown(app: App[None]) -> list[str]:
    """The messages on the screen."""
    widgets = chat(app).query("Turn, Answer").results()
    return [widget.words if isinstance(widget, Turn) else widget.text for widget in widgets]  # type: ignore[attr-defined]


def prompt(app: App[None]) -> Prompt:
    return chat(app).query_one(Prompt)


def saved(data: Path) -> list[str]:
    """The texts of the branch that is shown of the newest chat."""
    with Store(data / STORE_FILE) as store:
        return [entry.text for entry in store.load(store.chats()[0].id).thread.path()]


def unsent(data: Path) -> str:
    """What stands in the prompt at the next start."""
    kept = Unsent(data)
    text = kept.take().text
    kept.close()
    return text
