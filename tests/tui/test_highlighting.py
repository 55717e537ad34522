"""Code in colors while it is written."""

from __future__ import annotations

from typing import Any

import pytest
from textual._compositor import Compositor
from textual.app import App, ComposeResult
from textual.content import Content
from textual.highlight import HighlightTheme, highlight
from textual.widgets import Static

from localspec.tui.highlighting import LONGEST_LINE, Highlighter
from localspec.tui.widgets.answer import Answer
from localspec.tui.widgets.growing import Growing
from scripted import app_with, chat, loaded, seen, until

PYTHON = '''def total(values: list[int]) -> int:
    """The sum of the values,
    which may be none.

    class is no keyword in here.
    """
    return sum(values)  # all of them


class Empty:
    names = {"a": 1, 'b': None}
'''
C = """/* A comment
   over lines: int x = 1; */
int main(void) {
    return 0; // done
}
"""


def styled(content: Content) -> list[tuple[str, str]]:
    """Every character that is seen, with its style."""
    styles = [""] * len(content.plain)
    for start, end, style in content.spans:
        if style != "$text":
            # Whether a string is a docstring shows only at its end.
            kind = "string" if str(style).startswith("$text-success") else str(style)
            styles[start:end] = [kind] * (min(end, len(styles)) - start)
    return [(letter, style) for letter, style in zip(content.plain, styles, strict=True) if not letter.isspace()]


@pytest.mark.parametrize(("language", "code"), [("python", PYTHON), ("c", C)])
@pytest.mark.parametrize("lines", [1, 2, 100])
def test_code_that_comes_line_by_line_looks_as_in_one_piece(language: str, code: str, lines: int) -> None:
    """A string over many lines is one, although no line is looked at twice."""
    highlighter = Highlighter(language)
    split = code.splitlines(keepends=True)
    parts = [highlighter.lines("".join(split[at : at + lines]), HighlightTheme) for at in range(0, len(split), lines)]
    together = Content("").join(parts)
    assert together.plain == code
    assert styled(together) == styled(highlight(code, language=language))


@pytest.mark.parametrize("language", ["", "no-such-language"])
def test_an_unknown_language_has_no_colors(language: str) -> None:
    """And no lexer is asked."""
    highlighter = Highlighter(language)
    assert highlighter.lines("def x():\n", HighlightTheme).plain == "def x():\n"
    assert highlighter.begun("def", HighlightTheme).plain == "def"
    assert highlighter.looked_at == 0


def test_an_endless_line_is_not_looked_at_again_and_again() -> None:
    """Behind a few hundred characters it waits for its end."""
    highlighter = Highlighter("python")
    highlighter.begun("x" * LONGEST_LINE, HighlightTheme)
    looked = highlighter.looked_at
    assert highlighter.begun("x" * (LONGEST_LINE + 1), HighlightTheme).plain == "x" * (LONGEST_LINE + 1)
    assert highlighter.looked_at == looked


class GrowingApp(App[None]):
    """Nothing but code that grows."""

    def compose(self) -> ComposeResult:
        yield Growing("python")


@pytest.mark.parametrize("open_string", [False, True])
async def test_the_work_of_a_flush_does_not_grow_with_the_code(open_string: bool) -> None:
    """Twice the code is looked at and drawn twice as much, not four times, also within a string that never ends."""
    app = GrowingApp()
    async with app.run_test() as pilot:
        growing = app.query_one(Growing)
        drawn = 0
        update = Static.update

        def counted(self: Static, content: Content, **named: bool) -> None:
            nonlocal drawn
            drawn += len(content.plain)
            update(self, content, **named)

        Static.update = counted  # type: ignore[method-assign,assignment]
        try:
            await growing.add('x = """\n' if open_string else "x = 1\n")
            costs = []
            for _ in range(2):
                looked, drawn = growing.highlighter.looked_at, 0
                for number in range(1000):
                    await growing.add(f"name_{number:04} = [1")
                    await growing.add(", 2]\n")
                costs.append((growing.highlighter.looked_at - looked, drawn))
                await pilot.pause()
        finally:
            Static.update = update  # type: ignore[method-assign]
        new = 1000 * len("name_0000 = [1, 2]\n")
        (first_looked, first_drawn), (second_looked, second_drawn) = costs
        assert second_looked <= first_looked <= 4 * new
        assert second_drawn <= 1.1 * first_drawn
        assert second_drawn <= 16 * new


async def test_a_line_that_never_ends_is_cut_and_nothing_is_lost() -> None:
    """Ten thousand characters without a line end are there, in pieces that can be drawn."""
    app = GrowingApp()
    async with app.run_test() as pilot:
        growing = app.query_one(Growing)
        for _ in range(100):
            await growing.add("y" * 100)
        await pilot.pause()
        texts = [str(piece.content) for piece in growing.query(Static) if piece.display]
        assert "".join(texts).replace("\n", "") == "y" * 10_000
        assert max(map(len, texts)) <= 4100


async def test_what_is_written_is_laid_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a second time because it has grown, which is what Textual does with every widget that has children."""
    layouts = 0
    reflow = Compositor.reflow

    def counted(self: Compositor, *arguments: Any) -> Any:
        nonlocal layouts
        layouts += 1
        return reflow(self, *arguments)

    app, _ = app_with()
    async with app.run_test() as pilot:
        await loaded(pilot)
        answer = Answer()
        await chat(app)._transcript.add(answer)
        await answer.write("```python\n" + "x = 1\n" * 30)
        await until(pilot, lambda: "x = 1" in seen(app))
        await pilot.pause(0.1)
        monkeypatch.setattr(Compositor, "reflow", counted)
        for number in range(20):
            await answer.write(f"y = {number}\n")
            await until(pilot, lambda number=number: f"y = {number}" in seen(app))
            await pilot.pause()
    app.worker.join()
    # A few more, where lines join the piece above.
    assert 20 <= layouts <= 28
