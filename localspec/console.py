"""What a person sees beside the answer: messages and progress on stderr."""

import contextlib
import json
import os
import shutil
import sys
from typing import TextIO

import click

from localspec.engine.errors import UserError

CONTROLS = {code: None for code in range(0x20) if chr(code) not in "\n\t"} | dict.fromkeys(range(0x7F, 0xA0))
"""What texts and names may hold, but a terminal must not obey."""


def one_line(text: str) -> str:
    """`text` on one line: names out of files and arguments must neither break a message nor command the terminal."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape", "surrogatepass").decode("ascii")
        for character in text
    )


def say(sentence: str) -> None:
    """Tell the person something. Nobody listening is no reason to fail."""
    try:
        click.echo(f"localspec: {one_line(sentence)}", err=True)
    except OSError:
        abandon(sys.stderr)


def write_out(text: str, *, exact: bool = False) -> int:
    """Write a whole answer of a command to stdout, as UTF-8 whatever the locale says, and return the exit code of success.

    A terminal gets no control characters unless the text is `exact`. Raises UserError.
    """
    if sys.stdout is None:
        raise UserError("There is no stdout to write to; send it to a terminal, a file or a pipe.")
    if sys.stdout.isatty() and not exact:
        text = text.translate(CONTROLS)
    try:
        sys.stdout.buffer.write(text.encode("utf-8", "replace"))
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # Whoever read our output has seen enough.
        abandon(sys.stdout)
    except OSError as error:
        abandon(sys.stdout)
        raise UserError(f"stdout cannot be written ({error.strerror}): send it elsewhere.") from error
    return 0


def json_text(document: object) -> str:
    """A document for `write_out`, in the form that every command with --json has."""
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2) + "\n"


def abandon(stream: TextIO | None) -> None:
    """Whoever reads `stream` has gone: what Python still wants to write there at its exit goes nowhere, without complaint."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    # A stream of a test has no descriptor.
    with contextlib.suppress(AttributeError, OSError):
        os.dup2(nowhere, stream.fileno())  # type: ignore[union-attr]
    os.close(nowhere)


class Progress:
    """One line on stderr that says what is going on, on a terminal only."""

    def __init__(self, quiet: bool = False) -> None:
        self._stream: TextIO | None = sys.stderr
        # A terminal that is called dumb cannot go back to the beginning of the line.
        self._quiet = quiet
        show = not quiet and self._stream is not None and self._stream.isatty() and os.environ.get("TERM") != "dumb"
        self._show, self._shown = show, ""

    def show(self, text: str) -> None:
        """Replace the line, cut to the width of the terminal."""
        if not self._show:
            return
        line = one_line(text)[: shutil.get_terminal_size().columns - 1]
        if line != self._shown:
            self._write(line)
            self._shown = line

    def tell(self, sentence: str) -> None:
        """Say something that stays, in the place of the line."""
        self.clear()
        if not self._quiet:
            say(sentence)

    def clear(self) -> None:
        """Take the line away."""
        if self._shown:
            self._write("")
            self._shown = ""

    def _write(self, line: str) -> None:
        if self._stream is None:
            return
        try:
            self._stream.write(f"\r\x1b[K{line}")
            self._stream.flush()
        except OSError:
            self._show = False
