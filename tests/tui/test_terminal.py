"""The chat in a pseudo-terminal, with a real engine: nothing but Textual may write there, and it is left as it was."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyte
import pytest

from localspec.chat.conversation import Conversation
from localspec.engine.engine import Engine, EngineSettings, Options
from localspec.engine.sampling import Sampling
from localspec.tui.literal import literal

pytestmark = pytest.mark.terminal

WIDTH, HEIGHT = 80, 24
OPTIONS = Options(sampling=Sampling(temperature=0.0), drafter="none", max_tokens=30)

NOISE = """
import os
from localspec.engine.engine import Options
from localspec.engine.sampling import Sampling

def noise(where):
    os.write(1, f"native noise on 1 of the {where}\\n".encode())
    os.write(2, f"native noise on 2 of the {where}\\n".encode())

def options(engine):
    noise("engine")
    return Options(sampling=Sampling(temperature=0.0), drafter="none", max_tokens=30)
"""
"""What is called where the engine runs; it must be in a module."""

CHAT = """
import sys
from pathlib import Path
from textual.drivers._writer_thread import WriterThread
from localspec.chat.service import Wanted
from localspec.engine.engine import EngineSettings
from localspec.tui.run import run_chat
from noise import noise, options

model, log, drawn = map(Path, sys.argv[1:])
write, start = WriterThread.write, WriterThread.start

def recorded(thread, text):
    with drawn.open("ab") as file:
        file.write(text.encode())
    write(thread, text)

def noisy(thread):
    noise("app")
    start(thread)

WriterThread.write, WriterThread.start = recorded, noisy
sys.exit(run_chat(Wanted(EngineSettings(model), options), log_file=log))
"""
"""The chat, keeping a record of all that Textual draws, and with noise as a native library makes it."""


class Terminal:
    """A program in a pseudo-terminal, and what it has written there."""

    def __init__(self, command: list[str]) -> None:
        self.main, self.side = pty.openpty()
        termios.tcsetwinsize(self.side, (HEIGHT, WIDTH))
        self.modes = termios.tcgetattr(self.side)
        # What is typed before the program reads it would be echoed, and look like something written.
        self.modes[3] &= ~termios.ECHO
        termios.tcsetattr(self.side, termios.TCSANOW, self.modes)
        environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "", "LINES": ""}
        self.program = subprocess.Popen(
            command, stdin=self.side, stdout=self.side, stderr=self.side, env=environment, start_new_session=True
        )
        self.written = b""
        self._screen = pyte.Screen(WIDTH, HEIGHT)
        self._stream = pyte.ByteStream(self._screen)

    @property
    def shown(self) -> str:
        return "\n".join(self._screen.display)

    def type(self, keys: bytes) -> None:
        os.write(self.main, keys)

    def until(self, holds: Callable[[], object]) -> None:
        """Read until `holds`. The limit only keeps a broken test from hanging."""
        limit = time.monotonic() + 60
        while not holds():
            assert time.monotonic() < limit, f"this never came about; the screen:\n{self.shown}"
            self.read(0.05)

    def read(self, seconds: float) -> None:
        while select.select([self.main], [], [], seconds)[0]:
            piece = os.read(self.main, 65536)
            self.written += piece
            self._stream.feed(piece)
            seconds = 0.0

    def close(self) -> None:
        if self.program.poll() is None:
            self.program.kill()
            self.program.wait()
        os.close(self.main)
        os.close(self.side)


@pytest.fixture
def terminal(tiny_llama: Path, tmp_path: Path) -> Iterator[Terminal]:
    script = tmp_path / "chat.py"
    script.write_text(CHAT)
    (tmp_path / "noise.py").write_text(NOISE)
    opened = Terminal(
        [
            sys.executable,
            str(script),
            str(tiny_llama),
            str(tmp_path / "logs" / "localspec.log"),
            str(tmp_path / "drawn"),
        ]
    )
    yield opened
    opened.close()


def expected_answer(model: Path) -> str:
    with Engine(EngineSettings(model)) as engine:
        return literal("".join(step.text for step in Conversation(engine).ask("Hello", OPTIONS)))


def test_only_textual_writes_to_the_terminal_and_it_is_left_whole(
    terminal: Terminal, tiny_llama: Path, tmp_path: Path
) -> None:
    terminal.type(b"Hel")
    terminal.until(lambda: "llama is ready." in terminal.shown)
    terminal.type(b"lo\r")
    terminal.until(lambda: "cut off here" in terminal.shown)
    assert expected_answer(tiny_llama)[:8] in terminal.shown
    assert "1.00 tokens/step" in terminal.shown
    assert "plain" in terminal.shown
    terminal.type(b"\x11")
    terminal.until(lambda: terminal.program.poll() is not None)
    terminal.read(0.1)

    assert terminal.program.returncode == 0
    assert terminal.written.replace(b"\r\n", b"\n") == (tmp_path / "drawn").read_bytes()
    assert termios.tcgetattr(terminal.side) == terminal.modes
    for mode in (b"?1049", b"?1000", b"?1003", b"?2004"):
        assert terminal.written.rfind(b"\x1b[" + mode + b"l") > terminal.written.rfind(b"\x1b[" + mode + b"h"), mode
    assert terminal.written.rfind(b"\x1b[?25h") > terminal.written.rfind(b"\x1b[?25l")
    log = (tmp_path / "logs" / "localspec.log").read_text()
    for where in ("engine", "app"):
        assert f"native noise on 1 of the {where}" in log
        assert f"native noise on 2 of the {where}" in log
    assert "llama_model_loader" in log


def test_a_chat_that_is_killed_goes_on_where_it_was(tiny_llama: Path) -> None:
    options = ("--temp", "0", "--drafter", "none", "--max-tokens", "60")
    command = [sys.executable, "-m", "localspec", "-m", str(tiny_llama), *options]
    command += ["--max-tokens", "30"]
    beginning = expected_answer(tiny_llama)[:8]
    first = Terminal(command)
    try:
        first.until(lambda: "llama is ready." in first.shown)
        first.type(b"Hello\r")
        first.until(lambda: beginning in first.shown)
        # What is older than a second is in the file.
        later = time.monotonic() + 1.5
        first.until(lambda: time.monotonic() > later)
        first.program.kill()
        first.program.wait()
    finally:
        first.close()
    again = Terminal([*command, "--continue"])
    try:
        again.until(lambda: "context 0" in again.shown)
        assert "Hello" in again.shown
        assert beginning in again.shown
        again.type(b"\x11")
        again.until(lambda: again.program.poll() is not None)
        assert again.program.returncode == 0
    finally:
        again.close()


def test_it_ends_when_its_terminal_is_gone(terminal: Terminal) -> None:
    terminal.until(lambda: "llama is ready." in terminal.shown)
    os.close(terminal.main)
    assert terminal.program.wait(timeout=60) in (-signal.SIGHUP, 128 + signal.SIGHUP)
    terminal.main = os.open(os.devnull, os.O_RDONLY)


@pytest.mark.parametrize("how", [signal.SIGHUP, signal.SIGTERM])
def test_a_typed_word_outlives_the_end_of_the_program(how: signal.Signals, tiny_llama: Path) -> None:
    command = [sys.executable, "-m", "localspec", "-m", str(tiny_llama)]
    first = Terminal(command)
    try:
        first.until(lambda: "llama is ready." in first.shown)
        first.type(b"half a thought")
        first.until(lambda: "half a thought" in first.shown)
        first.program.send_signal(how)
        first.until(lambda: first.program.poll() is not None)
    finally:
        first.close()
    again = Terminal(command)
    try:
        again.until(lambda: "half a thought" in again.shown)
        again.type(b"\x11")
        again.until(lambda: again.program.poll() is not None)
        assert again.program.returncode == 0
    finally:
        again.close()
