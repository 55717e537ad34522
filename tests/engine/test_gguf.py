"""The GGUF header: what is read from it, against the gguf package and ggml, and the KV cache it implies."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from pathlib import Path

import gguf
import llama_cpp
import pytest

import tiny
from gguf_bytes import header_of, pair
from localspec.engine import gguf_format
from localspec.engine.gguf import ArrayInfo, inspect, kv_bytes_per_token, read_header

TOKENS = "tokenizer.ggml.tokens"


@pytest.mark.parametrize("kind", ["tiny_llama", "tiny_gemma", "tiny_lfm2", "tiny_mamba"])
def test_agrees_with_the_reader_of_the_gguf_package(kind: str, request: pytest.FixtureRequest) -> None:
    path: Path = request.getfixturevalue(kind)
    header, reader = inspect(path), gguf.GGUFReader(path)
    # The package's reader lists the three numbers of the file header as fields of their own.
    theirs = {key: field.contents() for key, field in reader.fields.items() if not key.startswith("GGUF.")}
    ours = {key: list(value) if isinstance(value, tuple) else value for key, value in header.metadata.items()}
    assert ours == theirs
    assert (header.version, header.tensors, header.data_offset) == (3, len(reader.tensors), reader.data_offset)
    assert header.data_end == max(tensor.data_offset + tensor.n_bytes for tensor in reader.tensors)
    assert header.size == path.stat().st_size


def test_sizes_of_tensor_types_agree_with_ggml() -> None:
    ggml = llama_cpp.llama_cpp._lib
    ggml.ggml_type_size.restype = ctypes.c_size_t
    ggml.ggml_blck_size.restype = ctypes.c_int64
    theirs = {kind: (ggml.ggml_blck_size(kind), ggml.ggml_type_size(kind)) for kind in gguf_format._BLOCKS}
    assert theirs == gguf_format._BLOCKS
    assert {int(kind) for kind in gguf.GGMLQuantizationType} == set(gguf_format._BLOCKS)


def test_properties(tiny_llama: Path) -> None:
    header = inspect(tiny_llama)
    assert (header.architecture, header.context_length, header.block_count) == ("llama", 2048, 2)
    assert (header.embedding_length, header.vocabulary_size) == (64, tiny.VOCABULARY_SIZE)
    assert header.chat_template == tiny.CHAT_TEMPLATE
    assert header.arch("attention.head_count_kv") == 1
    assert header.arch("no.such.key", 7) == 7


def test_names_and_named_templates(tmp_path: Path) -> None:
    extra = {"general.name": "Ä model", "tokenizer.chat_template.tool_use": "T", "tokenizer.chat_template": "D"}
    header = inspect(tiny.llama(tmp_path / "m.gguf", extra=extra))
    assert (header.name, header.chat_template, header.chat_templates) == ("Ä model", "D", {"tool_use": "T"})


def test_properties_of_the_wrong_type_are_absent(tmp_path: Path) -> None:
    extra = {"llama.context_length": "long", "llama.block_count": True, "general.name": 3}
    header = read_header(tiny.llama(tmp_path / "m.gguf", extra=extra))
    assert (header.context_length, header.block_count, header.name) == (None, None, None)


def long_arrays(path: Path) -> tuple[Path, list[str]]:
    recipe = tiny.llama_recipe()
    recipe.tokens += [f"word{number}" for number in range(2000)]
    recipe.types += [1] * 2000
    return recipe.write(path, extra={"llama.short": list(range(1024))}), recipe.tokens


def test_long_arrays_are_counted_and_short_ones_kept(tmp_path: Path) -> None:
    path, tokens = long_arrays(tmp_path / "m.gguf")
    header = inspect(path)
    assert header.metadata[TOKENS] == ArrayInfo(len(tokens), "string")
    assert header.metadata["tokenizer.ggml.token_type"] == ArrayInfo(len(tokens), "int32")
    assert header.metadata["llama.short"] == tuple(range(1024))
    assert header.vocabulary_size == len(tokens)


def test_a_long_array_is_kept_when_asked_for(tmp_path: Path) -> None:
    path, tokens = long_arrays(tmp_path / "m.gguf")
    header = read_header(path, keep={TOKENS})
    assert header.metadata[TOKENS] == tuple(tokens)
    assert header.metadata["tokenizer.ggml.token_type"] == ArrayInfo(len(tokens), "int32")


@pytest.mark.parametrize("chunk", [1, 7, 8, 61])
def test_the_size_of_a_read_changes_nothing(chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, _ = long_arrays(tmp_path / "m.gguf")
    whole = read_header(path), read_header(path, keep={TOKENS})
    monkeypatch.setattr(gguf_format, "_CHUNK", chunk)
    assert (read_header(path), read_header(path, keep={TOKENS})) == whole


def test_every_scalar_type_is_read(tmp_path: Path) -> None:
    values: list[tuple[int, str, float]] = [
        *((0, "B", 200), (1, "b", -5), (2, "H", 60000), (3, "h", -3000), (4, "I", 1 << 31), (5, "i", -7)),
        *((6, "f", 0.5), (7, "?", True), (10, "Q", 1 << 63), (11, "q", -(1 << 40)), (12, "d", 0.1)),
    ]
    pairs = [pair(f"k{kind}", kind, struct.pack(f"<{code}", value)) for kind, code, value in values]
    path = tmp_path / "m.gguf"
    path.write_bytes(header_of(*pairs))
    metadata = read_header(path).metadata
    assert metadata == {f"k{kind}": value for kind, _, value in values}
    assert metadata["k7"] is True


def test_text_that_is_not_utf8_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(header_of(pair("general.name", 8, struct.pack("<Q", 2) + b"a\xff")))
    assert read_header(path).name == "a\ufffd"


# Memory of the KV cache


@pytest.mark.parametrize(("kind", "bytes_"), [("llama", 256), ("gemma3", 384), ("lfm2", 128), ("mamba", 0)])
def test_kv_bytes_of_the_memory_kinds(kind: str, bytes_: int, tmp_path: Path) -> None:
    # One KV head 32 wide: 128 bytes in f16 for every layer that has a cache (2, 3, 1 and none).
    build: Callable[[Path], Path] = getattr(tiny, kind)
    assert kv_bytes_per_token(inspect(build(tmp_path / "m.gguf")), 2, 2) == bytes_


def test_kv_bytes_by_type(tiny_llama: Path) -> None:
    assert kv_bytes_per_token(inspect(tiny_llama), 34 / 32, 34 / 32) == 2 * (34 + 34)
    assert kv_bytes_per_token(inspect(tiny_llama), 2, 34 / 32) == 2 * (64 + 34)


@pytest.mark.parametrize(
    ("extra", "bytes_"),
    [
        ({"llama.attention.key_length": 48, "llama.attention.value_length": 16}, 8 * (96 + 32)),
        ({"llama.full_attention_interval": 4}, 2 * 128),
        ({"llama.attention.shared_kv_layers": 3}, 5 * 128),
        ({"llama.attention.head_count_kv": [1, 0, 2, 0, 1, 0, 2, 0]}, 6 * 128),
        ({"llama.attention.head_count": [4] * 8}, 8 * 64),
    ],
)
def test_kv_bytes_of_unusual_layers(extra: dict[str, object], bytes_: int, tmp_path: Path) -> None:
    # Values as metadata states them; no tensors are read, so they need not fit these.
    path = tiny.llama(tmp_path / "m.gguf", extra={"llama.block_count": 8, **extra})
    assert kv_bytes_per_token(inspect(path), 2, 2) == bytes_


def test_kv_heads_default_to_the_heads(tmp_path: Path) -> None:
    path = tiny.llama(tmp_path / "m.gguf", drop={"llama.attention.head_count_kv"})
    assert kv_bytes_per_token(inspect(path), 2, 2) == 2 * 2 * 128
