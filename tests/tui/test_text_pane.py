"""A text to be read: long ones without waiting, and letter by letter."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult
from textual.strip import Strip

from localspec.tui.widgets.text_pane import Marked, TextPane
from scripted import seen, until


class _App(App[None]):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.pane = TextPane(text)
        self.clicked: list[int] = []

    def compose(self) -> ComposeResult:
        yield self.pane

    def on_text_pane_clicked(self, event: TextPane.Clicked) -> None:
        self.clicked.append(event.at)


async def test_a_text_is_shown_letter_by_letter() -> None:
    """No markup, no control characters, tabs as blanks."""
    app = _App("[b]bold[/b]\tand \x1b[31mred\x1b[0m\r\nnext\u2028last")
    async with app.run_test(size=(60, 10)) as pilot:
        await pilot.pause()
        assert seen(app).splitlines()[:3] == ["[b]bold[/b]    and ␛[31mred␛[0m", "next", "last"]


@pytest.mark.parametrize("text", ["x" * 999_990 + " the end", "some words of a line\n" * 50_000 + "the end"])
async def test_a_megabyte_is_scrolled_to_its_end_and_only_what_is_seen_is_drawn(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On one line, and on many."""
    drawn: list[int] = []
    render = TextPane.render_line

    def counted(pane: TextPane, y: int) -> Strip:
        drawn.append(y)
        return render(pane, y)

    monkeypatch.setattr(TextPane, "render_line", counted)
    app = _App(text)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        app.pane.scroll_end(animate=False)
        await until(pilot, lambda: "the end" in seen(app))
        await pilot.pause()
    # A handful of screens, and not the thousands of rows there are.
    assert len(drawn) < 24 * 20


async def test_it_grows_at_its_end_and_follows() -> None:
    """As a text that is being written."""
    app = _App("")
    async with app.run_test(size=(20, 5)) as pilot:
        await pilot.pause()
        app.pane.follows = True
        for number in range(30):
            app.pane.append(f"word {number} and\n" if number % 3 else f"word {number} ")
        await until(pilot, lambda: "word 29" in seen(app))
        fresh = _App(app.pane.text)
        async with fresh.run_test(size=(20, 5)) as other:
            await other.pause()
            assert fresh.pane._rows == app.pane._rows


async def test_a_place_comes_into_sight_and_stays_at_the_top_when_the_width_changes() -> None:
    """What the person reads does not run away."""
    app = _App("\n".join(f"line {number} with a few words more than fit" for number in range(300)))
    async with app.run_test(size=(60, 10)) as pilot:
        await pilot.pause()
        app.pane.show_place(app.pane.text.index("line 200 "))
        await until(pilot, lambda: "line 200 " in seen(app))
        top = seen(app).splitlines()[0]
        await pilot.resize_terminal(30, 10)
        await pilot.pause()
        await until(pilot, lambda: seen(app).splitlines()[0].split(" with")[0] == top.split(" with")[0])


async def test_marks_are_drawn_in_their_own_style_and_a_click_names_the_character() -> None:
    """Also where they go over the end of a row."""
    app = _App("plain marked words go over the end")
    async with app.run_test(size=(16, 6)) as pilot:
        await pilot.pause()
        app.pane.mark([Marked(6, 18, "place")])
        await pilot.pause()
        runs = [[segment.text for segment in app.pane.render_line(row)] for row in (0, 1)]
        assert runs[0][:2] == ["plain ", "marked "]
        assert [run for run in runs[1] if run][:2] == ["words", " go over "]
        await pilot.click(TextPane, offset=(2, 1))
        await until(pilot, lambda: app.clicked == [app.pane._rows[1][0] + 2])
