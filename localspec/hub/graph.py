"""The widest pass of a model, tensor by tensor, as llama.cpp builds it: what its compute buffer is reserved for.

The order and the sizes are those of src/llama-graph.cpp and src/models/ of llama.cpp. Biases and scales happen in place and
do not count. Layers repeat, so that a few of them tell as much as all.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from localspec.hub.arena import Pass
from localspec.hub.shape import ModelShape

_FLOAT = 4
_MASK = 2
"""Bytes of an element of the mask: flash attention, with which the engine opens its contexts, wants it in f16, and keeps no
scores."""
_LAYERS = 4
"""So many layers are enough for the buffer to reach its size."""
_ROTATED = 64
"""Heads that are a multiple of this wide are rotated before they go into a quantized cache, to spread their outliers."""


@dataclass(frozen=True, slots=True)
class Widest:
    """The widest pass that a context is opened for."""

    length: int
    """Tokens in the cache."""
    tokens: int
    """Tokens of the pass."""
    rows: int
    """Rows of logits."""
    quantized: bool
    """Whether the cache is quantized."""


@lru_cache(maxsize=4096)
def compute_bytes(shape: ModelShape, widest: Widest) -> int:
    """Bytes of the compute buffer."""
    return _Builder(shape, widest).build().bytes()


class _Builder:
    """Puts the tensors of a pass together."""

    def __init__(self, shape: ModelShape, widest: Widest) -> None:
        self.shape, self.widest, self._pass = shape, widest, Pass()
        tokens = widest.tokens
        self._tokens = self._pass.input(tokens * 4)
        # Embeddings could be given in the place of token ids; their place is never freed.
        self._pass.input(self._wide(shape.embedding))
        self._has_attention = bool(shape.all_cached_heads)
        self._positions = self._pass.input(tokens * 4)
        self._places = self._pass.input(2 * tokens * 8)
        self._masks = [self._pass.input(tokens * widest.length * _MASK) for _ in range(self._kinds())]
        self._is_rotated = widest.quantized and shape.key_length % _ROTATED == 0 and self._has_attention
        if self._is_rotated:
            self._rotation = self._pass.input(len(self._masks) * _rotations(shape.key_length) * _FLOAT)
        self._rows = self._pass.input(widest.rows * 4)

    def build(self) -> Pass:
        """The pass: embeddings, layers, and the logits of the last rows."""
        shape = self.shape
        stream = self._pass.new(self._wide(shape.embedding), self._tokens)
        kinds = self._layers()
        for index, is_attention in enumerate(kinds):
            normed = self._pass.new(self._wide(shape.embedding), stream)
            mixed = self._attention(normed, index) if is_attention else self._state(normed)
            width = self.widest.tokens
            if index == len(kinds) - 1:
                width = self.widest.rows
                mixed = self._pass.new(self._wide(shape.embedding, width), mixed, self._rows)
                stream = self._pass.new(self._wide(shape.embedding, width), stream, self._rows)
            stream = self._added(self._wide(shape.embedding, width), mixed, stream)
            if shape.feed_forward:
                stream = self._feed_forward(stream, width)
        normed = self._pass.over(self._wide(shape.embedding, self.widest.rows), stream)
        self._pass.new(self._wide(shape.vocabulary, self.widest.rows), normed)
        return self._pass

    def _added(self, size: int, result: int, stream: int) -> int:
        """The residual stream with the result of a layer, written over the one that the model's graph names first."""
        has_convolutions = self.shape.state_layers and not self.shape.state_inner
        return self._pass.over(size, *((stream, result) if has_convolutions else (result, stream)))

    def _layers(self) -> list[bool]:
        """A few layers that stand for all: whether each of them is attention."""
        shape = self.shape
        if not shape.state_layers:
            return [True] * min(shape.layers, _LAYERS)
        if not self._has_attention:
            return [False] * min(shape.layers, _LAYERS)
        return [False, True, False, False, True, False]

    def _kinds(self) -> int:
        """How many kinds of attention there are, each with its own mask."""
        shape = self.shape
        if not self._has_attention:
            return 0
        return (shape.full_layers > 0) + (shape.layers - shape.state_layers > shape.full_layers)

    def _wide(self, width: int, rows: int | None = None) -> int:
        return width * (self.widest.tokens if rows is None else rows) * _FLOAT

    def _attention(self, normed: int, index: int) -> int:
        shape, made = self.shape, self._pass
        query = self._projected(normed, shape.heads * shape.key_length, by_position=True)
        value = self._projected(normed, shape.kv_heads * shape.value_length)
        key = self._projected(normed, shape.kv_heads * shape.key_length, by_position=True)
        made.read(key, self._places)
        made.read(value, self._places)
        # A file that claims to have no heads has no mask either.
        masks = self._masks[index % len(self._masks) :][:1] if self._masks else []
        mixed = self._wide(shape.heads * shape.value_length)
        out = made.new(mixed, query, *masks)
        if self._is_rotated:
            out = made.new(mixed, self._rotation, out)
        return made.new(self._wide(shape.embedding), out)

    def _projected(self, normed: int, width: int, by_position: bool = False) -> int:
        size = self._wide(width)
        out = self._pass.new(size, normed)
        if by_position:
            # By heads it is a view, over which nothing is written.
            out = self._pass.new(size, out, self._positions)
        return self._pass.new(size, self._rotation, out) if self._is_rotated else out

    def _feed_forward(self, stream: int, width: int) -> int:
        shape, made = self.shape, self._pass
        size = self._wide(shape.embedding, width)
        normed = made.new(size, stream)
        if shape.experts_used:
            return self._added(size, self._experts(normed, width), stream)
        inner = self._wide(shape.feed_forward, width)
        gate = made.new(inner, normed)
        up = made.new(inner, normed)
        return self._added(size, made.new(size, made.new(inner, gate, up)), stream)

    def _experts(self, normed: int, width: int) -> int:
        shape, made = self.shape, self._pass
        inner = self._wide(shape.feed_forward * shape.experts_used, width)
        outer = self._wide(shape.embedding * shape.experts_used, width)
        choices = self._wide(shape.experts, width)
        scores = made.over(choices, made.new(choices, normed))
        chosen = made.new(choices, scores)
        weights = made.new(self._wide(shape.experts_used, width), scores, chosen)
        sums = made.over(self._wide(1, width), made.new(self._wide(1, width), weights))
        weights = made.new(self._wide(shape.experts_used, width), weights, sums)
        gate = made.new(inner, normed, chosen)
        up = made.new(inner, normed, chosen)
        out = made.new(outer, made.new(inner, gate, up), chosen)
        weighted = made.over(outer, out, weights)
        return made.new(self._wide(shape.embedding, width), weighted)

    def _state(self, normed: int) -> int:
        if self.shape.state_inner:
            return self._state_space(normed)
        return self._short_convolution(normed)

    def _short_convolution(self, normed: int) -> int:
        shape, made = self.shape, self._pass
        size = self._wide(shape.embedding)
        state = made.new(shape.state_elements * _FLOAT)
        projected = made.new(3 * size, normed)
        gated = made.new(size, projected)
        joined = made.new(size + shape.state_elements * _FLOAT, state, gated)
        made.read(joined)
        convolved = made.new(size, joined)
        return made.new(size, made.over(size, convolved, projected))

    def _state_space(self, normed: int) -> int:
        shape, made = self.shape, self._pass
        inner = self._wide(shape.state_inner)
        state = shape.state_elements * _FLOAT
        projected = made.new(2 * inner, normed)
        joined = made.new(inner, projected)
        made.read(joined)
        convolved = made.over(inner, made.new(inner, joined))
        step = made.new(inner // 32, convolved)
        steps = made.new(inner, step)
        scanned = made.new(inner + state, convolved, steps, step)
        made.read(scanned)
        skipped = made.over(inner, convolved)
        summed = made.over(inner, skipped, scanned)
        gate = made.new(inner, projected)
        return made.new(self._wide(shape.embedding), made.new(inner, gate, summed))


def _rotations(key_length: int) -> int:
    """Elements of the matrices that rotate: for keys the largest power of two that divides their width, for values 64."""
    widest = _ROTATED
    while key_length % (2 * widest) == 0:
        widest *= 2
    return widest**2 + _ROTATED**2
