"""A GGUF file taken apart into its counts, metadata, tensor table and data, and put together again, right or wrong."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import gguf

from gguf_bytes import text_value

CODES = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
U32, I32, F32, BOOL, STRING, ARRAY, U64, I64 = 4, 5, 6, 7, 8, 9, 10, 11
ALIGNMENT = 32
MOST_DATA = 4 << 20
"""Bytes."""


@dataclass
class Pair:
    """One metadata value, its bytes behind the number of its type."""

    key: bytes
    kind: int
    value: bytes


@dataclass
class Row:
    """One row of the tensor table."""

    name: bytes
    shape: list[int]
    kind: int
    offset: int


@dataclass
class Parts:
    """A GGUF file taken apart; whatever is set here is written as it is."""

    pairs: list[Pair]
    rows: list[Row]
    data: bytes
    magic: bytes = b"GGUF"
    version: int = 3
    claimed_pairs: int | None = None
    claimed_rows: int | None = None

    @property
    def architecture(self) -> str:
        """As in "llama"."""
        found = self.pair("general.architecture")
        return found.value[8:].decode("utf-8", "replace") if found else ""

    def pair(self, key: str) -> Pair | None:
        """The metadata value of that key."""
        return next((pair for pair in self.pairs if pair.key == key.encode()), None)

    def put(self, key: str, kind: int, value: bytes) -> None:
        """Set a metadata value, whether there is one or not."""
        if found := self.pair(key):
            found.kind, found.value = kind, value
        else:
            self.pairs.append(Pair(key.encode(), kind, value))

    def lay_out(self) -> None:
        """Have the tensors lie one behind the other, as they must, after one of them has another shape or type.

        Where that would take more than `MOST_DATA`, or nobody knows how much, they stay where they are.
        """
        end, offsets = 0, []
        for row in self.rows:
            block, size = gguf.GGML_QUANT_SIZES.get(row.kind, (0, 0))  # type: ignore[call-overload]
            if not block or min(row.shape, default=1) < 0:
                return
            offsets.append(end)
            end += -(-math.prod(row.shape) // block * size // ALIGNMENT) * ALIGNMENT
        if end > MOST_DATA:
            return
        for row, offset in zip(self.rows, offsets, strict=True):
            row.offset = offset
        self.data = (self.data * 2)[:end].ljust(end, b"\0")

    def written(self) -> bytes:
        """The file."""
        pairs = len(self.pairs) if self.claimed_pairs is None else self.claimed_pairs
        rows = len(self.rows) if self.claimed_rows is None else self.claimed_rows
        out = bytearray(self.magic + struct.pack("<IQQ", self.version, rows, pairs))
        for pair in self.pairs:
            out += struct.pack("<Q", len(pair.key)) + pair.key + struct.pack("<I", pair.kind) + pair.value
        for row in self.rows:
            out += struct.pack("<Q", len(row.name)) + row.name + struct.pack("<I", len(row.shape))
            out += struct.pack(f"<{len(row.shape)}QIQ", *(size % (1 << 64) for size in row.shape), row.kind, row.offset)
        return bytes(out + b"\0" * (-len(out) % ALIGNMENT) + self.data)


def taken_apart(path: Path) -> Parts:
    """The parts of a sound file."""
    content, at = path.read_bytes(), 0

    def number(code: str) -> int:
        nonlocal at
        at += struct.calcsize(f"<{code}")
        return int(struct.unpack_from(f"<{code}", content, at - struct.calcsize(f"<{code}"))[0])

    def text() -> bytes:
        nonlocal at
        size = number("Q")
        at += size
        return content[at - size : at]

    def value(kind: int) -> bytes:
        nonlocal at
        start = at
        if kind == STRING:
            text()
        elif kind == ARRAY:
            item, count = number("I"), number("Q")
            for _ in range(count):
                value(item)
        else:
            at += struct.calcsize(f"<{CODES[kind]}")
        return content[start:at]

    magic, version, rows, pairs = content[:4], *struct.unpack_from("<IQQ", content, 4)
    at = 24
    read_pairs = [Pair(text(), kind := number("I"), value(kind)) for _ in range(pairs)]
    read_rows = [Row(text(), [number("Q") for _ in range(number("I"))], number("I"), number("Q")) for _ in range(rows)]
    return Parts(read_pairs, read_rows, content[-(-at // ALIGNMENT) * ALIGNMENT :], magic, version)


def array(kind: int, values: Sequence[object]) -> bytes:
    """The value of an array: the type of its items, their number, themselves."""
    packed = [text_value(str(each)) if kind == STRING else struct.pack(f"<{CODES[kind]}", each) for each in values]
    return struct.pack("<IQ", kind, len(values)) + b"".join(packed)
