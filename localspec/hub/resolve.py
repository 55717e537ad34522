"""From the name a person gives a model to the file it is in."""

import contextlib
import difflib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from localspec.engine.errors import ModelError, UserError
from localspec.hub.catalog import Catalog, CatalogModel, Pair, load_catalog
from localspec.hub.fit import bits
from localspec.hub.listing import listing
from localspec.hub.origins import names_from, read_origins
from localspec.hub.reference import HubReference, parse_reference
from localspec.hub.remote import quantization_of
from localspec.hub.starter import STARTER

_SUFFIX = ".gguf"
_PART = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf", re.IGNORECASE)
_FEWEST_BITS = 4
"""A draft model with weights of fewer bits guesses much worse."""
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


def resolve(ref: str, models: Path, catalog: Callable[[], Catalog] = load_catalog) -> Path:
    """The file that `ref` means: a path to a .gguf, the name of a model installed in `models`, or of a model or pair of
    the catalog that is installed there, in the best quantization that is.

    Names are matched without regard to case, whole ones first, then beginnings that only one model has. Raises
    ModelError where `ref` means nothing, more than one model, or something that is not installed.
    """
    if not ref.strip():
        raise ModelError("The model's name is empty: give the path of a .gguf file or the name of an installed model.")
    path = Path(ref).expanduser() if ref.startswith("~/") else Path(ref)
    is_gguf = ref.lower().endswith(_SUFFIX)
    # A bare word is a name, even where the current folder holds a file called so.
    if _is_file(path) and (is_gguf or "/" in ref):
        return _checked_part(path)
    if "/" not in ref:
        return _checked_part(_named(ref, models, catalog))
    if parse_reference(ref) and not _is_folder(Path(ref.split("/")[0])) and not (is_gguf and ref.count("/") == 1):
        return _checked_part(_from_the_hub(ref, models, catalog))
    if _is_folder(path):
        raise ModelError(f"{ref} is a folder: give the path of a .gguf file in it.")
    raise ModelError(
        f"There is no file {_shown(ref)}: give the path of a .gguf file or the name of an installed model"
        f"{_offer(models)}."
    )


def installed_as(model: CatalogModel, found: Iterable[InstalledModel], catalog: Catalog) -> list[InstalledModel]:
    """The installed files of a model of the catalog, the best quantization, which is the largest, first."""
    ours = [item for item in found if catalog.model_of(item.path) == model]
    return sorted(ours, key=lambda item: item.bytes, reverse=True)


def installed_draft(model: CatalogModel, found: Iterable[InstalledModel], catalog: Catalog) -> InstalledModel | None:
    """The installed file of a draft model to use: the smallest of 4 bits and more, since a draft model has to be fast."""
    ours = installed_as(model, found, catalog)
    good = [item for item in ours if bits(quantization_of(item.path.name)) >= _FEWEST_BITS]
    return (good or ours)[-1] if ours else None


def paired_draft(ref: str, models: Path, catalog: Callable[[], Catalog] = load_catalog) -> Path | None:
    """The draft model that goes with `ref`, where that is the name of a pair and its draft model is installed."""
    pair = pair_meant(ref, models, catalog)
    draft = installed_draft(pair.draft, installed(models), catalog()) if pair else None
    return draft.path if draft else None


def pair_meant(ref: str, models: Path, catalog: Callable[[], Catalog] = load_catalog) -> Pair | None:
    """The pair that `ref` names; None where it is a path, or an installed model's own name."""
    if "/" in ref or ref.lower().endswith(_SUFFIX):
        return None
    if any(item.name.casefold() == ref.casefold() for item in installed(models)):
        return None
    pair = catalog().get(ref)
    return pair if isinstance(pair, Pair) else None


def installed_at(path: Path) -> InstalledModel:
    """The model whose first or only file is `path`, wherever that is."""
    part = _PART.fullmatch(path.name)
    name = part["stem"] if part else path.name.removesuffix(path.suffix)
    return InstalledModel(name, path, sum(file.stat().st_size for file in parts_of(path) if _is_file(file)))


def _named(ref: str, models: Path, catalog: Callable[[], Catalog]) -> Path:
    name = ref[: -len(_SUFFIX)] if ref.lower().endswith(_SUFFIX) else ref
    found = installed(models)
    # Part 1 of a split model may be called by its file name as well.
    whole = [model for model in found if name.casefold() in (model.name.casefold(), model.path.stem.casefold())]
    exact = [model for model in whole if name in (model.name, model.path.stem)]
    known = None if whole else catalog().get(name)
    if known is not None:
        model = known.target if isinstance(known, Pair) else known
        whole = installed_as(model, found, catalog())[:1]
    matches = exact or whole or [model for model in found if model.name.casefold().startswith(name.casefold())]
    if len(matches) == 1:
        return matches[0].path
    if matches:
        raise ModelError(f"{ref} could be {listing([model.name for model in matches], 'or')}: give more of the name.")
    if known is None:
        with contextlib.suppress(UserError):
            known = catalog().find(name)
    if known is not None:
        raise ModelError(f"{known.name} is not installed: localspec pull {known.name} downloads it.")
    if problem := catalog().problem:
        raise ModelError(problem)
    raise ModelError(
        f"No model called {_shown(ref)} is installed: give the path of a .gguf file or the name of an installed model"
        f"{_offer(models, name)}."
    )


def _from_the_hub(ref: str, models: Path, catalog: Callable[[], Catalog]) -> Path:
    """The installed file that a hub reference means: by where it came from, else, for files that were put there by hand, by
    its name, or by what the catalog says of its repository; of several the largest."""
    reference = parse_reference(ref)
    assert reference is not None
    found, names = installed(models), names_from(models, reference)
    ours = [item for item in found if item.path.name in names]
    if not ours:
        known = read_origins(models)
        ours = _by_hand(reference, [item for item in found if item.path.name not in known], catalog)
    if not ours:
        raise ModelError(f"{_shown(ref)} is not installed: localspec pull {_shown(ref)} downloads it.")
    return max(ours, key=lambda item: item.bytes).path


def _by_hand(
    reference: HubReference, found: list[InstalledModel], catalog: Callable[[], Catalog]
) -> list[InstalledModel]:
    if reference.file:
        name = reference.file.rpartition("/")[2].casefold()
        return [item for item in found if item.path.name.casefold() == name]
    known, wanted = catalog(), (reference.quantization or "").casefold()
    return [
        item
        for model in known.models
        if model.repository.casefold() == reference.repository.casefold()
        for item in installed_as(model, found, known)
        if not wanted or quantization_of(item.path.name).casefold() == wanted
    ]


def _offer(models: Path, name: str = "") -> str:
    """A clause with the installed names, those like `name` if there are any."""
    found = installed(models)
    if not found:
        return f" (there is none in {models})"
    by_key = {model.name.casefold(): model for model in found}
    near = [by_key[key] for key in difflib.get_close_matches(name.casefold(), by_key)]
    return f" ({'the nearest: ' if near else ''}{listing([model.name for model in near or found])})"


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


def parts_of(path: Path) -> list[Path]:
    """All files of the model whose first or only file is `path`, whether they are there or not."""
    part = _PART.fullmatch(path.name)
    return _parts(path, part) if part else [path]


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
