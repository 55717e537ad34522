"""What disks, crashes and other programs do to a file."""

from __future__ import annotations

import random
from collections.abc import Callable

Damage = Callable[[random.Random, bytes], bytes]


def flip(dice: random.Random, data: bytes) -> bytes:
    """One bit to a few hundred."""
    damaged = bytearray(data)
    for _ in range(dice.choice((1, 1, 10, 300))):
        damaged[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    return bytes(damaged)


def cut(dice: random.Random, data: bytes) -> bytes:
    """The beginning."""
    return data[: dice.randrange(len(data))]


def blank(dice: random.Random, data: bytes) -> bytes:
    """A stretch of zeros, as a disk leaves it that lost a block."""
    start, length = dice.randrange(len(data)), dice.choice((16, 512, 4096, 20_000))
    return (data[:start] + bytes(length) + data[start + length :])[: len(data)]


def scramble(dice: random.Random, data: bytes) -> bytes:
    """A stretch of anything."""
    start, length = dice.randrange(len(data)), dice.choice((16, 512, 4096, 20_000))
    return (data[:start] + dice.randbytes(length) + data[start + length :])[: len(data)]


def grow(dice: random.Random, data: bytes) -> bytes:
    """Something behind the end."""
    return data + dice.randbytes(dice.choice((1, 100, 8192)))


DAMAGES: tuple[Damage, ...] = (flip, cut, blank, scramble, grow)
