"""The figures of the status line."""

import pytest

from localspec.engine.step import Finish, Step
from localspec.tui.figures import Figures, in_words


def a_step(tokens: int, drafter: str = "none", drafted: int = 0, accepted: int = 0, ms: float = 500.0) -> Step:
    return Step(tuple(range(tokens)), "x", drafter, drafted, accepted, 1 + drafted, 0.0, ms, 0.0, 0.0)


def test_before_the_first_step_there_are_none() -> None:
    figures = Figures()
    assert in_words(figures, running=True) == in_words(figures, running=False) == []
    figures.begin(10.0)
    assert in_words(figures, running=True) == in_words(figures, running=False) == []


def test_plain_decoding_is_called_plain() -> None:
    figures = Figures()
    figures.begin(10.0)
    figures.add(a_step(1), 10.5)
    assert in_words(figures, running=True) == ["1.00 tokens/step", "2.0 tokens/s", "plain"]


def test_shares_are_of_the_whole_answer() -> None:
    figures = Figures()
    figures.begin(0.0)
    figures.add(a_step(5, "lookup", 4, 4), 1.0)
    figures.add(a_step(3, "draft", 4, 2), 2.0)
    figures.add(a_step(2), 3.0)
    assert figures.shares() == [("lookup", 0.4), ("draft", 0.2)]
    assert in_words(figures, running=False) == ["3.33 tokens/step", "3.3 tokens/s", "lookup 40 %, draft 20 %"]


def test_a_drafter_that_is_never_right_is_named_too() -> None:
    figures = Figures()
    figures.begin(0.0)
    figures.add(a_step(1, "draft", 4, 0), 1.0)
    assert in_words(figures, running=True)[-1] == "draft 0 %"


def test_speed_is_that_of_the_last_two_seconds_and_afterwards_of_everything() -> None:
    figures = Figures()
    figures.begin(0.0)
    for second in range(1, 11):
        figures.add(a_step(1), float(second))
    for tenth in range(1, 21):
        figures.add(a_step(1, ms=100.0), 10.0 + tenth / 10)
    assert figures.recent_speed == pytest.approx(10.0)
    assert figures.mean_speed == pytest.approx(30 / 12)


def test_a_step_longer_than_the_window_has_a_speed() -> None:
    figures = Figures()
    figures.begin(0.0)
    figures.add(a_step(1), 1.0)
    figures.add(a_step(2), 9.0)
    assert figures.recent_speed == pytest.approx(2 / 8)


def test_steps_without_time_between_them_are_no_division_by_zero() -> None:
    figures = Figures()
    figures.begin(1.0)
    figures.add(a_step(3, ms=0.0), 1.0)
    assert in_words(figures, running=True) == ["3.00 tokens/step", "plain"]


def test_steps_that_arrive_in_a_burst_took_as_long_as_they_say() -> None:
    figures = Figures()
    figures.begin(1.0)
    for _ in range(4):
        figures.add(a_step(3), 1.0001)
    assert in_words(figures, running=True)[1] == in_words(figures, running=False)[1] == "6.0 tokens/s"


def test_without_a_begin_the_first_step_tells_when_it_began() -> None:
    figures = Figures()
    figures.add(a_step(2), 7.0)
    assert figures.recent_speed == pytest.approx(4.0)


def test_a_step_that_only_reports_the_end_changes_nothing() -> None:
    figures = Figures()
    figures.begin(0.0)
    figures.add(a_step(2), 1.0)
    figures.add(Step((), "", "none", 0, 0, 0, 0.0, 0.0, 0.0, 0.0, Finish.INTERRUPTED), 50.0)
    assert figures.mean_speed == pytest.approx(2.0)
    assert figures.tokens_per_step == 2.0
