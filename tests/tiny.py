"""Tiny GGUF models made from nothing: real architectures with random weights, under 1 MB, built in milliseconds.

All share one vocabulary of 261 tokens: 256 byte tokens whose id is the byte, then `<|im_start|>`, `<|im_end|>` (end of
turn), `<s>`, `</s>` and `ab` with the one merge llama.cpp insists on. Matrices are normal with a deviation of one over
the square root of the input width, norms are ones, all float32. The same seed gives the same weights on every machine.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import gguf
import numpy as np
from numpy.typing import NDArray

Weights = dict[str, NDArray[np.float32]]
Value = object
"""A metadata value: bool, int, float, str, or a list of one of them."""

IM_START, IM_END, BOS, EOS, AB = 256, 257, 258, 259, 260
VOCABULARY_SIZE = 261
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@dataclass
class Recipe:
    """Everything that goes into one file: change a field, then `write` it."""

    architecture: str
    metadata: dict[str, Value]
    tensors: Weights
    tokens: list[str] = field(default_factory=lambda: vocabulary()[0])
    types: list[int] = field(default_factory=lambda: vocabulary()[1])

    def write(self, path: Path, *, extra: Mapping[str, Value] | None = None, drop: Collection[str] = ()) -> Path:
        """Write the file. `extra` sets metadata by full key; `drop` leaves out metadata keys and tensors by name."""
        writer = gguf.GGUFWriter(path, self.architecture)
        metadata = self.metadata | self._tokenizer() | dict(extra or {})
        for key, value in metadata.items():
            if key not in drop:
                _add_value(writer, key, value)
        for name, tensor in self.tensors.items():
            if name not in drop:
                writer.add_tensor(name, tensor)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path

    def _tokenizer(self) -> dict[str, Value]:
        return {
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": "gpt-2",
            "tokenizer.ggml.tokens": self.tokens,
            "tokenizer.ggml.token_type": self.types,
            "tokenizer.ggml.merges": ["a b"],
            "tokenizer.ggml.bos_token_id": BOS,
            "tokenizer.ggml.eos_token_id": IM_END,
            "tokenizer.ggml.add_bos_token": False,
        }


def vocabulary() -> tuple[list[str], list[int]]:
    """Token strings and token types, in id order."""
    printable = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)}
    stand_ins = iter(range(256, 512))  # GPT-2 spells every other byte as a character from here on, in byte order
    spelled = [chr(byte) if byte in printable else chr(next(stand_ins)) for byte in range(256)]
    control = ["<|im_start|>", "<|im_end|>", "<s>", "</s>"]
    types = [gguf.TokenType.NORMAL] * 256 + [gguf.TokenType.CONTROL] * 4 + [gguf.TokenType.NORMAL]
    return [*spelled, *control, "ab"], [int(kind) for kind in types]


def llama(
    path: Path,
    *,
    seed: int = 0,
    noise: float = 0.0,
    noise_seed: int = 1,
    heads: int = 2,
    context: int = 2048,
    layers: int = 2,
    width: int = 64,
    chat_template: str | None = None,
    extra: Mapping[str, Value] | None = None,
    drop: Collection[str] = (),
) -> Path:
    """Plain attention.

    `noise` adds seeded Gaussian noise of that many standard deviations to every block matrix: the same `seed` with some
    noise is a draft model that agrees in part. Two heads are 32 wide, which q8_0 caches need; four are 16 wide.
    """
    recipe = llama_recipe(seed=seed, heads=heads, context=context, layers=layers, width=width)
    add_noise(recipe.tensors, noise, noise_seed)
    if chat_template is not None:
        recipe.metadata["tokenizer.chat_template"] = chat_template
    return recipe.write(path, extra=extra, drop=drop)


def llama_recipe(*, seed: int = 0, heads: int = 2, context: int = 2048, layers: int = 2, width: int = 64) -> Recipe:
    """What `llama` writes, for tests that want to change something first."""
    source = _Source(seed, width)
    kv_heads, head = max(1, heads // 2), width // heads
    tensors = source.ends()
    for block in range(layers):
        tensors |= source.attention(block, heads, kv_heads, head) | source.feed_forward(block)
    metadata = _common("llama", width, layers, context, heads, kv_heads) | {"llama.rope.dimension_count": head}
    return Recipe("llama", metadata, tensors)


def gemma3(
    path: Path,
    *,
    seed: int = 0,
    window: int = 32,
    context: int = 2048,
    layers: int = 3,
    extra: Mapping[str, Value] | None = None,
) -> Path:
    """Sliding-window attention over `window` tokens; every sixth layer sees everything."""
    width, heads = 64, 2
    head = width // heads
    source = _Source(seed, width)
    tensors = source.ends()
    for block in range(layers):
        tensors |= source.attention(block, heads, 1, head) | source.feed_forward(block)
        tensors |= source.norms(block, post_attention_norm=width, post_ffw_norm=width)
        tensors |= source.norms(block, attn_q_norm=head, attn_k_norm=head)
    metadata = _common("gemma3", width, layers, context, heads, 1) | {
        "gemma3.attention.key_length": head,
        "gemma3.attention.value_length": head,
        "gemma3.attention.sliding_window": window,
    }
    return Recipe("gemma3", metadata, tensors).write(path, extra=extra)


def lfm2(
    path: Path, *, seed: int = 0, context: int = 2048, repeats: int = 1, extra: Mapping[str, Value] | None = None
) -> Path:
    """Hybrid: short convolution, attention, short convolution, so many times. Its state can be rolled back through
    `n_rs_seq`."""
    width, heads, kv_heads = 64, 2, [0, 1, 0] * repeats
    head = width // heads
    source = _Source(seed, width)
    tensors = source.ends()
    tensors["token_embd_norm.weight"] = tensors.pop("output_norm.weight")
    for block, block_heads in enumerate(kv_heads):
        if block_heads:
            tensors |= source.attention(block, heads, block_heads, head)
            tensors |= source.norms(block, attn_q_norm=head, attn_k_norm=head)
        else:
            tensors |= source.short_convolution(block, kernel=3)
        tensors |= source.feed_forward(block)
    metadata = _common("lfm2", width, len(kv_heads), context, heads, kv_heads) | {
        "lfm2.shortconv.l_cache": 3,
        "lfm2.rope.dimension_count": head,
    }
    return Recipe("lfm2", metadata, tensors).write(path, extra=extra)


def mamba(path: Path, *, seed: int = 0, context: int = 2048, extra: Mapping[str, Value] | None = None) -> Path:
    """Purely recurrent, and of an architecture whose state llama.cpp cannot roll back."""
    width, layers = 64, 2
    source = _Source(seed, width)
    tensors = source.ends()
    for block in range(layers):
        tensors |= source.state_space(block, kernel=4, state=16, rank=4)
    metadata = _common("mamba", width, layers, context, 0, 0) | {
        "mamba.feed_forward_length": 0,
        "mamba.ssm.conv_kernel": 4,
        "mamba.ssm.inner_size": 2 * width,
        "mamba.ssm.state_size": 16,
        "mamba.ssm.time_step_rank": 4,
    }
    return Recipe("mamba", metadata, tensors).write(path, extra=extra)


def add_noise(tensors: Weights, noise: float, seed: int) -> None:
    """Add Gaussian noise of `noise` of its own standard deviations to every matrix of a block, in place."""
    random = np.random.default_rng(seed)
    for name, tensor in tensors.items():
        if noise and name.startswith("blk.") and tensor.ndim == 2:
            tensor += np.float32(noise) * tensor.std() * random.standard_normal(tensor.shape, dtype=np.float32)


class _Source:
    """Seeded weights, by the part of a model they are for. All shapes are (outputs, inputs), as numpy has them."""

    def __init__(self, seed: int, width: int) -> None:
        self.random = np.random.default_rng(seed)
        self.width = width

    def matrix(self, rows: int, columns: int, scale: float = 1.0) -> NDArray[np.float32]:
        normal = self.random.standard_normal((rows, columns), dtype=np.float32)
        return normal * np.float32(scale / columns**0.5)

    def norms(self, block: int, **widths: int) -> Weights:
        return {f"blk.{block}.{name}.weight": np.ones(width, np.float32) for name, width in widths.items()}

    def ends(self) -> Weights:
        # Without the factors the distributions are nearly flat, and every test of sampling sees only noise.
        return {
            "token_embd.weight": self.matrix(VOCABULARY_SIZE, self.width, 4.0),
            "output_norm.weight": np.ones(self.width, np.float32),
            "output.weight": self.matrix(VOCABULARY_SIZE, self.width, 3.0),
        }

    def attention(self, block: int, heads: int, kv_heads: int, head: int) -> Weights:
        name = f"blk.{block}.attn_"
        return self.norms(block, attn_norm=self.width) | {
            f"{name}q.weight": self.matrix(heads * head, self.width),
            f"{name}k.weight": self.matrix(kv_heads * head, self.width),
            f"{name}v.weight": self.matrix(kv_heads * head, self.width),
            f"{name}output.weight": self.matrix(self.width, heads * head),
        }

    def feed_forward(self, block: int) -> Weights:
        inner, name = 2 * self.width, f"blk.{block}.ffn_"
        return self.norms(block, ffn_norm=self.width) | {
            f"{name}gate.weight": self.matrix(inner, self.width),
            f"{name}up.weight": self.matrix(inner, self.width),
            f"{name}down.weight": self.matrix(self.width, inner),
        }

    def short_convolution(self, block: int, kernel: int) -> Weights:
        name = f"blk.{block}.shortconv."
        return self.norms(block, attn_norm=self.width) | {
            f"{name}conv.weight": self.matrix(self.width, kernel),
            f"{name}in_proj.weight": self.matrix(3 * self.width, self.width),
            f"{name}out_proj.weight": self.matrix(self.width, self.width),
        }

    def state_space(self, block: int, kernel: int, state: int, rank: int) -> Weights:
        inner, name = 2 * self.width, f"blk.{block}.ssm_"
        decay = -np.tile(np.arange(1, state + 1, dtype=np.float32), (inner, 1))
        return self.norms(block, attn_norm=self.width) | {
            f"{name}in.weight": self.matrix(2 * inner, self.width),
            f"{name}conv1d.weight": self.matrix(inner, kernel),
            f"{name}conv1d.bias": np.zeros(inner, np.float32),
            f"{name}x.weight": self.matrix(rank + 2 * state, inner),
            f"{name}dt.weight": self.matrix(inner, rank),
            f"{name}dt.bias": np.full(inner, -1.0, np.float32),
            f"{name}a": decay,
            f"{name}d": np.ones(inner, np.float32),
            f"{name}out.weight": self.matrix(self.width, inner),
        }


def _common(
    architecture: str, width: int, layers: int, context: int, heads: int, kv_heads: int | list[int]
) -> dict[str, Value]:
    values = {
        "block_count": layers,
        "context_length": context,
        "embedding_length": width,
        "feed_forward_length": 2 * width,
        "attention.head_count": heads,
        "attention.head_count_kv": kv_heads,
        "attention.layer_norm_rms_epsilon": 1e-5,
        "rope.freq_base": 10000.0,
        "vocab_size": VOCABULARY_SIZE,
    }
    return {f"{architecture}.{key}": value for key, value in values.items()}


def _add_value(writer: gguf.GGUFWriter, key: str, value: Value) -> None:
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    elif isinstance(value, list):
        writer.add_array(key, value)
    else:
        raise TypeError(f"{key}: no GGUF type for {type(value).__name__}")
