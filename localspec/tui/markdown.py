"""Markdown as models write it."""

from __future__ import annotations

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Markdown as RichMarkdown
from rich.segment import Segment
from rich.theme import Theme

from localspec.tui.literal import clickable, literal

SHOW_LINK = "screen.show_link"
"""The action that is told where a link leads: nothing is opened."""

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


def parser() -> MarkdownIt:
    """Markdown in which nothing a model writes is lost: tags are text, images are links, lines end where they end."""
    markdown = MarkdownIt("gfm-like", {"html": False}).disable("image")
    markdown.core.ruler.push("keep_line_ends", _keep_line_ends)
    markdown.core.ruler.push("literal", _make_literal)
    return markdown


def _keep_line_ends(state: StateCore) -> None:
    for block in state.tokens:
        for token in block.children or ():
            if token.type == "softbreak":
                token.type = "hardbreak"


def _make_literal(state: StateCore) -> None:
    """Harmless text can become what a terminal obeys only here: Markdown decodes `&#13;`, and `%1b` in the text of a link."""
    for block in state.tokens:
        for token in (block, *(block.children or ())):
            token.content, token.info = literal(token.content), literal(token.info)


class _Rendered(RichMarkdown):
    """A link says where it leads when it is clicked, as in Textual's own Markdown; the terminal's kind of link hides it."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for part in super().__rich_console__(console, options):
            segments = [part] if isinstance(part, Segment) else console.render(part, options)
            yield from (clickable(segment, SHOW_LINK) for segment in segments)


def rendered(markdown: str, *, dark: bool) -> RichMarkdown:
    """Text as one widget can show it."""
    result = _Rendered("", code_theme="ansi_dark" if dark else "ansi_light")
    result.parsed = parser().parse(markdown)
    return result


def code_of(markdown: str) -> list[tuple[str, str]]:
    """The language and the text of every block of code, as Textual makes a widget of it."""
    return [
        (token.info, token.content.rstrip())
        for token in parser().parse(markdown)
        if token.type in ("fence", "code_block")
    ]
