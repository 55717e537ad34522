"""Every pass that reaches llama.cpp, written down; and the kinds of memory that a context can have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import tiny_checks
from localspec.engine import engine as engine_module
from localspec.engine.engine import Engine, EngineSettings
from localspec.engine.llama import Context, ContextSettings, Model
from localspec.engine.llama.memory import MemoryKind

CLOSE = 0.05
"""How far logits (up to 13) of two ways to read a text can be apart: passes of one row and of many round differently, and
a 16-bit cache makes up to 0.023 of it. A token that is lost or wrong makes more than this, and mostly more than 0.5."""


@dataclass(frozen=True)
class Pass:
    """One call of llama_decode: which context, which tokens from which position on, and which rows leave logits."""

    context: object
    start: int
    tokens: tuple[int, ...]
    rows: tuple[int, ...]


class Passes(list[Pass]):
    """All calls so far, oldest first."""

    def of(self, context: object) -> list[Pass]:
        """Those of one context."""
        return [entry for entry in self if entry.context == context.handle]  # type: ignore[attr-defined]

    def tokens_of(self, context: object) -> int:
        """How many tokens one context has evaluated."""
        return sum(len(entry.tokens) for entry in self.of(context))


@dataclass(frozen=True)
class MemoryCase:
    """A tiny model by the name of its fixture, how to open it, and the kind of memory this must give."""

    model: str
    kind: MemoryKind
    settings: dict[str, bool] = field(default_factory=dict)


MEMORY_CASES = {
    "attention": MemoryCase("tiny_llama", MemoryKind.PLAIN),
    "whole window": MemoryCase("tiny_gemma", MemoryKind.PLAIN),
    "small window": MemoryCase("tiny_gemma", MemoryKind.WINDOW, {"full_window": False}),
    "hybrid with snapshots": MemoryCase("tiny_lfm2", MemoryKind.SNAPSHOTS),
    "hybrid without snapshots": MemoryCase("tiny_lfm2", MemoryKind.CHECKPOINTS, {"snapshots": False}),
    "recurrent": MemoryCase("tiny_mamba", MemoryKind.CHECKPOINTS),
}


@cache
def _read(path: Path, tokens: tuple[int, ...]) -> NDArray[np.float32]:
    with Model(path) as model:
        return tiny_checks.evaluate(model, list(tokens))


def truth(context: Context, tokens: list[int]) -> NDArray[np.float32]:
    """The logits after each token in a fresh context of the same model, shape (n, V)."""
    return _read(context.model.path, tuple(tokens))


def open_engine(target: Path, draft: Path | None = None, context: int = 512) -> Engine:
    """An engine whose texts can be compared when the target has 8-bit weights (`exactly`): with an 8-bit cache too, its
    rows are the same to the last bit in passes of any width. With a 16-bit cache they are not: passes of 64 rows and more
    take another way through attention, and with several threads so do passes of one row behind 256 tokens."""
    return Engine(EngineSettings(target, draft, context_length=context, threads=1, kv_type="q8_0"))


def draft_context(engine: Engine) -> Context:
    """The draft model's cache: the one of the engine's two contexts that is not the target's."""
    return next(item for item in engine._opened if isinstance(item, Context) and item is not engine.target_context)


@contextmanager
def opening(case: MemoryCase, target: Path, draft: Path | None) -> Iterator[Engine]:
    """An engine whose contexts are opened with the case's settings, which people cannot choose."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine_module, "ContextSettings", partial(ContextSettings, **case.settings))
        with open_engine(target, draft) as engine:
            yield engine
