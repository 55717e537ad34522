"""Who drafted which part of an answer, and how that looks."""

import random
from collections.abc import Sequence
from itertools import pairwise

import pytest
from textual.app import App, ComposeResult

from localspec.engine.step import NO_DRAFTER, Finish, Step, closing_step
from localspec.tui.widgets.drafted import MODEL, Drafted, Palette, attributed


def a_step(
    pieces: Sequence[str],
    drafter: str = NO_DRAFTER,
    accepted: int = 0,
    sources: tuple[str, ...] = (),
    finish: Finish | None = None,
) -> Step:
    drafted = max(accepted, len(sources))
    tokens, width = tuple(range(len(pieces))), 1 + drafted
    text = "".join(pieces)
    return Step(tokens, text, drafter, drafted, accepted, width, 0, 1, 0, 0, finish, (), tuple(pieces), sources)


def test_the_last_token_of_a_step_is_the_models_own() -> None:
    steps = [a_step(["The "]), a_step(["cat ", "sat ", "down"], "lookup", 2)]
    assert attributed(steps) == [("The ", MODEL), ("cat sat ", "lookup"), ("down", MODEL)]


def test_sources_tell_who_drafted_where_it_was_not_one_drafter_alone() -> None:
    step = a_step(["a", "b", "c", "d"], "draft", 3, ("lookup", "draft", "draft", "lookup"))
    assert attributed([step]) == [("a", "lookup"), ("bc", "draft"), ("d", MODEL)]


def test_a_refused_draft_gives_no_color() -> None:
    assert attributed([a_step(["x"], "lookup", 0, ("lookup", "lookup"))]) == [("x", MODEL)]


def test_an_answer_that_ends_inside_the_draft_has_no_token_of_the_model() -> None:
    assert attributed([a_step(["so", ""], "draft", 2, finish=Finish.STOP)]) == [("so", "draft")]


def test_runs_of_the_same_drafter_are_one_across_steps() -> None:
    assert attributed([a_step(["a"]), a_step(["b"]), a_step(["c", "d"], "lookup", 1)]) == [
        ("ab", MODEL),
        ("c", "lookup"),
        ("d", MODEL),
    ]


def test_text_that_was_held_back_belongs_to_whoever_wrote_last() -> None:
    steps = [a_step(["\N{SNOWMAN}", ""], "lookup", 2), closing_step(Finish.INTERRUPTED, "tail")]
    assert attributed(steps) == [("\N{SNOWMAN}tail", "lookup")]
    assert attributed([closing_step(Finish.LENGTH, "tail")]) == [("tail", MODEL)]
    assert attributed([]) == []


def test_text_of_unknown_pieces_is_shown_all_the_same() -> None:
    step = Step((1, 2), "two tokens", "lookup", 1, 1, 2, 0.0, 1.0, 0.0, 0.0)
    assert attributed([step]) == [("two tokens", MODEL)]


@pytest.mark.parametrize("seed", range(5))
def test_the_runs_together_are_the_text(seed: int) -> None:
    chance = random.Random(seed)
    steps = []
    for _ in range(200):
        accepted = chance.choice([0, 0, 1, 3, 9])
        pieces = [chance.choice(["", "ab", "\r", "\n", "[/b]", "漢", " "]) for _ in range(accepted + 1)]
        sources = tuple(chance.choice(["lookup", "draft"]) for _ in range(accepted))
        steps.append(a_step(pieces, "draft", accepted, sources))
    steps.append(closing_step(Finish.INTERRUPTED, "the rest"))
    runs = attributed(steps)
    assert "".join(text for text, _ in runs) == "".join(step.text for step in steps)
    assert all(text for text, _ in runs)
    assert all(before[1] != after[1] for before, after in pairwise(runs))


def test_everybody_can_be_told_apart_on_every_kind_of_terminal() -> None:
    for palette in (Palette(colors, dark) for colors in (True, False) for dark in (True, False)):
        assert len({palette.style(who) for who in ("lookup", "draft", MODEL, "somebody new")}) == 4


class _App(App[None]):
    def __init__(self, drafted: Drafted) -> None:
        super().__init__()
        self.drafted = drafted

    def compose(self) -> ComposeResult:
        yield self.drafted


def _shown(drafted: Drafted) -> str:
    return drafted.render().plain.partition("\n\n")[2]


async def test_text_is_literal() -> None:
    drafted = Drafted([a_step(["[red]", "x[/blue]", " \x1b[0m"], "lookup", 2)])
    async with _App(drafted).run_test():
        assert _shown(drafted) == "[red]x[/blue] ␛[0m"


async def test_a_line_end_that_two_tokens_share_is_one() -> None:
    drafted = Drafted([a_step(["a\r"]), a_step(["\nb", "c"], "lookup", 1)])
    async with _App(drafted).run_test():
        assert _shown(drafted) == "a\nbc"


async def test_steps_that_came_while_it_was_hidden_are_there_when_it_is_shown() -> None:
    drafted = Drafted()
    drafted.display = False
    async with _App(drafted).run_test() as pilot:
        drafted.add(a_step(["one ", "two"], "lookup", 1))
        drafted.refresh_view()
        await pilot.pause()
        assert drafted.size.height == 0
        drafted.display = True
        await pilot.pause()
        assert _shown(drafted) == "one two"
        drafted.add(a_step(["\nthree"], finish=Finish.STOP))
        drafted.refresh_view()
        await pilot.pause()
        assert _shown(drafted) == "one two\nthree"
        assert drafted.size.height == 4


async def test_a_long_text_is_laid_out_rarely_and_its_end_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localspec.tui.widgets.drafted._SECONDS_PER_CHARACTER", 1000.0)
    drafted = Drafted()
    async with _App(drafted).run_test() as pilot:
        drafted.add(a_step(["one"]))
        drafted.refresh_view(at_once=True)
        await pilot.pause()
        drafted.add(a_step(["\ntwo"]))
        drafted.refresh_view()
        await pilot.pause()
        assert drafted.size.height == 3
        drafted.add(closing_step(Finish.INTERRUPTED))
        drafted.refresh_view()
        await pilot.pause()
        assert drafted.size.height == 4


async def test_spans_cover_what_was_drafted_and_nothing_else() -> None:
    drafted = Drafted([a_step(["The ", "cat ", "sat"], "lookup", 2), a_step(["!", "?"], "draft", 1)])
    async with _App(drafted).run_test():
        content, palette = drafted.render(), Palette.of(drafted.app)
        begin = content.plain.index("\n\n") + 2
        spans = [(content.plain[span.start : span.end], span.style) for span in content.spans if span.start >= begin]
        assert spans == [("The cat ", palette.style("lookup")), ("!", palette.style("draft"))]


async def test_another_theme_has_its_own_colors() -> None:
    drafted = Drafted([a_step(["cat ", "sat"], "draft", 1)])
    async with _App(drafted).run_test() as pilot:
        dark = drafted.render()
        drafted.app.theme = "textual-light"
        await pilot.pause()
        light = drafted.render()
        assert dark.plain == light.plain
        assert dark.spans != light.spans


async def test_without_colors_it_is_underlined_or_bold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    drafted = Drafted([a_step(["cat ", "sat"], "lookup", 1), a_step(["on ", "a"], "draft", 1)])
    async with _App(drafted).run_test():
        assert [span.style for span in drafted.render().spans][-2:] == ["underline", "bold"]
