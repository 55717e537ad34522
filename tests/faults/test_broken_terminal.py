"""The terminal is never left broken: whoever is killed in front of it, somebody puts it back."""

from __future__ import annotations

import os
import signal
import termios
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import native_faults
import pytest
from faulty_command import WAYS, faulty_command, faulty_surroundings
from terminals import Terminal, children, descendants, state

pytestmark = [
    pytest.mark.terminal,
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="who belongs to whom is read from /proc"),
]

READY = "llama is ready."
PLAIN_SHELL = ("sh", "-c", '"$@"; read line', "sh")
SHELL = ("sh", "-c", 'set -m; "$@"; echo left with $?; read line; fg; echo left with $?; read line', "sh")
"""One that gives the terminal to its jobs, and takes it back from them."""

LONG_ANSWER = ("run", "--ctx", 20_000, "--max-tokens", 15_000, "--temp", 0, "--drafter", "none", "Hi")

Open = Callable[..., Terminal]


@pytest.fixture
def opened(tiny_llama: Path) -> Iterator[Open]:
    """Start the command in a terminal; closed afterwards."""
    terminals: list[Terminal] = []

    def opened(*arguments: object, shell: Sequence[str] = (), way: str = "forked", **environment: str) -> Terminal:
        words = [*shell, *faulty_command(*arguments, "-m", tiny_llama)]
        terminals.append(Terminal(words, faulty_surroundings(way, **environment)))
        return terminals[-1]

    yield opened
    for terminal in terminals:
        terminal.close()


def app_of(terminal: Terminal) -> int:
    """The process that draws."""
    (app,) = children(terminal.program.pid)
    return app


def is_whole(terminal: Terminal) -> bool:
    assert terminal.modes_left_on() == []
    assert termios.tcgetattr(terminal.side) == terminal.modes
    return True


def is_answering(terminal: Terminal) -> bool:
    """Whether progress has gone, and the answer has begun."""
    return len(terminal.written.rpartition(b"\x1b[K")[2]) > 100


def draws(terminal: Terminal) -> bool:
    """Whether keys go to the app and not to the terminal itself."""
    return not termios.tcgetattr(terminal.side)[3] & termios.ICANON


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSEGV])
@pytest.mark.parametrize("way", WAYS)
def test_the_app_is_killed(how: signal.Signals, way: str, opened: Open, own_folders: Path) -> None:
    terminal = opened(way=way)
    terminal.type(b"half a thought")
    terminal.until(lambda: READY in terminal.shown and "half a thought" in terminal.shown)
    everybody = descendants(terminal.program.pid)
    assert len(everybody) >= 2
    assert set(terminal.modes_left_on()) >= {"1049", "25", "1003", "2004"}
    # What has stood there for a second is in the file.
    unsent = own_folders / "data" / "unsent.json"
    terminal.until(lambda: unsent.exists() and "half a thought" in unsent.read_text())
    os.kill(app_of(terminal), how)
    assert terminal.ended() == 1
    assert is_whole(terminal)
    last = terminal.written.decode("utf-8", "replace").rpartition("\x1b[0m")[2]
    assert f"localspec: The engine has stopped working (signal {how.value}" in last.replace("\r\n", "")
    assert "localspec -c goes on" in last
    assert "Traceback" not in last
    terminal.until(lambda: all(state(pid) in ("", "Z") for pid in everybody))
    again = opened("-c")
    again.until(lambda: "half a thought" in again.shown)
    again.type(b"\x11")
    assert again.ended() == 0


def test_the_one_that_watches_is_killed(opened: Open) -> None:
    """Then the app leaves by itself, into the shell that both were started from."""
    terminal = opened(shell=PLAIN_SHELL)
    terminal.until(lambda: READY in terminal.shown)
    (watching,) = children(terminal.program.pid)
    everybody = descendants(watching)
    os.kill(watching, signal.SIGKILL)
    terminal.until(lambda: all(state(pid) in ("", "Z") for pid in everybody))
    terminal.read(0.1)
    assert is_whole(terminal)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP])
def test_being_asked_to_end(how: signal.Signals, opened: Open) -> None:
    terminal = opened()
    terminal.until(lambda: READY in terminal.shown)
    everybody = descendants(terminal.program.pid)
    terminal.program.send_signal(how)
    assert terminal.ended() in ((0,) if how is signal.SIGTERM else (-how,))
    assert is_whole(terminal)
    terminal.until(lambda: all(state(pid) in ("", "Z") for pid in everybody))


@pytest.mark.parametrize("whom", ["the app", "both"])
def test_a_chat_that_is_stopped_gives_the_terminal_back_and_goes_on(whom: str, opened: Open) -> None:
    terminal = opened(shell=SHELL)
    terminal.until(lambda: READY in terminal.shown)
    (watching,) = children(terminal.program.pid)
    (app,) = children(watching)
    if whom == "both":
        os.killpg(watching, signal.SIGTSTP)
    else:
        os.kill(app, signal.SIGTSTP)
    terminal.until(lambda: b"left with" in terminal.written)
    assert (state(watching), state(app)) == ("T", "T")
    assert is_whole(terminal)
    seen = len(terminal.written)
    terminal.type(b"\n")
    terminal.until(lambda: draws(terminal))
    terminal.type(b"awake")
    terminal.until(lambda: "awake" in terminal.shown)
    # Woken twice it would read keys and write twice.
    assert terminal.written[seen:].count(b"\x1b[?1049h") == 1
    terminal.type(b"\x11")
    terminal.until(lambda: b"left with 0" in terminal.written[seen:])
    assert is_whole(terminal)
    terminal.type(b"\n")
    assert terminal.ended() == 0


def test_a_chat_that_only_is_woken_wakes(opened: Open) -> None:
    """Its `fg` tells both processes, other things only the one that they have started."""
    terminal = opened()
    terminal.until(lambda: READY in terminal.shown)
    os.kill(app_of(terminal), signal.SIGTSTP)
    terminal.until(lambda: state(terminal.program.pid) == "T")
    os.kill(terminal.program.pid, signal.SIGCONT)
    terminal.until(lambda: draws(terminal) and "T" not in (state(app_of(terminal)), state(terminal.program.pid)))
    terminal.type(b"\x11")
    assert terminal.ended() == 0
    assert is_whole(terminal)


def test_a_chat_that_is_woken_without_having_slept_leaves_no_modes(opened: Open) -> None:
    """It takes the modes that it has set itself for those that it found."""
    terminal = opened()
    terminal.until(lambda: READY in terminal.shown)
    seen = len(terminal.written)
    os.kill(app_of(terminal), signal.SIGCONT)
    terminal.until(lambda: b"\x1b[?1049h" in terminal.written[seen:])
    terminal.read(0.1)
    terminal.type(b"\x11" * 4)
    assert terminal.ended() == 0
    assert termios.tcgetattr(terminal.side) == terminal.modes


def test_an_answer_is_stopped_and_goes_on(opened: Open) -> None:
    terminal = opened(*LONG_ANSWER, shell=SHELL)
    terminal.until(lambda: is_answering(terminal))
    terminal.type(b"\x1a")
    terminal.until(lambda: b"left with 148" in terminal.written)
    (watching,) = children(terminal.program.pid)
    assert state(watching) == "T"
    terminal.until(lambda: state(children(watching)[0]) == "T")
    terminal.read(0.1)
    seen = len(terminal.written)
    terminal.type(b"\n")
    terminal.until(lambda: len(terminal.written) > seen + 300)
    terminal.type(b"\x03")
    terminal.until(lambda: b"left with 130" in terminal.written[seen:])
    assert is_whole(terminal)


def test_the_engine_dies_and_the_screen_stays(opened: Open, tmp_path: Path) -> None:
    """Native code may print its last words, but not here."""
    fault = {native_faults.VARIABLE: "real abort:step", native_faults.ONCE: str(tmp_path / "once")}
    terminal = opened("--temp", "0", "--drafter", "none", "--max-tokens", "30", **fault)
    terminal.until(lambda: READY in terminal.shown)
    terminal.type(b"Hello\r")
    terminal.until(lambda: "ctrl+r start it again" in terminal.shown)
    assert "GGML_ASSERT" not in terminal.shown
    assert "Fatal" not in terminal.shown
    terminal.type(b"\x12")
    terminal.until(lambda: "has stopped" not in terminal.shown.splitlines()[-1])
    terminal.type(b"again\r")
    terminal.until(lambda: "tokens/step" in terminal.shown)
    terminal.type(b"\x11")
    assert terminal.ended() == 0
    assert is_whole(terminal)


def test_a_key_is_pressed_once(opened: Open) -> None:
    """Both processes get it, and the answer is stopped, not left."""
    terminal = opened(*LONG_ANSWER)
    terminal.until(lambda: is_answering(terminal))
    terminal.type(b"\x03")
    assert terminal.ended() == 130
    # What leaves at once ends in the middle of a line.
    assert terminal.written.endswith(b"\r\n")
    assert is_whole(terminal)


def test_a_command_that_crashes_in_the_middle_of_a_line_keeps_it(opened: Open) -> None:
    terminal = opened("run", "--temp", 0, "--drafter", "none", "Hi", **{native_faults.VARIABLE: "abort:step"})
    assert terminal.ended() == 1
    answer, _, sentence = terminal.written.rpartition(b"\x1b[K")[2].decode().partition("\r\nlocalspec: ")
    assert answer.strip()
    assert sentence.replace("\r\n", "").startswith("The engine has stopped working (signal 6")
    assert is_whole(terminal)
