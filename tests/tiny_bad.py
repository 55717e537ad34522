"""Tiny GGUF files that localspec has to refuse, or to look at twice. Each is a tiny llama with one thing wrong."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

import tiny


def vocab_only(path: Path) -> Path:
    """Metadata and a vocabulary, no tensors."""
    recipe = tiny.llama_recipe()
    recipe.tensors = {}
    return recipe.write(path)


def embedding(path: Path, *, architecture: str = "bert", pooling: int = 1, causal: bool = False) -> Path:
    """The header of an embedding model: an encoder `architecture`, pooled and not causal unless asked otherwise.

    The tensors are a llama's, so no back end can load it; what is tested is that nobody tries.
    """
    recipe = _renamed(architecture)
    recipe.metadata[f"{architecture}.pooling_type"] = pooling
    recipe.metadata[f"{architecture}.attention.causal"] = causal
    return recipe.write(path)


def unknown_architecture(path: Path, *, architecture: str = "unheardof") -> Path:
    """A sound file of an architecture that llama.cpp does not know."""
    return _renamed(architecture).write(path)


def truncated(path: Path, source: Path, *, keep: float = 0.7) -> Path:
    """The first `keep` of the bytes of `source`: with the default the header is whole and the tensors are cut."""
    whole = source.read_bytes()
    path.write_bytes(whole[: int(len(whole) * keep)])
    return path


def other_vocabulary(
    path: Path,
    *,
    seed: int = 0,
    noise: float = 0.0,
    swap: tuple[int, int] | None = (65, 66),
    padding: int = 0,
    padding_type: gguf.TokenType = gguf.TokenType.UNUSED,
) -> Path:
    """The tiny llama with two token strings exchanged (`swap`), and `padding` tokens `[PAD261]`... added at the end.

    With the default swap the first id that differs is 65: "A" there, "B" here. `swap=None` leaves the strings alone, so
    that the vocabularies differ in size only; the padding has zero rows in both matrices, as untrained rows do.
    """
    recipe = tiny.llama_recipe(seed=seed)
    tiny.add_noise(recipe.tensors, noise, 1)
    if swap is not None:
        first, second = swap
        recipe.tokens[first], recipe.tokens[second] = recipe.tokens[second], recipe.tokens[first]
    size = tiny.VOCABULARY_SIZE + padding
    recipe.tokens += [f"[PAD{number}]" for number in range(tiny.VOCABULARY_SIZE, size)]
    recipe.types += [int(padding_type)] * padding
    recipe.metadata["llama.vocab_size"] = size
    for name in ("token_embd.weight", "output.weight"):
        recipe.tensors[name] = np.pad(recipe.tensors[name], ((0, padding), (0, 0)))
    return recipe.write(path)


def _renamed(architecture: str) -> tiny.Recipe:
    recipe = tiny.llama_recipe()
    recipe.architecture = architecture
    recipe.metadata = {key.replace("llama.", f"{architecture}.", 1): value for key, value in recipe.metadata.items()}
    return recipe
