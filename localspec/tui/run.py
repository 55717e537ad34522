"""Running the chat in a terminal."""

from __future__ import annotations

from pathlib import Path

from localspec.chat_start import wanted as wanted_by
from localspec.logs import log_to_file
from localspec.settings import Settings, find_folders, load_app_settings
from localspec.tui.app import ChatApp
from localspec.tui.backend import Wanted, process_loader
from localspec.tui.choosing import Choosing
from localspec.tui.hangup import leave_with_the_terminal
from localspec.tui.native_output import native_output_to


def run_chat(
    wanted: Wanted,
    *,
    log_file: Path,
    data: Path | None = None,
    goes_on: bool = False,
    start: Settings | None = None,
) -> int:
    """Show the chat until the person leaves, and return the exit code: 0, or 1 after a bug (its traceback is printed).

    What `wanted` says is loaded behind the screen, in a process of its own: a UserError there is shown in the screen. What
    the app and native code log goes to `log_file`, LOG_FILE in the folder of logs. Chats are kept in the folder `data`, if
    one is given; `goes_on` opens the last of them. `start`: the settings that `wanted` was made from; without them the
    models cannot be changed.
    """
    log_to_file(log_file.parent, "localspec.tui", "localspec.llama")
    folders = find_folders()
    choosing = Choosing(folders, lambda settings: process_loader(wanted_by(settings, folders), log_file))
    app = ChatApp(
        process_loader(wanted, log_file),
        data,
        wanted.cache,
        goes_on=goes_on,
        start=start,
        look=load_app_settings(),
        choosing=choosing if start else None,
    )
    leave_with_the_terminal()
    with native_output_to(log_file):
        try:
            app.run()
        finally:
            app.worker.close()
            if app.downloads:
                app.downloads.close()
            app.worker.join()
            app.close_store()
    return app.return_code or 0
