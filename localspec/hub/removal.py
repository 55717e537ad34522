"""Deleting installed models: which files that means, and never one that another program owns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from localspec.engine.errors import ModelError, UserError
from localspec.hub.catalog import Catalog, CatalogModel, Pair
from localspec.hub.part import SUFFIX, remove_part, unfinished
from localspec.hub.resolve import InstalledModel, installed, installed_as, installed_at, parts_of, resolve


@dataclass(frozen=True, slots=True)
class Removal:
    """What is to be deleted, and what stays although it was meant."""

    models: tuple[InstalledModel, ...]
    files: tuple[Path, ...]
    """All their files, first parts last: a model that lost only some of its files is seen as missing a part, and can be
    removed again."""
    kept: tuple[tuple[InstalledModel, str], ...] = ()
    """Draft models that another installed target needs, and its name."""
    begun: tuple[Path, ...] = ()
    """Files of which a part has been downloaded that is to be deleted, by the names they would have got."""

    @property
    def bytes(self) -> int:
        """Size of all files."""
        return sum(model.bytes for model in self.models) + sum(map(_begun_bytes, self.begun))

    @property
    def names(self) -> tuple[str, ...]:
        """What it is called: a model that is here, and in words what was not yet."""
        here = tuple(model.name for model in self.models)
        started = dict.fromkeys(name for path in self.begun if (name := installed_at(path).name) not in here)
        return (*here, *(f"the unfinished download of {name}" for name in started))


def removal(name: str, folder: Path, catalog: Catalog) -> Removal:
    """What deleting `name` means: an installed model, or all installed files of a model or a pair of the catalog; and what
    has been downloaded of it and is not whole.

    A pair's draft model stays where another installed target needs it. Raises UserError where nothing is meant that is
    installed, more than one model, or a file outside `folder`.
    """
    if "/" in name:
        raise UserError(f"{name} is a path: give the name of an installed model, as localspec models shows it.")
    found = installed(folder)
    known = catalog.get(name)
    meant, kept = _meant(known, found, catalog)
    if not meant:
        # A split model of which parts are missing could not be used, but it can be deleted.
        same = [model for model in found if _plain(name) in (model.name.casefold(), model.path.stem.casefold())]
        meant = same if len(same) == 1 else []
    begun = _begun(name, known, meant, folder, catalog)
    if not meant and not begun:
        path = resolve(name, folder, lambda: catalog)
        meant = [model for model in found if model.path == path]
        begun = _begun(name, None, meant, folder, catalog)
    files: list[Path] = []
    for model in meant:
        _check_inside(model, folder)
        files += reversed([file for file in parts_of(model.path) if file.exists() or file.is_symlink()])
    return Removal(tuple(meant), tuple(files), tuple(kept), tuple(begun))


def delete(what: Removal) -> None:
    """Delete the files. Raises UserError for the first that cannot be; the rest stays."""
    # First what may be on its way now: nothing is deleted then.
    for target in what.begun:
        try:
            remove_part(target)
        except BlockingIOError:
            raise UserError(f"{target.name} is being downloaded now: stop that first.") from None
        except OSError as error:
            raise UserError(
                f"What has come of {target} cannot be deleted ({error.strerror}): check the folder's permissions."
            ) from error
    for file in what.files:
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            raise UserError(f"{file} cannot be deleted ({error.strerror}): check the folder's permissions.") from error


def _meant(
    known: Pair | CatalogModel | None, found: Sequence[InstalledModel], catalog: Catalog
) -> tuple[list[InstalledModel], list[tuple[InstalledModel, str]]]:
    if known is None:
        return [], []
    if isinstance(known, CatalogModel):
        return installed_as(known, found, catalog), []
    targets = installed_as(known.target, found, catalog)
    drafts = installed_as(known.draft, found, catalog)
    others = [
        pair.name
        for pair in catalog.pairs
        if pair.draft == known.draft and pair.target != known.target and installed_as(pair.target, found, catalog)
    ]
    if others and targets:
        return targets, [(draft, others[0]) for draft in drafts]
    return targets + drafts, []


def _begun(
    name: str,
    known: Pair | CatalogModel | None,
    meant: Sequence[InstalledModel],
    folder: Path,
    catalog: Catalog,
) -> list[Path]:
    """Files that have begun to come: of the models that are meant, of one with exactly this name, or of the catalog's."""
    stems = {path.name for model in meant for path in parts_of(model.path)}
    wanted = [known.target, known.draft] if isinstance(known, Pair) else [known]
    return [
        path
        for path in unfinished(folder)
        if path.name in stems
        or (known is not None and catalog.model_of(path) in wanted)
        or _plain(name) in (installed_at(path).name.casefold(), path.stem.casefold())
    ]


def _plain(name: str) -> str:
    return name.casefold().removesuffix(".gguf")


def _begun_bytes(target: Path) -> int:
    try:
        return target.with_name(target.name + SUFFIX).stat().st_size
    except OSError:
        return 0


def _check_inside(model: InstalledModel, folder: Path) -> None:
    # A link in the folder may be deleted, whatever it points to: the file itself stays.
    if model.path.parent.resolve() != folder.resolve():
        raise ModelError(
            f"{model.name} is used in place from {model.path.parent}, which belongs to another program: delete it there."
        )
