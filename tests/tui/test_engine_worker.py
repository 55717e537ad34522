"""The engine's thread, without any screen."""

import time
from collections.abc import Callable, Iterator

import pytest

from localspec.chat.messages import Message
from localspec.engine.errors import UserError
from localspec.engine.process import EngineDied
from localspec.engine.step import Finish
from localspec.tui import engine_worker
from localspec.tui.backend import AnswerOptions, Load, LoadReport
from localspec.tui.engine_worker import EngineWorker
from localspec.tui.messages import (
    Answered,
    EngineGone,
    Event,
    Failed,
    Loaded,
    LoadFailed,
    Loading,
    Reading,
    Stepped,
    TakenBack,
)
from scripted import HOLD, STUBBORN, Script, ScriptedBackend, SlowLoad

Start = Callable[[Load], EngineWorker]


@pytest.fixture
def start() -> Iterator[Start]:
    workers: list[EngineWorker] = []

    def begin(load: Load) -> EngineWorker:
        workers.append(EngineWorker(load))
        workers[-1].start()
        return workers[-1]

    yield begin
    for worker in workers:
        worker.close()
        assert worker.join()


def said(words: str) -> list[Message]:
    """What a person says first."""
    return [Message("user", words)]


def until(worker: EngineWorker, kind: type[Event], times: int = 1) -> list[Event]:
    """The events until so many of a kind have come. The limit only keeps a broken test from hanging."""
    events: list[Event] = []
    for _ in range(5000):
        events.extend(worker.drain())
        if sum(isinstance(event, kind) for event in events) == times:
            return events
        time.sleep(0.002)
    raise AssertionError(f"no {kind.__name__} among {events}")


def test_an_answer_comes_as_events_in_order(start: Start) -> None:
    backend = ScriptedBackend(["Hello ", "world"])
    worker = start(lambda report: backend)
    turn = worker.answer(said("hi"))
    loaded, *events = until(worker, Answered)
    assert loaded == Loaded("big-model", "small-model", 1000, ScriptedBackend.sampling, ScriptedBackend.recommended)
    assert [type(event) for event in events] == [Reading, Reading, Stepped, Stepped, Answered]
    assert [event.step.text for event in events if isinstance(event, Stepped)] == ["Hello ", "world"]
    assert [event.context_used for event in events if isinstance(event, Stepped)] == [2, 4]
    assert events[-1] == Answered(turn, Finish.STOP)


def test_a_stop_ends_the_answer(start: Start) -> None:
    backend = ScriptedBackend(["part", HOLD, "rest"])
    worker = start(lambda report: backend)
    worker.answer(said("hi"))
    until(worker, Stepped)
    worker.stop()
    assert until(worker, Answered)[-1] == Answered(1, Finish.INTERRUPTED)


def test_a_stop_between_asking_and_the_engines_beginning_is_not_lost(start: Start) -> None:
    class Forgetful(ScriptedBackend):
        def answer(self, messages, on_prompt, **options):  # type: ignore[no-untyped-def]
            worker.stop()
            return super().answer(messages, on_prompt, **options)

    backend = Forgetful(["one", HOLD, "two"])
    worker = start(lambda report: backend)
    until(worker, Loaded)
    worker.answer(said("hi"))
    events = until(worker, TakenBack)
    assert events[-1] == TakenBack(1)
    assert [event.step.text for event in events if isinstance(event, Stepped)] == [""]


def test_a_turn_stopped_while_it_waits_never_reaches_the_conversation(start: Start) -> None:
    backend = ScriptedBackend(["never"])
    load = SlowLoad(backend)
    worker = start(load)
    worker.answer(said("hi"))
    worker.stop()
    load.go.set()
    assert until(worker, TakenBack)[-1] == TakenBack(1)
    assert backend.asked == []


def test_a_sentence_and_a_bug_both_end_in_a_sentence_and_the_next_turn_is_answered(start: Start) -> None:
    backend = ScriptedBackend([UserError("Too long; say less.")], ["part", ValueError("odd")], ["fine"])
    worker = start(lambda report: backend)
    worker.answer(said("one"))
    assert until(worker, Failed)[-1] == Failed(1, "Too long; say less.", begun=False)
    worker.answer(said("two"))
    failed = until(worker, Failed)[-1]
    assert isinstance(failed, Failed)
    assert failed.begun
    assert "ValueError: odd" in failed.sentence
    worker.answer(said("three"))
    assert until(worker, Answered)[-1] == Answered(3, Finish.STOP)


def test_without_a_model_every_turn_gets_the_reason(start: Start) -> None:
    def load(report: object) -> ScriptedBackend:
        raise UserError("There is no such file; give another.")

    worker = start(load)
    assert until(worker, LoadFailed)[-1] == LoadFailed("There is no such file; give another.")
    worker.answer(said("hi"))
    assert until(worker, Failed)[-1] == Failed(1, "There is no such file; give another.", begun=False)


def test_closing_gives_up_loading_without_a_word(start: Start) -> None:
    load = SlowLoad(ScriptedBackend())
    worker = start(load)
    until(worker, Loading)
    worker.close()
    assert worker.join()
    assert load.given_up.is_set()
    assert not [event for event in worker.drain() if isinstance(event, LoadFailed)]


def test_closing_stops_the_answer_and_frees_the_engine(start: Start) -> None:
    backend = ScriptedBackend(["part", HOLD, "rest"], ["never"])
    worker = start(lambda report: backend)
    worker.answer(said("hi"))
    until(worker, Stepped)
    worker.answer(said("one more"))
    worker.close()
    assert worker.join()
    assert backend.closed.is_set()
    assert backend.words() == ["hi"]


def test_what_is_asked_for_reaches_the_engine_and_what_it_left_out_comes_back(start: Start) -> None:
    backend = ScriptedBackend(["more"])
    backend.left_out = 4
    worker = start(lambda report: backend)
    messages = [*said("hi"), Message("assistant", "Well")]
    worker.answer(messages, goes_on=True, options=AnswerOptions(temp=0.5))
    events = until(worker, Answered)
    assert (backend.asked, backend.goes_on, backend.options) == ([messages], [True], [AnswerOptions(temp=0.5)])
    assert [event.left_out for event in events if isinstance(event, Reading)] == [4, 4]


def test_the_cost_curve_is_there_when_the_model_is(start: Start) -> None:
    load = SlowLoad(ScriptedBackend())
    worker = start(load)
    assert worker.cost_curve() == {}
    load.go.set()
    until(worker, Loaded)
    assert worker.cost_curve()[1] == 10.0


class Mortal(ScriptedBackend):
    """Dies of a script that says so."""

    def __init__(self, report: LoadReport, *scripts: Script) -> None:
        super().__init__(*scripts)
        self.report = report

    def answer(self, messages, on_prompt, **options):  # type: ignore[no-untyped-def]
        try:
            yield from super().answer(messages, on_prompt, **options)
        except EngineDied as death:
            self.report.gone(str(death))
            raise


def test_an_engine_that_dies_in_an_answer_can_be_loaded_again(start: Start) -> None:
    death = EngineDied("The engine has stopped working; press ctrl+r to start it again.")
    backends: list[Mortal] = []

    def load(report: LoadReport) -> Mortal:
        backends.append(Mortal(report, ["part", death]) if not backends else Mortal(report, ["fine"]))
        return backends[-1]

    worker = start(load)
    worker.answer(said("one"))
    *_, failed, gone = until(worker, EngineGone)
    assert failed == Failed(1, str(death), begun=True, gone=True)
    assert gone == EngineGone(str(death))
    worker.reload()
    worker.answer(said("two"))
    loaded, *events = until(worker, Answered)
    assert loaded == Loaded("big-model", "small-model", 1000, ScriptedBackend.sampling, ScriptedBackend.recommended)
    assert events[-1] == Answered(2, Finish.STOP)
    assert backends[0].closed.is_set()


def test_an_engine_that_dies_while_nothing_is_asked_is_noticed(start: Start) -> None:
    reports: list[LoadReport] = []

    def load(report: LoadReport) -> ScriptedBackend:
        reports.append(report)
        return ScriptedBackend()

    worker = start(load)
    until(worker, Loaded)
    reports[0].gone("The engine has stopped working.")
    assert until(worker, EngineGone) == [EngineGone("The engine has stopped working.")]


def test_something_else_can_be_loaded_also_after_a_failure_and_in_an_answer(start: Start) -> None:
    def fail(report: object) -> ScriptedBackend:
        raise UserError("There is no such file; give another.")

    worker = start(fail)
    until(worker, LoadFailed)
    one, other = ScriptedBackend(["part", HOLD, "rest"]), ScriptedBackend(["other"])
    worker.reload(lambda report: one)
    worker.answer(said("hi"))
    until(worker, Stepped)
    worker.reload(lambda report: other)
    worker.answer(said("again"))
    ends = [event for event in until(worker, Answered, times=2) if isinstance(event, Answered)]
    assert ends == [Answered(1, Finish.INTERRUPTED), Answered(2, Finish.STOP)]
    assert one.closed.is_set()
    assert other.words() == ["again"]


def test_an_engine_that_does_not_stop_is_killed_before_the_next_is_loaded(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_worker, "_STUBBORN_SECONDS", 0.05)
    hanging = ScriptedBackend(["part", STUBBORN, "rest"])
    monkeypatch.setattr(hanging, "kill", hanging.go.set)
    reports: list[LoadReport] = []

    def load(report: LoadReport) -> ScriptedBackend:
        reports.append(report)
        return hanging

    worker = start(load)
    worker.answer(said("hi"))
    until(worker, Stepped)
    worker.reload(lambda report: ScriptedBackend(["fine"]))
    until(worker, Loaded)
    reports[0].gone("The engine has stopped working.")
    worker.answer(said("again"))
    # Nothing about the one that is no more.
    assert [type(event) for event in until(worker, Answered)] == [Reading, Reading, Stepped, Answered]


def test_an_engine_that_hangs_is_killed_by_another_stop_after_a_while(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    death = EngineDied("The engine has stopped working; press ctrl+r to start it again.")
    backends: list[Mortal] = []

    def load(report: LoadReport) -> Mortal:
        backends.append(Mortal(report, ["part", STUBBORN, death] if not backends else ["fine"]))
        return backends[-1]

    def kill() -> None:
        hanging.killed.set()
        hanging.go.set()

    worker = start(load)
    worker.answer(said("one"))
    until(worker, Stepped)
    hanging = backends[0]
    monkeypatch.setattr(hanging, "kill", kill)
    monkeypatch.setattr(engine_worker, "_STUBBORN_SECONDS", 3600.0)
    worker.stop()
    worker.stop()
    assert not hanging.killed.is_set()
    monkeypatch.setattr(engine_worker, "_STUBBORN_SECONDS", 0.0)
    worker.stop()
    assert hanging.killed.is_set()
    failed, gone = until(worker, EngineGone)
    assert failed == Failed(1, str(death), begun=True, gone=True)
    assert gone == EngineGone(str(death))
    worker.reload()
    worker.answer(said("two"))
    assert until(worker, Answered)[-1] == Answered(2, Finish.STOP)
    # What has come to its end does not hang.
    worker.stop()
    worker.stop()
    assert not backends[1].killed.is_set()


def test_closing_before_starting_is_fine() -> None:
    worker = EngineWorker(lambda report: ScriptedBackend())
    worker.close()
    assert worker.join()
