"""GGUF files of models in their real size whose weights are a hole: there are a header and a tensor table, and no data."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import gguf
import numpy as np


@dataclass(frozen=True)
class Blueprint:
    """The measures of a model, by their names in its file."""

    architecture: str
    layers: int
    embedding: int
    feed_forward: int = 0
    heads: int = 0
    kv_heads: int | tuple[int, ...] = 0
    head: int = 0
    vocabulary: int = 32000
    tied: bool = True
    has_bias: bool = False
    has_head_norms: bool = False
    has_post_norms: bool = False
    window: int = 0
    experts: int = 0
    experts_used: int = 0
    inner: int = 0
    state: int = 16

    def write(self, path: Path) -> Path:
        """Write the file: it is as long as the model's, and takes next to no place."""
        writer = gguf.GGUFWriter(path, self.architecture)
        self._metadata(writer)
        length = 0
        for name, shape in self._tensors().items():
            kind = np.dtype(np.float16 if len(shape) > 1 and "conv" not in name and "ssm_a" not in name else np.float32)
            size = int(np.prod(shape)) * kind.itemsize
            writer.add_tensor_info(name, list(shape), kind, size)
            length += -(-size // 32) * 32
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        writer.close()
        os.truncate(path, -(-path.stat().st_size // 32) * 32 + length)
        return path

    def _metadata(self, writer: gguf.GGUFWriter) -> None:
        numbers = {
            "block_count": self.layers,
            "context_length": 32768,
            "embedding_length": self.embedding,
            "feed_forward_length": self.feed_forward,
            "attention.head_count": self.heads,
            "attention.key_length": self.head,
            "attention.value_length": self.head,
            "rope.dimension_count": self.head,
            "attention.sliding_window": self.window,
            "expert_count": self.experts,
            "expert_used_count": self.experts_used,
            "expert_feed_forward_length": self.feed_forward if self.experts else 0,
            "shortconv.l_cache": 3 if isinstance(self.kv_heads, tuple) else 0,
            "ssm.conv_kernel": 4 if self.inner else 0,
            "ssm.inner_size": self.inner,
            "ssm.state_size": self.state if self.inner else 0,
            "ssm.time_step_rank": self.embedding // 16 if self.inner else 0,
        }
        needed = ("feed_forward_length", "attention.head_count")
        for key, number in numbers.items():
            if number or key in needed:
                writer.add_uint32(f"{self.architecture}.{key}", number)
        if isinstance(self.kv_heads, tuple):
            writer.add_array(f"{self.architecture}.attention.head_count_kv", list(self.kv_heads))
        else:
            writer.add_uint32(f"{self.architecture}.attention.head_count_kv", self.kv_heads)
        writer.add_float32(f"{self.architecture}.attention.layer_norm_rms_epsilon", 1e-5)
        writer.add_string("tokenizer.ggml.model", "gpt2")
        writer.add_string("tokenizer.ggml.pre", "gpt-2")
        writer.add_array("tokenizer.ggml.tokens", _tokens(self.vocabulary))
        writer.add_array("tokenizer.ggml.token_type", [1] * self.vocabulary)
        writer.add_array("tokenizer.ggml.merges", ["a b"])
        writer.add_uint32("tokenizer.ggml.eos_token_id", 1)

    def _tensors(self) -> dict[str, tuple[int, ...]]:
        width = self.embedding
        norm = "token_embd_norm" if isinstance(self.kv_heads, tuple) else "output_norm"
        tensors = {"token_embd": (self.vocabulary, width), norm: (width,)}
        if not self.tied:
            tensors["output"] = (self.vocabulary, width)
        tensors = {f"{name}.weight": shape for name, shape in tensors.items()}
        for block in range(self.layers):
            parts: dict[str, tuple[int, ...]] = {"attn_norm.weight": (width,)}
            kv_heads = self.kv_heads[block] if isinstance(self.kv_heads, tuple) else self.kv_heads
            parts |= self._state_space() if self.inner else self._mixer(kv_heads) | self._feed_forward()
            tensors |= {f"blk.{block}.{name}": shape for name, shape in parts.items()}
        return tensors

    def _mixer(self, kv_heads: int) -> dict[str, tuple[int, ...]]:
        width, queries, keys = self.embedding, self.heads * self.head, kv_heads * self.head
        if not kv_heads:
            names = {"conv": (width, 3), "in_proj": (3 * width, width), "out_proj": (width, width)}
            return {f"shortconv.{name}.weight": shape for name, shape in names.items()}
        parts: dict[str, tuple[int, ...]] = {
            "attn_q.weight": (queries, width),
            "attn_k.weight": (keys, width),
            "attn_v.weight": (keys, width),
            "attn_output.weight": (width, queries),
        }
        if self.has_bias:
            parts |= {"attn_q.bias": (queries,), "attn_k.bias": (keys,), "attn_v.bias": (keys,)}
        if self.has_head_norms:
            parts |= {"attn_q_norm.weight": (self.head,), "attn_k_norm.weight": (self.head,)}
        if self.has_post_norms:
            parts |= {"post_attention_norm.weight": (width,), "post_ffw_norm.weight": (width,)}
        return parts

    def _feed_forward(self) -> dict[str, tuple[int, ...]]:
        width, inner = self.embedding, self.feed_forward
        parts: dict[str, tuple[int, ...]] = {"gate": (inner, width), "up": (inner, width), "down": (width, inner)}
        if self.experts:
            parts = {f"{name}_exps": (self.experts, *shape) for name, shape in parts.items()}
            parts["gate_inp"] = (self.experts, width)
        return {f"ffn_{name}.weight": shape for name, shape in parts.items()} | {"ffn_norm.weight": (width,)}

    def _state_space(self) -> dict[str, tuple[int, ...]]:
        width, inner, state, rank = self.embedding, self.inner, self.state, self.embedding // 16
        return {
            "ssm_in.weight": (2 * inner, width),
            "ssm_conv1d.weight": (inner, 4),
            "ssm_conv1d.bias": (inner,),
            "ssm_x.weight": (rank + 2 * state, inner),
            "ssm_dt.weight": (inner, rank),
            "ssm_dt.bias": (inner,),
            "ssm_a": (inner, state),
            "ssm_d": (inner,),
            "ssm_out.weight": (width, inner),
        }


@cache
def _tokens(count: int) -> list[str]:
    return [f"t{index}" for index in range(count - 2)] + ["a", "ab"]


MODELS = {
    "Llama 3.1 8B": Blueprint("llama", 32, 4096, 14336, 32, 8, 128, 128256, tied=False),
    "Qwen2.5 0.5B": Blueprint("qwen2", 24, 896, 4864, 14, 2, 64, 151936, has_bias=True),
    "Qwen3 0.6B": Blueprint("qwen3", 28, 1024, 3072, 16, 8, 128, 151936, has_head_norms=True),
    "Qwen3 32B": Blueprint("qwen3", 64, 5120, 25600, 64, 8, 128, 151936, tied=False, has_head_norms=True),
    "Qwen3 30B A3B": Blueprint(
        "qwen3moe", 48, 2048, 768, 32, 4, 128, 151936, has_head_norms=True, experts=128, experts_used=8
    ),
    "Gemma 3 12B": Blueprint(
        "gemma3", 48, 3840, 15360, 16, 8, 256, 262144, has_head_norms=True, has_post_norms=True, window=1024
    ),
    "LFM2 1.2B": Blueprint(
        "lfm2", 16, 2048, 8192, 32, (0, 0, 8, 0, 0, 8, 0, 0, 8, 0, 8, 0, 8, 0, 8, 0), 64, 65536, has_head_norms=True
    ),
    "Mamba 790M": Blueprint("mamba", 48, 1536, vocabulary=50280, inner=3072),
}
"""Models that people use, by their makers' own measures."""
