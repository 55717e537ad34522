"""Running the chat in a terminal."""

from __future__ import annotations

import logging
import logging.handlers
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from localspec.tui.app import ChatApp
from localspec.tui.backend import Prepare, engine_loader
from localspec.tui.native_output import native_output_to

if TYPE_CHECKING:
    from localspec.engine.engine import Engine, EngineSettings, Options

_LOGGERS = ("localspec.tui", "localspec.llama")
_LOG_BYTES = 1_000_000


def run_chat(
    engine_settings: EngineSettings | Prepare,
    options: Options | Callable[[Engine], Options],
    *,
    system: str | None,
    log_file: Path,
) -> int:
    """Show the chat until the person leaves, and return the exit code: 0, or 1 after a bug (its traceback is printed).

    `engine_settings` and `options` may be functions, called behind the screen on the engine's thread: the first with
    the callbacks of `fetch_starter`, to find or fetch what to load, the second with the loaded engine. A UserError from
    either is shown in the screen. What the app and native code log goes to `log_file`.
    """
    app = ChatApp(engine_loader(engine_settings, options, system))
    handler = _log_to(log_file)
    try:
        with native_output_to(log_file):
            try:
                app.run()
            finally:
                app.worker.close()
                app.worker.join()
    finally:
        _stop_logging(handler)
    return app.return_code or 0


def _log_to(log_file: Path) -> logging.Handler:
    try:
        log_file.parent.mkdir(parents=True, exist_ok=True)
        handler: logging.Handler = logging.handlers.RotatingFileHandler(
            log_file, maxBytes=_LOG_BYTES, backupCount=1, encoding="utf-8", errors="backslashreplace"
        )
    except OSError:
        handler = logging.NullHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
    handler.setLevel(logging.INFO)
    for name in _LOGGERS:
        logging.getLogger(name).addHandler(handler)
    return handler


def _stop_logging(handler: logging.Handler) -> None:
    for name in _LOGGERS:
        logging.getLogger(name).removeHandler(handler)
    handler.close()
