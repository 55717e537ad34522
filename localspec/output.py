"""The answer on stdout, in one of three forms."""

from collections.abc import Callable
from typing import Any, Literal, TextIO

from localspec.console import abandon, json_text, safe_json
from localspec.engine.errors import UserError
from localspec.engine.step import Step
from localspec.literal import LiteralPieces
from localspec.report import step_report

Form = Literal["text", "json", "jsonl"]
"""The text as it is written, one document at the end, or one line for each step."""


class Output:
    """Writes everything at once, as UTF-8 whatever the locale says. Raises BrokenPipeError when nobody reads any more,
    UserError when it cannot be written."""

    def __init__(self, form: Form, stream: TextIO) -> None:
        self._form, self._stream = form, stream
        self._literal = LiteralPieces() if stream.isatty() else None
        self._last = "\n"

    def step(self, step: Step) -> None:
        """Show a step."""
        if self._form == "text":
            self._write(self._literal.next(step.text) if self._literal else step.text)
        elif self._form == "jsonl":
            self._write(safe_json(step_report(step)) + "\n")

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
