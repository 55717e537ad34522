"""What the chat loads: functions that can be sent to another process, and import nothing heavy before they run there."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from localspec.chat.service import Wanted
from localspec.settings import Folders, Settings

if TYPE_CHECKING:
    from localspec.engine.engine import Engine, EngineSettings, Options


def wanted(settings: Settings, folders: Folders) -> Wanted:
    """What these settings ask for; it is found, or fetched, when it is loaded."""
    return Wanted(
        partial(_engine_settings, settings, folders),
        partial(_options, settings),
        settings.system,
        folders.cache,
    )


def _engine_settings(
    settings: Settings,
    folders: Folders,
    progress: Callable[[str, int, int], None],
    cancelled: Callable[[], bool],
) -> EngineSettings:
    from localspec.launch import engine_settings

    return engine_settings(settings, folders, progress, cancelled)


def _options(settings: Settings, engine: Engine) -> Options:
    from localspec.launch import options

    return options(settings, engine)
