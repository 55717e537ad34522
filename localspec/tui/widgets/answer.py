"""What the model says: Markdown while it streams and for a while after, one cheap widget when it is old."""

import logging

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from rich.markdown import Markdown as RichMarkdown
from rich.theme import Theme
from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Markdown, Static
from textual.widgets.markdown import MarkdownStream

from localspec.tui.literal import literal

OLD_ANSWERS = Theme(
    {
        **{f"markdown.h{level}": "bold" for level in range(1, 7)},
        "markdown.h2": "bold underline",
        "markdown.h7": "italic",
        "markdown.code": "bold",
        "markdown.item.bullet": "bold",
        "markdown.item.number": "bold",
        "markdown.link": "underline",
        "markdown.link_url": "underline",
        "markdown.block_quote": "italic",
        "markdown.hr": "dim",
        "markdown.table.border": "dim",
        "markdown.table.header": "bold",
    }
)
"""Rich's own colors are loud, and made for one background."""

_log = logging.getLogger("localspec.tui")


def parser() -> MarkdownIt:
    """Markdown in which nothing a model writes is lost: tags are text, images are links, lines end where they end."""
    markdown = MarkdownIt("gfm-like", {"html": False}).disable("image")
    markdown.core.ruler.push("keep_line_ends", _keep_line_ends)
    return markdown


def _keep_line_ends(state: StateCore) -> None:
    for block in state.tokens:
        for token in block.children or ():
            if token.type == "softbreak":
                token.type = "hardbreak"


class _Text(Markdown):
    """Markdown that survives the texts which Textual cannot add to, such as a table that loses a row."""

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


class Answer(Vertical):
    """One answer. `write` while it streams, then `finish`; `settle` when newer ones have made it old."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        """What has been written so far, as the model wrote it."""
        self.complete = False
        self.settled = False
        self._view: Markdown | Static = _Text()
        self._note = Static("…", markup=False, classes="note")
        self._stream: MarkdownStream | None = None

    def compose(self) -> ComposeResult:
        """The text, and below it a note on how it ended."""
        yield self._view
        yield self._note

    async def write(self, text: str) -> None:
        """Show more text."""
        self.text += text
        if self._stream is None and isinstance(self._view, Markdown):
            self._note.display = False
            self._stream = Markdown.get_stream(self._view)
        if self._stream:
            await self._stream.write(literal(text))

    async def finish(self, note: str = "") -> None:
        """The answer is complete: show all of it once more, since a streamed text can differ from a whole one."""
        stream, self._stream = self._stream, None
        if stream:
            await stream.stop()
        if isinstance(self._view, Markdown):
            await self._view.update(literal(self.text))
        self._note.update(Content(literal(note)))
        self._note.display = bool(note)
        self.complete = True

    async def settle(self) -> None:
        """Become cheap: one widget in place of one for every paragraph, each of which a focus change would restyle."""
        if self.settled:
            return
        self.settled = True
        rendered = RichMarkdown("", code_theme="ansi_dark" if self.app.current_theme.dark else "ansi_light")
        rendered.parsed = parser().parse(literal(self.text))
        old, self._view = self._view, Static(rendered, classes="settled")
        await self.mount(self._view, before=old)
        await old.remove()
