"""The chat itself."""

from __future__ import annotations

import time

from textual import events, on
from textual.binding import Binding
from textual.widgets import Markdown

from localspec.tui.commands import Call, Command, Unknown, parse
from localspec.tui.screens.chat_actions import ChatActions
from localspec.tui.screens.document_actions import DocumentActions
from localspec.tui.screens.help import HelpScreen
from localspec.tui.screens.message_actions import MessageActions
from localspec.tui.screens.model_actions import ModelActions
from localspec.tui.widgets.prompt import Prompt

_QUIT_SECONDS = 3.0


class ChatScreen(MessageActions, ChatActions, DocumentActions, ModelActions):
    """Keys and commands."""

    BINDINGS = [
        Binding("escape", "stop", "Stop", id="chat.stop", show=False),
        Binding("ctrl+c", "copy_stop_or_quit", "Copy, stop or quit", id="chat.interrupt", priority=True, show=False),
        Binding("ctrl+n", "new_chat", "New chat", id="chat.new", priority=True, show=False),
        Binding("ctrl+r", "chats", "Earlier chats", id="chat.chats", priority=True, show=False),
        Binding("ctrl+up,alt+up", "choose_message", "Select a message", id="chat.messages", priority=True, show=False),
        Binding("pageup", "page(-1)", "Scroll up", id="chat.page_up", priority=True, show=False),
        Binding("pagedown", "page(1)", "Scroll down", id="chat.page_down", priority=True, show=False),
        Binding("ctrl+o", "settings", "Settings", id="chat.settings", priority=True, show=False),
        Binding("f1", "help", "Help", id="chat.help", priority=True, show=False),
        Binding("f2", "speculation", "Figures of speculation", id="chat.speculation", priority=True, show=False),
        Binding("f7", "models", "Models", id="chat.models", priority=True, show=False),
        Binding("f3,ctrl+t", "colors", "Who drafted what", id="chat.colors", priority=True, show=False),
    ]
    AUTO_FOCUS = "Prompt"

    _quit_until = 0.0

    def on_key(self, event: events.Key) -> None:
        """Typed before the prompt had the focus, perhaps even before there was a screen: it is meant for the prompt."""
        if not self._prompt.has_focus and event.key in self.active_bindings:
            return
        if self._prompt.takes(event):
            self._prompt.focus()
            self._prompt.post_message(event)

    def on_paste(self, event: events.Paste) -> None:
        """The same."""
        self._prompt.focus()
        self._prompt.post_message(event)

    @on(Prompt.Sent)
    async def _take(self, event: Prompt.Sent) -> None:
        """A change is saved, a command is done; anything else is sent."""
        words, documents = event.text.strip("\n"), event.documents
        if await self.finish_edit(words, documents):
            return
        call = parse(event.text)
        if isinstance(call, Unknown):
            self.say(call.sentence)
        elif call:
            self._prompt.accept()
            await self._do(call)
        elif why_not := self.why_not_now():
            self.say(why_not)
        elif not self.too_long(words, documents):
            self._prompt.accept()
            await self.begin_answer(self._chat.ask(words, documents))
            self.ask_for_model()

    async def _do(self, call: Call) -> None:
        match call.command:
            case Command.RENAME:
                self.rename_chat(call.argument)
            case Command.EXPORT:
                self.export_chat(call.argument)
            case Command.SYSTEM:
                self.tell_system(call.argument)
            case Command.SET:
                self.set_one(call.argument)
            case Command.CODE:
                self.copy_block(call.argument)
            case Command.BRANCH:
                await self.show_version(call.argument)
            case Command.MODEL if call.argument:
                self.name_model(call.argument)
            case Command.DRAFT:
                self.name_draft(call.argument)
            case Command.ATTACH:
                self._prompt.attach(call.argument)
            case Command.REWRITE:
                self.rewrite(call.argument)
            case command:
                await self.run_action(_ACTIONS[command])

    async def action_stop(self) -> None:
        """Leave a change undone; else stop the answer. A message that is not being answered yet goes back into the prompt."""
        if not self.abandon_edit() and not self.stop_first_pull():
            await self.stop_answer()

    async def action_copy_stop_or_quit(self) -> None:
        """Whichever of the three makes sense now."""
        if selected := self.get_selected_text() or self._prompt.selected_text:
            self.app.copy_to_clipboard(selected)
            self.clear_selection()
            self._prompt.move_cursor(self._prompt.cursor_location)
            self.say("copied")
        elif self._asked:
            await self.action_stop()
        elif time.monotonic() < self._quit_until:
            await self.app.action_quit()
        else:
            self._quit_until = time.monotonic() + _QUIT_SECONDS
            self.say("press ctrl+c again to quit")

    def action_page(self, pages: int) -> None:
        """Scroll the conversation."""
        if pages < 0:
            self._transcript.scroll_page_up(animate=False)
        else:
            self._transcript.scroll_page_down(animate=False)

    def action_help(self) -> None:
        """Keys and figures."""
        self.app.push_screen(HelpScreen())

    def action_documents(self) -> None:
        """Go to the documents."""
        self._prompt.action_choose_document()

    async def action_thoughts(self) -> None:
        """Open or fold what the model thought."""
        await self.toggle_thoughts()

    def action_export(self) -> None:
        """Write the chat to a file."""
        self.export_chat("")

    @on(Prompt.FollowAsked)
    def _follow(self) -> None:
        self._transcript.anchor()

    @on(Prompt.QuitAsked)
    async def _quit(self) -> None:
        await self.app.action_quit()

    def action_show_link(self, href: str) -> None:
        """Say where a link leads. Over ssh, or with a text browser, opening it would draw over the screen; and a model is not
        to be trusted with what is opened."""
        self.say(href)

    @on(Markdown.LinkClicked)
    def _link_clicked(self, event: Markdown.LinkClicked) -> None:
        self.action_show_link(event.href)


_ACTIONS = {
    Command.HELP: "help",
    Command.NEW: "new_chat",
    Command.STOP: "stop",
    Command.REGENERATE: "regenerate",
    Command.EDIT: "edit",
    Command.CONTINUE: "go_on",
    Command.COPY: "copy_message",
    Command.CHATS: "chats",
    Command.MODEL: "models",
    Command.MODELS: "models",
    Command.SETTINGS: "settings",
    Command.COLORS: "colors",
    Command.SPECULATION: "speculation",
    Command.COSTS: "costs",
    Command.THEME: "app.change_theme",
    Command.QUIT: "app.quit",
}
