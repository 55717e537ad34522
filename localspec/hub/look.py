"""A model on the hub by its header, a few megabytes of it, before anything is downloaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from localspec.engine.errors import UserError
from localspec.engine.gguf import GgufHeader
from localspec.hub.compatible import read_remote_header
from localspec.hub.hub_client import Hub
from localspec.hub.reference import HubReference
from localspec.hub.remote import RemoteModel, models_of, usual
from localspec.hub.resolve import InstalledModel
from localspec.hub.suggest import LEAST_RATIO, Suggestion, matching, smaller_by


@dataclass(frozen=True)
class Look:
    """What the hub shows of a model."""

    reference: HubReference
    model: RemoteModel
    header: GgufHeader
    drafts: tuple[Suggestion, ...]
    """Installed models that could draft for it."""
    targets: tuple[InstalledModel, ...]
    """Installed models that it could draft for."""


def look(reference: HubReference, found: Sequence[InstalledModel], hub: Hub) -> Look:
    """The model that `reference` means, in the usual quantization where it names none. Raises UserError."""
    models = models_of(hub.files(reference))
    meant = [model for model in models if _is_meant(model, reference)]
    if not meant:
        offered = (
            f"it has {', '.join(model.quantization or model.name for model in models)}" if models else "it has none"
        )
        raise UserError(f"{reference.repository} holds no such .gguf file as {reference} means: {offered}.")
    model = usual(meant)
    file = model.files[0]
    header = read_remote_header(partial(hub.read_range, file), file.size, file.name)
    smaller = [item for item in found if item.bytes * LEAST_RATIO <= model.bytes]
    larger = [item for item in found if item.bytes >= model.bytes * LEAST_RATIO]
    drafts = (
        Suggestion(item.name, item.path, smaller_by(model.bytes / item.bytes)) for item in matching(header, smaller)
    )
    return Look(reference, model, header, tuple(drafts), tuple(matching(header, larger)))


def _is_meant(model: RemoteModel, reference: HubReference) -> bool:
    if reference.file:
        return reference.file.casefold() in (file.path.casefold() for file in model.files)
    return not reference.quantization or reference.quantization.casefold() == model.quantization.casefold()
