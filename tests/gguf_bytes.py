"""GGUF headers written byte by byte, for tests of what the gguf package would not write."""

from __future__ import annotations

import struct


def text_value(text: str) -> bytes:
    """A string: its length, then itself."""
    return struct.pack("<Q", len(text)) + text.encode()


def pair(key: str, kind: int, value: bytes) -> bytes:
    """A metadata pair; `kind` is the number of the value's type, `value` its bytes."""
    return text_value(key) + struct.pack("<I", kind) + value


def header_of(*pairs: bytes, claimed: int | None = None, tensors: int = 0, rest: bytes = b"") -> bytes:
    """A header of these pairs (or of `claimed` ones, whatever there is) and `tensors` rows that start with `rest`."""
    count = len(pairs) if claimed is None else claimed
    return struct.pack("<4sIQQ", b"GGUF", 3, tensors, count) + b"".join(pairs) + rest
