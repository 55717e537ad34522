"""Pairs judged by their headers: as the engine judges them, without loading or even downloading them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import gguf
import pytest

import llama_vocabulary
import tiny
import tiny_bad
from localspec.engine.engine import Engine, EngineSettings
from localspec.engine.errors import ModelError
from localspec.engine.gguf import read_header
from localspec.hub.compatible import VOCABULARY, Match, match, may_match, read_remote_header

Write = Callable[[Path], Path]
VARIANTS: dict[str, Write] = {
    "twin": lambda path: tiny.llama(path, noise=0.1),
    "swapped": lambda path: tiny_bad.other_vocabulary(path, swap=(97, 98)),
    "padded": lambda path: tiny_bad.other_vocabulary(path, swap=None, padding=3),
    "of another architecture": tiny.gemma3,
    "with a word more": lambda path: with_words(path, "more"),
    "of another kind": lambda path: llama_vocabulary.write_sentencepiece(path),
}


def with_words(path: Path, *words: str) -> Path:
    """The tiny llama with more words at the end of its vocabulary."""
    padded = tiny_bad.other_vocabulary(path.with_suffix(".padded"), swap=None, padding=len(words))
    assert len(words[0]) == len("more")
    path.write_bytes(padded.read_bytes().replace(b"\x08\0\0\0\0\0\0\0[PAD261]", b"\x08\0\0\0\0\0\0\0<more-a>"))
    return path


def match_files(target: Path, draft: Path) -> Match:
    return match(read_header(target, keep=VOCABULARY), read_header(draft, keep=VOCABULARY))


def opened(target: Path, draft: Path) -> Engine:
    return Engine(EngineSettings(target=target, draft=draft, context_length=256, threads=1, measure_costs=False))


@pytest.mark.parametrize("variant", VARIANTS)
def test_headers_are_judged_as_the_engine_judges_loaded_models(variant: str, tiny_llama: Path, tmp_path: Path) -> None:
    """The same pairs go together, and the same sentence says why others do not."""
    draft = VARIANTS[variant](tmp_path / "draft.gguf")
    try:
        common = match_files(tiny_llama, draft).common
        refusal = ""
    except ModelError as error:
        common, refusal = 0, str(error)
    if variant == "of another kind":
        # It has no weights, so that no engine opens it.
        assert "splits text in another way" in refusal
        return
    if refusal:
        with pytest.raises(ModelError) as caught:
            opened(tiny_llama, draft)
        assert str(caught.value) == refusal
    else:
        opened(tiny_llama, draft).close()
        assert common == tiny.VOCABULARY_SIZE
    assert bool(refusal) == (variant in ("swapped", "with a word more"))


def test_what_differs_and_does_no_harm_is_remarked(tmp_path: Path) -> None:
    """Other rules of splitting, another end of an answer, control tokens that are text in the other."""
    target = tiny.llama(tmp_path / "target.gguf")
    extra = {"tokenizer.ggml.pre": "llama-bpe", "tokenizer.ggml.eos_token_id": tiny.EOS}
    draft = tiny.llama(tmp_path / "draft.gguf", extra=extra)
    remarks = match_files(target, draft).remarks
    assert len(remarks) == 2
    assert "split text" in remarks[0] and "end an answer" in remarks[1]
    assert match_files(target, target).remarks == ()
    recipe = tiny.llama_recipe()
    recipe.types[tiny.IM_START] = int(gguf.TokenType.NORMAL)
    (remark,) = match_files(target, recipe.write(tmp_path / "text.gguf")).remarks
    assert "control tokens" in remark


def test_a_header_without_a_vocabulary_matches_nothing(tiny_llama: Path, tmp_path: Path) -> None:
    """Nor one that was read without it, of a vocabulary too large to be kept by the way."""
    empty = tiny.llama(tmp_path / "empty.gguf", drop=["tokenizer.ggml.tokens"])
    with pytest.raises(ModelError, match=r"^empty\.gguf holds no vocabulary; choose another model\.$"):
        match_files(tiny_llama, empty)
    assert not may_match(read_header(tiny_llama), read_header(empty))
    assert may_match(read_header(tiny_llama), read_header(tiny_bad.other_vocabulary(tmp_path / "other.gguf")))


class Elsewhere:
    """A file of which ranges can be read, `content` and then zeros up to `size`."""

    def __init__(self, content: bytes, size: int = 0) -> None:
        self.content, self.size = content, max(size, len(content))
        self.asked: list[tuple[int, int]] = []

    def read(self, offset: int, length: int) -> bytes:
        self.asked.append((offset, length))
        return self.content[offset : offset + length].ljust(min(length, self.size - offset), b"\0")


def test_a_header_is_read_over_ranges_and_nothing_behind_it(tiny_llama: Path) -> None:
    """The same header as that of the file, from the first bytes of a file that goes on for long."""
    local = read_header(tiny_llama, keep=VOCABULARY)
    size = 40 << 30
    far = Elsewhere(tiny_llama.read_bytes(), size)
    header = read_remote_header(far.read, size, "far.gguf")
    assert header.metadata == local.metadata
    assert (header.data_offset, header.size, header.path) == (local.data_offset, size, Path("far.gguf"))
    assert far.asked == [(0, 4 << 20)]
    assert match(local, header).common == tiny.VOCABULARY_SIZE


@pytest.mark.real
def test_a_real_header_takes_two_requests_at_most(smollm2: Path) -> None:
    """1.8 MB of header out of 98 MB of model."""
    far = Elsewhere(smollm2.read_bytes())
    header = read_remote_header(far.read, len(far.content), "far.gguf")
    assert header.vocabulary_size == 49152
    assert sum(length for _offset, length in far.asked) <= 8 << 20
    assert match(read_header(smollm2, keep=VOCABULARY), header).common == 49152


def test_a_large_header_is_read_block_by_block_without_reading_twice(tmp_path: Path) -> None:
    """Every byte of it is asked for once."""
    words = ["x" * 250 + str(number) for number in range(40_000)]
    writer = gguf.GGUFWriter(tmp_path / "large.gguf", "llama")
    writer.add_token_list(words)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    far = Elsewhere((tmp_path / "large.gguf").read_bytes())
    assert len(far.content) > 10 << 20
    header = read_remote_header(far.read, len(far.content), "large.gguf")
    assert header.metadata["tokenizer.ggml.tokens"] == tuple(words)
    position = 0
    for offset, length in far.asked:
        assert offset == position
        position += length
    assert position == len(far.content)


def test_what_is_no_gguf_is_refused_after_one_request(tmp_path: Path) -> None:
    """And what ends inside its header."""
    page = Elsewhere(b"<html>not found</html>")
    with pytest.raises(ModelError, match="not a GGUF model file"):
        read_remote_header(page.read, len(page.content), "page.gguf")
    assert len(page.asked) == 1
    cut = Elsewhere(tiny.llama(tmp_path / "m.gguf").read_bytes()[:3000])
    with pytest.raises(ModelError, match="ends inside its header"):
        read_remote_header(cut.read, 40 << 30, "cut.gguf")
