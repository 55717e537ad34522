"""Numbers of a model file that no model has: on them llama.cpp ends the process it runs in, or computes nothing."""

from collections.abc import Callable, Iterator

from localspec.engine.gguf_format import Value

_MAX_LAYERS = 512
"""llama.cpp's own limit (LLAMA_MAX_LAYERS)."""

Numbers = Callable[[str, Value], Value | None]
"""Gives the value of "{architecture}.{key}", or a default."""


def impossible(of: Numbers) -> Iterator[str]:
    """What is wrong, as clauses that go on behind "its"."""
    layers, context = of("block_count", 1), of("context_length", 1)
    epsilon = of("attention.layer_norm_rms_epsilon", 0.0)
    if not isinstance(layers, int) or not 1 <= layers <= _MAX_LAYERS:
        yield f"number of layers is {layers}"
    elif not _within(more := of("nextn_predict_layers", 0), 0, layers - 1):
        yield f"number of layers that predict further tokens is {more}"
    if not _within(context, 1, (1 << 31) - 1):
        yield f"context length is {context}"
    if isinstance(epsilon, float) and not epsilon >= 0.0:
        yield f"normalization adds {epsilon}"
    yield from _experts(of("expert_count", 0), of("expert_used_count", 0))
    rotated = of("rope.dimension_count", 0)
    if isinstance(rotated, int) and rotated % 2:
        yield f"number of rotated dimensions is {rotated}"


def _experts(count: Value | None, used: Value | None) -> Iterator[str]:
    """Some architectures have numbers for each layer here, of which nothing is known."""
    if not isinstance(count, int) or not isinstance(used, int):
        return
    if not 0 <= used <= count or (count and not used):
        yield f"number of experts is {count}, of which {used} are used"


def _within(value: Value | None, low: int, high: int) -> bool:
    return isinstance(value, int) and low <= value <= high
