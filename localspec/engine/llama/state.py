"""A context's memory as bytes, and back: what it was made with stands beside it and is checked before it is loaded.

llama.cpp ends the process on some damaged state files and silently clears the memory on others, so nothing reaches it
that does not carry the right checksum, model and settings.
"""

import ctypes
import hashlib
import json
import struct

import numpy as np

from localspec.engine.llama.context import Context
from localspec.engine.llama.library import LlamaError, lib, version

_MAGIC = b"localspec-state-1\n"
_LENGTHS = struct.Struct("<IQQ")


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


def save_state(context: Context) -> bytes:
    """The state of the context: header, token ids, memory, SHA-256 of all of it."""
    size = lib.llama_state_seq_get_size(context.handle, 0)
    data = (ctypes.c_uint8 * size)()
    written = lib.llama_state_seq_get_data(context.handle, data, size, 0)
    if written == 0 or written > size:
        raise LlamaError("the state could not be read")
    about = json.dumps(fingerprint(context), sort_keys=True).encode()
    tokens = np.asarray(context.tokens, "<i4").tobytes()
    body = b"".join(
        [_MAGIC, _LENGTHS.pack(len(about), len(context.tokens), written), about, tokens, memoryview(data)[:written]]
    )
    return body + hashlib.sha256(body).digest()


def load_state(context: Context, state: bytes) -> bool:
    """Put a saved state into the context. False, with the context empty, when it is damaged or belongs to another model,
    setting or library: then the text has to be read again."""
    context.clear()
    parts = _unpack(state)
    if parts is None or parts[0] != fingerprint(context):
        return False
    _, tokens, memory = parts
    size = context.model.vocabulary.size
    if len(tokens) > context.length or not all(0 <= token < size for token in tokens):
        return False
    data = (ctypes.c_uint8 * len(memory)).from_buffer_copy(memory)
    if lib.llama_state_seq_set_data(context.handle, data, len(memory), 0) == 0 or context.memory.length() != len(
        tokens
    ):
        context.memory.clear()
        return False
    context.tokens.extend(tokens)
    return True


def _unpack(state: bytes) -> tuple[object, list[int], bytes] | None:
    """Fingerprint, token ids and memory, None where this is not a whole state of ours."""
    body, checksum = state[:-32], state[-32:]
    if not body.startswith(_MAGIC) or hashlib.sha256(body).digest() != checksum:
        return None
    start = len(_MAGIC) + _LENGTHS.size
    try:
        about_bytes, token_count, data_bytes = _LENGTHS.unpack_from(body, len(_MAGIC))
        about = json.loads(body[start : start + about_bytes])
    except (struct.error, ValueError):
        return None
    end_of_about = start + about_bytes
    end_of_tokens = end_of_about + 4 * token_count
    if len(body) != end_of_tokens + data_bytes:
        return None
    return about, np.frombuffer(body[end_of_about:end_of_tokens], "<i4").tolist(), body[end_of_tokens:]
