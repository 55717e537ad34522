"""What every test of the command line has."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads wait for each other at every node of the graph: on a busy machine a tiny model then takes forever."""
    monkeypatch.setenv("LOCALSPEC_THREADS", "1")
