"""A command in a process of its own is the same command from outside: what it is told, how it ends, which streams it has."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from faulty_command import WAYS, execute, faulty_command, faulty_surroundings
from native_faults import VARIABLE
from terminals import children, state

from localspec import watched
from localspec.watched import Aftermath, go_on_watched

LONG = ("--ctx", 20_000, "--max-tokens", 15_000, "--temp", 0, "--drafter", "none", "Hi")
SHORT = ("--max-tokens", 12, "--temp", 0, "--drafter", "none", "--quiet", "Hi")

NO_CHILDREN = """exec "$1" -c 'import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])' "$@\""""
"""Started by somebody who wants to know nothing of children; not every sh can."""

needs_proc = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="who belongs to whom is read from /proc")

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def answering(tiny_llama: Path) -> Iterator[Start]:
    """Start a long answer, and wait for its beginning; ended afterwards."""
    begun: list[subprocess.Popen[bytes]] = []

    def answering(*options: object, way: str = "forked", line: str = 'exec "$@"') -> subprocess.Popen[bytes]:
        words = ["sh", "-c", line, "sh", *faulty_command("run", "-m", tiny_llama, *options, *LONG)]
        process = subprocess.Popen(words, env=faulty_surroundings(way), stdout=subprocess.PIPE, start_new_session=True)
        begun.append(process)
        assert process.stdout
        assert process.stdout.read(20)
        return process

    yield answering
    for process in begun:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def gone(pid: int) -> bool:
    return state(pid) in ("", "Z")


def comes_true(holds: Callable[[], bool]) -> bool:
    """Whether it does before long."""
    for _ in range(1000):
        if holds():
            return True
        time.sleep(0.02)
    return False


@needs_proc
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1])
def test_it_is_told_what_its_watcher_is_told(how: signal.Signals, way: str, answering: Start) -> None:
    process = answering(way=way, line='ulimit -c 0; exec "$@"')
    (child,) = children(process.pid)
    process.send_signal(how)
    process.communicate(timeout=60)
    # USR1 is nobody's wish: it counts as a crash.
    assert process.returncode == (1 if how is signal.SIGUSR1 else -how)
    assert gone(child)


@pytest.mark.parametrize("whom", ["the watcher", "both"])
def test_an_interruption_keeps_the_document(whom: str, answering: Start) -> None:
    """A key is told to both, a supervisor tells one: here by hand, as no terminal is there."""
    process = answering("--jsonl")
    if whom == "both":
        os.kill(children(process.pid)[0], signal.SIGINT)
    else:
        process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert rest.rstrip().endswith(b"}")


@needs_proc
@pytest.mark.parametrize("way", WAYS)
def test_it_ends_with_a_watcher_that_is_killed(way: str, answering: Start) -> None:
    process = answering(way=way)
    (child,) = children(process.pid)
    process.kill()
    process.communicate(timeout=60)
    # Its end of the pipe is closed just before it is gone.
    assert comes_true(lambda: gone(child))


@pytest.mark.parametrize("way", WAYS)
def test_what_is_ignored_stays_ignored(way: str, answering: Start) -> None:
    """As nohup has it."""
    process = answering(way=way, line='trap "" HUP; exec "$@"')
    os.killpg(process.pid, signal.SIGHUP)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "line",
    [
        NO_CHILDREN,
        'exec "$@" <&-',
        'exec "$@" 2>&-',
        'exec "$@" <&- 2>&-',
        '"$@" | cat',
        'exec setsid "$@"',
    ],
)
def test_surroundings(line: str, way: str, tiny_llama: Path) -> None:
    outcome = execute("run", "-m", tiny_llama, *SHORT, way=way, line=line)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out


@pytest.mark.parametrize("way", WAYS)
def test_a_reader_who_has_seen_enough_is_no_error(way: str, tiny_llama: Path) -> None:
    line = '{ "$@"; echo "left with $?" >&2; } | head -c 10'
    outcome = execute("run", "-m", tiny_llama, "--quiet", *LONG, way=way, line=line)
    assert (outcome.code, outcome.err) == (0, "left with 0\n")


@pytest.mark.parametrize("way", WAYS)
def test_native_code_that_leaves_without_a_word(
    way: str, tiny_llama: Path, own_folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a library does that finds no memory for its threads."""
    monkeypatch.setenv(VARIABLE, "leave:step")
    outcome = execute("run", "-m", tiny_llama, *SHORT, way=way)
    log = own_folders / "log" / "localspec.log"
    assert outcome.code == 1
    assert outcome.sentence.startswith(f"The engine has stopped working (exit code 1, see {log}); ")


@pytest.mark.parametrize("way", WAYS)
def test_native_code_that_crashes_when_all_is_done(way: str, tiny_llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a device's library does that is taken down in the wrong order."""
    monkeypatch.setenv(VARIABLE, "abort:end")
    outcome = execute("run", "-m", tiny_llama, *SHORT, way=way)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out


@pytest.mark.parametrize("way", WAYS)
def test_wrong_usage_is_wrong_usage(way: str, tiny_llama: Path) -> None:
    outcome = execute("run", "-m", tiny_llama, "--json", "--jsonl", "Hi", way=way)
    assert outcome.code == 2
    assert "choose one of" in outcome.sentence


def test_where_no_other_process_can_be_had_it_goes_on_in_this_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(*_arguments: object) -> int:
        raise OSError("too many")

    monkeypatch.setattr(watched, "_FORKS", True)
    monkeypatch.setattr(os, "fork", refuse)
    open_before, blocked = len(list(Path("/dev/fd").iterdir())), signal.pthread_sigmask(signal.SIG_BLOCK, ())
    go_on_watched(Aftermath(tmp_path / "log", "try again"))
    assert len(list(Path("/dev/fd").iterdir())) == open_before
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == blocked
