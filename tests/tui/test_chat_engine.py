"""An engine that dies or hangs, as it is seen in the chat."""

from __future__ import annotations

import pytest

from localspec.engine.process import EngineDied
from localspec.tui.app import ChatApp
from localspec.tui.backend import LoadReport
from localspec.tui.screens.settings import SettingsScreen
from localspec.tui.widgets.field import Field
from scripted import HOLD, STUBBORN, ScriptedBackend, app_with, chat, finished, loaded, seen, send, status_says, until

DIED = "The engine has stopped working; press ctrl+r to start it again."


async def test_the_death_of_an_engine_is_told_once() -> None:
    """In the middle of an answer: one sentence, the words are kept, and ctrl+r goes on."""
    reports: list[LoadReport] = []

    class Mortal(ScriptedBackend):
        def answer(self, *arguments, **named):  # type: ignore[no-untyped-def]
            yield from super().answer(*arguments, **named)
            reports[-1].gone(DIED)
            raise EngineDied(DIED)

    def load(report: LoadReport) -> ScriptedBackend:
        reports.append(report)
        return Mortal(["half an ", "answer"]) if len(reports) == 1 else ScriptedBackend(["whole"])

    app = ChatApp(load)
    async with app.run_test(size=(100, 30)) as pilot:
        await loaded(pilot)
        await send(pilot, "hi")
        await until(pilot, lambda: status_says(app, "ctrl+r start it again"))
        await finished(pilot, 1)
        assert seen(app).count(DIED) == 1
        assert "half an answer" in seen(app)
        await pilot.press("ctrl+r")
        await until(pilot, lambda: len(reports) == 2 and chat(app)._loaded)
        await send(pilot, "again")
        await finished(pilot, 2)
        assert "whole" in seen(app)
    app.worker.join()


async def test_a_hanging_engine_is_ended_with_a_second_esc(monkeypatch: pytest.MonkeyPatch) -> None:
    """The status says so as soon as it is true, and not before the first esc."""
    monkeypatch.setattr("localspec.tui.engine_worker._STUBBORN_SECONDS", 0.0)
    app, backend = app_with(["half", STUBBORN, "rest"])
    async with app.run_test() as pilot:
        await send(pilot, "hi")
        await until(pilot, lambda: "half" in seen(app))
        assert "does not stop" not in seen(app)
        await pilot.press("escape")
        await until(pilot, lambda: status_says(app, "the engine does not stop: esc once more ends it"))
        assert not backend.killed.is_set()
        await pilot.press("escape")
        await until(pilot, backend.killed.is_set)
        backend.go.set()
        await finished(pilot, 1)
    app.worker.join()


async def test_the_colors_of_an_answer_that_broke_off_show_its_last_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """No step has told that it is over, and the colors are drawn only now and then."""
    monkeypatch.setattr("localspec.tui.widgets.drafted._SECONDS_PER_CHARACTER", 1000.0)
    app, backend = app_with(["one ", HOLD, "LAST", RuntimeError("broken")])
    async with app.run_test() as pilot:
        await send(pilot, "hi")
        await until(pilot, lambda: "one" in seen(app))
        await pilot.press("f3")
        await until(pilot, lambda: "drafted by" in seen(app))
        backend.go.set()
        await finished(pilot, 1)
        await until(pilot, lambda: "one LAST" in seen(app))
    app.worker.join()


async def test_what_the_model_recommends_is_shown_as_in_force() -> None:
    """In the status line, and in the settings with where it comes from."""
    app, backend = app_with()
    backend.sampling = {**ScriptedBackend.sampling, "temp": 0.6000000238418579}
    backend.recommended = ("temp",)
    async with app.run_test() as pilot:
        await until(pilot, lambda: status_says(app, "temp 0.6"))
        await pilot.press("ctrl+o")
        await until(pilot, lambda: isinstance(app.screen, SettingsScreen))
        await pilot.pause()
        line = next(line for line in seen(app).splitlines() if "temperature" in line)
        assert line.replace("│", " ").split() == ["temperature", "0.6", "model"]
        assert app.screen.query(Field)
    app.worker.join()


async def test_the_drafter_of_a_chat_is_what_the_figures_explain() -> None:
    """Guessing ahead that is turned off in the settings is called so."""
    app, _ = app_with()
    async with app.run_test() as pilot:
        await send(pilot, "/set drafter none")
        await until(pilot, lambda: chat(app)._speculation.tally.setting == "none")
        await pilot.press("f2")
        await until(pilot, lambda: "turned off in the settings" in seen(app))
    app.worker.join()
