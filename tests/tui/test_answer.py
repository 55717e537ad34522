"""What the model says, as it is shown."""

import pytest
from textual.app import App, ComposeResult

from localspec.tui.widgets.answer import Answer
from scripted import seen


class AnswerApp(App[None]):
    """Nothing but an answer."""

    CSS = "Answer { height: auto; }"

    def compose(self) -> ComposeResult:
        yield Answer()

    @property
    def answer(self) -> Answer:
        return self.query_one(Answer)


async def shown_while_streaming(*pieces: str) -> str:
    """The screen after all pieces have been written, but nothing is finished yet."""
    app = AnswerApp()
    async with app.run_test() as pilot:
        for piece in pieces:
            await app.answer.write(piece)
            await pilot.pause()
        await pilot.pause()
        return seen(app)


async def shown_in_the_end(*pieces: str, settled: bool = False) -> str:
    app = AnswerApp()
    async with app.run_test() as pilot:
        for piece in pieces:
            await app.answer.write(piece)
            await pilot.pause()
        await app.answer.finish()
        if settled:
            await app.answer.settle()
        await pilot.pause()
        return seen(app)


async def test_control_characters_never_reach_the_screen() -> None:
    for shown in (await shown_while_streaming("a\x1b[2J\ud800b"), await shown_in_the_end("a\x1b[2J\ud800b")):
        assert "a␛[2J\ufffdb" in shown


@pytest.mark.parametrize("settled", [False, True])
async def test_tags_and_pictures_are_text(settled: bool) -> None:
    shown = await shown_in_the_end("A <think>so</think> ![a picture](http://x.test/y.png) **end**", settled=settled)
    assert "A <think>so</think> !a picture" in shown
    assert "end" in shown
    assert "**" not in shown


@pytest.mark.parametrize("settled", [False, True])
async def test_lines_end_where_the_model_ended_them(settled: bool) -> None:
    shown = await shown_in_the_end("Roses are red,\nviolets are blue", settled=settled)
    assert [line.strip() for line in shown.splitlines() if line.strip()][:2] == ["Roses are red,", "violets are blue"]


async def test_a_whole_answer_is_laid_out_once_more() -> None:
    pieces = ("See [the page][p].\n\n", "More.\n\n", "[p]: http://x.test/\n")
    assert "[the page][p]" in await shown_while_streaming(*pieces)
    assert "See the page." in await shown_in_the_end(*pieces)


async def test_a_table_that_grows_row_by_row_is_shown() -> None:
    pieces = ("| a | b |\n|---|---|", "\n", "|", " one | two |\n", "| three | four |\n", "\nafter")
    for shown in (await shown_while_streaming(*pieces), await shown_in_the_end(*pieces)):
        assert "one" in shown
        assert "four" in shown
        assert "after" in shown


async def test_a_table_whose_last_row_turns_out_to_be_something_else_stops_nothing() -> None:
    pieces = ("| a | b |\n|---|---|\n| one | two |\n``", "`\ncode\n", "```\n\nafter")
    shown = await shown_while_streaming(*pieces)
    assert "one" in shown
    assert "code" in shown
    assert "after" in shown


async def test_a_note_says_how_the_answer_ended_and_its_brackets_are_text() -> None:
    app = AnswerApp()
    async with app.run_test() as pilot:
        await app.answer.finish("stopped [here]")
        await pilot.pause()
        assert "stopped [here]" in seen(app)


async def test_an_answer_without_a_word_can_be_finished_and_settled() -> None:
    assert await shown_in_the_end(settled=True) == await shown_in_the_end(settled=False)
