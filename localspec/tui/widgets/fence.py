"""Code in an answer that is complete: highlighted once, and not on the thread that keys wait for."""

from __future__ import annotations

import asyncio
from functools import lru_cache

from textual.app import App
from textual.content import Content
from textual.widgets.markdown import MarkdownFence

from localspec.tui.markdown import code_of


class Fence(MarkdownFence):
    """Textual highlights a block when it is made, and again whenever its style may have changed: some four times."""

    @classmethod
    def highlight(cls, code: str, language: str, ansi: bool = False, dark: bool = False) -> Content:
        """The code in colors; without a language in none, for guessing one would ask hundreds of lexers."""
        return _highlighted(code, language, ansi, dark)


async def prepare(markdown: str, app: App[object]) -> None:
    """Highlight the code of a text, so that making its widgets takes no time."""
    ansi, dark = app.native_ansi_color, app.current_theme.dark
    await asyncio.to_thread(_highlight_all, markdown, ansi, dark)


def _highlight_all(markdown: str, ansi: bool, dark: bool) -> None:
    for language, code in code_of(markdown):
        _highlighted(code, language, ansi, dark)


@lru_cache(maxsize=32)
def _highlighted(code: str, language: str, ansi: bool, dark: bool) -> Content:
    return MarkdownFence.highlight(code, language.partition(" ")[0] or "text", ansi, dark)
