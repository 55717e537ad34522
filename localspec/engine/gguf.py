"""What a GGUF file says about itself, read without loading it: metadata, sizes, and why it cannot be used.

Only the header is read, and only as much of it as is asked for, so that a model of any size answers in a fraction of a
second. The file is not trusted: no number in it leads to more memory or time than its size allows.
"""

from __future__ import annotations

import math
import re
import stat
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from localspec.engine.errors import ModelError
from localspec.engine.gguf_format import (
    ArrayInfo,
    Cursor,
    CutShortError,
    DamagedError,
    Value,
    read_tensor,
    read_value,
)
from localspec.engine.gguf_numbers import impossible

__all__ = [
    "ArrayInfo",
    "GgufHeader",
    "Value",
    "check_loadable",
    "inspect",
    "kv_bytes_per_token",
    "parts",
    "read_header",
    "read_header_of",
]

_VERSIONS = (2, 3)
_MAX_PAIRS = 1 << 16
_POSITIONS = "position_embd.weight"
_PART = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$")
_OTHER_FORMATS = {
    b"PK\x03\x04": "a zip archive or a PyTorch file",
    b"\x1f\x8b": "a gzip archive",
    b"version https": "a pointer to a large file that was not downloaded",
    b"lmgg": "an old GGML file",
    b"fmgg": "an old GGML file",
    b"tjgg": "an old GGML file",
    b"\x80": "a Python pickle",
    b"{": "a JSON file",
    b"<": "a web page",
}
_ENCODERS = {
    "bert",
    "modern-bert",
    "nomic-bert",
    "nomic-bert-moe",
    "neo-bert",
    "jina-bert-v2",
    "jina-bert-v3",
    "eurobert",
    "gemma-embedding",
    "llama-embed",
    "t5encoder",
}
_NO_TOKENIZER = {"none", "no_vocab"}
_NOT_TEXT = {
    "adapter": "an adapter for another model",
    "mmproj": "the image or sound part of a model",
    "clip": "the image or sound part of a model",
    "imatrix": "a table of importance figures for quantizing",
    "controlvector": "a control vector for another model",
}


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """The header of one GGUF file."""

    path: Path
    version: int
    metadata: Mapping[str, Value]
    """All pairs by full key, as in "llama.context_length"; long arrays as `ArrayInfo`."""
    tensors: int
    """How many tensors this file holds."""
    data_offset: int
    """Where the tensor data starts (bytes)."""
    data_end: int
    """Where the last tensor ends (bytes), by the tensor table; 0 without tensors."""
    size: int
    """Size of the file (bytes)."""
    has_position_table: bool = False
    """Whether it holds learned positions (GPT-2, StarCoder), of which there are only as many as it was trained with."""

    @property
    def architecture(self) -> str:
        """As in "llama" or "qwen3"; empty where the file does not say."""
        return self._text("general.architecture") or ""

    @property
    def name(self) -> str | None:
        """The name its maker gave the model."""
        return self._text("general.name")

    @property
    def context_length(self) -> int | None:
        """How many tokens the model was trained to read."""
        return self._count("context_length")

    @property
    def block_count(self) -> int | None:
        """How many layers it has."""
        return self._count("block_count")

    @property
    def embedding_length(self) -> int | None:
        """The width of a layer's input (elements)."""
        return self._count("embedding_length")

    @property
    def vocabulary_size(self) -> int | None:
        """How many tokens the vocabulary has."""
        tokens = self.metadata.get("tokenizer.ggml.tokens")
        if isinstance(tokens, tuple):
            return len(tokens)
        return tokens.count if isinstance(tokens, ArrayInfo) else None

    @property
    def chat_template(self) -> str | None:
        """The Jinja source of the default chat template."""
        return self._text("tokenizer.chat_template")

    @property
    def chat_templates(self) -> Mapping[str, str]:
        """The Jinja sources of the named chat templates ("tool_use", "rag"), without the default one."""
        start = "tokenizer.chat_template."
        return {key[len(start) :]: text for key in self.metadata if key.startswith(start) and (text := self._text(key))}

    def arch(self, key: str, default: Value | None = None) -> Value | None:
        """The value of "{architecture}.{key}"."""
        return self.metadata.get(f"{self.architecture}.{key}", default)

    def _text(self, key: str) -> str | None:
        value = self.metadata.get(key)
        return value if isinstance(value, str) else None

    def _count(self, key: str) -> int | None:
        value = self.arch(key)
        return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def inspect(path: Path) -> GgufHeader:
    """The header of a model file that llama.cpp may be asked to load; ModelError for every other file."""
    header = read_header(path)
    check_loadable(header)
    return header


def read_header(path: Path, *, keep: Collection[str] = ()) -> GgufHeader:
    """The header of any whole GGUF file.

    Arrays of more than 1024 elements are counted and skipped, except those whose keys are in `keep` (vocabularies: as
    "tokenizer.ggml.tokens"). Raises ModelError for a file that is missing, unreadable, not a GGUF of version 2 or 3,
    damaged, or cut short.
    """
    size = _file_size(path)
    try:
        with path.open("rb") as file:
            header = _read(path, file, size, keep)
    except OSError as error:
        raise ModelError(f"{path} cannot be read ({error.strerror}); check the file and its permissions.") from error
    if header.data_end > header.size:
        held, whole = _amount(header.size), _amount(header.data_end)
        raise ModelError(f"{path.name} is cut short: it holds {held} of {whole}; download it again.")
    return header


def read_header_of(file: BinaryIO, size: int, name: str, *, keep: Collection[str] = ()) -> GgufHeader:
    """The header of a GGUF that is read through `file`, `size` bytes long and called `name`, wherever it lies.

    Only as much is read as the header takes; whether the rest is there is not looked at. `keep` as in `read_header`.
    Raises ModelError, and OSError as `file` does.
    """
    return _read(Path(name), file, size, keep)


def _file_size(path: Path) -> int:
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:  # ValueError: a zero byte in the path
        raise ModelError(f"{path} does not exist; check the path.") from error
    except OSError as error:
        raise ModelError(f"{path} cannot be read ({error.strerror}); check the path and its permissions.") from error
    if not stat.S_ISREG(status.st_mode):
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
        raise ModelError(f"{path} is {kind}; give the path of a file that ends in .gguf.")
    return status.st_size


def _read(path: Path, file: BinaryIO, size: int, keep: Collection[str]) -> GgufHeader:
    _check_magic(path, file.read(256))
    cursor = Cursor(file, size)
    try:
        cursor.skip(4)
        version = _read_version(path, cursor)
        tensors, pairs = cursor.u64(), cursor.u64()
        metadata = _read_metadata(cursor, pairs, keep)
        end, has_positions = _read_tensors(cursor, tensors)
        alignment = metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment <= 0 or alignment & (alignment - 1):
            raise DamagedError("its alignment is not a power of two")
    except CutShortError as error:
        raise ModelError(
            f"{path.name} is cut short or damaged: it ends inside its header; download it again."
        ) from error
    except DamagedError as error:
        raise ModelError(f"{path.name} is damaged: {error}; download it again.") from error
    start = -(-cursor.position // alignment) * alignment
    return GgufHeader(path, version, metadata, tensors, start, start + end if end else 0, size, has_positions)


def _read_metadata(cursor: Cursor, pairs: int, keep: Collection[str]) -> dict[str, Value]:
    if pairs > _MAX_PAIRS:
        raise DamagedError(f"it claims to hold {pairs} metadata values")
    metadata: dict[str, Value] = {}
    for _ in range(pairs):
        key = cursor.string()
        if not key or key in metadata:
            raise DamagedError("two of its metadata keys are equal" if key else "one of its metadata keys is empty")
        metadata[key] = read_value(cursor, keep=key in keep)
    return metadata


def _read_tensors(cursor: Cursor, count: int) -> tuple[int, bool]:
    """Where the last tensor ends in the tensor data (bytes), and whether one of them is a table of positions."""
    end, has_positions = 0, False
    for _ in range(count):
        name, tensor_end = read_tensor(cursor)
        end = max(end, tensor_end)
        has_positions = has_positions or name == _POSITIONS
    return end, has_positions


def _check_magic(path: Path, head: bytes) -> None:
    if head.startswith(b"GGUF"):
        return
    if not head:
        raise ModelError(f"{path.name} is empty; download it again.")
    looks = next((what for magic, what in _OTHER_FORMATS.items() if head.lstrip().startswith(magic)), None)
    if looks is None and head[8:9] == b"{":
        looks = "a safetensors file"
    hint = f" (it looks like {looks})" if looks else ""
    raise ModelError(f"{path.name} is not a GGUF model file{hint}; give the path of a file that ends in .gguf.")


def _read_version(path: Path, cursor: Cursor) -> int:
    version = cursor.u32()
    if version in _VERSIONS:
        return version
    if version and version & 0xFFFF == 0:
        raise ModelError(
            f"{path.name} is written for big-endian machines; download a little-endian GGUF of this model."
        )
    age = "too old" if version < min(_VERSIONS) else "newer than this localspec"
    raise ModelError(f"{path.name} has GGUF version {version}, which is {age}; download a GGUF of version 2 or 3.")


def check_loadable(header: GgufHeader) -> None:
    """Raise ModelError for a file that holds no text-generating model, or only a part of one."""
    name = header.path.name
    kind = header.metadata.get("general.type")
    what = _NOT_TEXT.get(header.architecture) or (_NOT_TEXT.get(kind) if isinstance(kind, str) else None)
    if what:
        raise ModelError(f"{name} is {what}; give the GGUF file of the model itself.")
    if not header.architecture:
        raise ModelError(f"{name} does not say which architecture it is; download a complete GGUF of this model.")
    _check_parts(header)
    if header.metadata.get("tokenizer.ggml.model") in _NO_TOKENIZER:
        raise ModelError(
            f"{name} has no vocabulary, without which nothing can be written; give another GGUF of this model."
        )
    if header.tensors == 0 and len(parts(header)) == 1:
        raise ModelError(f"{name} holds a vocabulary but no weights; give the GGUF file of a whole model.")
    if header.architecture in _ENCODERS or _number(header.arch("pooling_type"), 0) > 0:
        raise ModelError(f"{name} is an embedding model, which cannot write text; give a chat model.")
    if header.arch("attention.causal", True) is False or header.architecture == "t5":
        raise ModelError(f"{name} does not write text one token after the other; give a chat model of another kind.")
    _check_numbers(header)


def _check_numbers(header: GgufHeader) -> None:
    """Refuse the numbers on which llama.cpp ends the process, or with which no context can be opened."""
    for what in impossible(header.arch):
        raise ModelError(f"{header.path.name} is damaged: its {what}; download it again.")


def parts(header: GgufHeader) -> tuple[Path, ...]:
    """The files of the model whose first file this is, in order: itself alone unless the model is split."""
    match = _PART.search(header.path.name)
    if match is None or header.metadata.get("split.count") != int(match[2]):
        return (header.path,)
    stem, count = header.path.name[: match.start()], int(match[2])
    return tuple(header.path.with_name(f"{stem}-{number:05}-of-{count:05}.gguf") for number in range(1, count + 1))


def _check_parts(header: GgufHeader) -> None:
    number, count = header.metadata.get("split.no", 0), header.metadata.get("split.count", 0)
    if not isinstance(number, int) or not isinstance(count, int) or count <= 1:
        return
    name, files = header.path.name, parts(header)
    if len(files) != count:
        raise ModelError(
            f"{name} is one of {count} parts; name them as in model-00001-of-{count:05}.gguf, in one folder."
        )
    if number != 0 or header.path != files[0]:
        raise ModelError(f"{name} is part {number + 1} of {count}; give the first part, {files[0].name}.")
    for file in files[1:]:
        if not file.exists():
            raise ModelError(f"{name} needs {file.name} beside it; put all {count} parts into one folder.")
        read_header(file)


def kv_bytes_per_token(header: GgufHeader, bytes_k: float, bytes_v: float) -> int:
    """What one more token takes in the KV cache (bytes), over all layers.

    `bytes_k` and `bytes_v` are bytes per element: 2 for f16, 34/32 for q8_0. Layers with a recurrent state instead of a
    cache take nothing. Sliding windows are counted as full layers, so that the result errs on the large side.
    """
    key, value = head_widths(header)
    heads = header.arch("attention.head_count", 0)
    return math.ceil(_cached_heads(header, heads) * (key * bytes_k + value * bytes_v))


def head_widths(header: GgufHeader) -> tuple[int, int]:
    """Elements of one head's key and of its value."""
    width, heads = header.embedding_length or 0, header.arch("attention.head_count", 0)
    most_heads = max(_counts(heads), default=0)
    head = width // most_heads if most_heads else 0
    key = _number(header.arch("attention.key_length"), head)
    return key, _number(header.arch("attention.value_length"), head)


def _cached_heads(header: GgufHeader, heads: Value | None) -> int:
    """KV heads of all layers that have a cache of their own."""
    per_layer = header.arch("attention.head_count_kv", heads)
    shared = _number(header.arch("attention.shared_kv_layers"), 0)
    layers = max(0, (header.block_count or 0) - shared)
    if isinstance(per_layer, tuple):
        return sum(_counts(per_layer)[:layers])
    # In these hybrids only every interval-th layer is attention (qwen3next, qwen35).
    interval = _number(header.arch("full_attention_interval"), 1) or 1
    return _number(per_layer, 0) * (layers // interval)


def _number(value: Value | None, default: int) -> int:
    return value if isinstance(value, int) and value >= 0 else default


def _counts(value: Value | None) -> list[int]:
    items = value if isinstance(value, tuple) else (value,)
    return [_number(item, 0) for item in items]


def _amount(size: int) -> str:
    for unit, bytes_ in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if size >= bytes_:
            return f"{size / bytes_:.1f} {unit}"
    return f"{size} bytes"
