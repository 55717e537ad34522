"""What of a model decides how much memory it needs."""

from __future__ import annotations

from dataclasses import dataclass

from localspec.engine.gguf import GgufHeader, head_widths

MOST_LAYERS = 512
"""llama.cpp loads no more (LLAMA_MAX_LAYERS)."""
_WINDOW_PATTERN = {
    "afmoe": 4,
    "cohere2": 4,
    "exaone4": 4,
    "gemma2": 2,
    "gemma3": 6,
    "gemma3n": 5,
    "gemma4": 6,
    "gpt-oss": 2,
    "llama4": 4,
    "olmo2": 4,
    "plamo3": 8,
    "smallthinker": 4,
}
"""Architectures whose layers have sliding windows -> one layer in so many sees everything, where the file does not say."""
_SNAPSHOTS = {
    "bailingmoe3",
    "deepseek4",
    "glm5-next",
    "kimi-k3",
    "lfm2",
    "lfm2moe",
    "nemotron_h",
    "nemotron_h_moe",
    "qwen35",
    "qwen35moe",
    "qwen4exp",
}
"""Architectures of which llama.cpp can keep snapshots of the running state."""
_RECURRENT = {"mamba", "mamba2", "rwkv6", "rwkv6qwen2", "rwkv7", "arwkv7"}
"""Architectures without any attention."""
_INTERVAL = {"qwen3next", "qwen35", "qwen35moe", "qwen4exp", "minimax-01"}
"""Architectures in which one layer in so many is attention: 4, where the file does not say."""


@dataclass(frozen=True, slots=True)
class ModelShape:
    """The measures of a model, as its GGUF header or the catalog gives them."""

    layers: int
    embedding: int
    """Width of the residual stream."""
    feed_forward: int
    """Width of the feed-forward layer; of one expert where there are several."""
    heads: int
    kv_heads: int
    key_length: int
    """Width of one head's key."""
    value_length: int
    """Width of one head's value."""
    vocabulary: int
    """Number of tokens."""
    trained_context: int
    """Tokens that the model was trained with."""
    sliding_window: int = 0
    """Tokens that a layer with a sliding window sees; 0 where all layers see everything."""
    full_every: int = 0
    """With a sliding window: one layer in so many sees everything; 0 where none does."""
    cached_heads: int = 0
    """Heads of all layers together whose keys and values are kept; 0: `kv_heads` in every layer without a running state."""
    state_layers: int = 0
    """Layers that keep a running state."""
    state_elements: int = 0
    """Numbers (float32) in the running state of one such layer."""
    state_snapshots: int = 0
    """1 where llama.cpp can keep snapshots of the running states, so that refused drafts are dropped for free; else 0."""
    state_inner: int = 0
    """Width inside such a layer; 0 where it is a short convolution over the residual stream."""
    experts: int = 0
    """Experts of a layer, 0 where one feed-forward layer serves all tokens."""
    experts_used: int = 0
    """Experts that see one token."""

    @property
    def all_cached_heads(self) -> int:
        """Heads of all layers together whose keys and values are kept."""
        return self.cached_heads or self.kv_heads * (self.layers - self.state_layers)

    @property
    def full_layers(self) -> int:
        """Layers with attention that see everything."""
        attention = self.layers - self.state_layers
        if not self.sliding_window:
            return attention
        return attention // self.full_every if self.full_every else 0


def shape_of(header: GgufHeader) -> ModelShape:
    """The measures of the model whose header this is; those that it does not give are 0."""
    # The last layers of some models predict several tokens at once; they are not loaded.
    layers = max(0, (header.block_count or 0) - _number(header, "nextn_predict_layers"))
    # A file that claims more is refused when it is loaded; here it must not cost memory and time.
    layers = min(layers, MOST_LAYERS)
    embedding = header.embedding_length or 0
    key, value = head_widths(header)
    heads = _per_layer(header, "attention.head_count", layers, 0)
    default = max(heads, default=0)
    kv_heads = _per_layer(header, "attention.head_count_kv", layers, default)
    feed_forward = _per_layer(header, "feed_forward_length", layers, 0)
    stateful = _state_layers(header, layers, kv_heads, feed_forward)
    experts = _number(header, "expert_count")
    window = _number(header, "attention.sliding_window") if header.architecture in _WINDOW_PATTERN else 0
    conv, state, inner = _state(header, embedding, default)
    return ModelShape(
        layers=layers,
        embedding=embedding,
        feed_forward=(_number(header, "expert_feed_forward_length") if experts else 0) or max(feed_forward, default=0),
        heads=default,
        kv_heads=max(kv_heads, default=0),
        key_length=key,
        value_length=value,
        vocabulary=header.vocabulary_size or _number(header, "vocab_size"),
        trained_context=header.context_length or 0,
        sliding_window=window,
        full_every=_full_every(header) if window else 0,
        cached_heads=_cached_heads(header, kv_heads, stateful),
        state_layers=len(stateful),
        state_elements=conv + state if stateful else 0,
        state_snapshots=int(header.architecture in _SNAPSHOTS and bool(stateful)),
        state_inner=inner if stateful else 0,
        experts=experts,
        experts_used=_number(header, "expert_used_count") if experts else 0,
    )


def _cached_heads(header: GgufHeader, kv_heads: list[int], stateful: set[int]) -> int:
    """KV heads of all layers together that keep keys and values of their own."""
    # The last layers of some models read the cache of earlier ones.
    own = len(kv_heads) - _number(header, "attention.shared_kv_layers")
    skipped = set() if header.architecture == "falcon-h1" else stateful
    return sum(count for layer, count in enumerate(kv_heads) if layer < own and layer not in skipped)


def _state_layers(header: GgufHeader, layers: int, kv_heads: list[int], feed_forward: list[int]) -> set[int]:
    """Indices of the layers with a running state."""
    architecture = header.architecture
    if architecture in _RECURRENT or architecture == "falcon-h1":
        return set(range(layers))
    if architecture in _INTERVAL:
        told = header.arch("attention.recurrent_layers")
        if isinstance(told, tuple):
            return {layer for layer, is_stateful in enumerate(told[:layers]) if is_stateful}
        interval = _number(header, "full_attention_interval") or 4
        return {layer for layer in range(layers) if (layer + 1) % interval}
    only_state = architecture.startswith("nemotron_h")
    per_layer = isinstance(header.arch("attention.head_count_kv"), tuple)
    return {
        layer
        for layer, count in enumerate(kv_heads)
        if per_layer and count == 0 and not (only_state and feed_forward[layer])
    }


def _state(header: GgufHeader, embedding: int, heads: int) -> tuple[int, int, int]:
    """Elements of a layer's convolution and of its state, and its width inside, as llama.cpp computes them in
    llama_hparams::n_embd_r and n_embd_s."""
    if head := _number(header, "wkv.head_size"):
        return (_number(header, "token_shift_count") or 2) * embedding, embedding * head, embedding
    if kernel := _number(header, "shortconv.l_cache"):
        return embedding * (kernel - 1), 0, 0
    kernel = _number(header, "ssm.conv_kernel")
    if head := _number(header, "kda.head_dim"):
        inner = heads * head
        return 3 * ((kernel or 4) - 1) * inner, head * inner, inner
    inner, state = _number(header, "ssm.inner_size"), _number(header, "ssm.state_size")
    conv = max(0, kernel - 1) * (inner + 2 * _number(header, "ssm.group_count") * state)
    return conv, state * inner, inner


def _full_every(header: GgufHeader) -> int:
    pattern = header.arch("attention.sliding_window_pattern")
    if isinstance(pattern, tuple):
        full = sum(not windowed for windowed in pattern)
        return len(pattern) // full if full else 0
    return pattern if isinstance(pattern, int) else _WINDOW_PATTERN[header.architecture]


def _per_layer(header: GgufHeader, key: str, layers: int, default: int) -> list[int]:
    value = header.arch(key, default)
    if isinstance(value, tuple):
        numbers = [item if isinstance(item, int) and item >= 0 else 0 for item in value]
        return (numbers + [0] * layers)[:layers]
    return [value if isinstance(value, int) and value >= 0 else default] * layers


def _number(header: GgufHeader, key: str) -> int:
    value = header.arch(key)
    return value if isinstance(value, int) and value >= 0 else 0
