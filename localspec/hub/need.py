"""The memory that a model takes, computed from its measures as llama.cpp will allocate it for the engine."""

from __future__ import annotations

import math
from dataclasses import dataclass

from localspec.hub.graph import Widest, compute_bytes
from localspec.hub.shape import ModelShape

CONTEXT_STEP = 256
"""Tokens: llama.cpp makes every cache a multiple of this long."""
_ELEMENT = {"f16": 2.0, "q8_0": 34 / 32}
"""Bytes of an element by the type of the cache; q8_0 has blocks of 32 with a scale of two bytes."""
_FLOAT = 4
_MOST_SNAPSHOTS = 8
"""As the engine opens its contexts."""


@dataclass(frozen=True, slots=True)
class Opening:
    """How the engine opens a context, as far as memory goes."""

    batch: int
    """Most tokens of one pass."""
    rows: int
    """Most rows of logits of one pass."""


AS_TARGET = Opening(batch=512, rows=33)
AS_DRAFT = Opening(batch=256, rows=1)


@dataclass(frozen=True, slots=True)
class Need:
    """The memory that one model with its context takes, in bytes."""

    weights: int
    cache: int
    """Keys and values, and running states."""
    compute: int
    """The buffers that a pass works in."""
    outputs: int
    """Rows of logits."""

    @property
    def total(self) -> int:
        """All of it."""
        return self.weights + self.cache + self.compute + self.outputs


def need(
    shape: ModelShape,
    weight_bytes: int,
    context: int,
    kv_type: str = "f16",
    *,
    opening: Opening = AS_TARGET,
) -> Need:
    """What one model takes. `context`: tokens. `kv_type`: "f16" or "q8_0"; the engine keeps the draft's at f16."""
    length = padded(context)
    tokens = min(opening.batch, context)
    rows = min(opening.rows, tokens)
    return Need(
        weights=weight_bytes,
        cache=_cache(shape, length, tokens, rows, kv_type),
        compute=compute_bytes(shape, Widest(length, tokens, rows, kv_type != "f16")),
        outputs=rows * shape.vocabulary * _FLOAT,
    )


def padded(context: int) -> int:
    """`context` tokens, rounded up to what llama.cpp makes of them."""
    return -(-context // CONTEXT_STEP) * CONTEXT_STEP


def _cache(shape: ModelShape, length: int, tokens: int, rows: int, kv_type: str) -> int:
    """Keys, values and running states. Layers with a sliding window keep everything too: every rollback is free then."""
    per_token = shape.all_cached_heads * (shape.key_length + shape.value_length) * _ELEMENT[kv_type]
    snapshots = max(0, min(rows - 1, tokens - 2, _MOST_SNAPSHOTS)) if shape.state_snapshots else 0
    states = shape.state_layers * shape.state_elements * (1 + snapshots) * _FLOAT
    return math.ceil(length * per_token) + states
