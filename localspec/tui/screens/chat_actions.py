"""What can be done with a whole chat: begin, open, name and export it, and tell the model who to be."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

from textual import work

from localspec.chat.answer_options import AnswerOptions
from localspec.chat.attach import expanded
from localspec.chat.new_file import write_new
from localspec.chat.store import JSON
from localspec.engine.errors import UserError
from localspec.settings import check_value
from localspec.tui import chat_settings
from localspec.tui.open_chat import KEY_SECONDS
from localspec.tui.screens.answering import Answering
from localspec.tui.screens.chats import ChatsScreen
from localspec.tui.screens.costs import CostsScreen
from localspec.tui.screens.settings import SettingsScreen
from localspec.tui.screens.unsaved import UnsavedScreen

_LEAVING_SECONDS = 2.0
_SETTINGS = tuple(field.name for field in fields(AnswerOptions))


class ChatActions(Answering):
    """The actions on the chat that is open."""

    _exported: Path | None = None
    """The last file that was written."""

    def action_new_chat(self) -> None:
        """Begin another chat; this one is kept."""
        self.run_worker(self._new_chat(), group="leave")

    async def _new_chat(self) -> None:
        if not await self.may_leave():
            return
        async with self._turning:
            await self.leave_chat()
            self._chat.begin()
            self.keep_models()
            await self.show_chat()

    async def may_leave(self) -> bool:
        """Whether the chat can be left: it is saved, or the person has said what is to become of it. From a worker."""
        until = time.monotonic() + _LEAVING_SECONDS
        while why := self._chat.would_be_lost():
            if self._chat.troubled or time.monotonic() > until:
                break
            # Another program is writing, and will soon be done.
            await asyncio.sleep(KEY_SECONDS)
        if not why:
            return True
        choice = await self.app.push_screen_wait(UnsavedScreen(f"{why} Leaving now would lose it."))
        if choice in ("markdown", "json"):
            return self._export("", ".md" if choice == "markdown" else ".json") is not None
        return choice == "leave"

    async def quit(self) -> None:
        """Leave the app, unless something would be lost. From a worker."""
        if await self.may_leave():
            self._is_given_up = True
            self.app.exit(message=f"The chat is in {self._exported}." if self._exported else None)

    def action_chats(self) -> None:
        """Choose an earlier chat and open it; or start the engine again, when that has died."""
        if self._is_gone:
            self.restart_engine()
        else:
            self._choose_chat()

    @work(group="chats", exclusive=True)
    async def _choose_chat(self) -> None:
        if self._chat.store is None:
            self.say("Chats are not saved here, so there is none to open.")
            return
        chosen = await self.app.push_screen_wait(ChatsScreen(self._chat.store, self._chat.id))
        if chosen is None or chosen == self._chat.id:
            self._refresh_title()
        elif await self.may_leave():
            await self.open_chat(chosen)

    async def open_chat(self, id_: int) -> None:
        """Open a saved chat; what the model is writing in this one ends."""
        async with self._turning:
            await self.leave_chat()
            try:
                self._chat.load(id_)
            except UserError as error:
                self.say(str(error))
            else:
                await self.show_chat()
                await self.follow_chat()

    def _refresh_title(self) -> None:
        """The chat may have been renamed in the list."""
        self._chat.refresh_title()
        self.show_title()

    def rename_chat(self, title: str) -> None:
        """Call the chat something."""
        self._chat.rename(title)
        self.show_title()
        self.say("renamed")

    def export_chat(self, file: str) -> None:
        """Write the chat to a file: JSON when its name ends so, else Markdown; with no name, to one with the chat's title."""
        if self._chat.thread.leaf is None:
            self.say("There is nothing to export yet.")
        else:
            self._export(file, expanded(Path(file)).suffix.lower() or ".md")

    def _export(self, file: str, ending: str) -> Path | None:
        """The file, whose name is made up where none is given; None, and a sentence, where it cannot be written."""
        from localspec.chat.export import to_json, to_markdown

        path, chat = expanded(Path(file)), self._chat.as_chat()
        text = to_json(chat) if ending == ".json" else to_markdown(chat)
        try:
            written = write_new(path.parent if file else Path(), path.stem if file else chat.info.title, ending, text)
        except UserError as error:
            self.say(str(error))
            return None
        self._exported = written.absolute()
        self.say(f"Written to {self._exported}.")
        return self._exported

    # How it is answered.

    def answer_options(self) -> AnswerOptions | None:
        """What this chat sets for itself."""
        return chat_settings.answer_options(self._chat.settings)

    def show_settings(self) -> None:
        """What is in force, where it is seen."""
        loaded = self._loaded.sampling if self._loaded else {}
        self._status.show_sampling(*chat_settings.temperature_and_seed(self._start, self._chat.settings, loaded))
        own = self.answer_options()
        self._speculation.choose((own and own.drafter) or self._start.drafter)

    def change_settings(self, changes: Mapping[str, JSON]) -> None:
        """Set these for the chat, `system` among them; None is as at the start again."""
        self._chat.configure(*chat_settings.changed(self._chat.system, self._chat.settings, changes))
        self.show_settings()

    def set_one(self, argument: str) -> None:
        """Set one thing: its name and the value."""
        name, _, value = argument.partition(" ")
        if name not in _SETTINGS:
            self.say(f"There is no setting {name[:40]}: there are {', '.join(_SETTINGS)}.")
            return
        try:
            self.change_settings({name: check_value(name, value.strip())})  # type: ignore[dict-item]
        except UserError as error:
            self.say(str(error))
        else:
            self.say(f"{name} is {value.strip()} from the next answer on.")

    @work(group="settings", exclusive=True)
    async def action_settings(self) -> None:
        """See and change all settings."""
        own = {**self._chat.settings, **({} if self._chat.system is None else {"system": self._chat.system})}
        loaded = self._loaded
        recommended = {name: loaded.sampling[name] for name in loaded.recommended} if loaded else {}
        has_draft = bool(loaded and loaded.draft)
        screen = SettingsScreen(self._start, own, recommended=recommended, has_draft=has_draft)
        changes = await self.app.push_screen_wait(screen)
        if changes:
            self.change_settings(changes)
            self.say("That holds from the next answer on.")

    def tell_system(self, words: str) -> None:
        """Another system prompt, from the next answer on."""
        self.change_settings({"system": words})
        self.say("The system prompt counts from the next answer on.")

    def action_speculation(self) -> None:
        """Show or hide the figures of speculation."""
        self._speculation.display = not self._speculation.display
        self._speculation.refresh_view()

    def action_costs(self) -> None:
        """What a pass of the model costs on this machine, and whether drafting was seen to change texts here."""
        self.app.push_screen(CostsScreen(self._worker.cost_curve(), self._worker.last_audit()))
