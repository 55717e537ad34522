"""`localspec run` in a real pseudo-terminal of 80 columns: progress that goes away, and an answer that commands nothing."""

from __future__ import annotations

import errno
import os
import pty
import subprocess
import termios

import pyte
import pytest

from command import PATIENCE, call, command, surroundings
from localspec.literal import literal

pytestmark = pytest.mark.terminal

COLUMNS, LINES = 80, 24
OPTIONS = ("--temp", 0, "--max-tokens", 30, "Hi")


def in_terminal(*arguments: object, **environment: str) -> tuple[int, str]:
    """Run a command with all three streams on a terminal. Returns its exit code and what it wrote there."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (LINES, COLUMNS))
    surrounding = surroundings(**{"TERM": "xterm-256color"} | environment)
    surrounding.pop("COLUMNS", None)
    with subprocess.Popen(command(*arguments), stdin=theirs, stdout=theirs, stderr=theirs, env=surrounding) as process:
        os.close(theirs)
        written = read_all(ours)
        os.close(ours)
        return process.wait(PATIENCE), written.decode()


def read_all(descriptor: int) -> bytes:
    written = b""
    while True:
        try:
            more = os.read(descriptor, 1 << 16)
        except OSError as error:
            # Linux says so when the other end is closed.
            assert error.errno == errno.EIO
            return written
        if not more:
            return written
        written += more


def rows(written: str) -> list[str]:
    """What is to be seen in the end."""
    screen = pyte.Screen(COLUMNS, LINES)
    pyte.Stream(screen).feed(written)
    return [row.rstrip() for row in screen.display if row.strip()]


@pytest.fixture(scope="module")
def answer(tiny_llama):
    """The same answer in a pipe. It has characters in it that a terminal would obey."""
    text = call("run", "-m", tiny_llama, "--json", *OPTIONS, "--threads", 1).document["text"]
    assert any(ord(character) < 0x20 and character not in "\n\t" for character in text)
    return text


def test_progress_goes_away_and_the_answer_stays(tiny_llama, answer):
    code, written = in_terminal("run", "-m", tiny_llama, *OPTIONS)
    assert code == 0
    assert "loading llama 100%" in written
    assert "reading the prompt" in written
    kept = literal(answer)
    assert "\n".join(rows(written)) == "\n".join(rows(kept.replace("\n", "\r\n")))
    # After the last line of progress nothing but the text is sent.
    assert written.rsplit("\x1b[K", 1)[1] == kept.replace("\n", "\r\n") + "\r\n"


@pytest.mark.parametrize(("options", "environment"), [(("--quiet",), {}), ((), {"TERM": "dumb"})])
def test_progress_can_be_done_without(options, environment, tiny_llama):
    code, written = in_terminal("run", "-m", tiny_llama, *options, *OPTIONS, **environment)
    assert code == 0
    assert "\x1b" not in written
    assert "loading" not in written


def test_a_long_name_leaves_progress_on_one_line(tmp_path, tiny_llama):
    model = tmp_path / f"{'long-' * 40}name.gguf"
    model.write_bytes(tiny_llama.read_bytes())
    _, written = in_terminal("run", "-m", model, *OPTIONS)
    shown = [part for part in written.split("\r\x1b[K") if part.startswith("loading")]
    assert shown
    assert all(len(part) < COLUMNS for part in shown)


def test_an_error_takes_progress_away_first(tiny_llama):
    code, written = in_terminal("run", "-m", tiny_llama, "x" * 3000)
    assert code == 1
    assert "loading llama 100%" in written
    assert rows(written)[0].startswith("localspec: The prompt has 3019 tokens")


def test_without_a_prompt_nobody_waits_for_the_keyboard(tiny_llama):
    code, written = in_terminal("run", "-m", tiny_llama)
    assert code == 1
    assert "The prompt is empty" in written


def test_help_is_as_wide_as_the_terminal_at_most():
    for arguments in (("-h",), ("run", "-h")):
        code, written = in_terminal(*arguments)
        assert code == 0
        assert max(map(len, written.splitlines())) <= COLUMNS
