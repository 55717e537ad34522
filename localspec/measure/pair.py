"""A pair for measurements, made from one small model alone.

The target is the small model with blocks appended that change nothing: copies of real blocks whose attention output and
feed-forward output are all zero, so that each adds zero to what passes through it. The text stays the small model's, the
cost grows with every block. The draft is the same model with seeded Gaussian noise on its weights, quantized further.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from localspec.engine.errors import ModelError, UserError
from localspec.engine.gguf import inspect
from localspec.engine.llama import quantize

if TYPE_CHECKING:
    from gguf import GGUFReader, GGUFWriter, ReaderField, ReaderTensor

EXTRA_BLOCKS = 210
"""With SmolLM2-135M: a target of 0.94 GB and eight times the cost."""
NOISE = 0.1
"""With SmolLM2-135M: a draft that agrees with two of three greedy tokens of the target; 56 % on open questions, 83 % on code
to edit."""

_WRITES = ("attn_output.weight", "ffn_down.weight")
"""The only two matrices of a block whose output is added to what passes through it."""

_QUANTIZATION = re.compile(r"[.-](I?Q\d\w*|F16|F32|BF16)$", re.IGNORECASE)

PairProgress = Callable[[str, float], None]
"""Called with what is being made ("target", "draft") and the share done, 0 to 1."""


def make_pair(
    source: Path,
    folder: Path,
    *,
    extra_blocks: int = EXTRA_BLOCKS,
    noise: float = NOISE,
    seed: int = 0,
    progress: PairProgress | None = None,
) -> tuple[Path, Path]:
    """Make target and draft out of the model `source`, in `folder`; returns their paths.

    `noise`: in standard deviations of each block matrix. Files that are there and whole are kept: their names hold every
    parameter. Raises UserError without the gguf package, ModelError for a model whose blocks are of another kind.
    """
    target = make_target(source, folder, extra_blocks, progress=progress)
    return target, make_draft(source, folder, noise=noise, seed=seed, progress=progress)


def make_target(source: Path, folder: Path, extra_blocks: int = 0, *, progress: PairProgress | None = None) -> Path:
    """The model in Q8_0 with `extra_blocks` blocks that change nothing. Without any it writes the same text, cheaper."""
    name = f"{_stem(source)}-target-q8_0-extra{extra_blocks}.gguf"
    path = folder / name
    if _is_whole(path):
        return path
    gguf = _gguf()
    folder.mkdir(parents=True, exist_ok=True)
    if extra_blocks == 0:
        return quantize(source, path, "Q8_0")
    with _scratch(folder / f"{name}.plain") as plain:
        quantize(source, plain, "Q8_0")
        reader = gguf.GGUFReader(plain)
        tensors = list(_with_extra_blocks(reader, extra_blocks))
        blocks = {_block_count_key(reader): _block_count(reader) + extra_blocks}
        return _write(path, reader, tensors, blocks, lambda share: progress and progress("target", share))


def make_draft(
    source: Path, folder: Path, *, noise: float = NOISE, seed: int = 0, progress: PairProgress | None = None
) -> Path:
    """The model with `noise` standard deviations of Gaussian noise on every block matrix, in Q4_0."""
    name = f"{_stem(source)}-draft-q4_0-noise{noise:g}-seed{seed}.gguf"
    path = folder / name
    if _is_whole(path):
        return path
    gguf = _gguf()
    folder.mkdir(parents=True, exist_ok=True)
    with _scratch(folder / f"{name}.plain") as plain, _scratch(folder / f"{name}.noisy") as noisy:
        quantize(source, plain, "F16")
        reader = gguf.GGUFReader(plain)
        tensors = [_Tensor(tensor.name, tensor, noise=_noise_of(tensor, noise, seed)) for tensor in reader.tensors]
        _write(noisy, reader, tensors, {}, lambda share: progress and progress("draft", share))
        return quantize(noisy, path, "Q4_0")


class _Tensor:
    """One tensor to write: which one of the source, under which name, zeroed or with noise."""

    def __init__(
        self,
        name: str,
        source: "ReaderTensor",
        *,
        zero: bool = False,
        noise: Callable[[NDArray[Any]], NDArray[Any]] | None = None,
    ) -> None:
        self.name, self.source = name, source
        self._zero, self._noise = zero, noise

    def data(self) -> NDArray[Any]:
        """Its values, made when they are written and not before."""
        values: NDArray[Any] = self.source.data
        if self._zero:
            # In every quantization a block of zero bytes has the scale 0.
            return np.zeros_like(values)
        return self._noise(values) if self._noise else values


def _with_extra_blocks(reader: "GGUFReader", extra: int) -> Iterator[_Tensor]:
    """The tensors of the source, then those of the extra blocks, which take the real blocks in turn."""
    by_block: dict[int, list[tuple[str, ReaderTensor]]] = {}
    for tensor in reader.tensors:
        yield _Tensor(tensor.name, tensor)
        if tensor.name.startswith("blk."):
            _, number, part = tensor.name.split(".", 2)
            by_block.setdefault(int(number), []).append((part, tensor))
    count = _block_count(reader)
    for index in range(extra):
        block = by_block.get(index % count, [])
        if not {part for part, _ in block}.issuperset(_WRITES):
            raise ModelError("A target can only be enlarged where every block has attention; choose a plain model.")
        for part, tensor in block:
            yield _Tensor(f"blk.{count + index}.{part}", tensor, zero=part in _WRITES)


def _noise_of(tensor: "ReaderTensor", noise: float, seed: int) -> Callable[[NDArray[Any]], NDArray[Any]] | None:
    """What adds the noise to a tensor; None for those that stay as they are."""
    if not noise or not tensor.name.startswith("blk.") or len(tensor.shape) != 2 or 1 in tensor.shape:
        return None
    # Every tensor has its own numbers: none depends on which tensors came before it.
    random = np.random.default_rng([seed, *tensor.name.encode()])

    def add(values: NDArray[Any]) -> NDArray[Any]:
        exact = values.astype(np.float32)
        normal = random.standard_normal(exact.shape, dtype=np.float32)
        noisy: NDArray[Any] = (exact + np.float32(noise) * exact.std() * normal).astype(values.dtype)
        return noisy

    return add


def _write(
    path: Path,
    reader: "GGUFReader",
    tensors: list[_Tensor],
    changed: dict[str, int],
    progress: Callable[[float], object],
) -> Path:
    """Write a file with the metadata of `reader`, but for `changed`, one tensor after the other."""
    architecture = _text(reader, "general.architecture")
    part = path.with_name(path.name + ".part")
    writer = _gguf().GGUFWriter(part, architecture)
    try:
        _copy_metadata(reader, writer, changed)
        for tensor in tensors:
            data = tensor.source.data
            writer.add_tensor_info(tensor.name, data.shape, data.dtype, data.nbytes, tensor.source.tensor_type)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        for number, tensor in enumerate(tensors, start=1):
            writer.write_tensor_data(tensor.data())
            progress(number / len(tensors))
        writer.close()
        return part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _copy_metadata(reader: "GGUFReader", writer: "GGUFWriter", changed: dict[str, int]) -> None:
    array = _gguf().GGUFValueType.ARRAY
    for field in reader.fields.values():
        # The writer gives these itself.
        if field.name == "general.architecture" or field.name.startswith("GGUF."):
            continue
        value = changed.get(field.name, field.contents())
        element = field.types[-1] if field.types[0] == array else None
        writer.add_key_value(field.name, value, field.types[0], sub_type=element)


def _block_count_key(reader: "GGUFReader") -> str:
    return f"{_text(reader, 'general.architecture')}.block_count"


def _block_count(reader: "GGUFReader") -> int:
    return int(_field(reader, _block_count_key(reader)).contents())


def _text(reader: "GGUFReader", key: str) -> str:
    return str(_field(reader, key).contents())


def _field(reader: "GGUFReader", key: str) -> "ReaderField":
    field = reader.get_field(key)
    if field is None:
        raise ModelError(f"The model file does not say its {key}; choose another one.")
    return field


def _is_whole(path: Path) -> bool:
    try:
        inspect(path)
    except ModelError:
        return False
    return True


def _stem(source: Path) -> str:
    """The file's name without its quantization: "a-model.Q4_1.gguf" is a-model."""
    return _QUANTIZATION.sub("", source.stem)


@contextmanager
def _scratch(path: Path) -> Iterator[Path]:
    """A file that is gone afterwards."""
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def _gguf() -> ModuleType:
    try:
        import gguf
    except ImportError as error:
        raise UserError(
            "Making a bench pair needs the gguf package; install it with: pip install 'localspec[bench]'"
        ) from error
    return gguf
