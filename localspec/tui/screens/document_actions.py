"""What can be done with a document: view, rename, rewrite, edit or remove it, attach a part of it; and how long it is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from textual import on, work
from textual.message import Message

from localspec.chat.attach import estimated_tokens
from localspec.chat.messages import Document
from localspec.chat.parts import cut
from localspec.chat.presets import Preset, own_presets, presets
from localspec.chat.rewrite_options import rewrite_options
from localspec.chat.versions import rewritten_lately
from localspec.engine.errors import UserError
from localspec.tui import chat_settings
from localspec.tui.screens.answering import Answering
from localspec.tui.screens.choice import Choice, ChoiceScreen, LineScreen
from localspec.tui.screens.rewrite import RewriteScreen
from localspec.tui.screens.rewrite_base import RewriteContext
from localspec.tui.screens.viewer import ViewerScreen
from localspec.tui.widgets.chips import (
    EDIT,
    KEYS,
    LEAVE,
    MENU,
    PART,
    REMOVE,
    RENAME,
    REWRITE,
    TEMPLATE_TOKENS,
    VIEW,
    Chip,
    Chips,
    measure,
    short_name,
)

_MOST_COUNTED = 2_000_000
"""Characters; counting more would keep the engine from answering."""
_ROOM_SHARE = 4
"""This fraction of the context is kept free for an answer where a part of a document is attached."""
_CONTEXT = "context"
_MENU = (
    Choice(VIEW, "View", key="v"),
    Choice(REWRITE, "Rewrite", key="w"),
    Choice(RENAME, "Rename", key="n"),
    Choice(EDIT, "Edit", key="e"),
    Choice(REMOVE, "Remove", key="x"),
)


class DocumentActions(Answering):
    """The actions on the documents that go along with what is being written."""

    @dataclass
    class _Counted(Message):
        """The model has counted a document."""

        document: Document
        tokens: int

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._being_counted: list[Document] = []

    # How long it is.

    @on(Chips.Changed)
    def _count_documents(self) -> None:
        """Have the model count what it has not counted yet."""
        chips = self._prompt.chips
        counted = self._being_counted
        if self._loaded is None:
            counted.clear()
            return
        for chip in (chips[index] for index in range(len(chips))):
            short = len(chip.document.text) <= _MOST_COUNTED
            if short and not chip.exact and not any(chip.document is document for document in counted):
                counted.append(chip.document)
                told = partial(self._tell_count, chip.document)
                self._worker.count(chip.document.text, told)

    def _tell_count(self, document: Document, tokens: int) -> None:
        """On the engine's thread."""
        self.post_message(self._Counted(document, tokens))

    @on(_Counted)
    def _show_count(self, event: _Counted) -> None:
        self._being_counted = [document for document in self._being_counted if document is not event.document]
        chip = self._prompt.chips.show_tokens(event.document, event.tokens)
        if chip and not self._prompt.chips.fits(chip.tokens):
            self.say(f"{short_name(chip.document)} is too long to be read at once; f6 offers what works.")

    def too_long(self, words: str, documents: tuple[Document, ...]) -> bool:
        """Whether the documents are more than the model can read at once; what can be done instead is offered then."""
        chips = self._prompt.chips
        sent = [chip for chip in (chips[index] for index in range(len(chips))) if chip.document in documents]
        total = sum(chip.tokens for chip in sent) + estimated_tokens(words)
        # An estimate may be wrong by a third.
        known = all(chip.exact for chip in sent)
        if not sent or chips.fits(total if known else total * 2 // 3):
            return False
        self._offer(max(sent, key=lambda chip: chip.tokens), total)
        return True

    @work(group="document", exclusive=True)
    async def _offer(self, chip: Chip, total: int) -> None:
        name, room = short_name(chip.document), self._prompt.chips.room or 0
        wanted = 1 << (total + TEMPLATE_TOKENS + 512).bit_length()
        choices = (
            Choice(REWRITE, f"Rewrite {name} in parts", "part by part, however long it is", "w"),
            Choice(PART, f"Attach a part of {name}", "as much as fits, and room for an answer", "p"),
            Choice(_CONTEXT, "Use a larger context", f"start with --ctx {wanted}, where there is memory for it", "c"),
        )
        about = f"It would be {total:,} tokens, and the model can look back on {room:,}. Nothing was sent."
        chosen = await self.app.push_screen_wait(ChoiceScreen("Too long to be read at once", choices, about))
        if chosen == _CONTEXT:
            self.say(f"Leave with ctrl+q and start again with: localspec --ctx {wanted}")
        elif chosen:
            await self._do_with(chosen, chip)

    # What is done with one.

    def idle_status(self) -> tuple[str, str]:
        """The keys for a chosen document."""
        return ("", KEYS) if self._prompt.chips.has_focus else super().idle_status()

    @on(Chips.Chosen)
    def _show_document_keys(self) -> None:
        self._show_status()

    @on(Chips.Acted)
    def _act(self, event: Chips.Acted) -> None:
        if event.what == LEAVE:
            self._prompt.focus()
        else:
            self._act_on(event.what, self._prompt.chips[event.index])

    @work(group="document", exclusive=True)
    async def _act_on(self, what: str, chip: Chip) -> None:
        if what == MENU:
            fits = self._prompt.chips.fits(chip.tokens)
            menu = _MENU if fits else (*_MENU[:2], Choice(PART, "Attach a part", key="p"), *_MENU[2:])
            about = measure(chip, self._prompt.chips.room)
            chosen = await self.app.push_screen_wait(ChoiceScreen(short_name(chip.document), menu, about))
            if chosen is None:
                return
            what = chosen
        await self._do_with(what, chip)

    async def _do_with(self, what: str, chip: Chip) -> None:
        index = self._index_of(chip)
        if index is None:
            return
        match what:
            case "view":
                about = measure(chip, self._prompt.chips.room)
                self.app.push_screen(ViewerScreen(chip.document.name, chip.document.text, about))
            case "rewrite":
                self.open_rewrite(chip.document)
            case "rename":
                await self._rename(chip)
            case "edit":
                self._prompt.action_edit_document(index)
                self._prompt.focus()
            case "part":
                await self._attach_part(chip)
            case "remove":
                self._prompt.remove_document(index)
                if not len(self._prompt.chips):
                    self._prompt.focus()

    def _index_of(self, chip: Chip) -> int | None:
        """Where it is now; it may have been counted, or taken away, meanwhile."""
        chips = self._prompt.chips
        return next((place for place in range(len(chips)) if chips[place].document is chip.document), None)

    def _replace(self, chip: Chip, document: Document) -> None:
        index = self._index_of(chip)
        if index is not None:
            new = Chip.of(document)
            if document.text == chip.document.text:
                new = replace(new, tokens=chip.tokens, exact=chip.exact)
            self._prompt.chips.replace(index, new)

    async def _rename(self, chip: Chip) -> None:
        name = await self.app.push_screen_wait(LineScreen("Rename the document", chip.document.name))
        if name and name.strip():
            self._replace(chip, replace(chip.document, name=" ".join(name.split())))

    async def _attach_part(self, chip: Chip) -> None:
        """Put one of the parts that fit in the place of the whole."""
        room = self._prompt.chips.room or 0
        text = chip.document.text
        per_character = chip.tokens / max(1, len(text))
        parts = cut(
            text, lambda part: round(len(part) * per_character), max(1, room - room // _ROOM_SHARE - TEMPLATE_TOKENS)
        )
        title = f"Which part, 1 to {len(parts)}?"
        given = await self.app.push_screen_wait(
            LineScreen(title, "1", "The document is cut at headings and paragraphs.")
        )
        if given is None:
            return
        if not given.strip().isdigit() or not 1 <= int(given) <= len(parts):
            self.say(f"There is no part {given.strip()[:20] or 'without a number'}: choose from 1 to {len(parts)}.")
            return
        start, end = parts[int(given) - 1]
        name = f"{chip.document.name}, part {int(given)} of {len(parts)}"
        self._replace(chip, Document(name, text[start:end]))

    # Rewriting.

    def rewrite(self, instruction: str = "") -> None:
        """Open the rewrite mode with the document that is chosen, else the last one of the chat, else one of before."""
        chips = self._prompt.chips
        if len(chips):
            chip = chips[chips.chosen]
            self.open_rewrite(chip.document, instruction)
            return
        documents = [document for entry in self._chat.thread.path() for document in entry.documents]
        if documents:
            self.open_rewrite(documents[-1], instruction)
        else:
            self._choose_rewritten(instruction)

    def action_rewrite(self) -> None:
        """Rewrite a document."""
        self.rewrite()

    @work(group="document", exclusive=True)
    async def _choose_rewritten(self, instruction: str) -> None:
        try:
            lately = rewritten_lately(self._chat.store)
        except UserError as error:
            self.say(str(error))
            return
        if not lately:
            self.say("There is no document to rewrite: paste a long text, or attach a file with @.")
            return
        choices = [
            Choice(str(place), short_name(document), " ".join(document.text[:200].split())[:60])
            for place, document in enumerate(lately)
        ]
        chosen = await self.app.push_screen_wait(ChoiceScreen("Rewritten lately", choices))
        if chosen is not None:
            self.open_rewrite(lately[int(chosen)], instruction)

    def open_rewrite(self, document: Document, instruction: str = "") -> None:
        """Open the rewrite mode."""
        context = RewriteContext(
            self._worker,
            self._chat.store,
            lambda: rewrite_options(self._start, chat_settings.answer_options(self._chat.settings)),
            self.why_not_now,
            self._restart_for_rewrite,
            self._presets(),
        )
        self.app.push_screen(RewriteScreen(context, document, instruction))

    def _restart_for_rewrite(self) -> None:
        if self._is_gone:
            self.restart_engine()

    def _presets(self) -> tuple[Preset, ...]:
        """Those of the person's config.toml too, where they can be read."""
        table = getattr(self.app, "look", {}).get("rewrite")
        try:
            return presets(own_presets(table) if table is not None else None)
        except UserError as error:
            self.say(str(error))
            return presets()
