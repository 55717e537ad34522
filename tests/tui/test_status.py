"""The two lines at the bottom, at every width."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult
from textual.content import Content
from textual.pilot import Pilot
from textual.widgets import Static

from localspec.tui.widgets.status import NEARLY_FULL, Status
from scripted import seen, until
from stage import Stage


class Bottom(App[None]):
    """Nothing but the two lines."""

    CSS_PATH = Stage.CSS_PATH

    def compose(self) -> ComposeResult:
        yield Status()


async def above(pilot: Pilot[None], *, used: int = 2048, length: int = 8192, seed: int | None = 7) -> str:
    """The upper line, with two models, a temperature and a context."""
    status = pilot.app.query_one(Status)
    status.show_models("big-model.Q4_K_M", "small-model.Q4_0")
    status.show_sampling(0.7, seed)
    status.show_context(used, length)
    await pilot.pause()
    return next(iter(seen(pilot.app).splitlines()), "")


async def test_all_is_shown_where_there_is_room() -> None:
    app = Bottom()
    async with app.run_test(size=(120, 2)) as pilot:
        line = await above(pilot)
        assert line.startswith("  big-model.Q4_K_M + small-model.Q4_0")
        assert line.endswith("temp 0.7, seed 7  context 2,048 / 8,192 ██")
        assert "seed" not in await above(pilot, seed=None)


async def test_the_sampling_goes_before_a_name_is_cut() -> None:
    app = Bottom()
    async with app.run_test(size=(80, 2)) as pilot:
        line = await above(pilot)
        assert line.endswith("context 2,048 / 8,192 ██")
        assert "big-model.Q4_K_M + small-model.Q4_0" in line
        assert "temp" not in line


@pytest.mark.parametrize("width", range(1, 121, 7))
async def test_no_width_is_too_small_and_nothing_runs_over(width: int) -> None:
    app = Bottom()
    async with app.run_test(size=(width, 2)) as pilot:
        for used in (0, 1, 7000, 8192, 100_000):
            line = await above(pilot, used=used)
            assert Content(line).cell_length <= width
        app.query_one(Status).show_activity("1.85 tokens/step   31.4 tokens/s   lookup 45 %", "esc stop")
        await pilot.pause()
        assert all(Content(line).cell_length <= width for line in seen(app).splitlines())


@pytest.mark.parametrize(("width", "words"), [(60, "context 2,048 / 8,192"), (40, "2,048 / 8,192"), (24, "25 %")])
async def test_the_context_is_the_last_to_go(width: int, words: str) -> None:
    app = Bottom()
    async with app.run_test(size=(width, 2)) as pilot:
        line = await above(pilot)
        assert words in line
        assert line.startswith("  big-")
        await pilot.resize_terminal(120, 2)
        await pilot.pause()
        assert "temp 0.7, seed 7" in seen(app)


async def test_a_context_that_is_nearly_full_is_said_once_and_shown_as_long_as_it_is() -> None:
    app = Bottom()
    async with app.run_test(size=(80, 2)) as pilot:
        assert "nearly full" not in await above(pilot, used=849, length=1000)
        line = await above(pilot, used=850, length=1000)
        assert "context nearly full  850 / 1,000 ██████▊" in line
        status = app.query_one(Status)
        assert NEARLY_FULL in seen(app)
        status.unsay()
        line = await above(pilot, used=900, length=1000)
        assert "context nearly full  900 / 1,000" in line
        assert NEARLY_FULL not in seen(app)
        await above(pilot, used=100, length=1000)
        assert not app.query("#context.-full")
        await above(pilot, used=990, length=1000)
        assert NEARLY_FULL in seen(app)


async def test_a_sentence_goes_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Status, "MESSAGE_SECONDS", 0.05)
    app = Bottom()
    async with app.run_test(size=(80, 2)) as pilot:
        status = app.query_one(Status)
        status.show_activity("calm", "")
        status.say("Something happened.")
        assert "Something happened." in status.query_one("#activity", Static).render().plain
        await until(pilot, lambda: "calm" in seen(app))


async def test_a_wide_terminal_shows_all_words_about_a_full_context() -> None:
    app = Bottom()
    async with app.run_test(size=(160, 2)) as pilot:
        assert NEARLY_FULL in await above(pilot, used=950, length=1000)


@pytest.mark.parametrize(
    ("used", "bar"),
    [(0, ""), (1, "▏"), (63, "▌"), (125, "█"), (500, "████"), (1000, "████████"), (5000, "████████")],
)
async def test_the_meter_is_filled_in_eighths(used: int, bar: str) -> None:
    app = Bottom()
    async with app.run_test(size=(120, 2)) as pilot:
        line = await above(pilot, used=used, length=1000)
        assert line.endswith(f"{used:,} / 1,000 {bar}".rstrip())


async def test_names_and_messages_are_shown_literally() -> None:
    app = Bottom()
    async with app.run_test(size=(80, 2)) as pilot:
        status = app.query_one(Status)
        status.show_models("[b]big[/b]", None)
        status.say("[/INST] \x1b[2J")
        await pilot.pause()
        assert "[b]big[/b]" in seen(app)
        assert "[/INST] ␛[2J" in seen(app)
