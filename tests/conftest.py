"""What every test may use: tiny models built once, the starter model, and folders of its own for each test."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import hypothesis
import platformdirs
import pytest

import tiny
from snapshots import FOLDER, Snapshots

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts background jobs deaf to Ctrl-C, and whatever the tests start would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)

DRAFT_NOISE = 0.08
"""With this much noise about 7 of 10 greedy tokens of the tiny target are its draft's too."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update-snapshots`: what is on the screens now is how they are meant to be; `--long`: the sizes of `scale`."""
    parser.addoption("--update-snapshots", action="store_true", help="write the pictures of the screens anew")
    parser.addoption("--long", action="store_true", help="provoke faults by the thousand: an hour, not minutes")


def pytest_configure(config: pytest.Config) -> None:
    """How many examples a property is tried on."""
    hypothesis.settings.register_profile("fast", max_examples=40, deadline=None)
    hypothesis.settings.register_profile("long", max_examples=2000, deadline=None)
    hypothesis.settings.load_profile("long" if config.getoption("--long") else "fast")


@pytest.fixture(autouse=True, scope="session")
def signals_mean_what_they_mean() -> None:
    """Who starts the tests in the background may have signals ignored, and every process that a test starts inherits that."""
    for name in ("SIGHUP", "SIGQUIT"):
        number = getattr(signal, name, None)
        if number and signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


@pytest.fixture
def scale(request: pytest.FixtureRequest) -> Callable[[int, int], int]:
    """`scale(30, 300)`: how much of something a test does, by default and with `--long`."""
    long = request.config.getoption("--long")
    return lambda usual, with_long: with_long if long else usual


@pytest.fixture
def snapshots(request: pytest.FixtureRequest) -> Snapshots:
    """The pictures beside the test."""
    return Snapshots(request.path.parent / FOLDER, request.config.getoption("--update-snapshots"))


@pytest.fixture(autouse=True)
def own_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point every folder localspec writes to at a fresh one, and hide the settings of whoever runs the tests."""
    home = tmp_path_factory.mktemp("localspec")
    for name in [name for name in os.environ if name.startswith("LOCALSPEC_")]:
        monkeypatch.delenv(name)
    for kind in ("config", "data", "cache", "log"):
        monkeypatch.setenv(f"LOCALSPEC_{kind.upper()}_DIR", str(home / kind))
    return home


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the tiny models of this session."""
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="session")
def tiny_llama(models: Path) -> Path:
    """Plain attention, with a chat template: the target of most tests."""
    return tiny.llama(models / "llama.gguf", chat_template=tiny.CHAT_TEMPLATE)


@pytest.fixture(scope="session")
def tiny_draft(models: Path) -> Path:
    """A draft model for `tiny_llama` that agrees with it on about 7 of 10 greedy tokens."""
    return tiny.llama(models / "draft.gguf", noise=DRAFT_NOISE)


@pytest.fixture(scope="session")
def tiny_gemma(models: Path) -> Path:
    """Sliding-window attention over 32 tokens."""
    return tiny.gemma3(models / "gemma3.gguf")


@pytest.fixture(scope="session")
def tiny_lfm2(models: Path) -> Path:
    """Hybrid: short convolutions and attention, whose state can be rolled back."""
    return tiny.lfm2(models / "lfm2.gguf")


@pytest.fixture(scope="session")
def tiny_mamba(models: Path) -> Path:
    """Purely recurrent, whose state cannot be rolled back."""
    return tiny.mamba(models / "mamba.gguf")


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """SmolLM2-135M-Instruct, the starter model: fetched by the first test that wants it, and kept between runs."""
    from localspec.hub.starter import fetch_starter

    folder = platformdirs.user_cache_path("localspec-tests")
    folder.mkdir(parents=True, exist_ok=True)
    return fetch_starter(folder)
