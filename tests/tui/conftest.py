"""A hub for the tests of the app."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import hub_server
from hub_server import HubServer


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubServer]:
    """A hub on loopback, the only one that huggingface-hub knows."""
    with hub_server.serving() as server:
        hub_server.isolate_hub(monkeypatch, tmp_path_factory.mktemp("home"), server.url)
        yield server
