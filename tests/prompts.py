"""An app that is a prompt with all that belongs to it."""

from __future__ import annotations

import inspect
from pathlib import Path

from textual.app import App, ComposeResult
from textual.widgets import Static

from localspec.chat.messages import Document
from localspec.tui.app import ChatApp
from localspec.tui.commands import Call, parse
from localspec.tui.widgets.prompt import Prompt
from localspec.tui.widgets.prompt_box import PromptBox


class PromptBoxApp(App[None]):
    """What is sent is accepted."""

    CSS_PATH = Path(inspect.getfile(ChatApp)).with_name(str(ChatApp.CSS_PATH))
    CSS = "#above { height: 1fr; }"

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[tuple[str, tuple[Document, ...]]] = []
        self.calls: list[Call] = []
        self.said: list[str] = []
        self.escapes = 0
        self.asked_to_quit = 0

    def compose(self) -> ComposeResult:
        yield Static(id="above")
        yield PromptBox(Prompt())

    @property
    def prompt(self) -> Prompt:
        return self.query_one(Prompt)

    def on_prompt_sent(self, event: Prompt.Sent) -> None:
        call = parse(event.text)
        if isinstance(call, Call):
            self.calls.append(call)
        else:
            self.sent.append((event.text, event.documents))
        self.prompt.accept()

    def on_prompt_said(self, event: Prompt.Said) -> None:
        self.said.append(event.sentence)

    def on_prompt_quit_asked(self) -> None:
        self.asked_to_quit += 1

    def key_escape(self) -> None:
        self.escapes += 1
