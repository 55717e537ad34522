"""The models: what is installed, what the catalog offers, and what can be done with each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Container, Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static

from localspec.chat.attach import expanded, is_file
from localspec.engine.errors import UserError
from localspec.tui.choosing import Choosing, read_behind
from localspec.tui.downloads import Download, Downloads
from localspec.tui.literal import literal
from localspec.tui.screens.choice import Choice, ChoiceScreen
from localspec.tui.shelf import UNKNOWN, Kind, Row, Shelf, size
from localspec.tui.widgets.facts import Facts
from localspec.tui.widgets.model_list import ModelList
from localspec.tui.widgets.pull_lines import PullLines

if TYPE_CHECKING:
    from localspec.hub.removal import Removal

_TICK_SECONDS = 0.2
_LIST_HINT = "enter use  d draft  p pull  x stop  del delete  f5 default  esc close"
_SEARCH_HINT = "enter use   down goes to the list   esc close"


@dataclass(frozen=True)
class ModelChoice:
    """What to do when the screen has closed."""

    what: Literal["use", "draft"]
    row: Row
    keep: Literal["chat", "default"] = "chat"


class ModelsScreen(ModalScreen[ModelChoice | None]):
    """Closes with the choice, or None. Downloads go on when it is closed.

    `loaded`: names of the target and the draft model that answer now; `pull` begins a download.
    """

    BINDINGS = [
        Binding("escape,ctrl+c", "dismiss(None)", "Close", id="models.close", show=False),
        Binding("f5", "use('default')", "Use as default", id="models.default", priority=True, show=False),
        Binding("down", "into_list('cursor_down')", show=False),
        Binding("up", "into_list('cursor_up')", show=False),
        Binding("pagedown", "into_list('page_down')", show=False),
        Binding("pageup", "into_list('page_up')", show=False),
        Binding("shift+down", "scroll_about(1)", show=False),
        Binding("shift+up", "scroll_about(-1)", show=False),
    ]
    AUTO_FOCUS = "#models-list"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]

    @dataclass
    class _Read(Message):
        """What there is, or why that is not known."""

        shelf: Shelf | str

    def __init__(
        self,
        choosing: Choosing,
        downloads: Downloads,
        loaded: Sequence[str | None],
        used: Sequence[Path],
        pull: Callable[[str], None],
        how_used: Callable[[Path], str],
    ) -> None:
        """`used`: files that are loaded, wherever they are; `how_used` says what is done now with a file that must not be
        deleted, behind its name, and nothing of others."""
        super().__init__()
        self._choosing, self._downloads, self._used, self._pull = choosing, downloads, used, pull
        self._how_used = how_used
        self._target, self._draft = (*loaded, None, None)[:2]
        self._shelf = Shelf(())
        self._under_way: set[str] = set()
        self._search = Input(
            placeholder="search, or user/repo:QUANT, or a file", select_on_focus=False, compact=True, id="models-search"
        )
        self._list, self._said = ModelList(id="models-list"), Static(id="models-said")
        self._details, self._pulls = Facts("models-details"), PullLines(id="models-pulls")

    def compose(self) -> ComposeResult:
        """A box over the chat: the list, and beside or below it what there is to know of the highlighted model."""
        with Vertical(id="model-box") as box:
            box.border_title = "Models"
            box.border_subtitle = _LIST_HINT
            yield self._search
            with Container(id="models-both"):
                yield self._list
                with VerticalScroll(id="models-about", can_focus=False):
                    yield self._details
            yield self._pulls
            yield self._said

    def on_mount(self) -> None:
        """Look into the folder and at the memory, behind the screen."""
        self.set_interval(_TICK_SECONDS, self._look_at_downloads)
        self._look_at_downloads()
        self._read()

    # What is shown.

    def _read(self) -> None:
        read_behind(self._choosing, self._used, lambda shelf: self.post_message(self._Read(shelf)))

    @on(_Read)
    def _take(self, event: _Read) -> None:
        event.stop()
        if isinstance(event.shelf, str):
            self.tell(event.shelf, error=True)
            return
        if event.shelf.problem and not self._shelf.rows:
            self.tell(event.shelf.problem, error=True)
        self._shelf = event.shelf
        machine = f"   {event.shelf.machine}" if event.shelf.machine else ""
        self.query_one("#model-box").border_title = Content(f"Models{machine}")
        self._show()

    def _show(self) -> None:
        chosen = self._list.chosen
        rows = self._found(self._search.value.strip())
        states = {row.id: self._state(row) for row in rows}
        at_first = not self._list.option_count
        current = next((row.id for row in rows if states[row.id] == "target"), None) if at_first else None
        self._list.show(rows, states, chosen.id if chosen else current)
        self._show_details()

    def _found(self, words: str) -> list[Row]:
        """The rows that a search leaves; a reference or a file is a row of its own."""
        rows = [row for row in self._shelf.rows if _has(row, words)]
        if words and (own := _own_row(words)) and self._shelf.find(words) is None:
            return [own, *rows]
        return rows

    def _state(self, row: Row) -> str:
        download = self._downloads.get(row.name)
        if download and download.is_running:
            return "pulling"
        if row.path and row.path.stem == self._target:
            return "target"
        if row.path and row.path.stem == self._draft:
            return "draft"
        return "here" if row.kind is Kind.PAIR and row.is_here else ""

    @on(OptionList.OptionHighlighted)
    def _show_details(self) -> None:
        row = self._list.chosen
        facts = row.facts if row else ()
        if row and row.kind is Kind.PAIR and not row.is_here and row.bytes:
            facts = (("to download", size(row.bytes)), *facts)
        if row and row.facts:
            facts = (("fit", f"{row.fit} (this machine, now)"), *facts)
        self._details.show(row.name if row else "", facts)
        self.query_one("#models-about").scroll_home(animate=False)

    def _look_at_downloads(self) -> None:
        running = self._downloads.running
        self._pulls.show(running)
        names = {download.name for download in running}
        ended = [download for name in self._under_way - names if (download := self._downloads.get(name))]
        for download in ended:
            self.tell(download.sentence, error=not download.models)
        if names != self._under_way:
            self._under_way = names
            self._show()
        if ended:
            self._read()

    def tell(self, sentence: str, *, error: bool = False) -> None:
        """A sentence below the list."""
        self._said.update(Content(literal(sentence)))
        self._said.set_class(error, "-error")

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Say which keys there are."""
        self.query_one("#model-box").border_subtitle = _LIST_HINT if event.widget is self._list else _SEARCH_HINT

    # The search and the list.

    @on(Input.Changed)
    def _search_changed(self) -> None:
        self._show()

    @on(ModelList.Typed)
    def _type(self, event: ModelList.Typed) -> None:
        self._search.focus()
        self._search.cursor_position = len(self._search.value)
        self._search.insert_text_at_cursor(event.text)

    @on(ModelList.LeftUpwards)
    def _go_up(self) -> None:
        self._search.focus()

    def action_into_list(self, how: str) -> None:
        """From the search into the list."""
        self._list.focus()
        getattr(self._list, f"action_{how}")()

    def action_scroll_about(self, lines: int) -> None:
        """Read on in what there is to know."""
        self.query_one("#models-about").scroll_relative(y=lines, animate=False)

    @on(Input.Submitted)
    @on(OptionList.OptionSelected)
    def _choose(self) -> None:
        self.action_use()

    # What is done with a model.

    def action_use(self, keep: Literal["chat", "default"] = "chat") -> None:
        """Answer with the highlighted model or pair; `keep`: for this chat, or from now on."""
        row = self._list.chosen
        if row is None:
            self.tell("Nothing has this name: write user/repo to download from the hub.", error=True)
        elif row.kind is Kind.PAIR and row.fit == UNKNOWN:
            self.tell("This machine is still being looked at: one moment.")
        elif row.fit == "cannot be used":
            self.tell(dict(row.facts).get("problem", "It cannot be used."), error=True)
        elif (download := self._downloads.get(row.name)) and download.is_running:
            self.tell(f"{row.name} is on its way; x stops it.")
        else:
            self.dismiss(ModelChoice("use", row, keep))

    def action_use_as_draft(self) -> None:
        """Draft with the highlighted model for the target that is loaded."""
        row = self._list.chosen
        if row is None or row.kind not in (Kind.INSTALLED, Kind.FILE):
            self.tell("Only an installed model can draft: p downloads one.", error=True)
        else:
            self.dismiss(ModelChoice("draft", row))

    def action_pull(self) -> None:
        """Download the highlighted pair or model; this goes on when the screen is closed."""
        row = self._list.chosen
        if row is None:
            return
        if row.is_here:
            self.tell(f"{row.name} is here already.")
            return
        self.tell("")
        self._pull(row.name)
        self._look_at_downloads()

    def action_stop_pull(self) -> None:
        """Stop the highlighted download, else the first."""
        row, running = self._list.chosen, self._downloads.running
        meant = [download for download in running if row and download.name.casefold() == row.name.casefold()] or running
        if meant:
            self._stop(meant[0])
        else:
            self.tell("Nothing is being downloaded.")

    def _stop(self, download: Download) -> None:
        self._downloads.cancel(download.name)
        self.tell(f"{download.name} is being stopped; what has come is kept.")

    @work(group="delete", exclusive=True)
    async def action_delete(self) -> None:
        """Delete the highlighted model or both of a pair, after a question."""
        from localspec.hub.catalog import usable_catalog
        from localspec.hub.catalog_file import USER_CATALOG
        from localspec.hub.removal import delete, removal

        row = self._list.chosen
        if row is None:
            return
        try:
            folders = self._choosing.folders
            what = removal(row.name, folders.models, usable_catalog(folders.config / USER_CATALOG))
            if self._is_used(what):
                return
            names = " and ".join(model.name for model in what.models)
            kept = " ".join(f"{model.name} stays, since {user} drafts with it." for model, user in what.kept)
            choices = (Choice("delete", f"Delete, which frees {size(what.bytes)}"), Choice("keep", "Keep"))
            wish = await self.app.push_screen_wait(ChoiceScreen(f"Delete {names}?", choices[::-1], kept))
            # Meanwhile it may have been loaded, for a download has ended.
            if wish == "delete" and not self._is_used(what):
                delete(what)
                self.tell(f"{names} deleted, which frees {size(what.bytes)}.")
                self._read()
        except UserError as error:
            self.tell(str(error), error=True)

    def _is_used(self, what: Removal) -> bool:
        """Whether one of these models is needed now; that is told, too."""
        for model in what.models:
            if how := self._how_used(model.path):
                self.tell(f"{model.name} {how}: use another model before you delete it.", error=True)
                return True
        return False


def _has(row: Row, words: str) -> bool:
    text = f"{row.name} {row.short}".casefold()
    return all(word in text for word in words.casefold().split())


def _own_row(words: str) -> Row | None:
    """What a search may mean besides words: a file, or a model on the hub."""
    from localspec.hub.reference import parse_reference

    if words.lower().endswith(".gguf") and is_file(expanded(Path(words))):
        path = expanded(Path(words)).absolute()
        return Row(Kind.FILE, path.stem, path.stat().st_size, "", path=path, reference=str(path), draft="none")
    if reference := parse_reference(words):
        about = (("from", reference.repository), ("download", "p downloads it; enter also answers with it"))
        return Row(Kind.REFERENCE, words, fit="", is_here=False, facts=about)
    return None
