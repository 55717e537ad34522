"""The engine's thread, without any screen."""

import time
from collections.abc import Callable, Iterator

import pytest

from localspec.engine.errors import UserError
from localspec.engine.step import Finish
from localspec.tui.backend import Load
from localspec.tui.engine_worker import EngineWorker
from localspec.tui.messages import Answered, Event, Failed, Loaded, LoadFailed, Loading, Reading, Stepped, TakenBack
from scripted import HOLD, ScriptedBackend, SlowLoad

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
    turn = worker.ask("hi")
    loaded, *events = until(worker, Answered)
    assert loaded == Loaded("big-model", "small-model", 1000)
    assert [type(event) for event in events] == [Reading, Reading, Stepped, Stepped, Answered]
    assert [event.step.text for event in events if isinstance(event, Stepped)] == ["Hello ", "world"]
    assert [event.context_used for event in events if isinstance(event, Stepped)] == [2, 4]
    assert events[-1] == Answered(turn, Finish.STOP)


def test_a_stop_ends_the_answer(start: Start) -> None:
    backend = ScriptedBackend(["part", HOLD, "rest"])
    worker = start(lambda report: backend)
    worker.ask("hi")
    until(worker, Stepped)
    worker.stop()
    assert until(worker, Answered)[-1] == Answered(1, Finish.INTERRUPTED)


def test_a_stop_between_asking_and_the_engines_beginning_is_not_lost(start: Start) -> None:
    class Forgetful(ScriptedBackend):
        def ask(self, words, on_prompt):  # type: ignore[no-untyped-def]
            worker.stop()
            return super().ask(words, on_prompt)

    backend = Forgetful(["one", HOLD, "two"])
    worker = start(lambda report: backend)
    until(worker, Loaded)
    worker.ask("hi")
    events = until(worker, TakenBack)
    assert events[-1] == TakenBack(1)
    assert [event.step.text for event in events if isinstance(event, Stepped)] == [""]


def test_a_turn_stopped_while_it_waits_never_reaches_the_conversation(start: Start) -> None:
    backend = ScriptedBackend(["never"])
    load = SlowLoad(backend)
    worker = start(load)
    worker.ask("hi")
    worker.stop()
    load.go.set()
    assert until(worker, TakenBack)[-1] == TakenBack(1)
    assert backend.asked == []


def test_a_sentence_and_a_bug_both_end_in_a_sentence_and_the_next_turn_is_answered(start: Start) -> None:
    backend = ScriptedBackend([UserError("Too long; say less.")], ["part", ValueError("odd")], ["fine"])
    worker = start(lambda report: backend)
    worker.ask("one")
    assert until(worker, Failed)[-1] == Failed(1, "Too long; say less.", begun=False)
    worker.ask("two")
    failed = until(worker, Failed)[-1]
    assert isinstance(failed, Failed)
    assert failed.begun
    assert "ValueError: odd" in failed.sentence
    worker.ask("three")
    assert until(worker, Answered)[-1] == Answered(3, Finish.STOP)


def test_without_a_model_every_turn_gets_the_reason(start: Start) -> None:
    def load(report: object) -> ScriptedBackend:
        raise UserError("There is no such file; give another.")

    worker = start(load)
    assert until(worker, LoadFailed)[-1] == LoadFailed("There is no such file; give another.")
    worker.ask("hi")
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
    worker.ask("hi")
    until(worker, Stepped)
    worker.ask("one more")
    worker.close()
    assert worker.join()
    assert backend.closed.is_set()
    assert backend.asked == ["hi"]


def test_a_new_conversation_begins_after_the_answer_under_way(start: Start) -> None:
    backend = ScriptedBackend(["part", HOLD, "rest"], ["new"])
    worker = start(lambda report: backend)
    worker.ask("hi")
    until(worker, Stepped)
    worker.restart()
    worker.ask("again")
    ends = [event for event in until(worker, Answered, times=2) if isinstance(event, Answered)]
    assert ends == [Answered(1, Finish.INTERRUPTED), Answered(2, Finish.STOP)]
    assert backend.restarts == 1


def test_closing_before_starting_is_fine() -> None:
    worker = EngineWorker(lambda report: ScriptedBackend())
    worker.close()
    assert worker.join()
