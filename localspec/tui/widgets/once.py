"""Widgets that are laid out once when they grow.

A widget that has got another size in a layout asks Textual for a second one, in case that a scrollbar is needed, and is drawn
twice. What only grows with its content, or always keeps room for its scrollbar, needs none: while an answer is written, that
is half of all the drawing.
"""

import asyncio
import contextlib

from textual.geometry import Size
from textual.reactive import Reactive
from textual.widget import Widget
from textual.widgets import Static

_PATIENCE_SECONDS = 0.25


def once() -> Reactive[Size]:
    """The `virtual_size` of such a widget, as an attribute of its class."""
    return Reactive(Size(0, 0), repaint=False)


async def laid_out(widget: Widget) -> None:
    """Wait until what was mounted is on the screen, so that keys get their turn before more is. A widget that has left the
    screen meanwhile is not waited for."""
    shown = asyncio.Event()
    widget.call_after_refresh(shown.set)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE_SECONDS):
            await shown.wait()


class Text(Static):
    """Text that is never taken for markup, and laid out once."""

    virtual_size = once()

    def __init__(self, classes: str | None = None) -> None:
        super().__init__("", markup=False, classes=classes)
