"""A text in which commands and paths are completed."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from textual import on
from textual.message import Message
from textual.widgets import TextArea

from localspec.tui.completion import (
    Token,
    command_suggestions,
    model_suggestions,
    path_suggestions,
    token_before,
)
from localspec.tui.widgets.suggestions import Suggestion, Suggestions

_RUNS = "tab completes, enter runs, esc closes"
_HINTS = {"command": _RUNS, "model": _RUNS, "draft": _RUNS, "path": "enter attaches, esc closes"}


class CompletingText(TextArea):
    """Suggests what is being written in `suggestions`, which is shown elsewhere."""

    @dataclass
    class _Found(Message):
        """Files or models that `token` may become."""

        token: Token
        suggestions: list[Suggestion]

    def __init__(self, placeholder: str) -> None:
        super().__init__(placeholder=placeholder, highlight_cursor_line=False)
        self.suggestions = Suggestions()
        self._token: Token | None = None
        self._listed: Token | None = None
        """What the list is about. While files are looked for, it is still about an earlier token."""
        self._declined: tuple[int, int] | None = None
        self._untouched: str | None = None

    @abstractmethod
    def take_path(self, path: Path) -> None:
        """A file was chosen."""

    def show_text(self, text: str) -> None:
        """Put a text there that the person is not writing just now: nothing is suggested for it."""
        self._untouched = text
        self.text = text
        self.move_cursor(self.document.end)

    def suggests(self) -> bool:
        """Whether something is suggested for what stands before the cursor at this moment."""
        self._suggest()
        return self.suggestions.chosen is not None and self._listed == self._token

    def moves_in_suggestions(self, key: str) -> bool:
        """Do what a key does in the list; whether it does anything there."""
        if key not in ("up", "down", "tab", "escape") or not self.suggests():
            return False
        if key == "tab":
            self.choose()
        elif key == "escape":
            self._decline()
        else:
            self.suggestions.move(1 if key == "down" else -1)
        return True

    def choose(self) -> bool:
        """Write out the suggestion that is marked. Whether this makes a command that can run."""
        token, suggestion = self._token, self.suggestions.chosen
        if token is None or suggestion is None:
            return False
        value, end = suggestion.value, self.cursor_location
        if token.kind == "path":
            is_folder = value.endswith("/")
            self._put(f"@{value}" if is_folder else "", token, end)
            if not is_folder:
                self.take_path(Path(value))
            return False
        self._put(value, token, end)
        self._decline()
        return not value.endswith(" ")

    def on_text_area_changed(self) -> None:
        """Something was typed: there may be something to suggest."""
        self._suggest()

    def on_text_area_selection_changed(self) -> None:
        """The cursor has moved: what was suggested may no longer be meant."""
        if self._token:
            self._suggest()

    def on_blur(self) -> None:
        """Something else is on."""
        self._close()

    @on(_Found)
    def _list_files(self, event: _Found) -> None:
        event.stop()
        if event.token == self._token and self.has_focus:
            self._list(event.token, event.suggestions)

    def _suggest(self) -> None:
        """Suggest what suits the text before the cursor, unless the person has closed the list at this very place."""
        token = self._token_here()
        if token is None:
            self._close()
            return
        if token == self._token or token.place == self._declined:
            return
        self._token, self._declined = token, None
        if token.kind == "command":
            self._list(token, command_suggestions(token))
        else:
            look = partial(self._look_for, token)
            self.run_worker(look, thread=True, group="paths", exclusive=True, exit_on_error=False)

    def _token_here(self) -> Token | None:
        row, column = self.cursor_location
        if not self.selection.is_empty:
            return None
        token = token_before(self.document.get_line(row), row, column, is_alone=self.document.line_count == 1)
        return None if token and self._untouched == self.text else token

    def _look_for(self, token: Token) -> None:
        """On a thread: folders may be large, or far away, and the catalog takes its time."""
        suggestions = path_suggestions if token.kind == "path" else model_suggestions
        self.post_message(self._Found(token, suggestions(token)))

    def _list(self, token: Token, suggestions: list[Suggestion]) -> None:
        self._listed = token
        self.suggestions.show(suggestions, _HINTS[token.kind])

    def _close(self) -> None:
        self._token = self._listed = self._declined = None
        self.suggestions.close()

    def _decline(self) -> None:
        place = self._token.place if self._token else None
        self._close()
        self._declined = place

    def _put(self, text: str, token: Token, end: tuple[int, int]) -> None:
        self.move_cursor(self.replace(text, token.place, end).end_location)
