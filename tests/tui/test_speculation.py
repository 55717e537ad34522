"""The numbers of the speculation view, and the view."""

import pytest
from textual.app import App, ComposeResult

from localspec.engine.step import NO_DRAFTER, Decision, Finish, Step, closing_step
from localspec.tui.screens.costs import CostsScreen, chart, meaning
from localspec.tui.speculation import NOW_STEPS, RUNS, Tally, in_plain_words, run_class
from localspec.tui.widgets.speculation import Speculation

NOT_LIKELY = "no token is likely enough: one more in a pass costs 41% of a plain step here, besides drafting it"
TIMED = "plain decoding is timed again"


def a_step(
    drafter: str = NO_DRAFTER,
    drafted: int = 0,
    accepted: int = 0,
    *,
    ms: float = 100.0,
    plain_rate: float | None = None,
    reason: str | None = None,
    sources: tuple[str, ...] = (),
) -> Step:
    decision = None if plain_rate is None else Decision(drafter, drafted, plain_rate, plain_rate, reason)
    tokens, width = tuple(range(accepted + 1)), 1 + drafted
    return Step(tokens, "x", drafter, drafted, accepted, width, 0.0, ms, 0.0, 0.0, None, (), ("x",), sources, decision)


def fill(tally: Tally | Speculation, *steps: Step, at: float = 0.0) -> float:
    """Steps one after the other, each as long as it says."""
    for step in steps:
        at += (step.verify_ms + step.draft_ms + step.host_ms) / 1000
        tally.add(step, at)
    return at


def test_before_the_first_step_nothing_is_known() -> None:
    tally = Tally()
    tally.begin()
    for sums in (tally.now, tally.answer, tally.chat):
        assert sums.tokens_per_step is sums.tokens_per_second is sums.draft_length is sums.speedup(50.0) is None
    assert tally.drafters() == []
    assert tally.why_off() is tally.plain_token_ms is tally.last_draft is None


def test_now_is_the_last_steps_and_the_chat_is_all_answers() -> None:
    tally = Tally()
    tally.begin()
    at = fill(tally, *[a_step()] * 10)
    tally.end()
    tally.begin()
    at = fill(tally, *[a_step()] * NOW_STEPS, at=at)
    fill(tally, *[a_step("lookup", 4, 3)] * NOW_STEPS, at=at)
    assert tally.now.tokens_per_step == 4.0
    assert tally.answer.tokens_per_step == 2.5
    assert tally.chat.tokens_per_step == pytest.approx((10 + 16 + 64) / 42)
    assert tally.now.draft_length == tally.answer.draft_length == tally.chat.draft_length == 4.0


def test_speed_is_by_the_clock_between_steps() -> None:
    tally = Tally()
    tally.begin()
    tally.add(a_step(), 10.0)
    tally.add(a_step("lookup", 4, 3), 10.3)
    assert tally.now.tokens_per_second == pytest.approx(5 / 0.4)


def test_the_time_between_two_answers_is_nobodys() -> None:
    tally = Tally()
    for at in (10.0, 500.0):
        tally.begin()
        tally.add(a_step(), at)
        tally.add(a_step(), at + 0.1)
        tally.end()
    assert tally.chat.tokens_per_second == pytest.approx(10.0)


def test_speedup_is_against_the_measured_plain_rate() -> None:
    tally = Tally()
    tally.begin()
    fill(tally, a_step("lookup", 4, 3, ms=200.0, plain_rate=10.0))
    assert tally.answer.speedup(None) == pytest.approx(4 * 100 / 200)


def test_each_step_is_compared_with_plain_decoding_as_it_was_then() -> None:
    tally = Tally()
    tally.begin()
    fill(tally, a_step("lookup", 1, 1, plain_rate=10.0), a_step("lookup", 1, 1, ms=200.0, plain_rate=5.0))
    assert tally.answer.speedup(None) == pytest.approx((2 * 100 + 2 * 200) / 300)


def test_without_a_rate_speedup_waits_for_enough_plain_steps() -> None:
    tally = Tally()
    tally.begin()
    at = fill(tally, *[a_step("lookup", 4, 3)] * 4, *[a_step(ms=90.0)] * 7)
    assert tally.plain_token_ms is None
    assert tally.answer.speedup(tally.plain_token_ms) is None
    fill(tally, a_step(ms=90.0), at=at)
    assert tally.plain_token_ms == 90.0
    assert tally.answer.speedup(tally.plain_token_ms) == pytest.approx(24 * 90 / (400 + 8 * 90))


def test_a_plain_step_for_which_the_draft_model_was_asked_is_no_measure() -> None:
    tally = Tally()
    tally.begin()
    asked = Step((1,), "x", NO_DRAFTER, 0, 0, 1, 30.0, 100.0, 0.0, 0.0)
    fill(tally, *[asked] * 20)
    assert tally.plain_token_ms is None


def test_drafted_and_accepted_belong_to_whoever_proposed_the_token() -> None:
    tally = Tally()
    tally.begin()
    fill(tally, a_step("lookup", 3, 2), a_step("draft", 4, 2, sources=("lookup", "draft", "draft", "lookup")))
    assert tally.drafters() == [("lookup", 5, 3), ("draft", 2, 1)]
    tally.begin()
    assert tally.drafters() == []


@pytest.mark.parametrize(
    ("accepted", "name"), [(0, "0"), (4, "4"), (5, "5-8"), (8, "5-8"), (9, "9-16"), (17, "17+"), (99, "17+")]
)
def test_runs_have_their_classes(accepted: int, name: str) -> None:
    assert RUNS[run_class(accepted)] == name


def test_only_drafts_count_in_the_histogram() -> None:
    tally = Tally()
    tally.begin()
    fill(tally, a_step(), a_step("lookup", 3, 0), a_step("lookup", 20, 20), a_step("draft", 6, 6))
    assert dict(zip(RUNS, tally.runs, strict=True)) == {name: int(name in ("0", "17+", "5-8")) for name in RUNS}


def test_a_step_without_a_pass_changes_no_number() -> None:
    tally = Tally()
    tally.begin()
    fill(tally, a_step("lookup", 2, 1))
    before = tally.figures()
    tally.add(closing_step(Finish.INTERRUPTED, "rest"), 99.0)
    assert tally.figures() == before


def test_off_is_said_when_no_step_of_late_had_a_draft() -> None:
    tally = Tally()
    tally.begin()
    undrafted = a_step(plain_rate=10.0, reason=NOT_LIKELY)
    at = fill(tally, a_step("lookup", 3, 1), *[undrafted] * (NOW_STEPS - 1))
    assert tally.why_off() is None
    fill(tally, undrafted, at=at)
    assert tally.why_off() == "No guess is likely enough to be right: checking one costs 41 % of writing a token here."
    tally.end()
    assert tally.why_off() is None


def test_an_answer_nobody_drafted_stays_off_when_it_is_complete() -> None:
    tally = Tally()
    tally.begin()
    fill(tally, *[a_step(plain_rate=10.0, reason=NOT_LIKELY)] * 5)
    tally.end()
    assert "41 %" in (tally.why_off() or "")


def test_timing_plain_decoding_hides_no_better_reason() -> None:
    tally = Tally()
    tally.begin()
    timed = a_step(plain_rate=10.0, reason=TIMED)
    at = fill(tally, *[timed] * 4)
    assert tally.why_off() == in_plain_words(TIMED)
    fill(tally, a_step(plain_rate=10.0, reason=NOT_LIKELY), timed, at=at)
    assert tally.why_off() == in_plain_words(NOT_LIKELY)


def test_a_drafter_setting_explains_itself() -> None:
    tally = Tally(setting="none")
    assert tally.why_off() == "Guessing ahead is turned off in the settings."
    tally = Tally(setting="lookup")
    tally.begin()
    fill(tally, *[a_step()] * 5)
    assert tally.why_off() == "There is nothing to repeat yet: guesses are copied from earlier text."


def test_a_reason_nobody_has_words_for_stays_as_it_is() -> None:
    assert in_plain_words("the moon is full") == "the moon is full"


def test_another_chat_knows_nothing_of_the_last() -> None:
    tally = Tally()
    tally.begin()
    fill(tally, *[a_step("lookup", 3, 2), *[a_step()] * 20])
    tally.reset()
    assert tally == Tally(setting=tally.setting)


def test_a_chat_that_was_kept_has_its_sums_again() -> None:
    tally, kept = Tally(), []
    for plain_rate in (10.0, None):
        tally.begin()
        fill(tally, *[a_step("lookup", 4, 3, plain_rate=plain_rate), a_step(plain_rate=plain_rate)] * 8)
        tally.end()
        kept.append(tally.figures())
    again = Tally()
    again.load([None, {}, {"tokens": "many"}, *kept])
    assert again.chat.tokens_per_step == tally.chat.tokens_per_step
    assert again.chat.tokens_per_second == pytest.approx(tally.chat.tokens_per_second)
    assert again.chat.draft_length == tally.chat.draft_length
    assert again.chat.speedup(None) == pytest.approx(tally.chat.speedup(tally.plain_token_ms))
    assert again.answer.steps == 0


# The view.


class _App(App[None]):
    CSS = "Speculation { width: 1fr; height: 1fr; }"

    def __init__(self) -> None:
        super().__init__()
        self.view = Speculation()

    def compose(self) -> ComposeResult:
        yield self.view


DRAFTED = [a_step("lookup", 4, 3, ms=200.0, plain_rate=10.0), a_step("draft", 2, 0, plain_rate=10.0)]
UNDRAFTED = [a_step(plain_rate=10.0, reason=NOT_LIKELY)] * NOW_STEPS


@pytest.mark.parametrize("size", [(33, 34), (48, 20), (33, 18), (20, 10), (76, 4), (120, 4), (49, 4)])
@pytest.mark.parametrize("steps", [[], DRAFTED, DRAFTED * 60, UNDRAFTED], ids=["none", "two", "many", "off"])
async def test_it_fits_whatever_its_size(size: tuple[int, int], steps: list[Step]) -> None:
    app = _App()
    async with app.run_test(size=size) as pilot:
        app.view.begin()
        fill(app.view, *steps)
        app.view.refresh_view()
        await pilot.pause()
        lines = app.view.render().plain.split("\n")
        assert len(lines) <= size[1]
        assert max(map(len, lines)) <= size[0]
        assert any("tokens/step" in line for line in lines)


async def test_a_column_shows_every_figure() -> None:
    app = _App()
    async with app.run_test(size=(34, 34)):
        app.view.begin()
        fill(app.view, *DRAFTED * 2)
        lines = app.view.render().plain.split("\n")
        assert lines[1].split() == ["draft", "of", "2", "tokens", "by", "draft", "model"]
        table = {line[:12].strip(): line[12:].split() for line in lines[4:8]}
        assert table == {
            "tokens/step": ["2.50"] * 3,
            "tokens/s": ["16.7"] * 3,
            "speedup": ["1.67x"] * 3,
            "draft length": ["3.0"] * 3,
        }
        assert ["lookup", "6", "of", "8", "75", "%"] in [line.split() for line in lines]
        assert ["draft", "model", "0", "of", "4", "0", "%"] in [line.split() for line in lines]
        assert [line.split()[-2:] for line in lines if line.startswith("   3 █")] == [["50", "%"]]


async def test_a_strip_has_four_lines() -> None:
    app = _App()
    async with app.run_test(size=(76, 4)):
        app.view.begin()
        fill(app.view, *DRAFTED)
        first, second, third, fourth = app.view.render().plain.split("\n")
        assert first.split()[:6] == ["tokens/step", "2.50", "answer", "2.50", "chat", "2.50"]
        assert second.split()[:4] == ["tokens/s", "16.7", "speedup", "1.67x"]
        assert "lookup 3 of 4  75 %" in third
        assert "0 ██" in fourth


@pytest.mark.parametrize("size", [(34, 34), (76, 4)])
async def test_off_is_said_with_its_reason(size: tuple[int, int]) -> None:
    app = _App()
    async with app.run_test(size=size):
        app.view.begin()
        fill(app.view, *UNDRAFTED)
        said = " ".join(app.view.render().plain.split())
        assert (
            "Off now. No guess is likely enough to be right: checking one costs 41 % of writing a token here." in said
        )


async def test_nothing_is_drawn_while_it_is_hidden_or_nothing_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    app = _App()
    async with app.run_test(size=(40, 34)) as pilot:
        drawn: list[int] = []
        render = Speculation.render
        monkeypatch.setattr(Speculation, "render", lambda view: (drawn.append(1), render(view))[1])
        app.view.refresh_view()
        await pilot.pause()
        drawn.clear()
        app.view.refresh_view()
        await pilot.pause()
        assert drawn == []
        app.view.display = False
        app.view.begin()
        fill(app.view, *DRAFTED)
        app.view.refresh_view()
        await pilot.pause()
        assert drawn == []
        app.view.display = True
        await pilot.pause()
        assert drawn
        assert "2.50" in app.view.render().plain


async def test_numbers_change_calmly_and_the_last_ones_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localspec.tui.widgets.speculation._CALM_SECONDS", 1000.0)
    app = _App()
    async with app.run_test(size=(40, 34)) as pilot:
        app.view.begin()
        await pilot.pause()
        asked: list[int] = []
        monkeypatch.setattr(app.view, "refresh", lambda: asked.append(app.view.tally.answer.steps))
        monkeypatch.setattr(app.view, "_drawn_at", float("-inf"))
        for _ in range(5):
            app.view.add(a_step(), 1.0)
            app.view.refresh_view()
        assert asked == [1]
        app.view.end()
        assert asked == [1, 5]


# The cost curve.


def test_the_chart_has_a_bar_for_every_width() -> None:
    lines = chart({1: 50.0, 2: 70.0, 17: 200.0}).plain.split("\n")[1:]
    assert [(line.split()[0], *line.split()[-2:]) for line in lines] == [
        ("1", "50.0", "1.00"),
        ("2", "70.0", "1.40"),
        ("17", "200", "4.00"),
    ]
    assert [line.count("█") for line in lines] == [8, 11, 32]


def test_the_curve_is_put_into_words() -> None:
    assert meaning({1: 50.0, 2: 70.0, 8: 100.0}) == [
        "Two tokens in one pass cost 1.40 plain passes: a guess that costs nothing pays off when it is right more than 40 "
        "times in 100.",
        "If every guess were right, 8 tokens in a pass would be 4.0 times as fast as plain decoding.",
    ]


def test_a_machine_on_which_guessing_cannot_pay_is_told_so() -> None:
    assert meaning({1: 50.0, 2: 105.0}) == [
        "Two tokens in one pass cost 2.10 plain passes.",
        "No pass is cheaper by the token than a plain one: guessing ahead cannot be faster here.",
    ]


@pytest.mark.parametrize("curve", [{}, {1: 50.0, 2: 70.0}])
async def test_the_costs_are_a_page_that_closes(curve: dict[int, float]) -> None:
    app = _App()
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(CostsScreen(curve))
        await pilot.pause()
        assert isinstance(app.screen, CostsScreen)
        await pilot.press("escape")
        assert not isinstance(app.screen, CostsScreen)
