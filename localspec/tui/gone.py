"""Widgets that are gone must be gone: what Textual 8 keeps of them.

Hours of chatting put tens of thousands of widgets on the screen, with all that was written in them.
"""

from __future__ import annotations

import functools

from textual._styles_cache import StylesCache
from textual.app import App


def keep_no_lines() -> None:
    """A cache of two colors is that of a method, so it holds the last 1,024 widgets by the lines they were drawn with,
    gone or not (https://github.com/Textualize/textual/issues/6665). It becomes one of the class."""
    cached = vars(StylesCache)["get_inner_outer"]
    if isinstance(cached, functools._lru_cache_wrapper):
        StylesCache.get_inner_outer = classmethod(cached)  # type: ignore[arg-type, assignment, method-assign]


def keep_no_watchers(app: App[None]) -> None:
    """An editor watches the theme of the app, which keeps it and its text until there is another theme."""
    for watchers in getattr(app, "__watchers", {}).values():
        watchers[:] = [(node, callback) for node, callback in watchers if not node._closing]
