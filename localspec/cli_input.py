"""What a command is given: settings from the command line, and text on stdin."""

from __future__ import annotations

from typing import Any, TextIO

from localspec.cli_options import setting_values
from localspec.console import Progress
from localspec.engine.errors import UserError
from localspec.program import WrongUsageError
from localspec.settings import Settings, load_settings

_MOST_STDIN = 16 << 20
"""Bytes: more than any context holds, and read before anybody wonders what is going on."""


def settings_of(above: dict[str, Any], given: dict[str, Any]) -> Settings:
    """Options may stand before or behind the command; behind it they win."""
    try:
        return load_settings({**setting_values(above), **setting_values(given)})
    except UserError as error:
        raise WrongUsageError(str(error)) from error


def piped(stdin: TextIO | None, progress: Progress, instead: str = "give the prompt as an argument") -> bytes | None:
    """What was piped in, None when nothing was. `instead` is what a person can do where it cannot be read."""
    if stdin is None or stdin.isatty():
        return None
    progress.show("reading stdin")
    try:
        text = stdin.buffer.read(_MOST_STDIN + 1)
    except OSError as error:
        raise UserError(f"stdin cannot be read ({error.strerror}); {instead}.") from error
    finally:
        progress.clear()
    if len(text) > _MOST_STDIN:
        raise UserError(f"The text on stdin is longer than {_MOST_STDIN >> 20} MB; give a shorter one.")
    return text
