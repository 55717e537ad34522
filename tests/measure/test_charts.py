"""Charts on a terminal and as pictures."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from localspec.engine.errors import UserError
from localspec.measure.charts import Chart, Line, acceptance_by_position_chart, speedup_chart, tokens_per_step_chart
from localspec.measure.plots import check_plot_file, save_charts
from localspec.measure.text_plot import Look, draw
from localspec.measure.theory import flat, speedup, tokens_per_step

UNICODE, ASCII, COLORED = Look(), Look(ascii_only=True), Look(color=True)
RISING = Chart("Rising", "x", "y", (Line("up", (1.0, 2.0, 3.0), (0.0, 1.0, 2.0)),))
SHARES = {"draft model": (0.9, 0.7, 0.5), "lookup": (0.8, 0.8)}
CHARTS = (acceptance_by_position_chart(SHARES), speedup_chart("$t_{2$ & <t>", flat, 0.1, (0.6, 0.9)))


def test_tokens_per_step_against_length() -> None:
    """A line for each acceptance, a point for each length."""
    chart = tokens_per_step_chart((0.6, 0.9), (1, 4))
    assert [line.label for line in chart.lines] == ["acceptance 0.6", "acceptance 0.9"]
    assert chart.lines[1].x == (1.0, 4.0)
    assert chart.lines[1].y == (tokens_per_step(0.9, 1), tokens_per_step(0.9, 4))


def test_speedup_against_length() -> None:
    """With the curve that was given, and plain decoding to compare with."""
    chart = speedup_chart("a device", lambda width: 1.0 + width, 0.2, (0.6, 0.9), (3,))
    assert [line.y for line in chart.lines] == [
        (speedup(0.6, 3, 0.2, lambda width: 1.0 + width),), (speedup(0.9, 3, 0.2, lambda width: 1.0 + width),)
    ]  # fmt: skip
    assert chart.level == ("plain decoding", 1.0)
    assert chart.title == "Speedup with a device, a draft step costing 0.2"


def test_acceptance_by_position() -> None:
    """From the first place in the draft on; lines may be of different lengths."""
    chart = acceptance_by_position_chart(SHARES)
    assert [(line.label, line.x, line.y) for line in chart.lines] == [
        ("draft model", (1.0, 2.0, 3.0), (0.9, 0.7, 0.5)),
        ("lookup", (1.0, 2.0), (0.8, 0.8)),
    ]


def test_shares_are_seen_on_the_whole_axis(tmp_path: Path) -> None:
    """From none to all, wherever the points are: in a picture, and on a terminal."""
    chart = acceptance_by_position_chart({"task": (0.55, 0.5)})
    drawn = draw(chart, UNICODE)
    assert [line.split()[0] for line in drawn if "┤" in line] == ["1.0", "0.8", "0.6", "0.4", "0.2", "0.0"]
    pytest.importorskip("matplotlib")
    save_charts([chart], tmp_path / "it.svg")
    words = set(re.findall(r"<!-- (.*?) -->", (tmp_path / "it.svg").read_text()))
    assert {"0.0", "0.2", "1.0"} <= words


def test_every_line_looks_different(tmp_path: Path) -> None:
    """Also when there are more of them than colors."""
    pytest.importorskip("matplotlib")
    chart = acceptance_by_position_chart({str(number): (0.5, number / 20) for number in range(20)})
    save_charts([chart], tmp_path / "it.svg")
    picture = (tmp_path / "it.svg").read_text()
    drawn = re.findall(r'<path d="[^"]*"[^>]*style="fill: none;([^"]*stroke-width: 1\.6[^"]*)"', picture)
    assert len(set(drawn)) == 20


def test_a_chart_on_a_terminal() -> None:
    """Every character of a small one."""
    assert draw(RISING, UNICODE, columns=20, rows=5) == [
        "Rising",
        "  y",
        "  2.0 ┤           ·a",
        "  1.5 ┤        ···",
        "  1.0 ┤     ·a·",
        "  0.5 ┤  ···",
        "  0.0 ┤a·",
        "      └─────────────",
        "       1     2     3",
        "             x",
        "  a: up",
    ]


def test_a_dumb_terminal_gets_ascii() -> None:
    """The same picture, character for character."""
    exchange = str.maketrans({"┤": "+", "│": "|", "└": "+", "─": "-", "·": ".", "╌": "-"})
    for chart in (RISING, *CHARTS):
        lines = draw(chart, ASCII)
        assert all(line.isascii() for line in lines)
        assert lines == [line.translate(exchange) for line in draw(chart, UNICODE)]


def test_colors_are_only_an_addition() -> None:
    """Without them the same characters are left; lines have colors of their own."""
    colored = "\n".join(draw(CHARTS[0], COLORED))
    assert len(set(re.findall(r"\x1b\[3\dm", colored))) == 2
    assert re.sub(r"\x1b\[\d+m", "", colored) == "\n".join(draw(CHARTS[0], UNICODE))
    assert not re.search(r"\x1b\[3\dm[^\x1b]*\n", colored)


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_a_chart_keeps_to_its_width(columns: int) -> None:
    """Title, axes, numbers and legend too."""
    named = speedup_chart("the passes of Some-Large-Model-With-A-Long-Name-70B-Q4_K_M", flat, 0.1, (0.6,))
    for chart in (tokens_per_step_chart((0.5, 0.6, 0.7, 0.8, 0.9)), named, *CHARTS):
        lines = draw(chart, UNICODE, columns)
        assert max(map(len, lines)) <= columns


def test_every_point_is_seen_at_its_height() -> None:
    """Each letter stands in the row nearest to its value, and the level is drawn across."""
    chart = Chart("", "", "", (Line("high", (1.0, 2.0), (4.0, 4.0)), Line("low", (1.0, 2.0), (1.0, 3.0))), ("one", 2.0))
    lines = draw(chart, UNICODE, columns=30, rows=7)
    rows = {line.split("┤")[0].strip(): line.split("┤")[1] for line in lines if "┤" in line}
    assert (rows["4"][0], rows["4"][-1]) == ("a", "a")
    assert (rows["1"][0], rows["3"][-1]) == ("b", "b")
    assert rows["2"].count("╌") > 15
    assert lines[-1] == "  a: high, b: low, ╌╌╌ one"


@pytest.mark.parametrize(
    "line",
    [Line("one point", (3.0,), (0.5,)), Line("level", (1.0, 2.0), (0.0, 0.0)), Line("huge", (1.0, 9.0), (0.0, 1e9))],
)
def test_odd_lines_are_drawn_too(line: Line) -> None:
    """A single point, no height at all, and a great one."""
    lines = draw(Chart("odd", "x", "y", (line,)), UNICODE)
    assert sum(row.split("┤")[-1].count("a") for row in lines if "┤" in row or "│" in row) == len(line.x)


def test_a_chart_without_points_is_its_title() -> None:
    """Nothing was measured."""
    assert draw(Chart("Nothing", "x", "y", (Line("none", (), ()),)), UNICODE) == ["Nothing"]


def test_a_picture_as_svg(tmp_path: Path) -> None:
    """Sound XML, in which every line is drawn, and the same bytes every time."""
    once, again = tmp_path / "once.svg", tmp_path / "again.SVG"
    save_charts(CHARTS, once)
    save_charts(CHARTS, again)
    assert once.read_bytes() == again.read_bytes()
    root = ElementTree.fromstring(once.read_text())
    assert root.tag.endswith("svg")
    identities = {element.get("id") or "" for element in root.iter()}
    assert sum(re.fullmatch(r"axes_\d", identity) is not None for identity in identities) == len(CHARTS)
    # Labels are written as they are, not as formulas.
    assert "<!-- Speedup with $t_{2$ &amp; &lt;t&gt;, a draft step costing 0.1 -->" in once.read_text()


def test_a_picture_as_png(tmp_path: Path) -> None:
    """Of the size that all have, and replacing what was there."""
    file = tmp_path / "it.png"
    file.write_bytes(b"old")
    save_charts(CHARTS, file)
    content = file.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    assert (int.from_bytes(content[16:20], "big"), int.from_bytes(content[20:24], "big")) == (1050, 630 * len(CHARTS))
    assert list(tmp_path.iterdir()) == [file]


def test_a_picture_behind_a_link(tmp_path: Path) -> None:
    """The link stays one."""
    (tmp_path / "real").mkdir()
    link = tmp_path / "link.svg"
    link.symlink_to(tmp_path / "real" / "there.svg")
    save_charts(CHARTS[:1], link)
    assert link.is_symlink()
    assert (tmp_path / "real" / "there.svg").stat().st_size > 1000


def test_a_picture_that_cannot_be_written_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of one is never left anywhere."""
    file = tmp_path / "it.svg"
    file.write_bytes(b"old")

    def full(_path: Path, _target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(UserError, match=r"it\.svg cannot be written \(No space left on device\); write the picture"):
        save_charts(CHARTS, file)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("it.svg", b"old")]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("plot.pdf", "plot.pdf has to end in .svg or .png"),
        ("plot", "plot has to end in .svg or .png"),
        ("no/folder/plot.svg", "There is no folder "),
        ("folder.svg", "folder.svg is a folder; "),
    ],
)
def test_a_place_that_will_not_do_is_known_before(name: str, sentence: str, tmp_path: Path) -> None:
    """In one sentence."""
    (tmp_path / "folder.svg").mkdir()
    with pytest.raises(UserError) as refused:
        check_plot_file(tmp_path / name)
    assert sentence in str(refused.value)


def test_without_matplotlib_it_says_what_gets_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one sentence, before any work."""
    monkeypatch.setattr("localspec.measure.plots.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"not installed; pip install 'localspec\[plots\]' gets it\.$"):
        check_plot_file(tmp_path / "it.svg")
