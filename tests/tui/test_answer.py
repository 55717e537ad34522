"""What the model says, as it is shown."""

import re

import pytest
from textual.app import App, ComposeResult
from textual.widgets import Markdown, Static
from textual.widgets.markdown import MarkdownFence

from localspec.tui.widgets.answer import MARKDOWN_CHARACTERS, Answer, cut
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


def words_of(shown: str) -> list[str]:
    return re.findall(r"\w+", shown)


@pytest.mark.parametrize(
    "text",
    [
        "Before.\n\n```python\nx = 1\n\ny = 2\n```\n\nAfter.\n",
        "Things:\n\n- one\n- two\n  with more\n\nAfter.\n\n3. three\n4. four\n",
        "~~~\nopen code\n",
        "1. first\n\n   ```sh\n   ls\n   ```\n\n2. second\n",
        "<think>\nhm, well\n</think>\n\nThe answer.\n",
    ],
)
async def test_what_is_shown_while_it_is_written_is_what_is_shown_in_the_end(text: str) -> None:
    pieces = [text[at : at + 3] for at in range(0, len(text), 3)]
    while_streaming = await shown_while_streaming(*pieces)
    in_the_end = await shown_in_the_end(*pieces)
    assert words_of(while_streaming.replace("thinking,", "thought for")) == words_of(in_the_end)
    for mark in ("```", "~~~", "<think"):
        assert mark not in while_streaming


async def test_code_that_is_being_written_is_in_few_widgets() -> None:
    app = AnswerApp()
    async with app.run_test() as pilot:
        await app.answer.write("```python\n")
        for number in range(200):
            await app.answer.write(f"line_{number} = {number}\n")
        await pilot.pause()
        assert len(app.answer.query("*")) < 12
        await app.answer.finish()
        await pilot.pause()
        assert app.answer.query_one(MarkdownFence).code.count("\n") == 199


async def test_a_long_list_is_written_in_pieces_and_none_is_lost() -> None:
    app = AnswerApp()
    async with app.run_test(size=(60, 200)) as pilot:
        for number in range(120):
            await app.answer.write(f"{number + 1}. item {number}\n")
        await pilot.pause()
        streamed = seen(app)
        await app.answer.finish()
        await pilot.pause()
        assert len(app.answer.query("*")) < 10
        for shown in (streamed, seen(app)):
            assert [line.split()[-1] for line in shown.splitlines() if "item" in line] == [str(n) for n in range(120)]
            assert re.search(r"120[. ]+item 119", shown)


async def test_the_end_of_a_very_long_answer_is_plain_text() -> None:
    app = AnswerApp()
    async with app.run_test(size=(60, 40)) as pilot:
        for number in range(400):
            await app.answer.write(f"**Paragraph** number {number} of this answer, with some words in it.\n\n")
        await app.answer.finish()
        await pilot.pause()
        pieces = app.answer.query("Growing Static").results(Static)
        shown = [str(widget.content) for widget in pieces if widget.display]
        assert "**Paragraph** number 399 of this answer, with some words in it." in shown[-1]
        markdown = app.answer.query_one(Markdown).source
        assert markdown + "".join(f"{text}\n" for text in shown) == app.answer.text


@pytest.mark.parametrize("size", [MARKDOWN_CHARACTERS // 2, 3 * MARKDOWN_CHARACTERS])
@pytest.mark.parametrize("piece", ["words ", "words\n", "- item\n", "\n"])
def test_an_answer_is_cut_in_two_and_nothing_is_lost(size: int, piece: str) -> None:
    body = piece * (size // len(piece))
    markdown, rest = cut(body)
    assert markdown + rest == body
    assert len(markdown) <= MARKDOWN_CHARACTERS
    assert markdown


async def test_thoughts_fold_while_they_are_written() -> None:
    app = AnswerApp()
    async with app.run_test() as pilot:
        for piece in ("<th", "ink>", "secret words", " and more"):
            await app.answer.write(piece)
            await pilot.pause()
            assert "<" not in seen(app)
        assert "thinking, 4 words" in seen(app)
        await app.answer.toggle_thoughts()
        await app.answer.write(" still")
        await pilot.pause()
        assert "secret words and more still" in seen(app)
        await app.answer.write("</think>Done.")
        await app.answer.finish()
        await pilot.pause()
        assert "thought for 5 words" in seen(app)
        assert "Done." in seen(app)


async def test_what_turns_out_to_be_thinking_is_folded() -> None:
    app = AnswerApp()
    async with app.run_test() as pilot:
        await app.answer.write("I wonder.\n")
        await pilot.pause()
        assert "I wonder." in seen(app)
        await app.answer.write("</think>\nThe answer.")
        await pilot.pause()
        await pilot.pause()
        assert "I wonder." not in seen(app)
        assert "thought for 2 words" in seen(app)
        assert "The answer." in seen(app)
