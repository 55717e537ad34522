"""Where the files in the models folder have come from."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from localspec.engine.errors import UserError
from localspec.hub.reference import HubReference
from localspec.hub.remote import RemoteFile, quantization_of
from localspec.settings import make_private
from localspec.whole_file import locked, read_entries, write_whole

ORIGINS_FILE = ".origins.json"


@dataclass(frozen=True)
class Origin:
    """The hub's words for a file in the models folder."""

    repository: str
    path: str
    """In the repository."""
    commit: str
    etag: str
    size: int


def read_origins(folder: Path) -> dict[str, Origin]:
    """What is known, by file name. Files that were put there by hand are missing, and a damaged list counts as empty."""
    found = {}
    for name, entry in read_entries(folder / ORIGINS_FILE).items():
        with contextlib.suppress(TypeError):
            found[name] = Origin(**entry)
    return found


def is_here(target: Path, file: RemoteFile) -> bool:
    """Whether `target` is the whole file: a file of this size that did not come from another content.

    A file that we fetched got its name only when it was whole, and one that a person put there is trusted.
    """
    try:
        if not target.is_file() or target.stat().st_size != file.size:
            return False
    except OSError:
        return False
    origin = origin_of(target)
    return origin is None or origin.etag == file.etag


def origin_of(target: Path) -> Origin | None:
    """Where a file comes from; None where nobody knows, or where another has taken its place by hand."""
    origin = read_origins(target.parent).get(target.name)
    with contextlib.suppress(OSError):
        if origin is not None and target.stat().st_size == origin.size:
            return origin
    return None


def record_origins(folder: Path, files: Mapping[str, RemoteFile]) -> None:
    """Remember where files, by their name in `folder`, come from, and forget those that are gone. Raises UserError."""
    try:
        make_private(folder)
        with locked(folder):
            known = {name: origin for name, origin in read_origins(folder).items() if (folder / name).exists()}
            for name, file in files.items():
                known[name] = Origin(file.repository, file.path, file.commit, file.etag, file.size)
            listed = {name: asdict(origin) for name, origin in known.items()}
            write_whole(folder / ORIGINS_FILE, (json.dumps(listed, indent=1) + "\n").encode())
    except OSError as error:
        raise UserError(
            f"{folder / ORIGINS_FILE} cannot be written ({error.strerror}): check the folder's permissions and its space."
        ) from error


def names_from(folder: Path, reference: HubReference) -> list[str]:
    """The names of the files in `folder` that a hub reference means, the first parts of split models only."""
    wanted = (reference.quantization or "").casefold()
    return [
        name
        for name, origin in read_origins(folder).items()
        if origin.repository.casefold() == reference.repository.casefold()
        and (not reference.file or origin.path.casefold() == reference.file.casefold())
        and (not wanted or quantization_of(origin.path).casefold() == wanted)
        and _is_first(name)
        and (folder / name).is_file()
    ]


def _is_first(name: str) -> bool:
    stem, _, count = name.lower().removesuffix(".gguf").rpartition("-of-")
    return not (len(count) == 5 and count.isdigit() and stem) or stem.endswith("-00001")
