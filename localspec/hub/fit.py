"""Whether a model, or a pair, fits into a machine's memory, and with what context and how many layers on the GPU."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from localspec.engine.context_length import DEFAULT_CONTEXT
from localspec.hub.machine import Machine
from localspec.hub.need import AS_DRAFT, AS_TARGET, Need, need, padded
from localspec.hub.shape import ModelShape

__all__ = ["Need", "Sized", "Verdict", "best_file", "best_pair", "need", "pair_bytes", "verdict"]

ALL_LAYERS = -1
SHORTEST = 2048
"""Tokens: nobody chats with a shorter context than this, unless the model has no more or it is asked for."""
_ROUND = 1024
"""Shortened contexts are multiples of so many tokens, where they can be."""
_COMFORTABLE = 0.85
"""Share of the memory that a pair may take with a quantization of 4 bits, to be downloaded without being asked for."""
_ABUNDANT = 0.5
"""The same for more bits: they cost speed, so that they are worth it only where memory is plenty."""
_MOST_BITS = 8
"""Weights with more bits than these answer the same, only slower."""
_FEWEST_BITS = 4
_UNKNOWN_SHARE = 1.15
"""What a model takes with its context where only the size of its file is known, as a multiple of that."""
_BITS = re.compile(r"(?:\b|_)(?:IQ|Q|TQ|MXFP|NVFP)(\d)|(?:\b|_)(?:B?F)(16|32)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Sized:
    """A model as far as memory goes."""

    shape: ModelShape
    weight_bytes: int
    """Size of its file, all parts together."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a model or a pair fits into a machine."""

    text: str
    """One of "fits", "fits with context N", "partly on the GPU: N layers" and "does not fit"."""
    context: int
    """Tokens to open the contexts with; where it does not fit, what was wanted."""
    gpu_layers: int
    """Layers of the target to put on the GPU, -1 for all, and of the draft model as many as it has of them."""
    bytes: int
    """What the pair takes then, in all memories together."""

    @property
    def fits(self) -> bool:
        """Whether it can be used at all."""
        return self.text != "does not fit"


class QuantizedFile(Protocol):
    """One quantization of a model, as a catalog or a hub has it."""

    @property
    def quantization(self) -> str:
        """As in "Q4_K_M"."""

    @property
    def bytes(self) -> int:
        """Size, all parts together."""


File = TypeVar("File", bound=QuantizedFile)
File_co = TypeVar("File_co", bound=QuantizedFile, covariant=True)


class Quantized(Protocol[File_co]):
    """A model with a choice of files."""

    @property
    def shape(self) -> ModelShape | None:
        """Its measures, None where nobody knows them."""

    @property
    def files(self) -> Sequence[File_co]:
        """Its quantizations."""


def pair_bytes(target: Sized, draft: Sized | None, context: int, kv_type: str = "f16") -> int:
    """What a pair takes with contexts of `context` tokens, in all memories together. The draft's cache is always f16."""
    return sum(each.total for _shape, each in _needs(target, draft, context, kv_type))


def verdict(
    target: Sized,
    draft: Sized | None,
    machine: Machine,
    context: int | None = None,
    kv_type: str = "f16",
    gpu_layers: int | None = None,
) -> Verdict:
    """How the pair, or the target alone, fits.

    `context`: tokens that it must have; None: what the target was trained with, at most DEFAULT_CONTEXT, or fewer where
    so many do not fit. `gpu_layers`: layers that must be on the GPU, -1 for all; None: as many as fit.
    """
    wanted = wanted_context(target.shape, context)
    pair = _Pair(target, draft, machine, kv_type)
    shortest = wanted if context else min(wanted, SHORTEST)

    def longest(fits: Callable[[int], bool]) -> int:
        return _longest(wanted, shortest, fits)

    layers, length = ALL_LAYERS, 0
    if not machine.has_gpu or gpu_layers == 0:
        layers, length = 0 if machine.has_gpu else ALL_LAYERS, longest(pair.fits_in_memory)
    elif gpu_layers is None:
        layers, length = _most_layers(pair, longest)
    elif 0 < gpu_layers <= pair.layers:
        layers, length = gpu_layers, longest(lambda length: pair.is_split_well(length, gpu_layers))
    else:
        length = longest(pair.fits_on_gpu)
    if not length:
        return Verdict("does not fit", wanted, 0, pair.bytes(wanted))
    text = "fits" if length == wanted else f"fits with context {length}"
    if layers > 0:
        text = f"partly on the GPU: {layers} layers"
    return Verdict(text, length, layers, pair.bytes(length))


def wanted_context(shape: ModelShape, context: int | None) -> int:
    """The length of a context where memory does not matter."""
    return padded(context or min(shape.trained_context or DEFAULT_CONTEXT, DEFAULT_CONTEXT))


def best_file(model: Quantized[File], machine: Machine, draft: Sized | None = None) -> File:
    """The quantization to download where none is asked for, with `draft` beside it.

    At least 4 bits, more of them where memory is plenty; fewer where 4 do not fit; the smallest where nothing does. Raises
    ValueError for a model without files.
    """
    files = sorted(model.files, key=lambda file: file.bytes)
    if not files:
        raise ValueError("there is no file to choose")
    room = machine.gpu or machine.memory
    good = [file for file in files if _FEWEST_BITS <= bits(file.quantization) <= _MOST_BITS]
    sized = {id(file): _sized(model.shape, file) for file in files}
    verdicts = {id(file): verdict(sized[id(file)], draft, machine) for file in files}

    def is_comfortable(file: File) -> bool:
        share = _COMFORTABLE if bits(file.quantization) <= _FEWEST_BITS else _ABUNDANT
        found = verdicts[id(file)]
        return found.text == "fits" and found.bytes <= room * share

    def is_whole(file: File) -> bool:
        return verdicts[id(file)].fits and verdicts[id(file)].gpu_layers == ALL_LAYERS

    comfortable = [file for file in good if is_comfortable(file)]
    if comfortable:
        return comfortable[-1]
    preferred = sorted(good, key=lambda file: (not _is_mixed(file.quantization), file.bytes))
    fewer = [file for file in reversed(files) if bits(file.quantization) <= _MOST_BITS and file not in good]
    for usable in (is_whole, lambda file: verdicts[id(file)].fits):
        for file in (*preferred, *fewer):
            if usable(file):
                return file
    return files[0]


def best_pair(target: Quantized[File], draft: Quantized[File], machine: Machine) -> tuple[File, File]:
    """The quantizations of a target and its draft model to download, together: the draft's is the smallest good one, since it
    has to be fast, and a target that is given the last word keeps every answer as good."""
    choices = sorted(draft.files, key=lambda file: file.bytes)
    good = [file for file in choices if bits(file.quantization) >= _FEWEST_BITS]
    mixed = [file for file in good if _is_mixed(file.quantization)]
    small = (mixed or good or choices)[0]
    return best_file(target, machine, _sized(draft.shape, small)), small


def bits(quantization: str) -> int:
    """Bits of a weight by the name of the quantization, without scales; 16 where the name does not say."""
    found = _BITS.search(quantization)
    return int(found[1] or found[2]) if found else 16


class _Pair:
    """The memory of a pair by the length of its contexts, and what of it goes where."""

    def __init__(self, target: Sized, draft: Sized | None, machine: Machine, kv_type: str) -> None:
        self._target, self._draft, self._machine, self._kv_type = target, draft, machine, kv_type
        self.layers = target.shape.layers

    def bytes(self, length: int) -> int:
        """All of it."""
        return pair_bytes(self._target, self._draft, length, self._kv_type)

    def fits_in_memory(self, length: int) -> bool:
        """Whether all of it fits into the system's memory."""
        return self.bytes(length) <= self._machine.memory

    def fits_on_gpu(self, length: int) -> bool:
        """Whether all of it fits on the GPU."""
        return self.bytes(length) <= self._machine.gpu and (not self._machine.unified or self.fits_in_memory(length))

    def is_split_well(self, length: int, layers: int) -> bool:
        """Whether it fits with so many layers of each model on the GPU and the rest in the system's memory."""
        return self._has_place(_split(self._needs(length), layers))

    def best_split(self, length: int) -> int:
        """The most layers of each model on the GPU with which it fits, 0 where there are none."""
        needs = self._needs(length)
        return next((layers for layers in range(self.layers, 0, -1) if self._has_place(_split(needs, layers))), 0)

    def _has_place(self, split: tuple[int, int]) -> bool:
        on_gpu, in_memory = split
        both = on_gpu + in_memory if self._machine.unified else in_memory
        return on_gpu <= self._machine.gpu and both <= self._machine.memory

    def _needs(self, length: int) -> list[tuple[ModelShape, Need]]:
        return _needs(self._target, self._draft, length, self._kv_type)


def _split(needs: list[tuple[ModelShape, Need]], layers: int) -> tuple[int, int]:
    """Bytes on the GPU and in the system's memory.

    llama.cpp counts the output as a layer, which is the first to be moved, and leaves the embeddings of the tokens where
    they are (llama_model::load_tensors). A pass that crosses over needs its buffers on both sides.
    """
    on_gpu = in_memory = 0
    for shape, each in needs:
        moved = (min(layers, shape.layers + 1) - 1) / max(1, shape.layers)
        output = _output_share(shape)
        share = output + (1 - 2 * output) * moved
        cache = int(each.cache * moved)
        on_gpu += int(each.weights * share) + cache + each.compute
        in_memory += int(each.weights * (1 - share)) + each.cache - cache + each.compute + each.outputs
    return on_gpu, in_memory


def _most_layers(pair: _Pair, longest: Callable[[Callable[[int], bool]], int]) -> tuple[int, int]:
    """How many layers to put on the GPU, -1 for all, and the context that goes with them: 0 where nothing fits."""
    if length := longest(pair.fits_on_gpu):
        return ALL_LAYERS, length
    if length := longest(lambda length: pair.best_split(length) > 0):
        return pair.best_split(length), length
    return 0, longest(pair.fits_in_memory)


def _longest(wanted: int, shortest: int, fits: Callable[[int], bool]) -> int:
    """The longest context from `shortest` to `wanted` that `fits`, a round number where it is not `wanted`; else 0."""
    if fits(wanted):
        return wanted
    rounded = range((wanted - 1) // _ROUND * _ROUND, shortest - 1, -_ROUND)
    return next((length for length in rounded if fits(length)), 0)


def _needs(target: Sized, draft: Sized | None, context: int, kv_type: str) -> list[tuple[ModelShape, Need]]:
    """What each model takes, as the engine opens it."""
    found = [(target.shape, need(target.shape, target.weight_bytes, context, kv_type, opening=AS_TARGET))]
    if draft:
        found.append((draft.shape, need(draft.shape, draft.weight_bytes, context, "f16", opening=AS_DRAFT)))
    return found


def _output_share(shape: ModelShape) -> float:
    """The share of the weights that the embeddings of the tokens are, and the output as well."""
    head = (shape.heads + shape.kv_heads) * (shape.key_length + shape.value_length)
    inner = 3 * shape.feed_forward * max(1, shape.experts)
    layers = shape.layers * shape.embedding * (head + inner)
    tokens = shape.vocabulary * shape.embedding
    return tokens / max(1, layers + 2 * tokens)


def _sized(shape: ModelShape | None, file: QuantizedFile) -> Sized:
    if shape is None:
        return Sized(ModelShape(0, 0, 0, 0, 0, 0, 0, 0, 0), int(file.bytes * _UNKNOWN_SHARE))
    return Sized(shape, file.bytes)


def _is_mixed(quantization: str) -> bool:
    """Whether it is one of the mixtures that keep the important weights at more bits."""
    return "_K" in quantization.upper()
