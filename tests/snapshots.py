"""Pictures of screens as text, kept beside the tests: `pytest --update-snapshots` writes them anew."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from textual.app import App
from textual.pilot import Pilot
from textual.strip import Strip

FOLDER = "snapshots"
"""Beside the test."""
_TRIES, _SAME, _PAUSE_SECONDS = 60, 8, 0.05


class Snapshots:
    """Compares what is on a screen with the file of that name."""

    def __init__(self, folder: Path, update: bool) -> None:
        self._folder, self._update = folder, update

    async def check(self, pilot: Pilot[None], name: str, *, styles: bool = False) -> None:
        """The screen is, or soon becomes, as it was; with `styles` its colors and weights, too. Fails with the difference."""
        file = self._folder / f"{name}.txt"
        if self._update:
            self._folder.mkdir(exist_ok=True)
            file.write_text(await self._settled(pilot, styles), encoding="utf-8")
            return
        before, text = file.read_text(encoding="utf-8") if file.exists() else "", ""
        for _ in range(_TRIES):
            text = _text(pilot, styles)
            if text == before:
                return
            await pilot.pause(_PAUSE_SECONDS)
        difference = difflib.unified_diff(before.splitlines(), text.splitlines(), "before", "now", lineterm="", n=2)
        raise AssertionError(
            f"The screen {name} has changed; when that is meant, run the test with --update-snapshots.\n"
            + "\n".join(difference)
        )

    @staticmethod
    async def _settled(pilot: Pilot[None], styles: bool) -> str:
        """When it has not changed for a while."""
        seen: list[str] = []
        while len(seen) < _SAME or len(set(seen[-_SAME:])) > 1:
            seen.append(_text(pilot, styles))
            await pilot.pause(_PAUSE_SECONDS)
        return seen[-1]


def _text(pilot: Pilot[None], styles: bool) -> str:
    return "\n".join(picture(screen_strips(pilot.app), styles=styles)) + "\n"


def screen_strips(app: App[None]) -> list[Strip]:
    """The cells of the screen, a strip for each line."""
    return app.screen._compositor.render_strips()


def picture(strips: list[Strip], *, styles: bool = False) -> Iterator[str]:
    """A line of text for each line of cells, without the blanks at its end; below it, where asked for, its styles.

    A style is named by a letter, the same for every cell that looks the same, and the letters are explained at the end.
    """
    names: dict[str, str] = {}
    for strip in strips:
        yield strip.text.rstrip()
        if styles:
            yield "    " + " ".join(_runs(strip, names))
    for style, name in names.items():
        yield f"{name} = {style}"


def _runs(strip: Strip, names: dict[str, str]) -> Iterator[str]:
    """Such as a12: twelve cells of the style a."""
    cells = [(str(segment.style or "none"), segment.cell_length) for segment in strip]
    for style, group in groupby(cells, key=lambda cell: cell[0]):
        name = names.setdefault(style, _name(len(names)))
        yield f"{name}{sum(length for _, length in group)}"


def _name(number: int) -> str:
    high, low = divmod(number, 26)
    return (_name(high - 1) if high else "") + chr(ord("a") + low)
