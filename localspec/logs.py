"""Where the log goes: a file, never the screen."""

import logging
import os
from io import FileIO, TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from localspec.console import one_line
from localspec.engine.errors import UserError
from localspec.literal import literal
from localspec.settings import make_private
from localspec.whole_file import open_private

LOG_FILE = "localspec.log"
_BYTES = 1_000_000


class _QuietHandler(RotatingFileHandler):
    """A full disk or a file that cannot be opened costs the log, not the answer."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  (logging's own name)
        """Say nothing."""

    def _open(self) -> TextIOWrapper:
        descriptor = open_private(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        return TextIOWrapper(FileIO(descriptor, "ab"), encoding=self.encoding, errors=self.errors, write_through=True)


class _LiteralFormatter(logging.Formatter):
    """A log is read on a terminal: a name in it can neither command that, nor look like another line."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  (logging's own name)
        """One record on one line."""
        return one_line(super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        """With what a traceback says below it."""
        return literal(super().format(record))


def log_to_file(folder: Path, *loggers: str) -> None:
    """Send what these loggers have to say to a file in `folder`, and nowhere else. Without such a folder there is no log."""
    handler: logging.Handler = logging.NullHandler()
    try:
        path = make_private(folder) / LOG_FILE
        handler = _QuietHandler(
            path, maxBytes=_BYTES, backupCount=1, encoding="utf-8", delay=True, errors="backslashreplace"
        )
    except (UserError, OSError):
        pass
    handler.setFormatter(_LiteralFormatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
    for name in loggers:
        logger = logging.getLogger(name)
        logger.propagate = False
        for old in logger.handlers[:]:
            logger.removeHandler(old)
            old.close()
        logger.addHandler(handler)
