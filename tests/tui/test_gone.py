"""Widgets that have left the screen leave the memory."""

from __future__ import annotations

import gc
import weakref

from textual._styles_cache import StylesCache
from textual.app import App, ComposeResult
from textual.color import Color
from textual.screen import ModalScreen, Screen
from textual.widgets import Static, TextArea

from localspec.tui.gone import keep_no_lines, keep_no_watchers

_WIDGETS = 5


class _Editor(ModalScreen[None]):
    def compose(self) -> ComposeResult:
        yield TextArea("a text")


async def test_a_widget_that_was_drawn_leaves_nothing_of_its_lines() -> None:
    """Without the mend Textual keeps the last thousand (issue 6665), by their lines."""
    keep_no_lines()
    keep_no_lines()
    app: App[None] = App()
    caches = []
    async with app.run_test() as pilot:
        for _ in range(_WIDGETS):
            widget = Static("drawn")
            widget.styles.background = "#010203"
            await app.mount(widget)
            await pilot.pause()
            caches.append(weakref.ref(widget._styles_cache))
            assert widget._styles_cache._cache
            await widget.remove()
        del widget
        gc.collect()
        # The last one may be in the map of what is on the screen until that is made anew.
        assert sum(cache() is not None for cache in caches) <= 1


def test_the_backgrounds_are_still_the_right_ones() -> None:
    """And still kept."""
    keep_no_lines()
    red, blue = Color(255, 0, 0), Color(0, 0, 255, 0.5)
    inner, outer = StylesCache().get_inner_outer(red, blue)
    assert (inner.background, outer.background) == (red + blue, red)
    assert StylesCache().get_inner_outer(red, blue)[0] is inner


async def test_an_editor_that_was_left_is_let_go_of() -> None:
    """Its text with it, without waiting for another theme."""
    app: App[None] = App()
    async with app.run_test() as pilot:
        screen: Screen[None] = _Editor()
        await app.push_screen(screen)
        area = weakref.ref(screen.query_one(TextArea))
        await app.pop_screen()
        del screen
        keep_no_watchers(app)
        await pilot.pause()
        gc.collect()
        assert area() is None
