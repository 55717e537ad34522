"""Charts as pictures, through matplotlib, which is an optional part of the installation and imported only here."""

import io
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from localspec.engine.errors import UserError
from localspec.measure.charts import Chart
from localspec.whole_file import write_over

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = (".svg", ".png")

_COLORS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
"""Told apart with every common color vision (Okabe, Ito: Color Universal Design, 2008); the markers differ too."""
_MARKERS = "os^Dv*"
_STYLES = ("-", ":", "--", "-.")
"""When all colors have been used, they come again with the next of these."""
_INCHES, _DOTS_PER_INCH = (7.0, 4.2), 150
_TITLE_CHARACTERS = 64
_MOST_NUMBERS = 20


def check_plot_file(file: Path) -> None:
    """Raise UserError now for a picture that could not be written later, after all the work."""
    if file.suffix.lower() not in FORMATS:
        raise UserError(f"{file.name} has to end in {' or '.join(FORMATS)}, which says what kind of picture it is.")
    if file.is_dir():
        raise UserError(f"{file} is a folder; give the name of a file in it.")
    if not file.absolute().parent.is_dir():
        raise UserError(f"There is no folder {file.absolute().parent}; make it, or write the picture elsewhere.")
    if find_spec("matplotlib") is None:
        raise UserError("Pictures need matplotlib, which is not installed; pip install 'localspec[plots]' gets it.")


def save_charts(charts: Sequence[Chart], file: Path) -> None:
    """Draw the charts one below the other into `file`, SVG or PNG by its ending; the same charts give the same bytes.

    A file that is there is replaced whole or stays as it is. Raises UserError.
    """
    check_plot_file(file)
    picture = _drawn(charts, file.suffix.lower()[1:])
    try:
        write_over(file, picture)
    except OSError as error:
        raise UserError(f"{file} cannot be written ({error.strerror}); write the picture elsewhere.") from error


def _drawn(charts: Sequence[Chart], form: str) -> bytes:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"svg.hashsalt": "localspec", "font.family": "DejaVu Sans", "text.parse_math": False}):
        width, height = _INCHES
        figure = Figure(figsize=(width, height * len(charts)), layout="constrained")
        for chart, axes in zip(charts, figure.subplots(len(charts), squeeze=False)[:, 0], strict=True):
            _draw(chart, axes)
        figure.align_ylabels()
        picture = io.BytesIO()
        metadata = {"Date": None} if form == "svg" else None
        figure.savefig(picture, format=form, dpi=_DOTS_PER_INCH, metadata=metadata)
    return picture.getvalue()


def _draw(chart: Chart, axes: "Axes") -> None:
    for number, line in enumerate(chart.lines):
        around, place = divmod(number, len(_COLORS))
        axes.plot(
            line.x, line.y, color=_COLORS[place], marker=_MARKERS[place], linestyle=_STYLES[around % len(_STYLES)],
            markersize=4, linewidth=1.6, label=line.label,
        )  # fmt: skip
    if chart.level:
        name, value = chart.level
        axes.axhline(value, color="#555555", linewidth=1, linestyle="--", label=name)
    axes.update_datalim([(1.0, y) for y in chart.in_sight], updatex=False)
    axes.autoscale_view()
    axes.set_title(fill(chart.title, _TITLE_CHARACTERS), fontsize=11, loc="left")
    axes.set_xlabel(chart.x_label)
    axes.set_ylabel(chart.y_label)
    places = sorted({x for line in chart.lines for x in line.x})
    if len(places) <= _MOST_NUMBERS:
        axes.set_xticks(places)
    axes.grid(color="#e4e4e4", linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if chart.lines:
        axes.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1.0, 1.0))
