"""The app: one screen over one engine."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path

from textual.app import App, SystemCommand
from textual.screen import Screen

from localspec.chat.kept_states import FOLDER, drop_unknown
from localspec.chat.store import STORE_FILE, Store
from localspec.engine.errors import UserError
from localspec.settings import Settings, make_private
from localspec.tui.backend import Load
from localspec.tui.engine_worker import EngineWorker
from localspec.tui.hangup import save_before_leaving
from localspec.tui.keymap import load_keymap
from localspec.tui.open_chat import OpenChat
from localspec.tui.screens.chat import ChatScreen
from localspec.tui.screens.chats import ChatsScreen
from localspec.tui.screens.settings import SettingsScreen
from localspec.tui.widgets.answer import OLD_ANSWERS
from localspec.tui.widgets.chat_list import ChatList
from localspec.tui.widgets.prompt import Prompt
from localspec.tui.widgets.transcript import Transcript

_HISTORY_FILE = "history.jsonl"

_KEY_GROUPS = ((ChatScreen, Prompt), (ChatScreen, Transcript), (ChatsScreen, ChatList), (SettingsScreen,))
"""What has keys at the same time."""

_COMMANDS = (
    ("New chat", "Begin another chat; this one is kept", "new_chat"),
    ("Earlier chats", "Search, open, rename, delete", "chats"),
    ("Stop", "Stop the answer; what is written stays", "stop"),
    ("Select a message", "Go up into the messages with the arrow keys", "choose_message"),
    ("Answer again", "Another answer, in a branch beside the old one", "regenerate"),
    ("Continue the answer", "Go on where it was stopped or cut off", "go_on"),
    ("Edit a message", "Change the selected or your last message, and go on from there", "edit"),
    ("Copy the message", "The selected or the last answer", "copy_message"),
    ("Copy the code", "The next block of code in it", "copy_code"),
    ("Branch before", "Of the selected message", "branch(-1)"),
    ("Branch after", "Of the selected message", "branch(1)"),
    ("Open the thoughts", "What the model thought before it answered; or fold it again", "thoughts"),
    ("Export the chat", "Write it to a Markdown file", "export"),
    ("Figures of speculation", "Show or hide what guessing ahead brings", "speculation"),
    ("Who drafted what", "Color the words of the answer by who drafted them", "colors"),
    ("What a pass costs", "The cost curve of this machine", "costs"),
    ("Settings", "See and change all of them", "settings"),
    ("Help", "The keys, and what the figures mean", "help"),
)


class ChatApp(App[None]):
    """A chat. Whoever runs it joins `worker` afterwards, which frees the engine."""

    CSS_PATH = "localspec.tcss"
    TITLE = "localspec"

    def __init__(
        self,
        load: Load,
        data: Path | None = None,
        cache: Path | None = None,
        *,
        goes_on: bool = False,
        start: Settings | None = None,
        look: Mapping[str, object] | None = None,
    ) -> None:
        """`data`: the folder for what must not be lost; None keeps nothing. `cache`: the one for what can be made again.
        `goes_on`: with the last chat. `start`: what the program was started with. `look`: `theme` and `keys` of
        config.toml."""
        super().__init__()
        self.console.push_theme(OLD_ANSWERS)
        self.worker = EngineWorker(load)
        self.chat = OpenChat(None)
        self._data, self._start, self._look = data, start or Settings(), look or {}
        self._trouble = self._open(data, cache, goes_on) if data else ""

    def get_default_screen(self) -> Screen[None]:
        """The chat."""
        keymap = load_keymap(self._look.get("keys"), _KEY_GROUPS)
        self.set_keymap(keymap.keys)
        trouble = [sentence for sentence in (self._trouble, keymap.sentence) if sentence]
        history = self._data / _HISTORY_FILE if self._data else None
        return ChatScreen(self.worker, self.chat, self._start, history, trouble)

    def on_mount(self) -> None:
        """The person's own colors."""
        theme = self._look.get("theme")
        if isinstance(theme, str) and theme in self.available_themes:
            self.theme = theme
        if not self.is_headless:
            save_before_leaving(self._save, self.exit)

    def on_unmount(self) -> None:
        """Whatever the engine does ends now."""
        self.worker.close()

    def _save(self) -> None:
        """All that is on the screen and not saved yet."""
        for screen in self.screen_stack:
            if isinstance(screen, ChatScreen):
                screen.on_unmount()

    def close_store(self) -> None:
        """When nothing more is to be saved."""
        if self.chat.store:
            self.chat.store.close()

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """What the command palette offers."""
        if isinstance(screen, ChatScreen):
            for title, words, action in _COMMANDS:
                yield SystemCommand(title, words, _runner(screen, action))
        yield SystemCommand("Theme", "Choose the colors", self.action_change_theme)
        yield SystemCommand("Quit", "Leave", self.action_quit)

    def _open(self, data: Path, cache: Path | None, goes_on: bool) -> str:
        """Why chats cannot be kept or the last one not be opened; empty when all is well."""
        try:
            self.chat.store = store = Store(make_private(data) / STORE_FILE)
            if cache:
                drop_unknown(cache / FOLDER, [info.id for info in store.chats(limit=sys.maxsize)])
            if goes_on and (last := self.chat.store.chats(limit=1)):
                self.chat.load(last[0].id)
        except UserError as error:
            self.chat.troubled = self.chat.store is None
            return f"{error} This chat is not saved." if self.chat.troubled else str(error)
        return ""


def _runner(screen: ChatScreen, action: str) -> Callable[[], Awaitable[None]]:
    async def run() -> None:
        await screen.run_action(action)

    return run
