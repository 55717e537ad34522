"""A stop belongs to one thing: it is not forgotten before that begins, and hits nothing after it."""

from __future__ import annotations

import threading

from localspec.engine.stop import Stop


def test_asked_for_before_it_ends_the_thing_at_its_beginning() -> None:
    stop, ended = Stop(), list[str]()
    stop.ask()
    with stop.ending(lambda: ended.append("this")):
        assert ended == ["this"]
    assert stop.asked


def test_asked_for_meanwhile_it_ends_all_that_is_under_way() -> None:
    """The inner one first begun or last: both."""
    stop, ended = Stop(), list[str]()
    with stop.ending(lambda: ended.append("outer")):
        with stop.ending(lambda: ended.append("inner")):
            assert not stop.asked
            stop.ask()
        assert ended == ["outer", "inner"]
        stop.ask()
    assert ended == ["outer", "inner", "outer"]


def test_asked_for_afterwards_it_does_nothing() -> None:
    stop, ended = Stop(), list[str]()
    with stop.ending(lambda: ended.append("over")):
        pass
    stop.ask()
    assert ended == []


def test_the_same_function_twice_is_two_things() -> None:
    stop, ended = Stop(), list[str]()

    def end() -> None:
        ended.append("x")

    with stop.ending(end):
        with stop.ending(end):
            pass
        stop.ask()
    assert ended == ["x"]


def test_one_of_two_threads_sees_the_other() -> None:
    """However the two meet, the thing hears of it."""
    for _ in range(300):
        stop, heard, both = Stop(), threading.Event(), threading.Barrier(2)

        def ask(stop: Stop = stop, both: threading.Barrier = both) -> None:
            both.wait()
            stop.ask()

        asking = threading.Thread(target=ask)
        asking.start()
        both.wait()
        with stop.ending(heard.set):
            assert heard.wait(20)
        asking.join()
