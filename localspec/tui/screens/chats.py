"""The saved chats: find one, open it, rename, delete or export it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input, OptionList, Static

from localspec.chat.new_file import write_new
from localspec.engine.errors import UserError
from localspec.tui.widgets.chat_list import UNTITLED, ChatList, one_line

if TYPE_CHECKING:
    from localspec.chat.store import ChatInfo, Store

_MOST, _MOST_FOUND = 5000, 300
"""Nobody reads on behind these."""
_SEARCH_SECONDS = 0.08
"""After the last letter: a search may look through every message."""
_LIST_HINT = "enter opens   f2 renames   del deletes   x exports   esc closes"
_TITLE_CELLS = 30
_RENAME_HINT = "enter keeps the title   esc leaves it as it was"
_SEARCH_HINT = "enter opens   down goes to the list   esc closes"


class _Title(Input):
    """The title of a chat, in the place where it stands in the list."""

    BINDINGS = [Binding("escape", "give_up", "Leave it as it was", show=False)]

    class Ended(Message):
        """`title` is None when it stays as it was."""

        def __init__(self, chat: int, title: str | None) -> None:
            super().__init__()
            self.chat, self.title = chat, title

    def __init__(self, chat: int, title: str) -> None:
        super().__init__(title, select_on_focus=False, compact=True, id="chat-title")
        self._chat, self._old, self._ended = chat, title, False

    def action_give_up(self) -> None:
        """The old title stays."""
        self._end(None)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Keep it."""
        event.stop()
        self._end(self.value)

    def on_blur(self) -> None:
        """What was typed is not lost."""
        self._end(self.value)

    def _end(self, title: str | None) -> None:
        if not self._ended:
            self._ended = True
            self.post_message(self.Ended(self._chat, None if title == self._old else title))


class ChatsScreen(ModalScreen[int | None]):
    """Closes with the id of the chat to open, or None. `current` is the open chat: it cannot be deleted."""

    BINDINGS = [
        Binding("escape,ctrl+c", "close", "Close", id="chats.close", show=False),
        Binding("f2", "rename", "Rename", id="chats.rename", show=False),
        Binding("ctrl+s", "export", "Export", id="chats.export", show=False),
        Binding("ctrl+z", "undo", "Undo the deletion", id="chats.undo", show=False),
        Binding("down", "move('cursor_down')", show=False),
        Binding("up", "move('cursor_up')", show=False),
        Binding("pagedown", "move('page_down')", show=False),
        Binding("pageup", "move('page_up')", show=False),
    ]
    AUTO_FOCUS = "#chats-search"

    def __init__(self, store: Store, current: int | None = None, folder: Path | None = None) -> None:
        """`folder` is where exports go; None is the current one."""
        super().__init__()
        self._store, self._current, self._folder = store, current, folder
        self._chats: dict[int, ChatInfo] = {}
        self._deleted: list[int] = []
        self._typing: Timer | None = None
        self._search = Input(
            placeholder="search titles and messages", select_on_focus=False, compact=True, id="chats-search"
        )
        self._list, self._said = ChatList(id="chats-list"), Static(id="chats-said")
        self._title: _Title | None = None

    def compose(self) -> ComposeResult:
        """A box over the chat."""
        with Vertical(id="chats") as box:
            box.border_title = "Chats"
            box.border_subtitle = _SEARCH_HINT
            yield self._search
            yield self._list
            yield Static(id="chats-none")
            yield self._said

    def on_mount(self) -> None:
        """All of them, the newest first."""
        self._show()

    # What is shown.

    def _show(self, chosen: int | None = None) -> None:
        """Read the chats anew and highlight the one with the id `chosen`."""
        search = self._search.value.strip()
        try:
            found = self._store.chats(search, _MOST_FOUND if search else _MOST)
        except UserError as error:
            self._say(str(error), error=True)
            return
        self._chats = {info.id: info for info in found}
        self._list.show(found, search.split(), chosen, self._current)
        self._list.display = bool(found)
        none = self.query_one("#chats-none", Static)
        none.display = not found
        if not found:
            none.update(
                Content(f"Nothing has the words {one_line(search)}." if search else "No chat has been saved yet.")
            )
            self._search.focus()

    def _say(self, sentence: str, *, error: bool = False) -> None:
        self._said.update(Content(one_line(sentence)))
        self._said.set_class(error, "-error")

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Say which keys there are."""
        hints: dict[Widget | None, str] = {self._list: _LIST_HINT, self._title: _RENAME_HINT}
        self.query_one("#chats").border_subtitle = Content(hints.get(event.widget, _SEARCH_HINT))

    # The search and the list.

    @on(Input.Changed, "#chats-search")
    def _wait_for_more(self) -> None:
        if self._typing:
            self._typing.stop()
        self._typing = self.set_timer(_SEARCH_SECONDS, self._find)

    def _find(self) -> None:
        self._typing = None
        self._show()

    @on(ChatList.Typed)
    def _type(self, event: ChatList.Typed) -> None:
        self._search.focus()
        self._search.cursor_position = len(self._search.value)
        self._search.insert_text_at_cursor(event.text)

    @on(ChatList.LeftUpwards)
    def _go_up(self) -> None:
        self._search.focus()

    def action_move(self, how: str) -> None:
        """From the search into the list."""
        if self._list.display and self._title is None:
            self._list.focus()
            getattr(self._list, f"action_{how}")()

    @on(Input.Submitted, "#chats-search")
    @on(OptionList.OptionSelected)
    def _open(self) -> None:
        if self._typing:
            # What is highlighted is not yet what the words find.
            self._typing.stop()
            self._find()
        if self._list.chosen is not None:
            self.dismiss(self._list.chosen)

    def action_close(self) -> None:
        """Open none."""
        self.dismiss(None)

    # What is done to a chat.

    def action_delete(self) -> None:
        """Delete the highlighted chat; it comes back with undo while the screen is open."""
        chat = self._list.chosen
        if chat is None:
            return
        if chat == self._current:
            self._say("This chat is open: begin a new one before you delete it.", error=True)
            return
        beside = self._beside(chat)
        try:
            self._store.delete(chat)
        except UserError as error:
            self._say(str(error), error=True)
            return
        self._deleted.append(chat)
        title = Content(self._title_of(chat)).truncate(_TITLE_CELLS, ellipsis=True).plain
        self._show(beside)
        self._say(f"{title} deleted; {'u or ctrl+z' if self._list.display else 'ctrl+z'} brings it back.")

    def action_undo(self) -> None:
        """Bring back what was deleted last."""
        if not self._deleted:
            self._say("Nothing was deleted since this list was opened.")
            return
        chat = self._deleted[-1]
        try:
            self._store.restore(chat)
        except UserError as error:
            self._say(str(error), error=True)
            return
        self._deleted.pop()
        self._show(chat)
        self._say(
            f"{self._title_of(chat)} is back." if chat in self._chats else "It is back, but not what you search for."
        )

    def action_export(self) -> None:
        """Write the highlighted chat into a new file."""
        from localspec.chat.export import to_markdown

        chat = self._list.chosen
        if chat is None:
            return
        try:
            text = to_markdown(self._store.load(chat))
            path = write_new(self._folder or Path(), self._chats[chat].title, ".md", text)
        except UserError as error:
            self._say(str(error), error=True)
        else:
            self._say(f"Written to {path.absolute()}.")

    async def action_rename(self) -> None:
        """Edit the title where it stands."""
        chat, line = self._list.chosen, self._list.title_line
        if chat is None or self._title is not None:
            return
        if line is None:
            self._list.scroll_to_highlight()
            line = self._list.title_line or 0
        self._title = _Title(chat, one_line(self._chats[chat].title))
        box = self.query_one("#chats")
        self._title.styles.offset = (0, self._list.content_region.y - box.content_region.y + line)
        await box.mount(self._title)
        self._title.focus()

    def on_resize(self) -> None:
        """The list has moved away from under the title that is being edited."""
        if self._title:
            self._list.focus()

    @on(_Title.Ended)
    async def _rename(self, event: _Title.Ended) -> None:
        editor, self._title = self._title, None
        if editor:
            self._list.focus()
            await editor.remove()
        if event.title is None:
            return
        try:
            # An empty title becomes the first words of the chat.
            self._store.rename(event.chat, event.title)
        except UserError as error:
            self._say(str(error), error=True)
            return
        self._show(event.chat)

    def _beside(self, chat: int) -> int | None:
        """The chat to be highlighted when `chat` has gone: the next one, else the one before."""
        ids = list(self._chats)
        at = ids.index(chat)
        others = ids[at + 1 :] or ids[:at][::-1]
        return others[0] if others else None

    def _title_of(self, chat: int) -> str:
        return one_line(self._chats[chat].title) or UNTITLED
