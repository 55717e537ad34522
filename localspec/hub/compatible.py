"""Whether two models can work as a pair, from their headers alone: before they are loaded, or even downloaded."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from localspec.engine.compatibility import common_vocabulary
from localspec.engine.errors import ModelError
from localspec.engine.gguf import GgufHeader, read_header_of

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

Read = Callable[[int, int], bytes]
"""Reads a range of a file that lies elsewhere: `read(offset, length)`, less only at the end. Raises OSError or UserError."""

_TOKENS, _TYPES = "tokenizer.ggml.tokens", "tokenizer.ggml.token_type"
VOCABULARY = (_TOKENS, _TYPES)
"""What a header has to be read with: `keep=VOCABULARY`."""
_KIND = "tokenizer.ggml.model"
_SPLITTER = "tokenizer.ggml.pre"
_SPECIAL = {
    "tokenizer.ggml.bos_token_id": "begin a text",
    "tokenizer.ggml.eos_token_id": "end an answer",
}
_BLOCK = 4 << 20
"""Bytes to read at a time: a header of 8 MB in two or three requests, one without a vocabulary in one."""


@dataclass(frozen=True, slots=True)
class Match:
    """Two vocabularies that go together."""

    common: int
    """Token ids that the two have in common, from 0 on."""
    remarks: tuple[str, ...] = ()
    """What differs all the same, each a clause: worth knowing, and no obstacle."""


class _Texts:
    """The vocabulary of a header, as the engine compares vocabularies."""

    def __init__(self, header: GgufHeader) -> None:
        tokens = header.metadata.get(_TOKENS)
        if not isinstance(tokens, tuple):
            raise ModelError(f"{header.path.name} holds no vocabulary; choose another model.")
        self._tokens = tokens
        self.size = len(tokens)
        # The engine asks llama.cpp for a number; any number will do that is the same for the same kind.
        self.kind = hash(header.metadata.get(_KIND, ""))

    def token_text(self, token: int) -> str:
        return str(self._tokens[token])


def match(target: GgufHeader, draft: GgufHeader) -> Match:
    """What two headers, read with `keep=VOCABULARY`, have in common.

    Raises ModelError where the engine would refuse the pair, with the first difference.
    """
    common = common_vocabulary(_Texts(target), _Texts(draft))
    return Match(common, tuple(_remarks(target, draft)))


def may_match(target: GgufHeader, draft: GgufHeader) -> bool:
    """Whether the two could match, by what a header says without its vocabulary: cheap, and never wrongly no."""
    return target.metadata.get(_KIND) == draft.metadata.get(_KIND) and bool(
        target.vocabulary_size and draft.vocabulary_size
    )


def read_remote_header(read: Read, size: int, name: str, *, keep: Collection[str] = VOCABULARY) -> GgufHeader:
    """The header of a GGUF of `size` bytes that lies elsewhere; only the header is fetched.

    Raises ModelError where it is no GGUF, and whatever `read` raises.
    """
    with io.BufferedReader(_Elsewhere(read, size), _BLOCK) as file:
        return read_header_of(file, size, name, keep=keep)


def _remarks(target: GgufHeader, draft: GgufHeader) -> list[str]:
    remarks = []
    if target.metadata.get(_SPLITTER) != draft.metadata.get(_SPLITTER):
        remarks.append("the two split text into tokens by different rules")
    for key, purpose in _SPECIAL.items():
        if target.metadata.get(key) != draft.metadata.get(key):
            remarks.append(f"the two {purpose} with different tokens")
    ours, theirs = target.metadata.get(_TYPES), draft.metadata.get(_TYPES)
    if isinstance(ours, tuple) and isinstance(theirs, tuple) and ours[: len(theirs)] != theirs[: len(ours)]:
        remarks.append("some tokens are text in one and control tokens in the other")
    return remarks


class _Elsewhere(io.RawIOBase):
    """A file of which ranges can be fetched, as a file to read."""

    def __init__(self, read: Read, size: int) -> None:
        self._fetch, self._size, self._at = read, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = start + offset
        return self._at

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        wanted = min(len(view), self._size - self._at)
        data = self._fetch(self._at, wanted) if wanted > 0 else b""
        view[: len(data)] = data
        self._at += len(data)
        return len(data)
