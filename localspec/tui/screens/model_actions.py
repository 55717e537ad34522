"""Which models answer: choose others while the chat stays, download and delete them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from textual import on, work
from textual.message import Message

from localspec.engine.errors import ModelError, UserError
from localspec.settings import Settings
from localspec.tui.choosing import Choosing, LaterLoad, read_behind
from localspec.tui.downloads import STARTER, Download, Downloads, State
from localspec.tui.screens.choice import Choice, ChoiceScreen, LineScreen
from localspec.tui.screens.model_loading import Keep, ModelLoading
from localspec.tui.screens.models import ModelChoice, ModelsScreen
from localspec.tui.shelf import Kind, Row, Shelf, ShelfReader, size
from localspec.tui.widgets.first_models import FirstModels

_PULL_SECONDS = 0.25
"""So often a download is looked at, however fast it is."""
_PULL_CELLS = 24
_FIXED = "The models of this chat cannot be changed here."


class ModelActions(ModelLoading):
    """The actions on the models."""

    _downloads: Downloads | None = None

    @dataclass
    class _Found(Message):
        """What there is, or why that is not known."""

        shelf: Shelf | str

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._then_use: dict[str, tuple[Settings | None, Keep]] = {}
        """What to load when a download of this name is here; None is that by itself."""
        self._told: set[int] = set()

    def choose_models(
        self, choosing: Choosing, downloads: Downloads, in_force: Settings, later: LaterLoad | None
    ) -> None:
        """Models can be changed. `in_force`: what the worker loads; `later`: the load that waits for a first choice."""
        self._downloads = downloads
        self.begin_with(choosing, in_force, later)

    async def on_mount(self) -> None:
        """Look after the downloads, and ask for a first model. Textual calls that of every class."""
        self._pulls = self.set_interval(_PULL_SECONDS, self._look_at_downloads, pause=True)
        if self._later and self._choosing:
            self._transcript.welcome.offer_models()
            # What the hub's side imports must not keep the first paint waiting.
            self.call_after_refresh(self._begin_offer, self._choosing)

    # Choosing.

    @work(group="models", exclusive=True)
    async def action_models(self) -> None:
        """See what there is, and choose."""
        if self._choosing is None or self._downloads is None:
            self.say(_FIXED)
            return
        loaded = (self._loaded.target, self._loaded.draft) if self._loaded else (None, None)
        refs = (self._in_force.model, self._in_force.draft)
        used = [Path(ref).expanduser().absolute() for ref in refs if ref and "/" in ref]
        screen = ModelsScreen(self._choosing, self._downloads, loaded, used, self._begin_pull, self.how_used)
        chosen = await self.app.push_screen_wait(screen)
        if chosen:
            await self._take_choice(chosen)

    async def _take_choice(self, chosen: ModelChoice) -> None:
        if chosen.what == "draft":
            await self.use(replace(self._in_force, draft=chosen.row.model), chosen.keep)
        elif chosen.row.is_here:
            await self.use(replace(self._start, model=chosen.row.model, draft=chosen.row.draft), chosen.keep)
        else:
            await self._pull_to_use(chosen.row, chosen.keep)

    @work(group="models", exclusive=True)
    async def name_model(self, name: str) -> None:
        """Answer with the model or pair of this name, which may have to be downloaded first."""
        if self._choosing is None:
            self.say(_FIXED)
            return
        self.say(f"Looking for {name}.")
        try:
            row = await asyncio.to_thread(_found_row, self._choosing, name)
        except UserError as error:
            self.say(str(error))
            return
        if row.is_here:
            await self.use(replace(self._start, model=row.model, draft=row.draft), "chat")
        else:
            await self._pull_to_use(row, "chat")

    def name_draft(self, name: str) -> None:
        """Draft with this model, or with none."""
        if self._choosing is None:
            self.say(_FIXED)
        else:
            self.run_worker(self.use(replace(self._in_force, draft=name), "chat"), group="models", exclusive=True)

    async def _pull_to_use(self, row: Row, keep: Keep) -> None:
        about = f"{size(row.bytes)} to download; it {row.fit} on this machine." if row.bytes else ""
        choices = (
            Choice("use", "Download it, and answer with it as soon as it is here", key="u"),
            Choice("pull", "Only download it", key="d"),
        )
        wish = await self.app.push_screen_wait(ChoiceScreen(row.name, choices, about))
        if wish:
            if wish == "use":
                pair = replace(self._start, model=row.name, draft=None) if row.kind is Kind.PAIR else None
                self._then_use[row.name.casefold()] = (pair, keep)
            self._begin_pull(row.name)

    # Downloading.

    def _begin_pull(self, name: str) -> None:
        if self._downloads:
            self._told.discard(id(self._downloads.get(name)))
            self._downloads.pull(name)
            self._pulls.resume()

    async def _look_at_downloads(self) -> None:
        """What comes of a download is told, however many pieces it had."""
        if self._downloads is None:
            return
        running = self._downloads.running
        self._status.show_pull(_pull_words(running))
        if self._later and running:
            self._transcript.welcome.show_pull(running[0])
        for download in self._downloads.all:
            if not download.is_running and id(download) not in self._told:
                self._told.add(id(download))
                await self._end_pull(download)
        if not running:
            self._pulls.pause()

    async def _end_pull(self, download: Download) -> None:
        wanted = self._then_use.pop(download.name.casefold(), None)
        if self._later and not (wanted and download.state is State.HERE):
            self._transcript.welcome.show_pull(None, download.sentence)
            self._go_to_offer()
        if download.state is not State.HERE:
            self.say(download.sentence)
        elif wanted:
            settings, keep = wanted
            if settings:
                await self.use(settings, keep)
            else:
                self.name_model(download.models[0])
        else:
            self.say(f"{download.sentence} /model {download.name} answers with it.")

    # The first model.

    def _begin_offer(self, choosing: Choosing) -> None:
        self._go_to_offer()
        read_behind(choosing, (), lambda shelf: self.post_message(self._Found(shelf)))

    def _go_to_offer(self) -> None:
        # Who has begun to write writes on.
        if not self._prompt.text:
            self._transcript.welcome.focus_offer()

    def ask_for_model(self) -> None:
        """A message waits for a model that nobody has chosen yet."""
        if self._later and not self._then_use:
            self._transcript.welcome.focus_offer()
            self.say("Your message waits: choose a model above, enter fetches the marked one.")

    def stop_first_pull(self) -> bool:
        """Stop fetching the first model; whether there was that to stop, and nothing else."""
        if self._later is None or self._asked or self._downloads is None:
            return False
        running = self._downloads.running
        for download in running:
            self._downloads.cancel(download.name)
        return bool(running)

    @on(_Found)
    def _offer_pairs(self, event: _Found) -> None:
        if isinstance(event.shelf, str):
            self.say(event.shelf)
        else:
            if event.shelf.problem:
                self.say(event.shelf.problem)
            rows = [row for row in event.shelf.rows if row.kind is Kind.PAIR and row.fits and row.bytes]
            self._transcript.welcome.offer_pairs(rows)

    @on(FirstModels.Taken)
    def take_first(self, event: FirstModels.Taken) -> None:
        """The starter model, or a pair: fetched and loaded, and from now on the default."""
        row = event.row
        name = row.name if row else STARTER
        wanted = replace(self._start, model=row.name if row else None, draft=None)
        self._then_use[name.casefold()] = (wanted, "default")
        self._begin_pull(name)
        self._prompt.focus()

    @on(FirstModels.AllAsked)
    def _take_any(self) -> None:
        self.action_models()

    @on(FirstModels.FileAsked)
    @work(group="models", exclusive=True)
    async def take_own_file(self) -> None:
        """A file that the person has."""
        about = "The path of a .gguf file, or of the first part of a split one."
        path = await self.app.push_screen_wait(LineScreen("A file of your own", about=about))
        if path and path.strip():
            await self.use(replace(self._start, model=path.strip(), draft=None), "default")


def _pull_words(running: list[Download]) -> str:
    """For the status line."""
    if not running:
        return ""
    first = running[0]
    more = f" and {len(running) - 1} more" if len(running) > 1 else ""
    share = f"{int(100 * first.share)} %" if first.total else "…"
    # Of a reference the repository, without whose it is.
    name = first.name.rpartition("/")[2]
    name = name if len(name) <= _PULL_CELLS else f"{name[: _PULL_CELLS - 1]}…"
    return f"pulling {name} {share}{more}"


def _found_row(choosing: Choosing, name: str) -> Row:
    """What a name means. On a thread. Raises UserError where it means nothing."""
    from localspec.hub.catalog import CatalogModel
    from localspec.hub.reference import parse_reference
    from localspec.hub.resolve import resolve

    reader = ShelfReader(choosing.folders)
    shelf = reader.judge(choosing.machine())
    if row := shelf.find(name):
        return row
    try:
        path = resolve(name, choosing.folders.models, lambda: reader.catalog)
    except ModelError:
        if parse_reference(name) or isinstance(reader.catalog.get(name), CatalogModel):
            return Row(Kind.REFERENCE, name, fit="", is_here=False)
        raise
    found = next((row for row in shelf.rows if row.path == path), None)
    return found or Row(Kind.FILE, path.stem, path=path, reference=str(path.absolute()), draft="none")
