"""The answer on stdout, in one of three forms."""

import json
from collections.abc import Callable
from typing import Any, Literal, TextIO

from localspec.console import abandon, json_text
from localspec.engine.errors import UserError
from localspec.engine.step import Step
from localspec.report import step_report

Form = Literal["text", "json", "jsonl"]
"""The text as it is written, one document at the end, or one line for each step."""

_CONTROLS = {code: None for code in range(0x20) if chr(code) not in "\n\t"} | dict.fromkeys(range(0x7F, 0xA0))
"""What a model may write, but a terminal must not obey."""


class Output:
    """Writes everything at once, as UTF-8 whatever the locale says. Raises BrokenPipeError when nobody reads any more,
    UserError when it cannot be written."""

    def __init__(self, form: Form, stream: TextIO) -> None:
        self._form, self._stream = form, stream
        self._on_terminal = stream.isatty()
        self._last = "\n"

    def step(self, step: Step) -> None:
        """Show a step."""
        if self._form == "text":
            self._write(step.text.translate(_CONTROLS) if self._on_terminal else step.text)
        elif self._form == "jsonl":
            self._write(json.dumps(step_report(step), ensure_ascii=False, allow_nan=False) + "\n")

    def end(self, report: Callable[[], dict[str, Any]]) -> None:
        """Close the answer: a last newline, or the whole report."""
        if self._form == "text" and not self._last.endswith("\n"):
            self._write("\n")
        elif self._form == "json":
            self._write(json_text(report()))

    def _write(self, text: str) -> None:
        if not text:
            return
        try:
            self._stream.buffer.write(text.encode("utf-8", "replace"))
            self._stream.buffer.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            abandon(self._stream)
            raise UserError(
                f"The answer cannot be written to stdout ({error.strerror}): send it to another place."
            ) from error
        self._last = text
