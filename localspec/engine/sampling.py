"""Sampling settings, and the distribution that a token is really sampled from."""

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localspec.engine.distribution import Distribution, draw_from_logits
from localspec.engine.errors import ModelError, UserError
from localspec.engine.llama import Chain, ChainSettings

_BLOCK = 64
"""Logits per block when looking for the top k: the k-th largest block maximum is a floor for the k-th largest logit."""

_COLDEST = 1e-5
"""Below this temperature nothing but the most probable token is left, and the arithmetic breaks down."""

_RANGES: dict[str, tuple[float, float]] = {
    "temperature": (0.0, 10.0),
    "top_k": (0, 1_000_000),
    "top_p": (0.0, 1.0),
    "min_p": (0.0, 1.0),
    "repeat_penalty": (0.01, 10.0),
    "frequency_penalty": (-10.0, 10.0),
    "presence_penalty": (-10.0, 10.0),
    "penalty_window": (0, 65_536),
}


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is chosen. Defaults are those of the command line. Raises UserError for nonsense."""

    temperature: float = 0.7
    """0 always takes the most probable token."""
    top_k: int = 40
    """Keep this many of the most probable tokens; 0 keeps all."""
    top_p: float = 0.95
    """Keep the most probable tokens up to this much probability; 1 keeps all."""
    min_p: float = 0.0
    """Drop tokens less probable than this share of the most probable one; 0 drops none."""
    repeat_penalty: float = 1.0
    """Divide (or multiply, below zero) the logits of recent tokens; 1 changes nothing."""
    frequency_penalty: float = 0.0
    """Subtract this for every recent occurrence of a token."""
    presence_penalty: float = 0.0
    """Subtract this once for a token that occurred recently."""
    penalty_window: int = 64
    """How many tokens back "recent" reaches, the prompt included."""

    def __post_init__(self) -> None:
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            whole = isinstance(low, int)
            if not math.isfinite(value) or not low <= value <= high or (whole and value != int(value)):
                raise UserError(
                    f"{name.replace('_', ' ')} {value} makes no sense; give a number from {low:g} to {high:g}."
                )

    @property
    def greedy(self) -> bool:
        """Whether the most probable token is taken every time (temperature 0, or only one candidate)."""
        return self.temperature < _COLDEST or self.top_k == 1

    def chain_settings(self, vocabulary_size: int) -> ChainSettings:
        """The same settings for llama.cpp's sampler chain."""
        return ChainSettings(
            vocabulary_size=vocabulary_size,
            temperature=1.0 if self.greedy else self.temperature,
            top_k=1 if self.greedy else self.top_k,
            top_p=self.top_p,
            min_p=self.min_p,
            repeat_penalty=self.repeat_penalty,
            frequency_penalty=self.frequency_penalty,
            presence_penalty=self.presence_penalty,
            penalty_window=self.penalty_window,
        )


class Sampler:
    """Turns rows of logits into distributions and tokens, for one token stream.

    The penalties look at the tokens given to `accept`, so a row may only be asked for when every token before it has
    been accepted: rows of a draft are processed one after the other, and a fork goes ahead where a draft model needs it.
    """

    def __init__(self, settings: Sampling, vocabulary_size: int, _chain: Chain | None = None) -> None:
        self.settings = settings
        self.vocabulary_size = vocabulary_size
        self._chain = _chain or Chain(settings.chain_settings(vocabulary_size))
        self._penalizes = self._chain.settings.penalizes
        self._recent: deque[int] = deque(maxlen=settings.penalty_window if self._penalizes else 0)

    def begin(self, tokens: Iterable[int]) -> None:
        """Start over: the penalties have seen `tokens` and nothing else."""
        if not self._penalizes:
            return
        self._chain.reset()
        self._recent.clear()
        self._recent.extend(tokens)
        for token in self._recent:
            self._chain.accept(token)

    def accept(self, token: int) -> None:
        """The token has been emitted."""
        if self._penalizes:
            self._chain.accept(token)
            self._recent.append(token)

    def fork(self) -> "Sampler":
        """The same state, to go ahead with drafted tokens without touching this one."""
        if not self._penalizes:
            return self
        other = Sampler(self.settings, self.vocabulary_size, self._chain.clone())
        other._recent.extend(self._recent)
        return other

    def distribution(self, row: NDArray[np.float32]) -> Distribution:
        """What the next token is sampled from. `row`: logits, shape (V,) or a shorter prefix of the vocabulary."""
        if self.settings.greedy and not self._penalizes:
            return Distribution(np.array([self.draw(row, 0)], np.int32), np.ones(1))
        return Distribution.from_logits(*self._shaped(row))

    def draw(self, row: NDArray[np.float32], key: int) -> int:
        """The token that the random field of `key` picks; the most probable one when greedy."""
        if self.settings.greedy and not self._penalizes:
            token = int(row.argmax())
            _refuse_nonsense(float(row[token]))
            return token
        return draw_from_logits(*self._shaped(row), key)

    def _shaped(self, row: NDArray[np.float32]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Ids and logits of what the chain leaves of a row."""
        ids = self._candidates(row)
        return self._chain.apply(ids, row.take(ids))

    def _candidates(self, row: NDArray[np.float32]) -> NDArray[Any]:
        """Ids that hold everything the chain can keep: the chain's own top-k then picks among a hundred, not 150,000.

        Penalties move only recent tokens, m of them, so the penalized top k lies within the raw top k + m and those m.
        """
        top_k = self._chain.settings.top_k
        if top_k <= 0:
            _refuse_nonsense(float(row.max()))
            return np.arange(row.size, dtype=np.int32)
        if not self._penalizes:
            return largest(row, top_k)
        recent = np.unique(np.fromiter(self._recent, np.int32, len(self._recent)))
        recent = recent[recent < row.size]
        ids = largest(row, top_k + recent.size)
        return np.union1d(ids, recent).astype(np.int32) if recent.size else ids


def largest(row: NDArray[np.float32], k: int) -> NDArray[Any]:
    """Ids of a set that contains the k largest values of `row` (shape (V,)) and few others, in rising order."""
    blocks = row.size // _BLOCK
    if k >= blocks:
        _refuse_nonsense(float(row.max()))
        return np.arange(row.size, dtype=np.int32)
    # A block is every blocks-th logit, not neighbors: the maximum over rows is ten times faster than along them.
    maxima = np.maximum.reduce(row[: blocks * _BLOCK].reshape(_BLOCK, blocks))
    maxima.partition(blocks - k)
    # What is not a number sorts behind the largest.
    _refuse_nonsense(float(maxima[blocks - k :].max()))
    found: NDArray[Any] = (row >= maxima[blocks - k]).nonzero()[0]
    return found


def _refuse_nonsense(largest_logit: float) -> None:
    if math.isnan(largest_logit) or largest_logit == math.inf:
        raise nonsense()


def nonsense() -> ModelError:
    """What to say of logits that are no numbers."""
    return ModelError("The model computes something that is no number; download its file again, or choose another one.")


def log_probability(row: NDArray[np.float32], token: int) -> float:
    """The natural logarithm of the model's own probability of a token, before any sampling setting. `row`: shape (V,)."""
    peak = float(row.max())
    return float(row[token]) - peak - math.log(float(np.exp(row.astype(np.float64) - peak).sum()))
