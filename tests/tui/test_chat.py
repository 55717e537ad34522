"""The chat as a person meets it, with an engine that says what the test tells it to."""

import pytest
from textual.widget import MountError

from localspec.engine.errors import UserError
from localspec.tui.widgets.answer import Answer
from localspec.tui.widgets.prompt import Prompt
from localspec.tui.widgets.turn import Turn
from scripted import (
    HOLD,
    STUBBORN,
    app_with,
    chat,
    finished,
    seen,
    send,
    status_says,
    until,
)


async def test_a_question_is_answered_and_the_figures_are_shown() -> None:
    app, backend = app_with(["Hello ", "**world**."])
    async with app.run_test() as pilot:
        await until(pilot, lambda: "big-model is ready." in seen(app))
        await send(pilot, "hi there")
        await finished(pilot, 1)
        assert backend.words() == ["hi there"]
        assert "hi there" in seen(app)
        assert "Hello world." in seen(app)
        assert chat(app).query_one(Prompt).text == ""
        for figure in ("2.00 tokens/step", "tokens/s", "lookup 50 %", "context 4 / 1,000", "big-model + small-model"):
            assert status_says(app, figure)
    app.worker.join()


async def test_the_answer_is_on_the_screen_while_it_is_written() -> None:
    app, backend = app_with(["The first part, ", HOLD, "and the rest."])
    async with app.run_test() as pilot:
        await send(pilot, "hi")
        await until(pilot, lambda: "The first part," in seen(app))
        assert "and the rest." not in seen(app)
        assert status_says(app, "esc stop")
        backend.go.set()
        await until(pilot, lambda: "The first part, and the rest." in seen(app))
        await finished(pilot, 1)
    app.worker.join()


async def test_a_stopped_answer_keeps_what_was_written_and_the_chat_goes_on() -> None:
    app, backend = app_with(["A part", HOLD, " never said."], ["Again."])
    async with app.run_test() as pilot:
        await send(pilot, "one")
        await until(pilot, lambda: "A part" in seen(app))
        await pilot.press("escape")
        await finished(pilot, 1)
        assert chat(app).query_one(Answer).text == "A part"
        assert "A part" in seen(app)
        assert "stopped" in seen(app)
        assert "never said" not in seen(app)
        await send(pilot, "two")
        await finished(pilot, 2)
        assert backend.words() == ["one", "two"]
        assert "Again." in seen(app)
    app.worker.join()


async def test_a_turn_stopped_before_the_first_word_goes_back_into_the_prompt() -> None:
    app, backend = app_with([HOLD, "too late"], ["Fine."])
    async with app.run_test() as pilot:
        await send(pilot, "a very long question")
        await until(pilot, lambda: backend.asked)
        await pilot.press("m", "o", "r", "e", "escape")
        await until(pilot, lambda: chat(app).query_one(Prompt).text == "a very long question\nmore")
        assert not chat(app).query(Turn)
        await pilot.press("enter")
        await finished(pilot, 1)
        assert "Fine." in seen(app)
    app.worker.join()


async def test_one_can_write_while_an_answer_is_written_but_sending_waits() -> None:
    app, backend = app_with(["part", HOLD, " end."], ["next answer"])
    async with app.run_test() as pilot:
        await send(pilot, "one")
        await until(pilot, lambda: "part" in seen(app))
        await pilot.press("t", "w", "o", "enter")
        await until(pilot, lambda: status_says(app, "still being written"))
        assert chat(app).query_one(Prompt).text == "two"
        backend.go.set()
        await finished(pilot, 1)
        await pilot.press("enter")
        await finished(pilot, 2)
        assert backend.words() == ["one", "two"]
    app.worker.join()


async def test_a_new_chat_stops_the_answer_and_forgets_everything() -> None:
    app, _ = app_with(["old words", HOLD, " more old words"], ["new words"])
    async with app.run_test() as pilot:
        await send(pilot, "one")
        await until(pilot, lambda: "old words" in seen(app))
        await pilot.press("ctrl+n")
        await send(pilot, "two")
        await finished(pilot, 1)
        assert "new words" in seen(app)
        assert "old words" not in seen(app)
        assert [turn.words for turn in chat(app).query(Turn)] == ["two"]
    app.worker.join()


async def test_what_a_slow_engine_still_says_does_not_get_into_the_new_chat() -> None:
    app, backend = app_with(["old", STUBBORN, UserError("old trouble")], ["new words"])
    async with app.run_test() as pilot:
        await send(pilot, "one")
        await until(pilot, lambda: "old" in seen(app))
        await pilot.press("ctrl+n")
        await send(pilot, "two")
        await until(pilot, lambda: [turn.words for turn in chat(app).query(Turn)] == ["two"])
        backend.go.set()
        await finished(pilot, 1)
        assert chat(app).query_one(Answer).text == "new words"
        assert "old" not in seen(app)
    app.worker.join()


async def test_an_unknown_command_is_no_prompt_and_suggests_the_right_one() -> None:
    app, backend = app_with(["never"])
    async with app.run_test() as pilot:
        await send(pilot, "/nwe")
        await until(pilot, lambda: status_says(app, "There is no command /nwe: did you mean /new?"))
        assert chat(app).query_one(Prompt).text == "/nwe"
        assert backend.words() == []
    app.worker.join()


async def test_commands_do_what_the_keys_do() -> None:
    app, backend = app_with(["words"])
    async with app.run_test() as pilot:
        await send(pilot, "one")
        await finished(pilot, 1)
        await send(pilot, "/new")
        await until(pilot, lambda: not chat(app).query(Turn))
        await send(pilot, "/help")
        await until(pilot, lambda: "esc closes" in seen(app))
        await pilot.press("escape")
        await send(pilot, "/bye")
        await until(pilot, lambda: not app.is_running)
    assert app.return_code == 0
    assert backend.words() == ["one"]
    app.worker.join()


HOSTILE = "[/INST] [red]no color[/red] [@click=app.quit]x[/] <think>\ud800 \x1b[2J ![i](u)"
VISIBLE = ("[/INST] [red]no color[/red] [@click=app.quit]x[/] <think>\ufffd ␛[2J", "i")


async def test_text_that_looks_like_markup_is_shown_as_it_is() -> None:
    app, backend = app_with([HOSTILE[:20], HOSTILE[20:]], [UserError(f"Bad {HOSTILE}")])
    async with app.run_test(size=(120, 30)) as pilot:
        await send(pilot, HOSTILE)
        await finished(pilot, 1)
        assert seen(app).count(VISIBLE[0]) == 2
        await send(pilot, "again")
        await until(pilot, lambda: f"Bad {VISIBLE[0]}" in seen(app))
        assert backend.words() == [HOSTILE, "again"]
    app.worker.join()


async def test_hovering_over_a_table_takes_no_cell_for_markup() -> None:
    app, _ = app_with(["| a | b |\n|---|---|\n| [/INST] | [red]x |\n"])
    app.TOOLTIP_DELAY = 0.001
    async with app.run_test(tooltips=True) as pilot:
        await send(pilot, "a table")
        await finished(pilot, 1)
        row = next(y for y, line in enumerate(seen(app).splitlines()) if "[/INST]" in line)
        for x in (8, 9, 40, 41):
            await pilot.hover(offset=(x, row))
            await pilot.pause(0.05)
        assert "[/INST]" in seen(app)
    app.worker.join()


async def test_a_turn_that_is_refused_goes_back_into_the_prompt() -> None:
    app, _ = app_with([UserError("The prompt is too long; shorten it.")])
    async with app.run_test() as pilot:
        await send(pilot, "very long")
        await until(pilot, lambda: "The prompt is too long; shorten it." in seen(app))
        assert chat(app).query_one(Prompt).text == "very long"
        assert not chat(app).query(Turn)
    app.worker.join()


async def test_a_bug_in_the_engine_costs_no_words_and_no_chat() -> None:
    app, _ = app_with(["A part", ValueError("[odd]")], ["Fine."])
    async with app.run_test() as pilot:
        await send(pilot, "one")
        await until(pilot, lambda: "went wrong (ValueError: [odd])" in seen(app))
        assert "A part" in seen(app)
        await send(pilot, "two")
        await finished(pilot, 2)
        assert "Fine." in seen(app)
    app.worker.join()


async def test_leaving_while_an_answer_is_written_stops_it_and_frees_the_engine() -> None:
    app, backend = app_with(["part", HOLD, "rest"])
    async with app.run_test() as pilot:
        await send(pilot, "hi")
        await until(pilot, lambda: "part" in seen(app))
        await pilot.press("ctrl+q")
    assert app.return_code == 0
    assert app.worker.join()
    assert backend.closed.is_set()
    assert not backend.go.is_set()


async def test_leaving_while_an_answer_is_laid_out_leaves_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in an answer is taken off the screen before the answer itself."""
    finish = Answer.finish

    async def gone_meanwhile(self: Answer, note: str = "") -> None:
        await finish(self, note)
        raise MountError("its parts are gone")

    monkeypatch.setattr(Answer, "finish", gone_meanwhile)
    app, _ = app_with(["some ", "words"])
    async with app.run_test() as pilot:
        await send(pilot, "hi")
        await finished(pilot, 1)
        await until(pilot, lambda: not app.workers)
        assert "some words" in seen(app)
    app.worker.join()


async def test_ctrl_c_copies_then_stops_then_asks_then_quits() -> None:
    app, _ = app_with(["part", HOLD, "rest"])
    async with app.run_test() as pilot:
        await send(pilot, "hi")
        await until(pilot, lambda: "part" in seen(app))
        prompt = chat(app).query_one(Prompt)
        prompt.text = "selected"
        prompt.select_all()
        await pilot.press("ctrl+c")
        assert app.clipboard == "selected"
        assert status_says(app, "copied")
        await pilot.press("ctrl+c")
        await finished(pilot, 1)
        assert "stopped" in seen(app)
        await pilot.press("ctrl+c")
        assert app.is_running
        assert status_says(app, "press ctrl+c again to quit")
        await pilot.press("ctrl+c")
        await until(pilot, lambda: not app.is_running)
    assert app.return_code == 0
    app.worker.join()


def text_of(lines: list[str]) -> list[str]:
    """The lines without the scrollbar beside them."""
    return [line[:70].rstrip() for line in lines]


async def test_following_lets_go_when_the_reader_scrolls_up_and_comes_back() -> None:
    lines = "".join(f"line {number}\n" for number in range(60))
    app, backend = app_with([lines, HOLD, "the last line"], ["next"])
    async with app.run_test() as pilot:
        await send(pilot, "hi")
        await until(pilot, lambda: "line 59" in seen(app))
        await pilot.press("pageup", "pageup")
        await pilot.pause()
        assert "line 59" not in seen(app)
        view = text_of(seen(app).splitlines()[:10])
        backend.go.set()
        await finished(pilot, 1)
        assert text_of(seen(app).splitlines()[:10]) == view
        assert "the last line" not in seen(app)
        await pilot.press("end")
        await until(pilot, lambda: "the last line" in seen(app))
        await pilot.press("pageup")
        await send(pilot, "more")
        await finished(pilot, 2)
        assert "next" in seen(app)
    app.worker.join()


async def test_old_answers_become_cheap_and_stay_readable() -> None:
    app, _ = app_with(*([f"**answer** {number} <b>"] for number in range(9)))
    async with app.run_test(size=(80, 60)) as pilot:
        for number in range(9):
            await send(pilot, f"question {number}")
            await finished(pilot, number + 1)
        answers = list(chat(app).query(Answer))
        assert [answer.settled for answer in answers] == [True] * 3 + [False] * 6
        assert len(answers[0].query("*")) < len(answers[-1].query("*"))
        for number in range(9):
            assert f"answer {number} <b>" in seen(app)
    app.worker.join()


async def test_help_explains_the_figures_and_closes_without_stopping_the_answer() -> None:
    app, backend = app_with(["part", HOLD, " end."])
    async with app.run_test(size=(100, 120)) as pilot:
        await send(pilot, "hi")
        await until(pilot, lambda: "part" in seen(app))
        await pilot.press("f1")
        for words in ("ctrl+q", "tokens/step", "tokens/s", "lookup 62 %", "draft 62 %", "plain", "context", "/new"):
            assert words in seen(app)
        await pilot.press("escape")
        assert "esc closes" not in seen(app)
        backend.go.set()
        await finished(pilot, 1)
        assert "part end." in seen(app)
    app.worker.join()


@pytest.mark.parametrize("theme", ["textual-light", "ansi-dark"])
async def test_a_change_of_theme_keeps_a_streamed_code_block(theme: str) -> None:
    app, backend = app_with(["```python\nx = 1\n", HOLD, "y = 2\n```\n"])
    async with app.run_test() as pilot:
        await send(pilot, "code")
        await until(pilot, lambda: "x = 1" in seen(app))
        app.theme = theme
        await pilot.pause()
        assert "x = 1" in seen(app)
        backend.go.set()
        await finished(pilot, 1)
        assert "x = 1" in seen(app)
        assert "y = 2" in seen(app)
    app.worker.join()
