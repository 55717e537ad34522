"""Where the log goes: a file, never the screen."""

import logging
from logging.handlers import RotatingFileHandler
from pathlib import Path

from localspec.engine.errors import UserError
from localspec.settings import make_private

LOG_FILE = "localspec.log"
_BYTES = 1_000_000


class _QuietHandler(RotatingFileHandler):
    """A full disk or a file that cannot be opened costs the log, not the answer."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  (logging's own name)
        """Say nothing."""


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
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
    for name in loggers:
        logger = logging.getLogger(name)
        logger.propagate = False
        for old in logger.handlers[:]:
            logger.removeHandler(old)
            old.close()
        logger.addHandler(handler)
