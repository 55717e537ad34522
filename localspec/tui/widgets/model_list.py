"""Models to choose from, one below the other."""

from __future__ import annotations

from collections.abc import Sequence

from textual.binding import Binding
from textual.content import Content
from textual.css.styles import RulesMap
from textual.strip import Strip
from textual.style import Style
from textual.visual import RenderOptions, Visual
from textual.widgets.option_list import Option

from localspec.tui.literal import literal
from localspec.tui.shelf import Kind, Row, size
from localspec.tui.widgets.searched_list import SearchedList

_GAP = 2
_FIT_CELLS, _SIZE_CELLS, _STATE_CELLS = 15, 8, 9
_LEAST_NAME_CELLS = 24
_TITLES = {
    Kind.INSTALLED: "Installed",
    Kind.PAIR: "Pairs, a model and what drafts for it",
    Kind.REFERENCE: "On the hub",
    Kind.FILE: "A file of your own",
}


class ModelLine(Visual):
    """A model on one line: its name, what it is now, whether it fits, and its size. Where there is no room the state goes
    last and the fit first."""

    def __init__(self, row: Row, state: str) -> None:
        self._row, self._state = row, state

    def render_strips(self, width: int, height: int | None, style: Style, options: RenderOptions) -> list[Strip]:
        """One line."""
        return self._line(width).render_strips(width, 1, style, options)[:1]

    def get_optimal_width(self, rules: RulesMap, container_width: int) -> int:
        """As much as there is."""
        return container_width

    def get_height(self, rules: RulesMap, width: int) -> int:
        """Lines."""
        return 1

    def _line(self, width: int) -> Content:
        row = self._row
        # No colors: the highlighted line has another background.
        fit = Content.styled(_short_fit(row.fit), "dim")
        bytes_ = Content.styled(size(row.bytes) if row.bytes else "", "dim")
        state = Content.styled(self._state, "bold" if self._state in ("target", "draft") else "dim")
        columns = [(state, _STATE_CELLS, False), (fit, _FIT_CELLS, False), (bytes_, _SIZE_CELLS, True)]
        while columns and width - sum(cells + _GAP for _words, cells, _right in columns) < _LEAST_NAME_CELLS:
            columns.remove(next((column for column in columns if column[0] is fit), columns[0]))
        name_cells = max(1, width - sum(cells + _GAP for _words, cells, _right in columns))
        line = Content.styled(literal(row.name), "" if row.fits else "dim").truncate(
            name_cells, ellipsis=True, pad=True
        )
        for words, cells, right in columns:
            words = words.truncate(cells, ellipsis=True)
            blank = Content(" " * (cells - words.cell_length))
            line = line + Content(" " * _GAP) + (blank + words if right else words + blank)
        return line


class ModelList(SearchedList):
    """Headings and models."""

    BINDINGS = [
        Binding("d", "screen.use_as_draft", "Use as draft model", id="models.draft", show=False),
        Binding("p", "screen.pull", "Download", id="models.pull", show=False),
        Binding("x", "screen.stop_pull", "Stop the download", id="models.stop", show=False),
        Binding("delete", "screen.delete", "Delete", id="models.delete", show=False),
    ]

    def show(self, rows: Sequence[Row], states: dict[str, str], chosen: str | None) -> None:
        """Show `rows`, with what each is now by its id; the one with the id `chosen` is highlighted, else the first."""
        self._rows = {row.id: row for row in rows}
        options: list[Option] = []
        kind: Kind | None = None
        for row in rows:
            if row.kind is not kind:
                options.append(Option(Content.styled(_TITLES[row.kind], "bold $primary"), disabled=True))
                kind = row.kind
            options.append(Option(ModelLine(row, states.get(row.id, "")), id=row.id))
        self.set_options(options)
        places = [place for place, option in enumerate(options) if option.id]
        if places:
            found = [place for place in places if options[place].id == chosen]
            self.highlighted = (found or places)[0]
            if not found:
                # The heading above belongs to it.
                self.scroll_home(animate=False)

    @property
    def chosen(self) -> Row | None:
        """The highlighted one."""
        option = self.highlighted_option
        return self._rows.get(option.id) if option and option.id else None

    _rows: dict[str, Row] = {}


def _short_fit(fit: str) -> str:
    """A verdict in a few words; the details have all of it."""
    if fit.startswith("fits with context "):
        return f"fits, {int(fit.rsplit(' ', 1)[1]):,} tok."
    return "partly on GPU" if fit.startswith("partly") else fit
