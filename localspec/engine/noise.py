"""Counter-based random numbers: each belongs to a key (seed, step, position, stream), none is ever used twice.

A generator that is advanced call by call would give a position another number whenever a draft was longer or shorter.
Numbers that are looked up by key cannot: in match mode the text is a function of prompt, settings and seed only.
The mixing function is SplitMix64's finalizer (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
"""

from enum import IntEnum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_MIX_1 = 0xBF58476D1CE4E5B9
_MIX_2 = 0x94D049BB133111EB

_U64_GOLDEN, _U64_MIX_1, _U64_MIX_2 = (np.uint64(n) for n in (_GOLDEN, _MIX_1, _MIX_2))
_U64_30, _U64_27, _U64_31, _U64_12 = (np.uint64(n) for n in (30, 27, 31, 12))


class Stream(IntEnum):
    """What a random number is for. Numbers of different streams are independent."""

    TARGET = 1
    DRAFT = 2
    ACCEPT = 3
    RESIDUAL = 4


def _mix(value: int) -> int:
    value = ((value ^ (value >> 30)) * _MIX_1) & _MASK
    value = ((value ^ (value >> 27)) * _MIX_2) & _MASK
    return value ^ (value >> 31)


def noise_key(seed: int, stream: Stream, position: int, step: int = 0) -> int:
    """The 64-bit key of one random number, or of one field of them over token ids.

    `position` is the index in the token stream of the token that is being decided; `step` tells the target passes
    apart where a position can be drafted more than once (rejection mode); match mode leaves it 0.
    """
    return _mix((_key_of_step(seed, stream, step) + position * _GOLDEN) & _MASK)


@lru_cache(maxsize=64)
def _key_of_step(seed: int, stream: Stream, step: int) -> int:
    """What the keys of all positions begin with; in match mode it is the same for a whole answer."""
    key = _mix((seed + _GOLDEN) & _MASK)
    key = _mix((key + stream * _GOLDEN) & _MASK)
    return _mix((key + step * _GOLDEN) & _MASK)


def uniform(key: int, token: int = 1) -> float:
    """One number in the open interval (0, 1); that of a token id where the key is of a whole field of them."""
    return ((_mix((key + token * _GOLDEN) & _MASK) >> 12) + 0.5) * 2.0**-52


def uniforms(key: int, ids: NDArray[np.integer]) -> NDArray[np.float64]:
    """One number in (0, 1) for each token id, shape (n,). The number of an id does not depend on the other ids."""
    x = ids.astype(np.uint64)
    x *= _U64_GOLDEN
    x += np.uint64(key)
    x ^= x >> _U64_30
    x *= _U64_MIX_1
    x ^= x >> _U64_27
    x *= _U64_MIX_2
    x ^= x >> _U64_31
    x >>= _U64_12
    u = x.astype(np.float64)
    u += 0.5
    u *= 2.0**-52
    return u
