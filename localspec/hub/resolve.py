"""From the name a person gives a model to the file it is in."""

import difflib
import re
from dataclasses import dataclass
from pathlib import Path

from localspec.engine.errors import ModelError
from localspec.hub.starter import STARTER

_SUFFIX = ".gguf"
_PART = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf", re.IGNORECASE)
_HUB = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+(:[\w.-]+|(/[\w.-]+)+\.gguf)?", re.ASCII | re.IGNORECASE)
_LISTED = 8
_SHOWN_CHARACTERS = 200


@dataclass(frozen=True)
class InstalledModel:
    """A model in the models folder."""

    name: str
    """File name without .gguf, and without the part number of a split model."""
    path: Path
    """The file, or the first part of a split model."""
    bytes: int
    """Size, all parts together."""


def installed(models: Path) -> list[InstalledModel]:
    """The models in the folder `models`, by name; of split models those whose first part is there."""
    found = []
    for path in _files(models):
        part = _PART.fullmatch(path.name)
        if part and int(part["number"]) != 1:
            continue
        files = [file for file in _parts(path, part) if _is_file(file)] if part else [path]
        name = part["stem"] if part else path.name[: -len(_SUFFIX)]
        found.append(InstalledModel(name, path, sum(file.stat().st_size for file in files)))
    return sorted(found, key=lambda model: (model.name.casefold(), model.name))


def default_model(models: Path) -> Path | None:
    """The model to use when none is named: the starter model if it is installed, else the first by name."""
    found = installed(models)
    for model in found:
        if model.path.name == STARTER.file:
            return model.path
    return found[0].path if found else None


def resolve(ref: str, models: Path) -> Path:
    """The file that `ref` means: a path to a .gguf, or the name of a model installed in `models`.

    Names are matched without regard to case, whole ones first, then beginnings that only one model has. Raises
    ModelError where `ref` means nothing, more than one model, or a hub reference.
    """
    if not ref.strip():
        raise ModelError("The model's name is empty: give the path of a .gguf file or the name of an installed model.")
    path = Path(ref).expanduser() if ref.startswith("~/") else Path(ref)
    is_gguf = ref.lower().endswith(_SUFFIX)
    # A bare word is a name, even where the current folder holds a file called so.
    if _is_file(path) and (is_gguf or "/" in ref):
        return _checked_part(path)
    if "/" not in ref:
        return _checked_part(_named(ref, models))
    if _HUB.fullmatch(ref) and not _is_folder(Path(ref.split("/")[0])) and not (is_gguf and ref.count("/") == 1):
        raise ModelError(
            f"{ref} is a hub reference, and localspec does not download those: download the .gguf file and give its "
            "path."
        )
    if _is_folder(path):
        raise ModelError(f"{ref} is a folder: give the path of a .gguf file in it.")
    raise ModelError(
        f"There is no file {_shown(ref)}: give the path of a .gguf file or the name of an installed model"
        f"{_offer(models)}."
    )


def _named(ref: str, models: Path) -> Path:
    name = ref[: -len(_SUFFIX)] if ref.lower().endswith(_SUFFIX) else ref
    found = installed(models)
    # Part 1 of a split model may be called by its file name as well.
    whole = [model for model in found if name.casefold() in (model.name.casefold(), model.path.stem.casefold())]
    exact = [model for model in whole if name in (model.name, model.path.stem)]
    matches = exact or whole or [model for model in found if model.name.casefold().startswith(name.casefold())]
    if len(matches) == 1:
        return matches[0].path
    if matches:
        raise ModelError(f"{ref} could be {_listing(matches, 'or')}: give more of the name.")
    raise ModelError(
        f"No model called {_shown(ref)} is installed: give the path of a .gguf file or the name of an installed model"
        f"{_offer(models, name)}."
    )


def _offer(models: Path, name: str = "") -> str:
    """A clause with the installed names, those like `name` if there are any."""
    found = installed(models)
    if not found:
        return f" (there is none in {models})"
    by_key = {model.name.casefold(): model for model in found}
    near = [by_key[key] for key in difflib.get_close_matches(name.casefold(), by_key)]
    return f" ({'the nearest: ' if near else ''}{_listing(near or found, 'and')})"


def _listing(found: list[InstalledModel], joint: str) -> str:
    names = [model.name for model in found[:_LISTED]]
    if len(found) > _LISTED:
        names.append(f"{len(found) - _LISTED} more")
    return f" {joint} ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _checked_part(path: Path) -> Path:
    """`path` unless it is a later part of a split model, or a first part with others missing."""
    part = _PART.fullmatch(path.name)
    if not part:
        return path
    parts = _parts(path, part)
    if int(part["number"]) != 1:
        raise ModelError(
            f"{path} is part {int(part['number'])} of a split model: give its first part, {parts[0].name}."
        )
    for file in parts:
        if not _is_file(file):
            raise ModelError(f"{file} is missing: put all {len(parts)} parts of the model in one folder.")
    return path


def _parts(path: Path, part: re.Match[str]) -> list[Path]:
    """All parts of the split model that `path` is a part of."""
    count, suffix = int(part["count"]), path.suffix
    return [path.with_name(f"{part['stem']}-{i:05}-of-{count:05}{suffix}") for i in range(1, max(count, 1) + 1)]


def _files(models: Path) -> list[Path]:
    try:
        return [path for path in models.iterdir() if path.suffix.lower() == _SUFFIX and _is_file(path)]
    except OSError:
        return []


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _shown(ref: str) -> str:
    return ref if len(ref) <= _SHOWN_CHARACTERS else ref[:_SHOWN_CHARACTERS] + "…"
