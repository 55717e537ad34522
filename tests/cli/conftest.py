"""What every test of the command line has."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from command import PATIENCE, control_c
from localspec.engine.stop import Stop


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads wait for each other at every node of the graph: on a busy machine a tiny model then takes forever."""
    monkeypatch.setenv("LOCALSPEC_THREADS", "1")


@pytest.fixture
def press(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Presses Ctrl-C and waits until it has been noticed; once only, for another press would end the tests."""
    noticed = threading.Event()
    ask = Stop.ask

    def note(stop: Stop) -> None:
        ask(stop)
        noticed.set()

    def press_once() -> None:
        if not noticed.is_set():
            control_c()
            assert noticed.wait(PATIENCE)

    monkeypatch.setattr(Stop, "ask", note)
    return press_once
