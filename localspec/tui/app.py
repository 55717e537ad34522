"""The app: one screen over one engine."""

from __future__ import annotations

import logging
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path

from textual.app import App, SystemCommand
from textual.filter import LineFilter
from textual.screen import Screen

from localspec.chat.kept_states import FOLDER, drop_unknown
from localspec.chat.store import STORE_FILE, Store
from localspec.engine.errors import UserError
from localspec.settings import Settings, make_private
from localspec.tui.backend import Load
from localspec.tui.choosing import Choosing, LaterLoad, first_pair, needs_a_model, same_pair
from localspec.tui.downloads import Downloads
from localspec.tui.engine_worker import EngineWorker
from localspec.tui.gone import keep_no_lines, keep_no_watchers
from localspec.tui.hangup import save_before_leaving
from localspec.tui.keymap import load_keymap
from localspec.tui.literal import OnlyText
from localspec.tui.markdown import OLD_ANSWERS
from localspec.tui.mended import is_late, mend
from localspec.tui.open_chat import KEY_SECONDS, OpenChat
from localspec.tui.screens.chat import ChatScreen
from localspec.tui.screens.chats import ChatsScreen
from localspec.tui.screens.models import ModelsScreen
from localspec.tui.screens.rewrite import RewriteScreen
from localspec.tui.screens.rewrite_base import ResultPane
from localspec.tui.screens.settings import SettingsScreen
from localspec.tui.screens.unsaved import UnsavedScreen
from localspec.tui.widgets.chat_list import ChatList
from localspec.tui.widgets.chips import Chips
from localspec.tui.widgets.model_list import ModelList
from localspec.tui.widgets.prompt import Prompt
from localspec.tui.widgets.transcript import Transcript

_log = logging.getLogger("localspec.tui")
_HISTORY_FILE = "history.jsonl"
_ONLY_TEXT = OnlyText()
_START_SECONDS = 1.0
"""So long may the screen wait for another program that is writing to the chats."""

_KEY_GROUPS = (
    (ChatScreen, Prompt),
    (ChatScreen, Transcript),
    (ChatScreen, Chips),
    (ChatsScreen, ChatList),
    (ModelsScreen, ModelList),
    (SettingsScreen,),
    (RewriteScreen, ResultPane),
)
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
    ("Rewrite a document", "An instruction in, the rewritten text out, and what has changed", "rewrite"),
    ("Documents", "View, rename, rewrite, edit or remove what is attached", "documents"),
    ("Export the chat", "Write it to a Markdown file", "export"),
    ("Figures of speculation", "Show or hide what guessing ahead brings", "speculation"),
    ("Who drafted what", "Color the words of the answer by who drafted them", "colors"),
    ("What a pass costs", "The cost curve of this machine", "costs"),
    ("Models", "See, download and delete models, and choose who answers", "models"),
    ("Settings", "See and change all of them", "settings"),
    ("Help", "The keys, and what the figures mean", "help"),
)
_REWRITE_COMMANDS = (
    ("Continue the writing", "Of a version that was stopped, or broke off", "go_on"),
    ("Accept all changes", "The text becomes what was written", "decide_all(True)"),
    ("Reject all changes", "The text stays what it was", "decide_all(False)"),
    ("Refine the text", "Another instruction for what is accepted", "refine"),
    ("Edit the text", "By hand: a version of its own", "edit"),
    ("Copy the text", "With what is accepted", "copy"),
    ("Save the text", "Into the file it came from, or another one", "save"),
    ("Version before", "Of this text", "version(-1)"),
    ("Version after", "Of this text", "version(1)"),
    ("Figures of speculation", "Show or hide what guessing ahead brings", "speculation"),
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
        choosing: Choosing | None = None,
    ) -> None:
        """`data`: the folder for what must not be lost; None keeps nothing. `cache`: the one for what can be made again.
        `goes_on`: with the last chat. `start`: what the program was started with, which `load` loads. `look`: `theme`, `keys`
        and `rewrite` of config.toml. `choosing`: how other models are found and loaded; None: they cannot be changed."""
        super().__init__()
        mend()
        keep_no_lines()
        self.console.push_theme(OLD_ANSWERS)
        self.chat = OpenChat(None)
        self._data, self._start, self.look = data, start or Settings(), look or {}
        self._trouble = self._open(data, cache, goes_on) if data else ""
        self._choosing, self.downloads = choosing, Downloads(choosing.folders) if choosing else None
        self._first_pair, self._later = self._start, None
        if choosing:
            self._first_pair = first_pair(self._start, self.chat.settings)
            if needs_a_model(self._first_pair, choosing.folders):
                load = self._later = LaterLoad()
            elif not same_pair(self._first_pair, self._start):
                load = choosing.loader(self._first_pair)
        self.worker = EngineWorker(load)

    def get_default_screen(self) -> Screen[None]:
        """The chat."""
        keymap = load_keymap(self.look.get("keys"), _KEY_GROUPS)
        self.set_keymap(keymap.keys)
        trouble = [sentence for sentence in (self._trouble, keymap.sentence) if sentence]
        history = self._data / _HISTORY_FILE if self._data else None
        screen = ChatScreen(self.worker, self.chat, self._start, history, trouble)
        if self._choosing and self.downloads:
            screen.choose_models(self._choosing, self.downloads, self._first_pair, self._later)
        return screen

    def _handle_exception(self, error: Exception) -> None:
        """What comes too late for a screen that was left is nothing; anything else ends the app, and is in the log too."""
        if is_late(error):
            _log.info("too late for a screen that was left: %r", error)
            return
        _log.error("the app ends", exc_info=error)
        super()._handle_exception(error)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """What every line of every widget goes through: at the end, what is no text is left out."""
        return [*super().get_line_filters(), _ONLY_TEXT]

    def on_mount(self) -> None:
        """The person's own colors."""
        self.screen_change_signal.subscribe(self, lambda _screen: keep_no_watchers(self), immediate=True)
        theme = self.look.get("theme")
        if isinstance(theme, str) and theme in self.available_themes:
            self.theme = theme
        if not self.is_headless:
            save_before_leaving(self._save, self.exit)

    async def action_quit(self) -> None:
        """Leave; a chat that could not be saved is asked about before."""
        if isinstance(self.screen, UnsavedScreen):
            return
        screen = self.screen_stack[0]
        if isinstance(screen, ChatScreen):
            self.run_worker(screen.quit(), group="quit", exclusive=True)
        else:
            self.exit()

    def on_unmount(self) -> None:
        """Whatever the engine does ends now, and what is downloaded stops."""
        self.worker.close()
        if self.downloads:
            self.downloads.stop()

    def _save(self) -> None:
        """All that is on the screen and not saved yet."""
        for screen in self.screen_stack:
            if isinstance(screen, ChatScreen):
                screen.on_unmount()
            elif isinstance(screen, RewriteScreen):
                screen.save()

    def close_store(self) -> None:
        """When nothing more is to be saved."""
        if self.chat.store:
            self.chat.store.close()

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """What the command palette offers."""
        if isinstance(screen, ChatScreen | RewriteScreen):
            for title, words, action in _COMMANDS if isinstance(screen, ChatScreen) else _REWRITE_COMMANDS:
                yield SystemCommand(title, words, _runner(screen, action))
        yield SystemCommand("Theme", "Choose the colors", self.action_change_theme)
        yield SystemCommand("Quit", "Leave", self.action_quit)

    def _open(self, data: Path, cache: Path | None, goes_on: bool) -> str:
        """Why chats cannot be kept or the last one not be opened; empty when all is well."""
        try:
            self.chat.open_store = lambda: Store(make_private(data) / STORE_FILE, KEY_SECONDS)
            self.chat.store = store = Store(make_private(data) / STORE_FILE, _START_SECONDS)
            store.wait_at_most(KEY_SECONDS)
            if cache:
                drop_unknown(cache / FOLDER, [info.id for info in store.chats(limit=sys.maxsize)])
            if goes_on and (last := self.chat.store.chats(limit=1)):
                self.chat.load(last[0].id)
        except UserError as error:
            self.chat.troubled, self.chat.why = self.chat.store is None, str(error)
            return f"{error} This chat is not saved yet; saving is tried again." if self.chat.troubled else str(error)
        return ""


def _runner(screen: ChatScreen | RewriteScreen, action: str) -> Callable[[], Awaitable[None]]:
    async def run() -> None:
        await screen.run_action(action)

    return run
