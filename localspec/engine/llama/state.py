"""A context's memory as bytes, and back: what it was made with stands beside it and is checked before it is loaded.

llama.cpp ends the process on some damaged state files and silently clears the memory on others, so nothing reaches it
that does not carry the right checksum, model and settings.
"""

import ctypes
import hashlib
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from localspec.engine.errors import Interrupted
from localspec.engine.llama.context import Context
from localspec.engine.llama.library import LlamaError, lib, version
from localspec.engine.llama.memory import Checkpoint

CHECKSUM_BYTES = 32
PIECE_BYTES = 8_000_000
"""A checksum, or a file, is worked on in pieces of this size: between two of them one may be told to stop."""

_MAGIC = b"localspec-state-1\n"
_LENGTHS = struct.Struct("<IQQ")
_LASTING_MARKS = ("prompt", "stream")
"""The marks that a later answer may want to go back to; others are only good for the pass under way."""


@dataclass(frozen=True, slots=True)
class _Unpacked:
    fingerprint: object
    tokens: list[int]
    memory: memoryview
    marks: dict[str, Checkpoint]


def fingerprint(context: Context) -> dict[str, object]:
    """Everything that must be the same for a saved state to mean the same."""
    header = context.model.header
    return {
        "library": version(),
        "model": header.name or context.model.path.name,
        "architecture": header.architecture,
        "model_bytes": header.size,
        "tensors": header.tensors,
        "kv_type": context.settings.kv_type,
        "flash_attention": context.settings.flash_attention,
        "full_window": context.settings.full_window,
    }


def state_bytes(context: Context) -> int:
    """How large a state saved now would be, within a kilobyte or so."""
    marks = sum(len(mark.data) for mark in _lasting_marks(context).values())
    return int(lib.llama_state_seq_get_size(context.handle, 0)) + marks + 4 * len(context.tokens) + 1000


def save_state(context: Context, unwanted: Callable[[], bool] | None = None) -> bytearray:
    """The state of the context: header, token ids, memory, marks, SHA-256 of all of it. Raises Interrupted as soon as
    `unwanted` says that nobody wants it any more."""
    marks = _lasting_marks(context)
    size = lib.llama_state_seq_get_size(context.handle, 0)
    about = {
        "made_with": fingerprint(context),
        "marks": [[name, mark.length, len(mark.data)] for name, mark in marks.items()],
    }
    about_bytes = json.dumps(about, sort_keys=True).encode()
    tokens = np.asarray(context.tokens, "<i4").tobytes()
    head = b"".join([_MAGIC, _LENGTHS.pack(len(about_bytes), len(context.tokens), size), about_bytes, tokens])
    # A state can be as large as the memory that is left, so it is copied once and no more.
    state = bytearray(len(head) + size + sum(len(mark.data) for mark in marks.values()) + CHECKSUM_BYTES)
    state[: len(head)] = head
    end = len(head) + size
    if lib.llama_state_seq_get_data(context.handle, _c_array(state, len(head), size), size, 0) != size:
        raise LlamaError("the state could not be read")
    for mark in marks.values():
        state[end : end + len(mark.data)] = memoryview(mark.data).cast("B")
        end += len(mark.data)
    state[end:] = _checksum(memoryview(state)[:end], unwanted)
    return state


def load_state(context: Context, state: bytes | bytearray) -> bool:
    """Put a saved state into the context. False, with the context empty, when it is damaged or belongs to another model,
    setting or library: then the text has to be read again."""
    context.clear()
    found = _unpack(memoryview(state))
    if found is None or found.fingerprint != fingerprint(context):
        return False
    length, size = len(found.tokens), context.model.vocabulary.size
    if length > context.length or not all(0 <= token < size for token in found.tokens):
        return False
    memory = _c_array(found.memory, 0, len(found.memory))
    if lib.llama_state_seq_set_data(context.handle, memory, len(memory), 0) == 0 or context.memory.length() != length:
        context.memory.clear()
        return False
    context.memory.loaded(found.marks, context.model.window)
    context.tokens.extend(found.tokens)
    return True


def _lasting_marks(context: Context) -> dict[str, Checkpoint]:
    return {name: mark for name, mark in context.memory.marks.items() if name in _LASTING_MARKS}


def _c_array(data: bytearray | memoryview, start: int, size: int) -> "ctypes.Array[ctypes.c_uint8]":
    """The bytes as C sees them, without a copy where they may be written to."""
    kind = ctypes.c_uint8 * size
    if memoryview(data).readonly:
        return kind.from_buffer_copy(data, start)
    return kind.from_buffer(data, start)


def _checksum(data: memoryview, unwanted: Callable[[], bool] | None = None) -> bytes:
    checksum = hashlib.sha256()
    for start in range(0, len(data), PIECE_BYTES):
        if unwanted and unwanted():
            raise Interrupted
        checksum.update(data[start : start + PIECE_BYTES])
    return checksum.digest()


def _unpack(state: memoryview) -> _Unpacked | None:
    """None where this is not a whole state of ours."""
    body, checksum = state[:-CHECKSUM_BYTES], state[-CHECKSUM_BYTES:]
    if bytes(body[: len(_MAGIC)]) != _MAGIC or _checksum(body) != checksum:
        return None
    start = len(_MAGIC) + _LENGTHS.size
    try:
        about_bytes, token_count, memory_bytes = _LENGTHS.unpack_from(body, len(_MAGIC))
        about = json.loads(bytes(body[start : start + about_bytes]))
        made_with = about["made_with"]
        marks = [(str(name), int(length), int(size)) for name, length, size in about["marks"]]
    except (struct.error, ValueError, TypeError, KeyError, OverflowError):
        return None
    end_of_about = start + about_bytes
    end_of_tokens = end_of_about + 4 * token_count
    end = end_of_tokens + memory_bytes
    sound = all(0 < length <= token_count and size > 0 for _, length, size in marks)
    if not sound or len(body) != end + sum(size for _, _, size in marks):
        return None
    tokens = np.frombuffer(body[end_of_about:end_of_tokens], "<i4").tolist()
    kept = {}
    for name, length, size in marks:
        kept[name] = Checkpoint(length, (ctypes.c_uint8 * size).from_buffer_copy(body[end : end + size]))
        end += size
    return _Unpacked(made_with, tokens, body[end_of_tokens : end_of_tokens + memory_bytes], kept)
