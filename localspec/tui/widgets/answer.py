"""What the model says: Markdown while it streams and for a while after, one cheap widget when it is old."""

import logging
import re
from collections.abc import AsyncIterator, Sequence
from typing import TypeVar

from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.containers import Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Markdown, Static
from textual.widgets.markdown import MarkdownStream

from localspec.engine.step import Step
from localspec.tui.fences import Fences, Piece
from localspec.tui.literal import literal
from localspec.tui.markdown import parser, rendered
from localspec.tui.thinking import Thought, may_become_thoughts, split_thoughts
from localspec.tui.widgets.drafted import Drafted
from localspec.tui.widgets.fence import Fence, prepare
from localspec.tui.widgets.growing import Growing
from localspec.tui.widgets.once import laid_out, once
from localspec.tui.widgets.thoughts import Thoughts

MARKDOWN_CHARACTERS = 12_000
_LINE_CHARACTERS = 20
_LISTING_CHARACTERS = 600
_MOST_WIDGETS = 120
_ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s", re.MULTILINE)
"""So much of an answer is laid out as Markdown; what comes after it is plain text, so that no key waits for it. A line
counts as so many characters more, because every paragraph is a widget. A long list is written in pieces."""

_log = logging.getLogger("localspec.tui")


class _Text(Markdown):
    """Markdown that survives the texts which Textual cannot add to, such as a table that loses a row."""

    BLOCKS = {**Markdown.BLOCKS, "fence": Fence, "code_block": Fence}

    def __init__(self) -> None:
        super().__init__(parser_factory=parser, open_links=False)

    def append(self, markdown: str) -> AwaitComplete:
        """Add to the text."""
        appended = super().append(markdown)

        async def append_or_begin_again() -> None:
            try:
                await appended
            except Exception as error:
                _log.info("a streamed answer is laid out anew: %r", error)
                await self.update(self.source)

        return AwaitComplete(append_or_begin_again())


_Part = TypeVar("_Part", bound=Widget)


class _Listing(Static):
    """A list that is being written: Textual would build all of its items anew with each word."""

    def __init__(self) -> None:
        super().__init__(classes="settled")
        self.written = ""

    def add(self, text: str) -> None:
        """More of the list."""
        self.written += text
        self.update(rendered(self.written, dark=self.app.current_theme.dark))


class Answer(Vertical):
    """One answer. `write` while it streams, then `finish`; `settle` when newer ones have made it old."""

    DEFAULT_CSS = "Answer > .-waiting { display: none; }"
    virtual_size = once()

    def __init__(self, entry: int = 0, branches: str = "", old: str | None = None) -> None:
        """`old`: a whole answer, to be shown cheap from the beginning."""
        super().__init__()
        self.entry = entry
        """The message it shows."""
        self.text = old or ""
        """What has been written so far, as the model wrote it."""
        self.complete = self.settled = old is not None
        self.is_colored = False
        """Shown as the tokens were drafted, not as Markdown."""
        self._branches = branches
        self._thoughts: Thoughts | None = None
        self._parts: list[Widget] = []
        self._rest = ""
        """What of an old answer is plain text, and not there yet."""
        self._drafted: Drafted | None = None
        self._note = Static("…", markup=False, classes="note")
        self._begin()

    def _begin(self) -> None:
        self._stream: MarkdownStream | None = None
        self._fences = Fences()
        self._shown = self._laid_out = self._begins = 0

    def compose(self) -> ComposeResult:
        """Above the note on how it ended, the text will be, and above that the thoughts, if there are any."""
        if self.settled:
            thought = split_thoughts(self.text)
            if thought.thoughts:
                self._thoughts = Thoughts(thought.thoughts)
                yield self._thoughts
            markdown, self._rest = cut(thought.body)
            self._parts = [self._cheap(markdown)]
            yield self._parts[0]
        yield self._note

    @property
    def BLANK(self) -> bool:  # type: ignore[override]  # noqa: N802
        """Nothing of it is seen behind its parts, unless it is selected: it need not be drawn anew with each line added."""
        return not self.has_class("-chosen")

    async def fill(self) -> AsyncIterator[None]:
        """Put the rest of a very long answer there, a piece at a time: see Growing.fill."""
        rest, self._rest = self._rest, ""
        if rest:
            growing = await self._mount(Growing())
            async for _ in growing.fill(rest):
                if growing not in self._parts:
                    return
                yield

    async def write(self, text: str) -> None:
        """Show more text."""
        self.text += text
        if may_become_thoughts(self.text):
            return
        if text:
            self._note.display = False
        thought = split_thoughts(self.text)
        await self._show_thoughts(thought, running=thought.open)
        if thought.begins != self._begins and self._parts:
            # What looked like the answer was thinking.
            await self._remove_parts()
            self._begin()
        self._begins = thought.begins
        if self._drafted:
            self._drafted.refresh_view()
        new, self._shown = self.text[max(self._shown, thought.begins) :], len(self.text)
        for piece in self._fences.feed(literal(new)):
            await self._show(piece)

    async def finish(self, note: str = "") -> None:
        """The answer is complete: show all of it once more, since a streamed text can differ from a whole one."""
        await self._stop_stream()
        if self._drafted:
            # An answer that broke off has no step that ends it.
            self._drafted.refresh_view(at_once=True)
        body = await self._show_whole_thoughts()
        markdown, rest = cut(body)
        if _is_heavy(markdown):
            await self.settle()
            self.show_note(note)
            self.complete = True
            return
        await prepare(literal(markdown), self.app)
        if len(self._parts) == 1 and isinstance(self._parts[0], _Text) and not rest:
            await self._parts[0].update(literal(markdown))
        elif not self.settled:
            view = _Text()
            view.add_class("-waiting")
            await self.mount(view, before=self._note)
            await view.update(literal(markdown))
            await self._replace_parts(view, rest)
        self.show_note(note)
        await self._fill_in_turns()
        self.complete = True

    async def settle(self) -> None:
        """Become cheap: one widget in place of one for every paragraph, each of which a focus change would restyle."""
        if self.settled:
            return
        self.settled = True
        markdown, rest = cut(await self._show_whole_thoughts())
        view = self._cheap(markdown)
        view.add_class("-waiting")
        await self.mount(view, before=self._note)
        if self.complete and rest:
            # What follows is as cheap as it can be, and stays.
            await self._replace_first(view)
        else:
            await self._replace_parts(view, rest)
            await self._fill_in_turns()

    def show_note(self, note: str) -> None:
        """How it ended, and which of several branches it is."""
        words = "   ".join(filter(None, (self._branches, note)))
        self._note.update(Content(literal(words)))
        self._note.display = bool(words)

    async def toggle_thoughts(self) -> None:
        """Open or fold the thoughts, if there are any."""
        if self._thoughts:
            await self._thoughts.toggle()

    async def color(self, steps: Sequence[Step]) -> None:
        """Show who drafted the text, which these steps wrote, or the text again."""
        self.is_colored = not self.is_colored
        self.set_class(self.is_colored, "-colored")
        if self.is_colored:
            self._drafted = Drafted(steps)
            await self.mount(self._drafted, before=self._note)
        elif self._drafted:
            drafted, self._drafted = self._drafted, None
            await drafted.remove()

    def add_step(self, step: Step) -> None:
        """One more step wrote it."""
        if self._drafted:
            self._drafted.add(step)

    async def _show(self, piece: Piece) -> None:
        last = self._parts[-1] if self._parts else None
        if piece.kind == "open":
            await self._stop_stream()
            await self._mount(Growing(piece.text))
        elif piece.kind == "code" and isinstance(last, Growing):
            await last.add(piece.text)
        elif self._laid_out > MARKDOWN_CHARACTERS:
            await self._stop_stream()
            if not isinstance(last, Growing) or last.is_code:
                last = await self._mount(Growing())
            await last.add(piece.text)
        else:
            self._laid_out += _cost(piece.text)
            await (self._show_prose if piece.kind == "prose" else self._show_list)(piece)

    async def _show_prose(self, piece: Piece) -> None:
        if self._stream is None:
            self._stream = Markdown.get_stream(await self._mount(_Text()))
        await self._stream.write(piece.text)

    async def _show_list(self, piece: Piece) -> None:
        await self._stop_stream()
        last = self._parts[-1] if self._parts else None
        is_full = piece.kind == "item" and isinstance(last, _Listing) and len(last.written) > _LISTING_CHARACTERS
        if is_full and last:
            last.add_class("-joined")
        if is_full or not isinstance(last, _Listing):
            last = await self._mount(_Listing())
        last.add(piece.text)

    def _cheap(self, markdown: str) -> Static:
        return Static(rendered(literal(markdown), dark=self.app.current_theme.dark), classes="settled")

    async def _mount(self, part: _Part) -> _Part:
        self._parts.append(part)
        await self.mount(part, before=self._note)
        return part

    async def _stop_stream(self) -> None:
        stream, self._stream = self._stream, None
        if stream:
            await stream.stop()

    async def _show_whole_thoughts(self) -> str:
        """Returns the answer itself."""
        thought = split_thoughts(self.text)
        await self._show_thoughts(thought, running=False)
        return thought.body

    async def _show_thoughts(self, thought: Thought, *, running: bool) -> None:
        if thought.thoughts and self._thoughts is None:
            self._thoughts = Thoughts()
            await self.mount(self._thoughts, before=0)
        if self._thoughts:
            await self._thoughts.show(thought.thoughts, running)

    async def _replace_parts(self, view: Widget, rest: str) -> None:
        with self.app.batch_update():
            await self._remove_parts()
            self._parts, self._rest = [view], rest
            view.remove_class("-waiting")

    async def _replace_first(self, view: Widget) -> None:
        with self.app.batch_update():
            first, self._parts[0] = self._parts[0], view
            self.move_child(view, before=first)
            view.remove_class("-waiting")
            await first.remove()

    async def _fill_in_turns(self) -> None:
        async for _ in self.fill():
            await laid_out(self)

    async def _remove_parts(self) -> None:
        parts, self._parts = self._parts, []
        for part in parts:
            await part.remove()


def cut(body: str) -> tuple[str, str]:
    """What of an answer is laid out as Markdown, and the rest of it, which begins on a new line where possible."""
    if _cost(body) <= MARKDOWN_CHARACTERS:
        return body, ""
    end = cost = 0
    for line in body[:MARKDOWN_CHARACTERS].splitlines(keepends=True):
        cost += _cost(line)
        if cost > MARKDOWN_CHARACTERS:
            break
        end += len(line)
    end = end or MARKDOWN_CHARACTERS
    return body[:end], body[end:]


def _is_heavy(markdown: str) -> bool:
    """Whether it would be so many widgets that one would have to wait for them: an item of a list is three."""
    return 3 * len(_ITEM.findall(markdown)) + markdown.count("\n\n") > _MOST_WIDGETS


def _cost(text: str) -> int:
    return len(text) + _LINE_CHARACTERS * text.count("\n")
