"""What all tests of the app have: a hub, and sentences that stay."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import hub_server
from hub_server import HubServer
from localspec.tui.widgets.status import Status


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubServer]:
    """A hub on loopback, the only one that huggingface-hub knows."""
    with hub_server.serving() as server:
        hub_server.isolate_hub(monkeypatch, tmp_path_factory.mktemp("home"), server.url)
        yield server


@pytest.fixture(autouse=True)
def sentences_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is, a sentence does not go away before a test has looked."""
    monkeypatch.setattr(Status, "MESSAGE_SECONDS", 600.0)
