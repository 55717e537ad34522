"""The bytes of a GGUF header: a bounded cursor, metadata values, tensor sizes. Nothing here knows what a model is.

A GGUF file is: magic, version, number of tensors, number of metadata pairs, the pairs, the table of tensors, padding up
to the alignment, tensor data. Integers are little-endian; a string is its length in 8 bytes, then UTF-8.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import BinaryIO

HEADER_LIMIT = 128 << 20
"""No header is larger (bytes); the largest vocabularies in use need about 20 MB. Bounds time and memory."""

KEPT_ELEMENTS = 1024
"""Longer arrays are counted and skipped unless they are asked for by key."""

_KEPT_AT_MOST = 1 << 22
_MOST_TEXTS = 1 << 21
"""Vocabularies have up to 300 thousand and half a million merges; llama.cpp takes five times the bytes of short ones."""
_CHUNK = 1 << 20
_MAX_DIMENSIONS = 4
_STRING, _ARRAY = 8, 9
_STRUCTS = {
    number: struct.Struct(f"<{code}")
    for number, code in {
        0: "B",
        1: "b",
        2: "H",
        3: "h",
        4: "I",
        5: "i",
        6: "f",
        7: "?",
        10: "Q",
        11: "q",
        12: "d",
    }.items()
}
_NAMES = (
    *("uint8", "int8", "uint16", "int16", "uint32", "int32", "float32"),
    *("bool", "string", "array", "uint64", "int64", "float64"),
)
_U32, _U64 = _STRUCTS[4], _STRUCTS[10]

_BLOCKS = {
    # ggml type: (elements in a block, bytes of a block); ggml_blck_size and ggml_type_size of ggml.c
    0: (1, 4),  # F32
    1: (1, 2),  # F16
    2: (32, 18),  # Q4_0
    3: (32, 20),  # Q4_1
    6: (32, 22),  # Q5_0
    7: (32, 24),  # Q5_1
    8: (32, 34),  # Q8_0
    9: (32, 36),  # Q8_1
    10: (256, 84),  # Q2_K
    11: (256, 110),  # Q3_K
    12: (256, 144),  # Q4_K
    13: (256, 176),  # Q5_K
    14: (256, 210),  # Q6_K
    15: (256, 292),  # Q8_K
    16: (256, 66),  # IQ2_XXS
    17: (256, 74),  # IQ2_XS
    18: (256, 98),  # IQ3_XXS
    19: (256, 50),  # IQ1_S
    20: (32, 18),  # IQ4_NL
    21: (256, 110),  # IQ3_S
    22: (256, 82),  # IQ2_S
    23: (256, 136),  # IQ4_XS
    24: (1, 1),  # I8
    25: (1, 2),  # I16
    26: (1, 4),  # I32
    27: (1, 8),  # I64
    28: (1, 8),  # F64
    29: (256, 56),  # IQ1_M
    30: (1, 2),  # BF16
    34: (256, 54),  # TQ1_0
    35: (256, 66),  # TQ2_0
    39: (32, 17),  # MXFP4
    40: (64, 36),  # NVFP4
    41: (128, 18),  # Q1_0
}


_PLAIN = {0, 1, 30}
"""Types of what is not quantized."""
_NOT_FOR_WEIGHTS = {24, 25, 26, 27, 28}
"""Whole numbers and F64: nothing multiplies them, and llama.cpp ends the process when it finds that out."""
_TABLES = "tid2eid"
"""In the name of the one kind of tensor that holds whole numbers: which token goes to which expert."""


class CutShortError(Exception):
    """The header reaches beyond the end of the file."""


class DamagedError(Exception):
    """The header breaks the format; `str(error)` says how, as a clause."""


@dataclass(frozen=True, slots=True)
class ArrayInfo:
    """Stands for an array that was skipped: how many elements of which type ("string", "float32", ...)."""

    count: int
    type: str


Scalar = bool | int | float | str
Value = Scalar | tuple[Scalar, ...] | ArrayInfo


class Cursor:
    """Reads a header front to back, holding one chunk of it, and never past the file's size or `HEADER_LIMIT`."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._size = size
        self._chunk = b""
        self._start = 0  # where the chunk lies in the file
        self._at = 0  # the next byte, in the chunk

    @property
    def position(self) -> int:
        """Offset of the next byte in the file."""
        return self._start + self._at

    def take(self, count: int) -> bytes:
        """The next `count` bytes."""
        self._hold(count)
        at = self._at
        self._at = at + count
        return self._chunk[at : self._at]

    def skip(self, count: int) -> None:
        """Pass over `count` bytes without reading those outside the chunk."""
        self._check(count)
        self._at += count

    def expect(self, count: int) -> None:
        """Raise what taking the next `count` bytes would, where there are not that many."""
        self._check(count)

    def number(self, kind: struct.Struct) -> int:
        """The next number of an integer format."""
        value: int = kind.unpack(self.take(kind.size))[0]
        return value

    def u32(self) -> int:
        """The next unsigned 32-bit number."""
        return self.number(_U32)

    def u64(self) -> int:
        """The next unsigned 64-bit number."""
        return self.number(_U64)

    def string(self) -> str:
        """The next string; bytes that are not UTF-8 become U+FFFD."""
        return self.take(self.u64()).decode("utf-8", errors="replace")

    def skip_strings(self, count: int) -> None:
        """Pass over `count` strings: half a million take about 0.1 s."""
        unpack = _U64.unpack_from
        while count:
            self._hold(_U64.size)
            chunk, at, last = self._chunk, self._at, len(self._chunk) - _U64.size
            while count and at <= last:
                at += _U64.size + unpack(chunk, at)[0]
                count -= 1
            self.skip(at - self._at)

    def _check(self, count: int) -> None:
        end = self.position + count
        if end > self._size:
            raise CutShortError
        if end > HEADER_LIMIT:
            raise DamagedError("its header is larger than that of any model")

    def _hold(self, count: int) -> None:
        """Make the next `count` bytes part of the chunk."""
        self._check(count)
        if self._at + count <= len(self._chunk):
            return
        rest = self._chunk[self._at :]
        self._start, self._at = self.position, 0
        self._file.seek(self._start + len(rest))
        self._chunk = rest + self._file.read(max(_CHUNK, count) - len(rest))
        if len(self._chunk) < count:
            raise CutShortError


def read_value(cursor: Cursor, *, keep: bool) -> Value:
    """The metadata value at the cursor: its type, then itself. `keep` keeps an array longer than `KEPT_ELEMENTS`."""
    kind = cursor.u32()
    if kind == _STRING:
        return cursor.string()
    if kind == _ARRAY:
        return _read_array(cursor, keep=keep)
    if kind not in _STRUCTS:
        raise DamagedError("it holds a value of an unknown type")
    value: Scalar = _STRUCTS[kind].unpack(cursor.take(_STRUCTS[kind].size))[0]
    return value


def _read_array(cursor: Cursor, *, keep: bool) -> Value:
    kind, count = cursor.u32(), cursor.u64()
    kept = count <= (_KEPT_AT_MOST if keep else KEPT_ELEMENTS)
    if kind == _STRING:
        cursor.expect(count * _U64.size)
        if count > _MOST_TEXTS:
            raise DamagedError(f"it holds a list of {count} texts, more than any model has")
        if kept:
            return tuple(cursor.string() for _ in range(count))
        cursor.skip_strings(count)
    elif kind in _STRUCTS:
        item = _STRUCTS[kind]
        if kept:
            return struct.unpack(f"<{count}{item.format[1:]}", cursor.take(count * item.size))
        cursor.skip(count * item.size)
    else:  # also arrays of arrays: llama.cpp reads none, and they would nest without end
        raise DamagedError("it holds an array of an unknown type")
    return ArrayInfo(count, _NAMES[kind])


def read_tensor(cursor: Cursor) -> tuple[str, int]:
    """One row of the tensor table: the tensor's name, and the offset in the tensor data where it ends (bytes).

    The offset is 0 for a type that is not known here, whose size nobody can tell.
    """
    name = cursor.string()
    if not name:
        raise DamagedError("one of its tensors has no name")
    dimensions = cursor.u32()
    if dimensions > _MAX_DIMENSIONS:
        raise DamagedError(f"it holds a tensor of {dimensions} dimensions")
    shape = [cursor.u64() for _ in range(dimensions)]
    kind, offset = cursor.u32(), cursor.u64()
    if kind not in _BLOCKS:
        return name, 0
    _check_type(name, kind)
    elements, size = _BLOCKS[kind]
    count = 1
    for length in shape:
        count *= length
    if count >= 1 << 63:
        raise DamagedError("it holds a tensor of impossible size")
    return name, offset + count // elements * size


def _check_type(name: str, kind: int) -> None:
    weights = name.endswith((".weight", ".bias")) and _TABLES not in name
    if weights and kind in _NOT_FOR_WEIGHTS:
        raise DamagedError("it holds weights of a type that is not for weights")
    # Quantizing leaves these as they are.
    if name.endswith(("norm.weight", ".bias")) and kind not in _PLAIN:
        raise DamagedError("it holds a normalization or a bias that is quantized")
