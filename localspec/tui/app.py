"""The app: one screen over one engine."""

from collections.abc import Iterable

from textual.app import App, SystemCommand
from textual.screen import Screen

from localspec.tui.backend import Load
from localspec.tui.engine_worker import EngineWorker
from localspec.tui.screens.chat import ChatScreen
from localspec.tui.widgets.answer import OLD_ANSWERS


class ChatApp(App[None]):
    """A chat. Whoever runs it joins `worker` afterwards, which frees the engine."""

    CSS_PATH = "localspec.tcss"
    TITLE = "localspec"

    def __init__(self, load: Load) -> None:
        super().__init__()
        self.console.push_theme(OLD_ANSWERS)
        self.worker = EngineWorker(load)

    def get_default_screen(self) -> Screen[None]:
        """The chat."""
        return ChatScreen(self.worker)

    def on_unmount(self) -> None:
        """Whatever the engine does ends now."""
        self.worker.close()

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """What the command palette offers."""
        if isinstance(screen, ChatScreen):
            yield SystemCommand("New chat", "Forget this conversation and begin another", screen.action_new_chat)
            yield SystemCommand("Stop", "Stop the answer; what is written stays", screen.action_stop)
            yield SystemCommand("Help", "The keys, and what the figures mean", screen.action_help)
        yield SystemCommand("Theme", "Choose the colors", self.action_change_theme)
        yield SystemCommand("Quit", "Leave", self.action_quit)
