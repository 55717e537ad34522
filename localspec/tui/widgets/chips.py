"""The documents that go along with what is being written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from textual import events
from textual.binding import Binding
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from localspec.chat.attach import estimated_tokens
from localspec.chat.messages import Document
from localspec.tui.literal import literal

MENU, VIEW, REWRITE, RENAME, EDIT, PART, REMOVE, LEAVE = (
    "menu",
    "view",
    "rewrite",
    "rename",
    "edit",
    "part",
    "remove",
    "leave",
)
"""What can be done with a document."""
TEMPLATE_TOKENS = 64
"""Of the context, for what stands around a document."""
_MOST_LINES = 4
_LONGEST_NAME = 30
_HINT = "   f6 opens"
KEYS = "enter menu  v view  w rewrite  n rename  e edit  del remove  esc back"
"""On the chosen document."""


@dataclass(frozen=True)
class Chip:
    """A document, and how long it is."""

    document: Document
    words: int
    tokens: int
    exact: bool = False
    """Whether the model has counted the tokens."""

    @classmethod
    def of(cls, document: Document) -> Chip:
        """The chip of a document. Counting takes a moment for a very long one."""
        return cls(document, len(document.text.split()), estimated_tokens(document.text))


class Chips(Static, can_focus=True):
    """One line for each document, the newest at the bottom; no lines at all without one. With the focus, one is chosen."""

    BINDINGS = [
        Binding("up,left", "choose(-1)", "The document above", show=False),
        Binding("down,right", "choose(1)", "The document below", show=False),
        Binding("enter,space", f"act('{MENU}')", "What can be done with it", id="document.menu", show=False),
        Binding("v", f"act('{VIEW}')", "View it", id="document.view", show=False),
        Binding("w", f"act('{REWRITE}')", "Rewrite it", id="document.rewrite", show=False),
        Binding("n,f2", f"act('{RENAME}')", "Rename it", id="document.rename", show=False),
        Binding("e,f4", f"act('{EDIT}')", "Edit it", id="document.edit", show=False),
        Binding("delete,backspace,x", f"act('{REMOVE}')", "Remove it", id="document.remove", show=False),
        Binding("escape,f6", f"act('{LEAVE}')", "Back to the prompt", id="document.leave", show=False),
    ]

    @dataclass
    class Acted(Message):
        """Something is to be done with a document."""

        what: str
        index: int

    class Chosen(Message):
        """One is chosen, or none any more."""

    class Changed(Message):
        """There are other documents, or it is not known any more how long they are."""

    def __init__(self) -> None:
        super().__init__("")
        self._chips: list[Chip] = []
        self._room: int | None = None
        self._chosen = 0
        self.display = self.can_focus = False

    def __len__(self) -> int:
        return len(self._chips)

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, index: int) -> Chip:
        return self._chips[index]

    @property
    def documents(self) -> tuple[Document, ...]:
        """What the chips stand for."""
        return tuple(chip.document for chip in self._chips)

    @property
    def room(self) -> int | None:
        """Tokens the model can look back on, where that is known."""
        return self._room

    @property
    def chosen(self) -> int:
        """The chip that is chosen, else the last one."""
        return min(self._chosen, len(self._chips) - 1) if self.has_focus else len(self._chips) - 1

    def insert(self, index: int, chip: Chip) -> None:
        """Put a chip before the one at `index`, or at the end."""
        self._chips.insert(index, chip)
        self._chosen = min(index, len(self._chips) - 1)
        self._changed()

    def replace(self, index: int, chip: Chip) -> None:
        """Put a chip in the place of another."""
        self._chips[index] = chip
        self._changed()

    def take(self, index: int) -> Chip:
        """Take a chip away."""
        chip = self._chips.pop(index)
        self._chosen = max(0, min(self._chosen, len(self._chips) - 1))
        self._changed()
        return chip

    def drop(self, documents: Sequence[Document]) -> None:
        """Take away the chips of documents that have been sent: these very ones, not others that say the same."""
        sent = {id(document) for document in documents}
        self._chips = [chip for chip in self._chips if id(chip.document) not in sent]
        self._changed()

    def show_room(self, tokens: int) -> None:
        """How many tokens the model can look back on: what is longer says so. Another model counts other tokens."""
        self._room = tokens
        estimated = [replace(chip, tokens=estimated_tokens(chip.document.text), exact=False) for chip in self._chips]
        self._chips = estimated
        self._changed()

    def show_tokens(self, document: Document, tokens: int) -> Chip | None:
        """The model has counted a document. Returns its chip, if it is still there."""
        for index, chip in enumerate(self._chips):
            if chip.document is document:
                self._chips[index] = counted = replace(chip, tokens=tokens, exact=True)
                self._draw()
                return counted
        return None

    def fits(self, tokens: int) -> bool:
        """Whether so many can be read at a time; yes, where that is not known."""
        return self._room is None or tokens + TEMPLATE_TOKENS <= self._room

    # Keys and the mouse.

    def action_choose(self, by: int) -> None:
        """Choose another; below the last one is the prompt."""
        place = self._chosen + by
        if place >= len(self._chips):
            self.action_act(LEAVE)
        else:
            self._chosen = max(0, place)
            self._draw()

    def action_act(self, what: str) -> None:
        """Have something done with the chosen one."""
        if self._chips:
            self.post_message(self.Acted(what, self._chosen))

    def watch_has_focus(self, has_focus: bool) -> None:
        """With the focus one is chosen, the last one first."""
        super().watch_has_focus(has_focus)
        if has_focus:
            self._chosen = len(self._chips) - 1
        self._draw()
        self.post_message(self.Chosen())

    def on_click(self, event: events.Click) -> None:
        """A line is a chip."""
        first = self._first
        index = event.y + first - (1 if first else 0)
        if first <= index < len(self._chips):
            self._chosen = index
            self._draw()
            self.action_act(MENU)

    @property
    def _first(self) -> int:
        """The first chip that is shown. If there are more, a line above says how many."""
        if len(self._chips) <= _MOST_LINES:
            return 0
        last = len(self._chips) - _MOST_LINES + 1
        return min(self._chosen, last) if self.has_focus else last

    def _changed(self) -> None:
        self._draw()
        self.post_message(self.Changed())

    def _draw(self) -> None:
        self.display = self.can_focus = bool(self._chips)
        first, focused = self._first, self.has_focus
        last = first + _MOST_LINES - 1 if first or len(self._chips) > _MOST_LINES else len(self._chips)
        lines = [self._line(chip, focused and place == self._chosen) for place, chip in enumerate(self._chips)][
            first:last
        ]
        if len(self._chips) > len(lines):
            lines.insert(0, Content.styled(f"and {len(self._chips) - len(lines)} more", "dim"))
        # No line more: what is clicked must not move away from under the mouse.
        if lines and not focused:
            lines[-1] = lines[-1].append(Content.styled(_HINT, "dim"))
        self.update(Content("\n").join(lines))

    def _line(self, chip: Chip, chosen: bool) -> Content:
        mark = Content.styled("▸ ", "bold") if chosen else Content("")
        name = Content.styled(
            f" {short_name(chip.document)} ", "reverse $text-accent" if chosen else "reverse $text-primary"
        )
        style = "dim" if self.fits(chip.tokens) else "$text-warning"
        return mark.append(name).append(Content.styled(f" {measure(chip, self._room)}", style))


def short_name(document: Document) -> str:
    """The name on one line, not too long."""
    name = " ".join(literal(document.name).split())
    # The end of a path says more than its beginning.
    return name if len(name) <= _LONGEST_NAME else f"…{name[1 - _LONGEST_NAME :]}"


def measure(chip: Chip, room: int | None) -> str:
    """How long it is, and how much of the context it takes."""
    words = f"{chip.words:,} word{'' if chip.words == 1 else 's'}"
    words += f", {'' if chip.exact else '~'}{chip.tokens:,} token{'' if chip.tokens == 1 else 's'}"
    if not room:
        return words
    share = f"{words}, {100 * chip.tokens / max(1, room):,.0f} %"
    return f"{share} of the context" if chip.tokens + TEMPLATE_TOKENS <= room else f"{share}, too long"
