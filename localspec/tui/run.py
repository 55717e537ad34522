"""Running the chat in a terminal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from localspec.logs import log_to_file
from localspec.tui.app import ChatApp
from localspec.tui.backend import Prepare, engine_loader
from localspec.tui.native_output import native_output_to

if TYPE_CHECKING:
    from localspec.engine.engine import Engine, EngineSettings, Options


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
    either is shown in the screen. What the app and native code log goes to `log_file`, LOG_FILE in the folder of logs.
    """
    log_to_file(log_file.parent, "localspec.tui", "localspec.llama")
    app = ChatApp(engine_loader(engine_settings, options, system))
    with native_output_to(log_file):
        try:
            app.run()
        finally:
            app.worker.close()
            app.worker.join()
    return app.return_code or 0
