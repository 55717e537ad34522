"""What the app needs to change its models, and when it has to ask for one."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from localspec.chat.store import JSON
from localspec.engine.errors import UserError
from localspec.settings import GIVEN, Folders, Settings, origins
from localspec.tui.backend import Backend, Load, LoadReport
from localspec.tui.machine import known_machine
from localspec.tui.shelf import Shelf, ShelfReader

if TYPE_CHECKING:
    from localspec.hub.machine import Machine

_log = logging.getLogger("localspec.tui")
_SUFFIX = ".gguf"
_LOOK_SECONDS = 0.05


@dataclass(frozen=True)
class Choosing:
    """How models are found and loaded."""

    folders: Folders
    loader: Callable[[Settings], Load]
    """Loads what the settings ask for."""
    machine: Callable[[], Machine] = known_machine
    """Called on a thread."""


class LaterLoad:
    """Waits until there is something to load."""

    def __init__(self) -> None:
        self._chosen = threading.Event()
        self._load: Load | None = None

    def choose(self, load: Load) -> None:
        """Go on with this."""
        self._load = load
        self._chosen.set()

    def __call__(self, report: LoadReport) -> Backend:
        """On the engine's thread."""
        while not self._chosen.wait(_LOOK_SECONDS):
            if report.cancelled():
                raise UserError("No model was chosen.")
        assert self._load is not None
        return self._load(report)


def needs_a_model(settings: Settings, folders: Folders) -> bool:
    """Whether none is named and none installed: the person has to choose. Cheap, since the first paint waits for it."""
    if settings.model:
        return False
    try:
        return not any(path.suffix.lower() == _SUFFIX and path.is_file() for path in folders.models.iterdir())
    except OSError:
        return True


def pair_of(start: Settings, chat: Mapping[str, JSON]) -> Settings:
    """What a chat is answered with: the models that it names, else those of the start."""
    model, draft = chat.get("model"), chat.get("draft")
    model, draft = model if isinstance(model, str) else None, draft if isinstance(draft, str) else None
    if model:
        return replace(start, model=model, draft=draft)
    return replace(start, draft=draft) if draft else start


def first_pair(start: Settings, chat: Mapping[str, JSON]) -> Settings:
    """What to begin with where a chat is gone on with: what it names, unless a model was given on the command line."""
    return start if origins(start).get("model") == GIVEN else pair_of(start, chat)


def same_pair(one: Settings, other: Settings) -> bool:
    """Whether the two ask for the same models."""
    return (one.model, one.draft) == (other.model, other.draft)


def own_pair(start: Settings, wanted: Settings) -> dict[str, JSON]:
    """What a chat sets for itself to be answered with `wanted`: nothing where that is what it would get anyway."""
    return (
        {"model": None, "draft": None} if same_pair(start, wanted) else {"model": wanted.model, "draft": wanted.draft}
    )


def files_of(folders: Folders, settings: Settings) -> tuple[Path, ...]:
    """The files that `settings` ask for, the target's first; none where they ask for nothing that is here."""
    from localspec.hub.catalog import usable_catalog
    from localspec.hub.catalog_file import USER_CATALOG
    from localspec.hub.meant import meant

    try:
        found = meant(settings, folders.models, lambda: usable_catalog(folders.config / USER_CATALOG))
    except UserError:
        return ()
    return tuple(path.absolute() for path in (found.target, found.draft) if path)


def read_behind(choosing: Choosing, used: Sequence[Path], tell: Callable[[Shelf | str], object]) -> None:
    """Read the shelf on a thread. `tell` is called there: with the names, with all of it, or with a sentence."""

    def read() -> None:
        try:
            reader = ShelfReader(choosing.folders, used)
            tell(reader.list())
            tell(reader.judge(choosing.machine()))
        except UserError as error:
            tell(str(error))
        except Exception as error:
            _log.exception("the models cannot be listed")
            tell(f"The models cannot be listed ({type(error).__name__}: {error}); the log says more.")

    # A daemon: the machine takes its time, and nobody who leaves waits for that.
    threading.Thread(target=read, name="localspec-shelf", daemon=True).start()
