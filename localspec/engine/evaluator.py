"""What the loop needs of a model and of a sampler. `llama.Context` and `sampling.Sampler` are the real ones; tests bring
probability tables."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from localspec.engine.distribution import Distribution


class Evaluator(Protocol):
    """A token stream with a model behind it."""

    tokens: list[int]
    """The tokens evaluated so far, in order."""
    length: int
    """Most tokens it can hold."""
    batch_size: int
    """Most tokens in one pass."""
    busy_seconds: float
    """Time spent inside evaluations."""

    def decode(self, tokens: Sequence[int], rows: int = 0) -> None:
        """Evaluate `tokens` after those it holds; the last `rows` of them leave logits."""

    def row(self, index: int) -> NDArray[np.float32]:
        """Logits of one of those rows, shape (V,), valid until the next decode."""

    def truncate(self, length: int) -> int:
        """Roll back to `length` tokens; returns how many are kept, which can be fewer."""

    def mark(self, name: str) -> None:
        """Make the present length one that `truncate` can come back to exactly."""


class RowSampler(Protocol):
    """Sampling settings with the tokens seen so far."""

    def begin(self, tokens: Iterable[int]) -> None:
        """Start over with these tokens seen."""

    def accept(self, token: int) -> None:
        """The token has been emitted."""

    def fork(self) -> "RowSampler":
        """The same state, to go ahead with drafted tokens."""

    def distribution(self, row: NDArray[Any]) -> Distribution:
        """What the next token is sampled from."""

    def draw(self, row: NDArray[Any], key: int) -> int:
        """The token that the random field of `key` picks."""


class Codec(Protocol):
    """Token ids to text. `llama.Vocabulary` is the real one."""

    def piece(self, token: int) -> bytes:
        """The bytes a token adds to the text."""

    def is_end(self, token: int) -> bool:
        """Whether the token ends a generation."""
