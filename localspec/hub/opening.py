"""With what context, and how many layers on the GPU, the models of a run are opened so that they fit this machine now."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from localspec.engine.errors import ModelError
from localspec.engine.gguf import GgufHeader, inspect, parts
from localspec.hub.fit import ALL_LAYERS, SHORTEST, Sized, Verdict, verdict, wanted_context
from localspec.hub.machine import Machine, this_machine
from localspec.hub.shape import shape_of


@dataclass(frozen=True, slots=True)
class Chosen:
    """How to open the models."""

    context: int | None
    """Tokens; None: as many as without any look at the memory."""
    gpu_layers: int
    """-1 for all."""
    note: str = ""
    """A sentence about what had to be reduced; empty where nothing was."""


def choose(
    target: Path,
    draft: Path | None,
    context: int | None,
    gpu_layers: int | None,
    kv_type: str,
    machine: Machine | None = None,
) -> Chosen:
    """What fits. `context` and `gpu_layers` are what a person asked for, and stay as they are; None: what fits. `machine`:
    None for this one."""
    given = Chosen(context, ALL_LAYERS if gpu_layers is None else gpu_layers)
    if context is not None and gpu_layers is not None:
        return given
    try:
        sized, beside = sized_file(target), sized_file(draft) if draft else None
    except (ModelError, OSError):
        # The engine says what is wrong with it.
        return given
    place = machine or this_machine()
    found = verdict(sized, beside, place, context, kv_type, gpu_layers)
    wanted = wanted_context(sized.shape, context)
    if not found.fits:
        layers = 0 if place.has_gpu and gpu_layers is None else given.gpu_layers
        # Whoever asks for a context knows best; one that cannot be had at all is refused when it is opened.
        note = "" if context else _too_large(target, found, place)
        return Chosen(context or min(wanted, SHORTEST), layers, note)
    shortened = found.context if found.context < wanted else None
    layers = found.gpu_layers if gpu_layers is None else given.gpu_layers
    return Chosen(context or shortened, layers, _note(target, sized, found, wanted, gpu_layers is None))


def sized_file(path: Path) -> Sized:
    """A model in a file, with all its parts. Raises ModelError."""
    header = inspect(path)
    return Sized(shape_of(header), weight_bytes(header))


def weight_bytes(header: GgufHeader) -> int:
    """The size of all files of a model."""
    return sum(file.stat().st_size for file in parts(header))


def _too_large(target: Path, found: Verdict, machine: Machine) -> str:
    free = machine.memory if machine.unified else machine.memory + machine.gpu
    return (
        f"{target.stem} needs {found.bytes / 1e9:.1f} GB of memory with a context of {found.context} tokens, and "
        f"{free / 1e9:.1f} GB are free, so that it may be very slow or fail; close other programs, or choose a smaller model."
    )


def _note(target: Path, sized: Sized, found: Verdict, wanted: int, layers_are_ours: bool) -> str:
    changes = []
    if layers_are_ours and found.gpu_layers != ALL_LAYERS:
        changes.append(f"{found.gpu_layers} of its {sized.shape.layers} layers are on the GPU")
    if found.context < wanted:
        changes.append(f"the context has {found.context} tokens instead of {wanted}")
    if not changes:
        return ""
    what = " and ".join(changes)
    return f"To fit {target.stem} into the memory that is free, {what}; --ctx and --gpu-layers overrule this."
