"""A hub for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import hub_server
from hub_fetch import NAME, Fetch
from hub_server import Content, HubServer


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubServer]:
    """A hub on loopback, the only one that huggingface-hub knows."""
    with hub_server.serving() as server:
        hub_server.isolate_hub(monkeypatch, tmp_path_factory.mktemp("home"), server.url)
        yield server


@pytest.fixture(scope="session")
def content() -> Content:
    """A file of some megabytes."""
    return hub_server.long_content(3_000_017)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A models folder that does not exist yet."""
    return tmp_path / "data" / "models"


@pytest.fixture
def fetch(hub: HubServer, folder: Path, content: Content) -> Fetch:
    """A download of the one file of the one repository."""
    hub.add("user/repo", {NAME: content})
    return Fetch(folder)
