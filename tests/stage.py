"""An app that shows one dialog and nothing else."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from textual.app import App
from textual.screen import Screen

from localspec.tui.app import ChatApp


class Stage(App[None]):
    """`results` is what the dialog was dismissed with."""

    CSS_PATH = Path(inspect.getfile(ChatApp)).with_name(str(ChatApp.CSS_PATH))

    def __init__(self, screen: Screen[Any]) -> None:
        super().__init__()
        self._shown = screen
        self.results: list[Any] = []

    def on_mount(self) -> None:
        self.push_screen(self._shown, self.results.append)
