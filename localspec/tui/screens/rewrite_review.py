"""What can be done with a version: take its changes or leave them, edit, copy and save it, go to another one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import TextArea

from localspec.chat.attach import expanded
from localspec.chat.new_file import file_stem
from localspec.chat.rewritten_file import save_rewritten
from localspec.engine.errors import UserError
from localspec.tui.editor import edit_text, has_editor
from localspec.tui.literal import literal
from localspec.tui.screens.choice import LineScreen
from localspec.tui.screens.rewrite_base import RewriteBase
from localspec.tui.widgets.text_pane import TextPane

_MOST_EDITED = 100_000
"""Characters that can be edited in the screen; more would make every key slow."""


class _EditScreen(ModalScreen[str | None]):
    """A text to be changed where it stands. Closes with the text, or None."""

    BINDINGS = [
        Binding("ctrl+s", "keep", "Keep it", priority=True, show=False),
        Binding("escape", "dismiss(None)", "Leave it as it was", priority=True, show=False),
    ]

    def __init__(self, text: str) -> None:
        super().__init__()
        self._area = TextArea(text, soft_wrap=True)

    def compose(self) -> ComposeResult:
        """A box over everything."""
        with Vertical(id="edit") as box:
            box.border_title = "Edit"
            box.border_subtitle = "ctrl+s keeps it as a new version, esc leaves it as it was"
            yield self._area

    def action_keep(self) -> None:
        """Close with it."""
        self.dismiss(self._area.text)


class ReviewActions(RewriteBase):
    """The actions take the change that the cursor is on."""

    _saved: dict[Path, set[str]]
    """What was saved here, by file: it may be saved over."""

    def action_change(self, by: int) -> None:
        """Go to the change after or before."""
        if self.must_wait():
            return
        count = len(self._review.places)
        if not count:
            self.say("Nothing is changed in this version." if self._history.current else "Nothing is rewritten yet.")
            return
        place = self._chosen + by
        if not 0 <= place < count:
            self.say("That was the last change." if by > 0 else "That was the first change.")
            return
        self._chosen = place
        self._show_review()
        self._show_chosen()

    def action_decide(self, taken: bool) -> None:
        """Accept or reject the change, and go to the next."""
        if not self._review.places:
            self.action_change(1)
            return
        self._decide([self._chosen], taken)
        if self._chosen + 1 < len(self._review.places):
            self.action_change(1)

    def action_turn(self) -> None:
        """Accept the change if it is rejected, and the other way round."""
        if self._review.places:
            self._decide([self._chosen], not self._history.accepted[self._chosen])

    def action_decide_all(self, taken: bool) -> None:
        """Accept or reject all of them."""
        if self.must_wait():
            return
        count = len(self._review.places)
        self._decide(range(count), taken)
        self.say(f"{'accepted' if taken else 'rejected'} {count:,} change{'s' * (count != 1)}")

    def _decide(self, numbers: Sequence[int], taken: bool) -> None:
        self._history.decide(numbers, taken)
        self._show_review()
        self._show_chosen()

    @on(TextPane.Clicked)
    def _choose_clicked(self, event: TextPane.Clicked) -> None:
        """The change that was clicked."""
        if event.pane is self._result:
            for number, place in enumerate(self._review.places):
                if place <= event.at < self._end_of(number):
                    self._chosen = number
                    self._show_review()

    def _end_of(self, number: int) -> int:
        place = self._review.places[number]
        following = [*self._review.places, len(self._review.text)][number + 1]
        return max([mark.end for mark in self._review.marks if place <= mark.start < following], default=place)

    # Versions.

    def action_version(self, by: int) -> None:
        """Show the version before or after."""
        if self.must_wait():
            return
        if self._history.go(by):
            self._measured = ""
            self.show_version(review_it=True)
        elif self._history.versions:
            self.say("That is the newest version." if by > 0 else "That is the document itself.")
        else:
            self.say("There is no version yet: write below what is to become of the text.")

    def action_edit(self) -> None:
        """Change the text by hand: a new version."""
        if self.must_wait():
            return
        text = self._history.text
        if has_editor():
            try:
                edited = edit_text(self.app, text)
            except UserError as error:
                self.say(str(error))
            else:
                self._add(literal(edited) if edited is not None else None)
        elif len(text) > _MOST_EDITED:
            self.say("This text is too long to edit here: set EDITOR to your editor.")
        else:
            self._edit_here(text)

    @work(group="edit", exclusive=True)
    async def _edit_here(self, text: str) -> None:
        self._add(await self.app.push_screen_wait(_EditScreen(text)))

    def _add(self, text: str | None) -> None:
        if text is None or text == self._history.text:
            self.say("Nothing was changed.")
            return
        self._history.add(text)
        self.show_version(review_it=True)

    # Out of the screen.

    def action_copy(self) -> None:
        """Copy the text with what is accepted."""
        if self.must_wait():
            return
        self.app.copy_to_clipboard(self._history.text)
        self.say("copied the text with what is accepted")

    @work(group="save", exclusive=True)
    async def action_save(self) -> None:
        """Save the text with what is accepted: into the file it came from, or another one."""
        if self.must_wait():
            return
        text = self._history.text
        about = "A file that has another text than the one that was rewritten is not overwritten."
        given = await self.app.push_screen_wait(LineScreen("Save to", str(self._suggested_path()), about))
        if not given or not given.strip():
            self.say("Nothing was saved.")
            return
        path = expanded(Path(given.strip())).absolute()
        saved = self._saved.setdefault(path, set())
        try:
            written = [version.result for version in self._history.versions]
            save_rewritten(path, text, {self._history.document.text, *written, *saved})
        except UserError as error:
            self.say(str(error))
            return
        saved.add(text)
        self._path = path
        self.say(f"Saved to {path}.")

    def _suggested_path(self) -> Path:
        if self._path:
            return self._path
        name = Path(self._history.document.name)
        ending = name.suffix if name.suffix.lower() in (".md", ".txt", ".rst", ".py", ".tex", ".html") else ".txt"
        return Path(f"{file_stem(name.stem)}{ending}")

    def action_other_text(self) -> None:
        """Where there is room for one text only: show the other one."""
        self.toggle_class("-source")
        shown = self._source if self.has_class("-source") and self.has_class("-narrow") else self._result
        if self.focused is not self._instruction:
            shown.focus()
