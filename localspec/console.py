"""What a person sees beside the answer: messages and progress on stderr."""

import contextlib
import json
import os
import re
import shutil
import sys
from typing import TextIO

import click

from localspec.engine.errors import UserError
from localspec.engine.rates import finite
from localspec.literal import literal, literal_json

_COLORS = re.compile("(\x1b\\[[0-9;]*m)")


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


def write_out(text: str, *, colored: bool = False) -> int:
    """Write a whole answer of a command to stdout, as UTF-8 whatever the locale says, and return the exit code of success.

    A pipe or a file gets the text as it is. A terminal gets it with what it would obey made visible, but for our own colors
    where the text is `colored`: then what stands between them has been made literal before. Raises UserError.
    """
    if sys.stdout is None:
        raise UserError("There is no stdout to write to; send it to a terminal, a file or a pipe.")
    if sys.stdout.isatty():
        text = "".join(map(_literal_but_colors, _COLORS.split(text))) if colored else literal(text)
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
    return safe_json(document, indent=2) + "\n"


def safe_json(document: object, indent: int | None = None) -> str:
    """JSON that means exactly `document`, and that a terminal can be given."""
    return literal_json(json.dumps(finite(document), ensure_ascii=False, allow_nan=False, indent=indent))


def _literal_but_colors(piece: str) -> str:
    return piece if _COLORS.fullmatch(piece) else literal(piece)


def abandon(stream: TextIO | None) -> None:
    """Whoever reads `stream` has gone: what Python still wants to write there at its exit goes nowhere, without complaint."""
    # A stream of a test has no descriptor, and a process may have none left to open anything with.
    with contextlib.suppress(AttributeError, OSError), open(os.devnull, "wb") as nowhere:  # noqa: PTH123
        os.dup2(nowhere.fileno(), stream.fileno())  # type: ignore[union-attr]


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
