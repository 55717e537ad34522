"""`localspec rewrite` in a real pseudo-terminal: progress by position in the source, and a comparison in colors."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from test_run_on_a_terminal import COLUMNS, LINES, read_all, rows

from command import PATIENCE, ROOT, surroundings

pytestmark = pytest.mark.terminal

BOOK = "".join(f"# Chapter {number}\n\n{'The rain fell. ' * 30}\n\n" for number in range(6))
DRIVER = """
import sys
import localspec.rewrite
from localspec.cli import cli
from rewriting import Answers

answers = Answers(lambda text: text.replace("rain", "snow"))
localspec.rewrite._Writer.ask = lambda writer, request, on_prompt: answers(request, on_prompt)
cli(sys.argv[1:])
"""


def in_terminal(*arguments: object, **environment: str) -> tuple[int, str]:
    """A rewriting with all three streams on a terminal. Returns its exit code and what it wrote there."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (LINES, COLUMNS))
    surrounding = surroundings(
        **{
            "TERM": "xterm-256color",
            "LOCALSPEC_DRAFTER": "lookup",
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]),
        }
        | environment
    )
    for name in ("COLUMNS", "NO_COLOR"):
        if name not in environment:
            surrounding.pop(name, None)
    words = [sys.executable, "-c", DRIVER, "rewrite", "-i", "x", *map(str, arguments)]
    with subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env=surrounding) as process:
        os.close(theirs)
        written = read_all(ours)
        os.close(ours)
        return process.wait(PATIENCE), written.decode()


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "book.txt"
    path.write_text(BOOK)
    return path


def test_progress_is_shown_and_goes_away(book, tiny_llama):
    """How far in the source, which part, how many tokens a step; in the end nothing of it is left."""
    code, written = in_terminal("-m", tiny_llama, book, "--in-place")
    assert (code, rows(written)) == (0, [])
    assert "part 1 of 6, 2.0 tokens per step" in written
    assert "part 6 of 6, 2.0 tokens per step" in written
    assert book.read_text() == BOOK.replace("rain", "snow")


def test_a_comparison_has_colors_unless_a_person_wants_none(tmp_path, tiny_llama):
    """Red is what goes, green is what comes, and a text cannot command the terminal."""
    path = tmp_path / "it.txt"
    path.write_text("one\nrain \x1b[2J\n")
    code, written = in_terminal("-m", tiny_llama, path, "--diff")
    assert code == 0
    assert "\x1b[31m-rain ␛[2J\x1b[0m\r\n\x1b[32m+snow ␛[2J\x1b[0m\r\n" in written
    code, plain = in_terminal("-m", tiny_llama, path, "--diff", "--quiet", NO_COLOR="1")
    assert code == 0
    assert "-rain ␛[2J\r\n+snow ␛[2J\r\n" in plain
    assert "\x1b" not in plain


def test_a_text_cannot_command_the_terminal(tmp_path, tiny_llama):
    """On stdout neither."""
    path = tmp_path / "it.txt"
    path.write_text("rain \x1b[2J\n")
    code, written = in_terminal("-m", tiny_llama, path, "--quiet")
    assert (code, written) == (0, "snow ␛[2J\r\n")
