"""`localspec run`: one answer on stdout."""

import json
import logging
import os
import sys
from collections.abc import Callable
from contextlib import closing
from logging.handlers import RotatingFileHandler
from typing import Protocol, TextIO

from localspec.chat.conversation import Conversation
from localspec.chat.messages import Document
from localspec.engine.engine import Engine
from localspec.engine.errors import UserError
from localspec.engine.llama import LOGGER_NAME, LoadCancelledError
from localspec.engine.step import Finish, Step
from localspec.hub.starter import FetchCancelledError
from localspec.launch import engine_settings, options
from localspec.report import answer_report, step_report
from localspec.settings import Folders, Settings, make_private

EXIT_OK, EXIT_INTERRUPTED = 0, 130

_CONTROLS = {code: None for code in range(0x20) if chr(code) not in "\n\t"} | {0x7F: None}
_CONTROLS |= dict.fromkeys(range(0x80, 0xA0))
"""What a model may write, but a terminal must not obey."""


class Stoppable(Protocol):
    """A person's wish to stop."""

    requested: bool
    on_request: Callable[[], None]


def answer_once(
    prompt: str,
    piped: bytes | None,
    settings: Settings,
    folders: Folders,
    form: str,
    quiet: bool,
    interruption: Stoppable,
) -> int:
    """Load, answer, report. `form`: "text", "json" or "jsonl". Returns the exit code; raises UserError."""
    words, documents = _question(prompt, piped)
    _log_to_file(folders)
    progress = _Progress(sys.stderr, show=sys.stderr.isatty() and not quiet)
    try:
        with _load(settings, folders, progress, interruption) as engine:
            interruption.on_request = engine.stop
            return _answer(engine, words, documents, settings, form, quiet, progress)
    except (LoadCancelledError, FetchCancelledError):
        return EXIT_INTERRUPTED
    finally:
        progress.clear()


def _question(prompt: str, piped: bytes | None) -> tuple[str, tuple[Document, ...]]:
    """The words and what was piped in: a document beside a prompt, or the prompt itself."""
    text = _decode(piped) if piped else ""
    if not prompt.strip() and not text.strip():
        raise UserError("The prompt is empty; write it behind the command: localspec run 'What is a monad?'")
    if not text.strip():
        return prompt, ()
    return (prompt, (Document("stdin", text),)) if prompt.strip() else (text, ())


def _decode(piped: bytes) -> str:
    try:
        return piped.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(
            f"The text on stdin is not UTF-8 (byte {error.start + 1} is 0x{piped[error.start]:02x}); "
            "convert it first, for example with: iconv -t UTF-8."
        ) from error


def _load(settings: Settings, folders: Folders, progress: "_Progress", interruption: Stoppable) -> Engine:
    def fetching(phase: str, done: int, total: int) -> None:
        progress.show_share(f"{phase} the starter model", done / total if total else 1.0)

    def loading(what: str, share: float) -> bool:
        progress.show_share(f"loading the {what}", share)
        return not interruption.requested

    return Engine(engine_settings(settings, folders, fetching, lambda: interruption.requested), loading)


def _answer(
    engine: Engine,
    words: str,
    documents: tuple[Document, ...],
    settings: Settings,
    form: str,
    quiet: bool,
    progress: "_Progress",
) -> int:
    conversation = Conversation(engine, settings.system)
    chosen = options(settings, engine)
    out = _Output(form, sys.stdout)

    def reading(done: int, total: int) -> None:
        progress.show_share("reading the prompt", done / total)

    steps = []
    try:
        with closing(conversation.ask(words, chosen, documents, reading)) as answer:
            for step in answer:
                progress.clear()
                steps.append(step)
                out.step(step)
        out.end(lambda: answer_report(engine, conversation.totals, steps, chosen))
    except BrokenPipeError:
        # Whoever read our output has seen enough; Python must not complain about it when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK
    finish = conversation.totals.finish
    if finish is Finish.CONTEXT and not quiet:
        print("localspec: The context is full, so the answer ends here; choose a larger --ctx.", file=sys.stderr)  # noqa: T201
    return EXIT_INTERRUPTED if finish is Finish.INTERRUPTED else EXIT_OK


class _Output:
    """The answer in one of three forms."""

    def __init__(self, form: str, stream: TextIO) -> None:
        self._form, self._stream = form, stream
        self._on_terminal = stream.isatty()
        self._last = "\n"

    def step(self, step: Step) -> None:
        """Show a step, at once."""
        if self._form == "text" and step.text:
            self._write(step.text.translate(_CONTROLS) if self._on_terminal else step.text)
        elif self._form == "jsonl":
            self._write(json.dumps(step_report(step), ensure_ascii=False) + "\n")

    def end(self, report: Callable[[], dict[str, object]]) -> None:
        """Close the answer: a last newline, or the whole report."""
        if self._form == "text" and not self._last.endswith("\n"):
            self._write("\n")
        elif self._form == "json":
            self._write(json.dumps(report(), ensure_ascii=False, indent=2, allow_nan=False) + "\n")

    def _write(self, text: str) -> None:
        self._stream.buffer.write(text.encode("utf-8", "replace"))
        self._stream.buffer.flush()
        self._last = text


class _Progress:
    """One line on stderr that says what is going on, on a terminal only."""

    def __init__(self, stream: TextIO, show: bool) -> None:
        self._stream, self._show, self._shown = stream, show, ""

    def show_share(self, what: str, share: float) -> None:
        """Say how far something is, 0 to 1."""
        line = f"{what} {share:4.0%}"
        if self._show and line != self._shown:
            self._stream.write(f"\r\x1b[K{line}")
            self._stream.flush()
            self._shown = line

    def clear(self) -> None:
        """Take the line away."""
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._shown = ""


def _log_to_file(folders: Folders) -> None:
    """What llama.cpp has to say goes to a file; an answer without a log is still an answer."""
    logger = logging.getLogger(LOGGER_NAME)
    if any(isinstance(handler, RotatingFileHandler) for handler in logger.handlers):
        return
    try:
        path = make_private(folders.logs) / "localspec.log"
        handler = RotatingFileHandler(path, maxBytes=1_000_000, backupCount=1, encoding="utf-8", delay=True)
    except (UserError, OSError):
        return
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
    logger.addHandler(handler)
