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
    body, checksum = state[:-32], state[-32:]
    if not body.startswith(_MAGIC) or hashlib.sha256(body).digest() != checksum:
        return False
    start = len(_MAGIC) + _LENGTHS.size
    about_bytes, token_count, data_bytes = _LENGTHS.unpack(body[len(_MAGIC) : start])
    end_of_about = start + about_bytes
    end_of_tokens = end_of_about + 4 * token_count
    if json.loads(body[start:end_of_about]) != fingerprint(context) or token_count > context.length:
        return False
    tokens = np.frombuffer(body[end_of_about:end_of_tokens], "<i4").tolist()
    data = (ctypes.c_uint8 * data_bytes).from_buffer_copy(body[end_of_tokens:])
    if lib.llama_state_seq_set_data(context.handle, data, data_bytes, 0) == 0 or context.memory.length() != len(tokens):
        context.clear()
        context.memory.clear()
        return False
    context.tokens.extend(tokens)
    return True
