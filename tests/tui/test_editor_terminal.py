"""An editor in a pseudo-terminal: it gets the terminal, and the app gets it back."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.terminal

APP = """
import sys
from pathlib import Path
from prompts import PromptBoxApp
from localspec.tui.native_output import native_output_to

class Saved(PromptBoxApp):
    def on_prompt_sent(self, event):
        Path(sys.argv[2]).write_text(event.text)
        self.exit()

with native_output_to(Path(sys.argv[1])):
    Saved().run()
"""

EDITOR = """
import pathlib, sys
print("the editor is here", [stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)])
sys.stdout.flush()
path = pathlib.Path(sys.argv[1])
path.write_text(f"{path.read_text()} and {sys.stdin.readline().strip()}\\n")
"""


class Screen:
    """What a program writes to a terminal."""

    def __init__(self, main: int) -> None:
        self.main = main
        self.written = b""

    def until(self, holds: Callable[[], object]) -> None:
        """Read until `holds`. The limit only keeps a broken test from hanging."""
        limit = time.monotonic() + 60
        while not holds():
            assert time.monotonic() < limit, f"this never came about:\n{self.written!r}"
            if select.select([self.main], [], [], 0.05)[0]:
                self.written += os.read(self.main, 65536)


def test_the_editor_has_the_terminal_and_the_app_goes_on_with_its_text(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "editor.py").write_text(EDITOR)
    main, side = pty.openpty()
    termios.tcsetwinsize(side, (24, 80))
    environment = {
        **os.environ,
        "TERM": "xterm-256color",
        "VISUAL": f"'{sys.executable}' '{tmp_path}/editor.py'",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    command = [sys.executable, str(tmp_path / "app.py"), str(tmp_path / "log"), str(tmp_path / "sent")]
    with subprocess.Popen(
        command, stdin=side, stdout=side, stderr=side, env=environment, start_new_session=True
    ) as program:
        try:
            screen = Screen(main)
            screen.until(lambda: b"Write here" in screen.written)
            os.write(main, b"words")
            screen.until(lambda: b"words" in screen.written)
            os.write(main, b"\x07")
            screen.until(lambda: b"the editor is here [True, True, True]" in screen.written)
            os.write(main, b"more\n")
            screen.until(lambda: b"words and more" in screen.written)
            os.write(main, b"!\r")
            screen.until(lambda: program.poll() is not None)
        finally:
            program.kill()
            os.close(main)
            os.close(side)
    assert (tmp_path / "sent").read_text() == "words and more!"
    assert "editor" not in (tmp_path / "log").read_text()
