"""The GGUF header: what is refused and how, and that no file does worse than a refusal."""

from __future__ import annotations

import io
import os
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tiny
import tiny_bad
from gguf_bytes import header_of, pair, text_value
from localspec.engine.errors import ModelError
from localspec.engine.gguf import GgufHeader, check_loadable, inspect, kv_bytes_per_token, parts, read_header
from localspec.engine.gguf_format import Cursor, CutShortError

TOKENS = "tokenizer.ggml.tokens"
SMALLEST = header_of()


def refusal(path: Path, act: Callable[[Path], object] = inspect) -> str:
    """The sentence a person reads about this file."""
    with pytest.raises(ModelError) as caught:
        act(path)
    text = str(caught.value)
    assert text.endswith(".")
    assert ";" in text, "every refusal has a remedy after a semicolon"
    assert "\n" not in text
    return text


# What is refused


def test_missing(tmp_path: Path) -> None:
    assert "does not exist; check the path" in refusal(tmp_path / "none.gguf")
    assert "does not exist" in refusal(tmp_path / "a\0b.gguf")


def test_folder_and_pipe(tmp_path: Path) -> None:
    assert "is a folder; give the path of a file" in refusal(tmp_path)
    os.mkfifo(tmp_path / "pipe.gguf")  # opening it would wait for ever
    assert "not a regular file" in refusal(tmp_path / "pipe.gguf")


def test_unreadable(tmp_path: Path) -> None:
    assert "cannot be read (File name too long)" in refusal(tmp_path / ("x" * 5000))


@pytest.mark.parametrize(
    ("content", "looks"),
    [
        (b"some notes\n", "is not a GGUF model file; give"),
        (b"PK\x03\x04....", "looks like a zip archive"),
        (b"\n<!doctype html>", "looks like a web page"),
        (b'\x10\0\0\0\0\0\0\0{"a":1}', "looks like a safetensors file"),
        (b'{"a": 1}', "looks like a JSON file"),
        (b"version https://", "pointer to a large file"),
        (b"tjgg\x03\0\0\0", "an old GGML file"),
        (b"", "is empty; download it again"),
    ],
)
def test_not_a_gguf(content: bytes, looks: str, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    text = refusal(path)
    assert text.startswith("notes.txt is")
    assert looks in text


@pytest.mark.parametrize(
    ("version", "text"),
    [
        (b"\0\0\0\x03", "big-endian"),
        (b"\x01\0\0\0", "version 1, which is too old"),
        (b"\0\0\0\0", "version 0, which is too old"),
        (b"\x04\0\0\0", "version 4, which is newer"),
    ],
)
def test_versions(version: bytes, text: str, tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(b"GGUF" + version + SMALLEST[8:])
    assert text in refusal(path)


def test_version_2_is_read(tiny_llama: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    content = tiny_llama.read_bytes()
    path.write_bytes(content[:4] + struct.pack("<I", 2) + content[8:])
    assert inspect(path).version == 2


def test_cut_in_the_tensors(tiny_llama: Path, tmp_path: Path) -> None:
    text = refusal(tiny_bad.truncated(tmp_path / "cut.gguf", tiny_llama), read_header)
    assert text == "cut.gguf is cut short: it holds 305.0 KB of 435.7 KB; download it again."


def test_cut_by_one_byte(tiny_llama: Path, tmp_path: Path) -> None:
    content = tiny_llama.read_bytes()
    end = read_header(tiny_llama).data_end
    path = tmp_path / "cut.gguf"
    path.write_bytes(content[:end])
    assert read_header(path).data_end == end
    path.write_bytes(content[: end - 1])
    assert "is cut short" in refusal(path, read_header)


def test_cut_anywhere_in_the_header(tiny_llama: Path, tmp_path: Path) -> None:
    content = tiny_llama.read_bytes()
    path = tmp_path / "cut.gguf"
    for length in range(4, read_header(tiny_llama).data_offset, 7):
        path.write_bytes(content[:length])
        assert "is cut short" in refusal(path, read_header)


def test_vocabulary_only(tmp_path: Path) -> None:
    assert "holds a vocabulary but no weights" in refusal(tiny_bad.vocab_only(tmp_path / "m.gguf"))


@pytest.mark.parametrize(
    ("architecture", "pooling", "causal", "text"),
    [
        ("bert", 0, True, "is an embedding model"),
        ("nomic-bert-moe", 1, False, "is an embedding model"),
        ("qwen3", 3, True, "is an embedding model"),
        ("llada", 0, False, "does not write text one token after the other"),
        ("t5", 0, True, "does not write text one token after the other"),
    ],
)
def test_models_that_cannot_write(architecture: str, pooling: int, causal: bool, text: str, tmp_path: Path) -> None:
    path = tiny_bad.embedding(tmp_path / "m.gguf", architecture=architecture, pooling=pooling, causal=causal)
    assert text in refusal(path)


def test_a_causal_model_without_pooling_is_fine(tmp_path: Path) -> None:
    path = tiny_bad.embedding(tmp_path / "m.gguf", architecture="qwen3", pooling=0, causal=True)
    assert inspect(path).architecture == "qwen3"


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("general.type", "adapter", "is an adapter for another model; give the GGUF file of the model itself"),
        ("general.type", "mmproj", "is the image or sound part of a model"),
        ("general.architecture", "clip", "is the image or sound part of a model"),
        ("general.type", "imatrix", "is a table of importance figures"),
        ("general.architecture", "", "does not say which architecture"),
        ("tokenizer.ggml.model", "none", "has no vocabulary"),
    ],
)
def test_not_a_text_model(key: str, value: str, text: str, tiny_llama: Path) -> None:
    header = read_header(tiny_llama)
    changed = GgufHeader(
        tiny_llama, 3, {**header.metadata, key: value}, header.tensors, header.data_offset, header.data_end, header.size
    )
    check_loadable(header)
    with pytest.raises(ModelError, match=text):
        check_loadable(changed)


def split_model(folder: Path, count: int = 3) -> list[Path]:
    paths = [folder / f"m-{number:05}-of-{count:05}.gguf" for number in range(1, count + 1)]
    for number, path in enumerate(paths):
        tiny.llama(path, extra={"split.no": number, "split.count": count})
    return paths


def test_the_first_part_of_a_whole_split_model(tmp_path: Path) -> None:
    paths = split_model(tmp_path)
    assert parts(inspect(paths[0])) == tuple(paths)


def test_a_first_part_may_hold_no_tensors(tmp_path: Path) -> None:
    paths = split_model(tmp_path)
    recipe = tiny.llama_recipe()
    recipe.tensors = {}
    recipe.write(paths[0], extra={"split.no": 0, "split.count": 3})
    assert inspect(paths[0]).tensors == 0


def test_a_later_part_names_the_first(tmp_path: Path) -> None:
    paths = split_model(tmp_path)
    assert "is part 2 of 3; give the first part, m-00001-of-00003.gguf" in refusal(paths[1])


def test_missing_cut_and_renamed_parts(tmp_path: Path) -> None:
    paths = split_model(tmp_path)
    tiny_bad.truncated(paths[2], paths[2])
    assert refusal(paths[0]).startswith("m-00003-of-00003.gguf is cut short")
    paths[2].unlink()
    assert "needs m-00003-of-00003.gguf beside it; put all 3 parts" in refusal(paths[0])
    renamed = paths[0].rename(tmp_path / "renamed.gguf")
    assert "renamed.gguf is one of 3 parts; name them as in model-00001-of-00003.gguf" in refusal(renamed)


# Hostile files


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (header_of(pair("a", 4, b"\1\0\0\0"), pair("a", 4, b"\1\0\0\0")), "two of its metadata keys are equal"),
        (header_of(pair("", 4, b"\1\0\0\0")), "one of its metadata keys is empty"),
        (header_of(pair("a", 13, b"")), "a value of an unknown type"),
        (header_of(pair("a", 9, struct.pack("<IQ", 13, 1))), "an array of an unknown type"),
        (header_of(pair("a", 9, struct.pack("<IQ", 9, 1) * 10_000)), "an array of an unknown type"),
        (header_of(pair("a", 9, struct.pack("<IQ", 8, 1 << 62))), "is cut short or damaged"),
        (header_of(pair("a", 9, struct.pack("<IQ", 6, 1 << 62))), "is cut short or damaged"),
        (header_of(pair("a", 8, struct.pack("<Q", (1 << 64) - 1))), "is cut short or damaged"),
        (header_of(claimed=1 << 62), "claims to hold 4611686018427387904 metadata values"),
        (header_of(tensors=1 << 62), "is cut short or damaged"),
        (header_of(tensors=1, rest=text_value("t") + struct.pack("<I", 5)), "a tensor of 5 dimensions"),
        (header_of(tensors=1, rest=text_value("")), "one of its tensors has no name"),
        (
            header_of(tensors=1, rest=text_value("t") + struct.pack("<IQQIQ", 2, 1 << 40, 1 << 40, 0, 0)),
            "a tensor of impossible size",
        ),
        (header_of(pair("general.alignment", 4, b"\3\0\0\0")), "its alignment is not a power of two"),
        (header_of(pair("general.alignment", 8, text_value("32"))), "its alignment is not a power of two"),
    ],
)
def test_damaged(content: bytes, text: str, tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    assert text in refusal(path, read_header)


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("blk.0.ffn_up.weight", 26, "holds weights of a type that is not for weights"),
        ("blk.0.attn_q.bias", 28, "holds weights of a type that is not for weights"),
        ("blk.0.attn_norm.weight", 8, "holds a normalization or a bias that is quantized"),
        ("blk.0.ffn_gate.tid2eid.weight", 26, None),
        ("blk.0.ffn_up.weight", 8, None),
        ("blk.0.attn_norm.weight", 30, None),
    ],
)
def test_types_of_tensors(name: str, kind: int, text: str | None, tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(header_of(tensors=1, rest=text_value(name) + struct.pack("<IQIQ", 1, 32, kind, 0) + bytes(512)))
    if text is None:
        assert read_header(path).tensors == 1
    else:
        assert text in refusal(path, read_header)


def test_a_long_string_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(header_of(pair("a", 8, struct.pack("<Q", 900 << 20))))
    os.truncate(path, 1 << 30)
    tracemalloc.start()
    text = refusal(path, read_header)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "its header is larger than that of any model" in text
    assert peak < 8 << 20


def test_more_texts_than_any_vocabulary_has_are_refused_unread(tmp_path: Path) -> None:
    path, count = tmp_path / "m.gguf", (1 << 21) + 1
    path.write_bytes(header_of(pair("tokenizer.ggml.tokens", 9, struct.pack("<IQ", 8, count))))
    os.truncate(path, 20 << 20)
    assert f"it holds a list of {count} texts, more than any model has" in refusal(path, read_header)


def test_a_file_that_shrinks_while_it_is_read_counts_as_cut() -> None:
    cursor = Cursor(io.BytesIO(b"GGUF"), size=100)
    assert cursor.take(4) == b"GGUF"
    with pytest.raises(CutShortError):
        cursor.u32()


def test_a_tensor_type_from_the_future_is_left_to_llama_cpp(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(header_of(tensors=1, rest=text_value("t") + struct.pack("<IQIQ", 1, 1 << 40, 99, 0)))
    assert (read_header(path).tensors, read_header(path).data_end) == (1, 0)


numbers = st.sampled_from([0, 1, 8, 9, 255, 1 << 16, (1 << 31) - 1, 1 << 32, 1 << 63, (1 << 64) - 1])
changes = st.lists(
    st.one_of(
        st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=4)),
        st.tuples(st.floats(0, 1), numbers.map(lambda number: struct.pack("<Q", number))),
    ),
    max_size=4,
)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=changes, keep=st.floats(0, 1.2), asked=st.booleans())
def test_no_file_does_worse_than_a_refusal(
    changes: list[tuple[float, bytes]], keep: float, asked: bool, tiny_llama: Path, tmp_path: Path
) -> None:
    whole = inspect(tiny_llama)
    with tiny_llama.open("rb") as file:
        content = bytearray(file.read(whole.data_offset))
    for place, piece in changes:
        at = int(place * (len(content) - len(piece)))
        content[at : at + len(piece)] = piece
    path = tmp_path / "m.gguf"
    path.write_bytes(content[: int(len(content) * keep)])
    if keep >= 1:
        os.truncate(path, whole.size)
    try:
        header = read_header(path, keep={TOKENS} if asked else ())
        check_loadable(header)
    except ModelError:
        return
    assert header.data_end <= header.size
    assert kv_bytes_per_token(header, 2, 2) >= 0
    assert header.chat_templates is not None
    assert (header.name or "") + (header.chat_template or "") + header.architecture
