"""How much memory ggml's graph allocator ends up with for one pass of a model."""

from __future__ import annotations

from dataclasses import dataclass

_ALIGNMENT = 32
_ENDLESS = 1 << 256


@dataclass(slots=True)
class _Tensor:
    size: int
    sources: tuple[int, ...]
    takes_over: bool
    is_input: bool
    uses: int = 0
    offset: int = -1


class Pass:
    """The tensors of a pass, named by numbers in the order in which they are computed; sizes in bytes. Views are not
    tensors of their own: who reads a view reads the tensor."""

    def __init__(self) -> None:
        self._tensors: list[_Tensor] = []

    def input(self, size: int) -> int:
        """A tensor that is filled before the pass."""
        return self._add(_Tensor(size, (), False, True))

    def new(self, size: int, *sources: int) -> int:
        """The result of an operation that needs a place of its own."""
        return self._add(_Tensor(size, sources, False, False))

    def over(self, size: int, *sources: int) -> int:
        """The result of an operation that can be written over one of its sources: the first that nobody else reads and that
        is not smaller."""
        return self._add(_Tensor(size, sources, True, False))

    def read(self, *sources: int) -> None:
        """An operation whose result lies elsewhere, in a cache."""
        self._add(_Tensor(0, sources, False, False))

    def bytes(self) -> int:
        """What the buffer for all of it takes.

        The rules are those of ggml-alloc.c: inputs get their places first, every tensor is freed after its last reader, and
        the smallest free block that is large enough is taken before the buffer grows.
        """
        for tensor in self._tensors:
            tensor.uses, tensor.offset = 0, -1
        for tensor in self._tensors:
            for source in tensor.sources:
                self._tensors[source].uses += 1
        blocks = _Blocks()
        for tensor in self._tensors:
            if tensor.is_input:
                tensor.offset = blocks.take(tensor.size)
        for tensor in self._tensors:
            if not tensor.is_input:
                self._place(tensor, blocks)
            for source in tensor.sources:
                self._read_once(self._tensors[source], blocks)
        return blocks.end

    def _add(self, tensor: _Tensor) -> int:
        self._tensors.append(tensor)
        return len(self._tensors) - 1

    def _place(self, tensor: _Tensor, blocks: _Blocks) -> None:
        if not tensor.size:
            return
        for source in (self._tensors[number] for number in tensor.sources if tensor.takes_over):
            if source.uses == 1 and source.offset >= 0 and source.size >= tensor.size:
                tensor.offset, source.offset = source.offset, -1
                blocks.give(tensor.offset + _aligned(tensor.size), _aligned(source.size) - _aligned(tensor.size))
                return
        tensor.offset = blocks.take(tensor.size)

    def _read_once(self, tensor: _Tensor, blocks: _Blocks) -> None:
        tensor.uses -= 1
        if not tensor.uses and tensor.offset >= 0:
            blocks.give(tensor.offset, _aligned(tensor.size))
            tensor.offset = -1


class _Blocks:
    """The free blocks of a buffer, by offset; the last one never ends."""

    def __init__(self) -> None:
        self._free = [(0, _ENDLESS)]
        self.end = 0
        """How far the buffer has been used."""

    def take(self, size: int) -> int:
        size = _aligned(size)
        fitting = [index for index, (_offset, room) in enumerate(self._free[:-1]) if room >= size]
        index = min(fitting, key=lambda index: (self._free[index][1], -index)) if fitting else len(self._free) - 1
        offset, room = self._free[index]
        self._free[index : index + 1] = [(offset + size, room - size)] if room > size else []
        self.end = max(self.end, offset + size)
        return offset

    def give(self, offset: int, size: int) -> None:
        if not size:
            return
        merged: list[tuple[int, int]] = []
        for start, room in sorted([*self._free, (offset, size)]):
            if merged and sum(merged[-1]) == start:
                merged[-1] = (merged[-1][0], merged[-1][1] + room)
            else:
                merged.append((start, room))
        self._free = merged


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
