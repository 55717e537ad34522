"""The first model: what a person who has none may begin with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual.content import Content
from textual.css.styles import RulesMap
from textual.message import Message
from textual.strip import Strip
from textual.style import Style
from textual.visual import RenderOptions, Visual
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from localspec.tui.literal import literal
from localspec.tui.shelf import Row, size

STARTER_NAME, STARTER_BYTES = "SmolLM2-135M-Instruct-Q4_1", 98_362_432
"""As the hub's side has it, which is not imported before the first paint."""
_STARTER_WORDS = "small and quick: for a first try, and for short English texts"
_OTHERS = (
    ("file", "a file of your own", "a .gguf that you have"),
    ("all", "all models", "also those that are too large"),
)
_NAME_CELLS, _SIZE_CELLS, _GAP = 26, 8, 2


class _Line(Visual):
    """A name, its size and what it is good at, on one line."""

    def __init__(self, name: str, size_: str, words: str) -> None:
        self._line = (
            Content(literal(name)).truncate(_NAME_CELLS, ellipsis=True, pad=True)
            + Content.styled(size_.rjust(_SIZE_CELLS), "dim")
            + Content(" " * _GAP)
            + Content.styled(literal(words), "dim")
        )

    def render_strips(self, width: int, height: int | None, style: Style, options: RenderOptions) -> list[Strip]:
        """One line."""
        return self._line.truncate(width, ellipsis=True).render_strips(width, 1, style, options)[:1]

    def get_optimal_width(self, rules: RulesMap, container_width: int) -> int:
        """As much as there is."""
        return container_width

    def get_height(self, rules: RulesMap, width: int) -> int:
        """Lines."""
        return 1


class FirstModels(OptionList):
    """The starter model first, then pairs that fit this machine, as soon as that is known."""

    @dataclass
    class Taken(Message):
        """What is to be fetched; None is the starter model."""

        row: Row | None

    class FileAsked(Message):
        """A file of the person's own."""

    class AllAsked(Message):
        """The list of all models."""

    def __init__(self) -> None:
        super().__init__(id="first-models")
        self._rows: dict[str, Row] = {}

    def on_mount(self) -> None:
        """What is known already."""
        self._fill()

    def offer(self, rows: Sequence[Row]) -> None:
        """Pairs to choose from as well."""
        self._rows = {row.id: row for row in rows}
        self._fill()

    def _fill(self) -> None:
        chosen = option.id if (option := self.highlighted_option) else None
        starter = Option(_Line(STARTER_NAME, size(STARTER_BYTES), _STARTER_WORDS), id="starter")
        pairs = [Option(_Line(row.name, size(row.bytes), row.short), id=row.id) for row in self._rows.values()]
        others = [Option(_Line(name, "", words), id=id_) for id_, name, words in _OTHERS]
        options = [starter, *pairs, *others]
        self.set_options(options)
        self.highlighted = next((place for place, option in enumerate(options) if option.id == chosen), 0)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Say what it stands for."""
        event.stop()
        match event.option_id:
            case "file":
                self.post_message(self.FileAsked())
            case "all":
                self.post_message(self.AllAsked())
            case id_:
                self.post_message(self.Taken(self._rows.get(id_ or "")))
