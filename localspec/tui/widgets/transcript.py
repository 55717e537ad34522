"""The conversation, growing downwards: the newest messages, and older ones as soon as somebody scrolls up to them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from localspec.chat.thread import Entry
from localspec.tui.endings import ending
from localspec.tui.widgets.answer import Answer
from localspec.tui.widgets.once import laid_out, once
from localspec.tui.widgets.turn import Mark, Notice, Turn
from localspec.tui.widgets.welcome import Welcome

_LIVELY_ANSWERS = 6
_LIVELY_CHARACTERS = 20_000
"""The newest answers are real Markdown, whose text can be selected; older ones are cheap."""
_LIVELY_WHEN_OPENED = 2
_MOUNTED_MESSAGES = 30
_MOUNTED_CHARACTERS = 60_000
"""A chat begins with so much of its end."""
_MOST_MOUNTED = 60
"""More than this many messages, and the oldest are taken away again."""
_TURN_MESSAGES = 4
_TURN_CHARACTERS = 6_000
"""So much is put onto the screen at a time: laying it out takes no longer than a key may wait."""
_NEAR_TOP = 3
"""Lines."""

Branches = Callable[[int], str]
"""Gives which of several branches a message is on; "" where there is one only."""


class _Items(Vertical):
    """What is scrolled. Never lower than the view: an anchored one would hang a short conversation from its bottom."""

    BLANK = True
    virtual_size = once()


class Transcript(VerticalScroll, can_focus=True):
    """Follows what is written until the reader scrolls up, and again from the bottom on. One message can be selected."""

    BLANK = True
    virtual_size = once()
    FOCUS_ON_CLICK = False
    BINDINGS = [
        Binding("up,k", "move(-1)", "The message before", id="message.up", show=False),
        Binding("down,j", "move(1)", "The message after", id="message.down", show=False),
        Binding("home,g", "move_to(0)", "The first message", id="message.first", show=False),
        Binding("end,G", "move_to(-1)", "The last message", id="message.last", show=False),
        Binding("left", "screen.branch(-1)", "The branch before", id="message.branch_left", show=False),
        Binding("right", "screen.branch(1)", "The branch after", id="message.branch_right", show=False),
        Binding("e", "screen.edit", "Edit", id="message.edit", show=False),
        Binding("r", "screen.regenerate", "Answer again", id="message.regenerate", show=False),
        Binding("c", "screen.go_on", "Continue", id="message.continue", show=False),
        Binding("y", "screen.copy_message", "Copy", id="message.copy", show=False),
        Binding("b", "screen.copy_code", "Copy the next code block", id="message.copy_code", show=False),
        Binding("t,enter,space", "toggle_thoughts", "Open or fold the thoughts", id="message.thoughts", show=False),
        Binding("escape", "leave", "Back to the prompt", id="message.leave", show=False),
    ]

    @dataclass
    class Chosen(Message):
        """Another message is selected; None: none any more."""

        entry: int | None

    def __init__(self) -> None:
        super().__init__()
        self._items = _Items()
        self._earlier = Mark("")
        self._forgotten = Mark("The model no longer sees what is above: the context has no room for it.")
        self._forgotten_before: int | None = None
        self._path: list[Entry] = []
        self._first = self._wanted = 0
        """Places in the path of the first message that is mounted, and of the first that is to be."""
        self._branches: Branches = lambda _id: ""
        self._mounting = asyncio.Lock()
        self._is_moving = False
        """Older messages are being put above what the reader looks at."""
        self.chosen: int | None = None
        """The message that is selected."""

    def compose(self) -> ComposeResult:
        """The welcome stays on top."""
        with self._items:
            yield Welcome()
            yield self._earlier

    def on_mount(self) -> None:
        """Follow from the beginning."""
        self._earlier.display = False
        self.anchor()

    @property
    def welcome(self) -> Welcome:
        """What stands above all turns."""
        return self.query_one(Welcome)

    # What is shown.

    async def show(
        self, path: Sequence[Entry], branches: Branches, writing: int | None = None, choose: int | None = None
    ) -> None:
        """Show a branch. What of it is on the screen already stays.

        `writing`: the answer that is about to be written. `choose`: the message to select.
        """
        async with self._mounting:
            self._branches = branches
            shared = self._shared(path, writing)
            begins_anew = (self._path and shared <= self._first) or len(path) - shared > _MOUNTED_MESSAGES
            removed, self._path = self._path[shared:], list(path)
            if choose is None and self.chosen not in [entry.id for entry in path]:
                self.choose(None)
            if begins_anew:
                await self._begin_anew(writing)
            else:
                await self._remove(removed)
                await self._mount(shared, len(path), writing, _LIVELY_ANSWERS)
                await self._fill_old(shared, len(path))
            await self._settle()
            await self._unload()
        if choose is not None:
            self.choose(choose)

    async def clear(self) -> None:
        """Another chat comes, whose messages may have the same numbers."""
        self.choose(None)
        async with self._mounting:
            self._path, self._first, self._wanted = [], 0, 0
            await self._items.remove_children("Turn, Answer, Notice")
        await self.mark_forgotten(None)

    def answer(self, entry: int) -> Answer | None:
        """The answer that shows a message."""
        widget = self._widget(entry)
        return widget if isinstance(widget, Answer) else None

    async def add(self, widget: Widget) -> None:
        """Add anything else at the end."""
        await self._items.mount(widget)

    async def mark_forgotten(self, before: int | None) -> None:
        """What stands above this message, the model no longer reads; None: it reads all."""
        if before != self._forgotten_before:
            self._forgotten_before = before
            await self._place_mark()

    def _shared(self, path: Sequence[Entry], writing: int | None) -> int:
        shared = 0
        for old, new in zip(self._path, path, strict=False):
            if old.id != new.id or new.id == writing:
                break
            shared += 1
        return shared

    async def _begin_anew(self, writing: int | None) -> None:
        """The newest messages now, and those before them as soon as these are there."""
        await self._items.remove_children("Turn, Answer")
        end = len(self._path)
        self._first = self._place_before(end, _TURN_MESSAGES, _TURN_CHARACTERS)
        await self._mount(self._first, end, writing, _LIVELY_WHEN_OPENED)
        self.anchor()
        self._load_soon(self._place_before(end, _MOUNTED_MESSAGES, _MOUNTED_CHARACTERS))

    def _place_before(self, end: int, messages: int, characters: int) -> int:
        """Where the messages begin that come before `end`: so many, or so much text, whichever is less."""
        first = end
        while first > 0 and end - first < messages and characters > 0:
            first -= 1
            characters -= len(self._path[first].text)
        return first

    async def _remove(self, entries: Sequence[Entry]) -> None:
        widgets = [widget for entry in entries if (widget := self._widget(entry.id))]
        if widgets:
            # What the app said about them goes with them.
            place = self._items.children.index(widgets[0])
            await self._items.remove_children(
                [widget for widget in list(self._items.children)[place:] if isinstance(widget, Turn | Answer | Notice)]
            )

    async def _mount(
        self, start: int, end: int, writing: int | None, lively: int, before: Widget | None = None
    ) -> None:
        entries = self._path[start:end]
        answers = [entry.id for entry in entries if entry.role == "assistant"]
        old = set(answers[: max(0, len(answers) - lively)]) - {writing}
        await self._items.mount(*(self._made(entry, is_old=entry.id in old) for entry in entries), before=before)
        for entry in entries:
            if entry.role == "assistant" and entry.id not in old:
                await self._fill(entry, is_growing=entry.id == writing)
        await self._place_mark()
        self._show_earlier()

    def _made(self, entry: Entry, *, is_old: bool) -> Turn | Answer:
        branches = self._branches(entry.id)
        if entry.role == "user":
            return Turn(entry.text, entry.documents, entry.id, branches)
        answer = Answer(entry.id, branches, entry.text if is_old else None)
        if is_old:
            answer.show_note(ending(entry))
        return answer

    async def _fill(self, entry: Entry, *, is_growing: bool) -> None:
        answer = self.answer(entry.id)
        if answer is None:
            return
        if not is_growing:
            answer.text = entry.text
            await answer.finish(ending(entry))
        elif entry.text:
            await answer.write(entry.text)

    async def _settle(self) -> None:
        characters = 0
        for place, answer in enumerate(reversed(list(self.query(Answer)))):
            characters += len(answer.text)
            if answer.complete and (place >= _LIVELY_ANSWERS or (place and characters > _LIVELY_CHARACTERS)):
                await answer.settle()

    async def _unload(self) -> None:
        """Take away the oldest messages when there are too many, unless somebody reads them."""
        mounted = len(self._path) - self._first
        if mounted <= _MOST_MOUNTED or not self.is_vertical_scroll_end:
            return
        first = len(self._path) - _MOUNTED_MESSAGES
        widgets = [widget for entry in self._path[self._first : first] if (widget := self._widget(entry.id))]
        self._first = self._wanted = first
        await self._items.remove_children(widgets)
        self._show_earlier()

    def _show_earlier(self) -> None:
        self._earlier.display = self._first > 0
        self._earlier.update(Content(f"{self._first:,} earlier messages; scroll up to see them"))
        self.welcome.display = self._first == 0

    async def _place_mark(self) -> None:
        if self._forgotten.is_attached:
            await self._forgotten.remove()
        before = self._widget(self._forgotten_before)
        if before:
            self._forgotten = Mark(str(self._forgotten.content))
            await self._items.mount(self._forgotten, before=before)

    def watch_has_focus(self, _has_focus: bool) -> None:
        """Nothing looks different with the focus; Textual would style every message anew."""

    # Older messages.

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Near the top, what stands above it is loaded."""
        super().watch_scroll_y(old_value, new_value)
        if new_value <= _NEAR_TOP and new_value < old_value and self._first > 0 and not self._is_moving:
            self._load_soon(self._place_before(self._first, _MOUNTED_MESSAGES, _MOUNTED_CHARACTERS))

    def _load_soon(self, wanted: int) -> None:
        self._wanted = wanted
        if not self._is_moving and self._first > wanted:
            self.run_worker(self._load_older(), group="older")

    async def _load_older(self) -> None:
        """Load what is wanted of the older messages: a few at a time, and keys have their turn in between."""
        self._is_moving = True
        try:
            while self._first > self._wanted:
                async with self._mounting:
                    # Another chat, or another branch, may have come.
                    if self._first > self._wanted:
                        await self._load_some(self._first - self._wanted)
        finally:
            self._is_moving = False

    async def _load_some(self, most: int) -> None:
        end = self._first
        first = self._place_before(end, min(most, _TURN_MESSAGES), _TURN_CHARACTERS)
        self._first, height = first, self.virtual_size.height
        await self._mount(first, end, None, 0, before=self._widget(self._path[end].id))
        await self._keep_place(height)
        await self._fill_old(first, end)

    async def _fill_old(self, start: int, end: int) -> None:
        """The rest of very long old answers."""
        for entry in self._path[start:end]:
            answer = self.answer(entry.id)
            if answer and answer.settled:
                height = self.virtual_size.height
                async for _ in answer.fill():
                    height = await self._keep_place(height)

    async def _keep_place(self, height: int) -> int:
        """What the reader looks at has moved down by as much as was mounted above it. Returns how high all is now."""
        await laid_out(self)
        if not self.is_anchored or not self.is_vertical_scroll_end:
            y = self.scroll_y + self.virtual_size.height - height
            self.scroll_to(y=y, animate=False, force=True, immediate=True, release_anchor=False)
        return self.virtual_size.height

    # The message that is selected.

    def choose(self, entry: int | None) -> None:
        """Select a message, or none."""
        if entry == self.chosen:
            return
        for id_, is_chosen in ((self.chosen, False), (entry, True)):
            if widget := self._widget(id_):
                # Only the message itself looks different, not the hundred paragraphs that it may have.
                widget.set_class(is_chosen, "-chosen", update=False)
                self.app.stylesheet.update_nodes([widget])
        self.chosen = entry
        if widget := self._widget(entry):
            # At once: the next key is meant for the message already.
            self.screen.set_focus(self, scroll_visible=False)
            self.release_anchor()
            self.scroll_to_widget(widget, animate=False, immediate=True)
        self.post_message(self.Chosen(entry))

    def choose_last(self) -> bool:
        """Select the last message. False when there is none."""
        if self._path:
            self.choose(self._path[-1].id)
        return bool(self._path)

    async def action_move(self, by: int) -> None:
        """Select a message further up or down; below the last one there is the prompt."""
        place = self._place() + by
        if place >= len(self._path):
            self.action_leave()
        elif place >= 0:
            await self._choose_place(place)

    async def action_move_to(self, place: int) -> None:
        """Select the first or the last message."""
        if self._path:
            await self._choose_place(place % len(self._path))

    async def action_toggle_thoughts(self) -> None:
        """Open or fold what the model thought."""
        answer = self.answer(self.chosen) if self.chosen is not None else None
        if answer:
            await answer.toggle_thoughts()

    def action_leave(self) -> None:
        """Select none, and go back to the prompt."""
        self.choose(None)
        self.post_message(self.Chosen(None))
        if self.is_vertical_scroll_end:
            self.anchor()

    def on_click(self, event: events.Click) -> None:
        """Select the message clicked at, unless the click ends a selection of text."""
        if self.screen.get_selected_text():
            return
        for widget in event.widget.ancestors_with_self if event.widget else ():
            if isinstance(widget, Turn | Answer):
                self.choose(widget.entry)
                return

    async def _choose_place(self, place: int) -> None:
        if place < self._first:
            self._wanted = place
            await self._load_older()
        self.choose(self._path[place].id)

    def _place(self) -> int:
        return next((place for place, entry in enumerate(self._path) if entry.id == self.chosen), len(self._path))

    def _widget(self, entry: int | None) -> Turn | Answer | None:
        if entry is None:
            return None
        for widget in reversed(self._items.children):
            if isinstance(widget, Turn | Answer) and widget.entry == entry:
                return widget
        return None
