"""Where the person writes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from textual import events, on
from textual.binding import Binding
from textual.message import Message
from textual.timer import Timer

from localspec.chat.attach import dragged_paths, is_large, pasted_text, read_document, written_path
from localspec.chat.messages import Document
from localspec.engine.errors import UserError
from localspec.tui.commands import Call, parse
from localspec.tui.editor import edit_text, has_editor
from localspec.tui.history import History
from localspec.tui.literal import literal
from localspec.tui.widgets.chips import Chip, Chips
from localspec.tui.widgets.completing import CompletingText

_log = logging.getLogger(__name__)

_BURST_SECONDS = 0.015
"""Keys of a paste that the terminal does not mark follow each other faster than this, a person's do not: an enter
followed by another key so soon is a line end of that paste."""
_NEW_LINE_KEYS = ("shift+enter", "ctrl+j")
_MOST_OPENED = 20_000
"""Characters of a document that are put into the prompt for editing; more would make every key slow."""


class Prompt(CompletingText):
    """Several lines; enter sends them. What was sent before comes back with up and down.

    Documents go along as `chips`; they and `suggestions` are shown above the text by PromptBox.
    """

    BINDINGS = [
        Binding("ctrl+d", "delete_or_quit", "Delete, or quit when empty", id="prompt.delete_or_quit", show=False),
        Binding("end", "line_end_or_follow", "End of the line, then of the chat", show=False),
        Binding("ctrl+g", "edit_text", "Write in your editor", id="prompt.edit_text", show=False),
        Binding("f4", "edit_document", "Edit the last document", id="prompt.edit_document", show=False),
        Binding("f6", "choose_document", "Go to the documents", id="prompt.documents", show=False),
    ]

    @dataclass
    class Sent(Message):
        """Enter was pressed. Who handles it clears the prompt with `accept`, or leaves everything there."""

        text: str
        documents: tuple[Document, ...] = ()

    @dataclass
    class Said(Message):
        """Something to tell the person."""

        sentence: str

    class QuitAsked(Message):
        """Ctrl+d was pressed on an empty prompt."""

    class FollowAsked(Message):
        """End was pressed at the end."""

    @dataclass
    class _Read(Message):
        """A file has been read, or why not."""

        path: Path
        result: Chip | str

    def __init__(self, history: Path | None = None) -> None:
        """`history` is the file that keeps what was sent for the next start."""
        super().__init__("Write here. Enter sends, ctrl+j makes a new line.")
        self.chips = Chips()
        self._history = History(history)
        self._enter: Timer | None = None
        self._sent: Prompt.Sent | None = None
        self._pastes = 0
        self._reading = 0
        self._removed: list[tuple[Chip, str]] = []

    # What the screen does with it.

    @property
    def documents(self) -> tuple[Document, ...]:
        """What goes along with the text."""
        return self.chips.documents

    def accept(self) -> None:
        """What was sent is taken: remember the text, and make room. A command leaves the documents where they are."""
        sent, self._sent = self._sent, None
        if sent is None or not self.text.startswith(sent.text):
            sent = self.Sent(self.text, self.documents)
        if sent.text.strip():
            self._history.add(sent.text)
        if not isinstance(parse(sent.text), Call):
            self.chips.drop(sent.documents)
            self._removed.clear()
        # What was typed since enter was pressed is not sent.
        self.show_text(self.text[len(sent.text) :])

    def give_back(self, text: str, documents: Sequence[Document] = ()) -> None:
        """Put `text` and `documents` before what stands in the prompt: they were not sent after all."""
        for index, document in enumerate(documents):
            self.chips.insert(index, Chip.of(document))
        if text or not documents:
            self.show_text(f"{text}\n{self.text}" if self.text.strip() else text)

    def put(self, text: str, documents: Sequence[Document] = ()) -> None:
        """Put `text` and `documents` in the place of all that stands in the prompt."""
        self.chips.drop(self.documents)
        self._removed.clear()
        for index, document in enumerate(documents):
            self.chips.insert(index, Chip.of(document))
        self.show_text(text)

    def attach(self, path: str | Path) -> None:
        """Read a file behind the screen, and make it a document. What goes wrong is said."""
        path = written_path(path) if isinstance(path, str) else path
        self._reading += 1
        self.run_worker(partial(self._read, path), thread=True, group="attach", exit_on_error=False)

    def take_path(self, path: Path) -> None:
        """A file was chosen in the list."""
        self.attach(path)

    def choose_suggestion(self) -> None:
        """The marked suggestion was clicked."""
        if self.suggests() and self.choose():
            self._send()

    def takes(self, event: events.Key) -> bool:
        """Whether the key is text: no other widget gets to see it once the prompt has."""
        return event.is_printable or event.key in ("enter", *_NEW_LINE_KEYS)

    # Keys.

    def action_delete_or_quit(self) -> None:
        """Delete to the right; ask to quit when there is nothing."""
        if self.text:
            self.action_delete_right()
        elif not self.documents:
            self.post_message(self.QuitAsked())

    def action_line_end_or_follow(self) -> None:
        """Go to the end of the line; from the end of the text, to the end of the chat."""
        if self.cursor_at_end_of_text:
            self.post_message(self.FollowAsked())
        self.action_cursor_line_end()

    def action_cursor_up(self, select: bool = False) -> None:
        """Go up; from the first line, to what was sent before."""
        if select or not self.navigator.is_first_wrapped_line(self.cursor_location):
            super().action_cursor_up(select)
        else:
            self._recall(lambda: self._history.older(self.text))

    def action_cursor_down(self, select: bool = False) -> None:
        """Go down; from the last line, to what was sent after."""
        if select or not self.navigator.is_last_wrapped_line(self.cursor_location):
            super().action_cursor_down(select)
        else:
            self._recall(self._history.newer)

    def action_delete_left(self) -> None:
        """Delete to the left; from the very start, the last document."""
        if self.documents and self.cursor_location == (0, 0) and self.selection.is_empty:
            self.remove_document(-1)
        else:
            super().action_delete_left()

    def action_undo(self) -> None:
        """Undo the last change of the text or, if the text is as it was then, bring back a document."""
        before = self.text
        if not self._removed or self._removed[-1][1] != before:
            super().action_undo()
        if self.text == before:
            self.restore_document()

    def action_edit_text(self) -> None:
        """Write on in the person's own editor."""
        edited = self._in_editor(self.text)
        if edited is not None:
            # Not by setting the text, which could not be undone.
            self.move_cursor(self.replace(literal(edited), (0, 0), self.document.end).end_location)

    def action_edit_document(self, index: int = -1) -> None:
        """Open a document in the person's own editor; without one, a short document in the prompt."""
        if not self.documents:
            self.post_message(self.Said("There is no document to edit: paste or attach one first."))
        elif has_editor():
            document = self.chips[index].document
            edited = self._in_editor(document.text)
            if edited:
                self.chips.replace(index, Chip.of(replace(document, text=edited)))
            elif edited is not None:
                self._remove(index)
        elif len(self.chips[index].document.text) > _MOST_OPENED:
            self.post_message(self.Said("This document is too long to edit here: set EDITOR to your editor."))
        else:
            text = literal(self._remove(index).document.text)
            self.replace(text if not self.text or text.endswith("\n") else f"{text}\n", (0, 0), (0, 0))

    def action_choose_document(self) -> None:
        """Go up to the documents."""
        if self.documents:
            self.chips.focus()
        else:
            self.post_message(self.Said("There is no document yet: paste a long text, or attach a file with @."))

    def remove_document(self, index: int) -> None:
        """Take a document away."""
        name = self._remove(index).document.name
        self.post_message(self.Said(f"{name} is taken away; ctrl+z brings it back."))

    def restore_document(self) -> None:
        """Bring back the document that was taken away last."""
        if self._removed:
            self.chips.insert(len(self.chips), self._removed.pop()[0])

    def on_key(self, event: events.Key) -> None:
        """Enter and its kin. Handled here and not as bindings, which would overtake keys typed just before them."""
        if self._enter is not None:
            self._enter.stop()
            self._enter = None
            self._new_line()
        if event.key == "enter":
            self._enter = self.set_timer(_BURST_SECONDS, self._send)
        elif event.key in _NEW_LINE_KEYS:
            self._new_line()
        elif not self.moves_in_suggestions(event.key):
            return
        event.prevent_default()
        event.stop()

    def on_paste(self, event: events.Paste) -> None:
        """A short paste is text and goes in as it is; a long one is a document, and stays out of the text."""
        event.prevent_default()
        event.stop()
        if (paths := dragged_paths(event.text)) and not self._is_for_command():
            for path in paths:
                self.attach(path)
        elif is_large(event.text) and not self._is_for_command():
            self._pastes += 1
            document = Document(f"pasted {self._pastes}", pasted_text(event.text))
            self.chips.insert(len(self.chips), Chip.of(document))
        else:
            self._replace_selection(literal(event.text))

    def _is_for_command(self) -> bool:
        """Whether what comes next in the text is the argument of a command."""
        return self.document.line_count == 1 and isinstance(parse(f"{self.text.rstrip()} x y"), Call)

    def _new_line(self) -> None:
        self._replace_selection("\n")

    def _send(self) -> None:
        self._enter = None
        if self.suggests() and not self.choose():
            return
        if self._reading:
            self.post_message(self.Said("A file is still being read: press enter again when it is there."))
        elif self.text.strip() or self.documents:
            self._sent = self.Sent(self.text, self.documents)
            self.post_message(self._sent)

    def _replace_selection(self, text: str) -> None:
        self.move_cursor(self.replace(text, *self.selection).end_location)

    def _recall(self, entry: Callable[[], str | None]) -> None:
        text = entry()
        if text is not None:
            self.show_text(text)

    def _in_editor(self, text: str) -> str | None:
        try:
            return edit_text(self.app, text)
        except UserError as error:
            self.post_message(self.Said(str(error)))
            return None

    # Documents.

    def _remove(self, index: int) -> Chip:
        chip = self.chips.take(index)
        self._removed.append((chip, self.text))
        return chip

    def _read(self, path: Path) -> None:
        """On a thread: a disk may be slow, and counting a long text takes a while."""
        try:
            self.post_message(self._Read(path, Chip.of(read_document(path))))
        except UserError as error:
            self.post_message(self._Read(path, str(error)))
        except Exception:
            # While a file is being read nothing is sent, so this must have an end.
            _log.exception("%s cannot be read", path)
            self.post_message(self._Read(path, f"{path} cannot be read; the log says why."))

    @on(_Read)
    def _take_file(self, event: _Read) -> None:
        event.stop()
        self._reading -= 1
        if isinstance(event.result, str):
            self.post_message(self.Said(event.result))
            return
        chip = event.result
        if chip.document in self.documents:
            self.post_message(self.Said(f"{chip.document.name} is attached already."))
            return
        if chip.document.name in (document.name for document in self.documents):
            chip = replace(chip, document=replace(chip.document, name=literal(str(event.path))))
        self.chips.insert(len(self.chips), chip)
