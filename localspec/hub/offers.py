"""What the catalog has to offer on a machine: for each pair the files to take, or taken already, and how they fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from localspec.hub.catalog import Catalog, CatalogFile, CatalogModel, Pair
from localspec.hub.fit import Sized, Verdict, best_pair, verdict
from localspec.hub.machine import Machine
from localspec.hub.remote import quantization_of
from localspec.hub.resolve import InstalledModel, installed_as, installed_draft


@dataclass(frozen=True, slots=True)
class Choice:
    """One model of a pair, and the file of it to use."""

    model: CatalogModel
    quantization: str
    """As in "Q4_K_M"; empty where the installed file's name does not say."""
    bytes: int
    """Size of the file, all parts together."""
    file: CatalogFile | None
    """As the catalog has it; None for an installed file that it does not have."""
    installed: InstalledModel | None
    """None where it is still to be downloaded."""

    @property
    def missing_bytes(self) -> int:
        """What is to be downloaded."""
        return 0 if self.installed else self.bytes

    @property
    def sized(self) -> Sized:
        """The model as far as memory goes."""
        return Sized(self.model.shape, self.bytes)


@dataclass(frozen=True, slots=True)
class Offer:
    """A pair on a machine."""

    pair: Pair
    target: Choice
    draft: Choice
    verdict: Verdict

    @property
    def is_installed(self) -> bool:
        """Whether both are there."""
        return self.target.installed is not None and self.draft.installed is not None

    @property
    def missing_bytes(self) -> int:
        """What is to be downloaded."""
        return self.target.missing_bytes + self.draft.missing_bytes


def offers(catalog: Catalog, found: Sequence[InstalledModel], machine: Machine) -> list[Offer]:
    """All pairs of the catalog, in its order. Of a model that is installed the best file that is, else the one to
    download on this machine."""
    return [offer(pair, catalog, found, machine) for pair in catalog.pairs]


def offer(pair: Pair, catalog: Catalog, found: Sequence[InstalledModel], machine: Machine) -> Offer:
    """One pair."""
    target_file, draft_file = best_pair(pair.target, pair.draft, machine)
    targets = installed_as(pair.target, found, catalog)
    target = _choice(pair.target, target_file, targets[0] if targets else None)
    draft = _choice(pair.draft, draft_file, installed_draft(pair.draft, found, catalog))
    return Offer(pair, target, draft, verdict(target.sized, draft.sized, machine))


def _choice(model: CatalogModel, file: CatalogFile, ours: InstalledModel | None) -> Choice:
    if ours is None:
        return Choice(model, file.quantization, file.bytes, file, None)
    known = next((item for item in model.files if item.name.casefold() == ours.path.name.casefold()), None)
    quantization = known.quantization if known else quantization_of(ours.path.name)
    return Choice(model, quantization, ours.bytes, known, ours)
