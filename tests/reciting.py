"""A real model that recites: its next token is a function of its last one, and so certain that no rounding matters.

The blocks add nothing to the embeddings, and the output row of a token is the embedding of the token that it follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

import tiny

_SURE = 40.0


def recite(path: Path, tokens: Sequence[int], *, but: Mapping[int, int] | None = None) -> Path:
    """Write a model that says `tokens` one after the other, each of them once. `but`: what it says instead after some."""
    assert len(set(tokens)) == len(tokens), "a token can have one successor only"
    recipe = tiny.llama_recipe(seed=1)
    random = np.random.default_rng(1)
    embedding = random.standard_normal((tiny.VOCABULARY_SIZE, 64), dtype=np.float32)
    embedding /= np.linalg.norm(embedding, axis=1, keepdims=True)
    output = np.zeros_like(embedding)
    for token, following in (dict(pairwise(tokens)) | dict(but or {})).items():
        # The norm before the output makes every embedding 8 long, the square root of its width.
        output[following] += _SURE / 8 * embedding[token]
    for name, tensor in recipe.tensors.items():
        if name.endswith(("attn_output.weight", "ffn_down.weight")):
            tensor[:] = 0
    recipe.tensors["token_embd.weight"], recipe.tensors["output.weight"] = embedding, output
    return recipe.write(path)


def circle(path: Path, text: str, *, but: Mapping[int, int] | None = None) -> Path:
    """A model that says the UTF-8 bytes of `text` over and over; no byte may come twice."""
    tokens = list(text.encode())
    return recite(path, tokens, but={tokens[-1]: tokens[0]} | dict(but or {}))
