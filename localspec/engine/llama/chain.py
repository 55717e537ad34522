"""llama.cpp's own sampler chain, applied to candidates that we hand it."""

import ctypes
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from localspec.engine.llama.library import LlamaError, lib

_CANDIDATE = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)], align=True)


_FEW = 512


@dataclass(frozen=True, slots=True)
class ChainSettings:
    """What the chain does, in llama.cpp's order: penalties, top-k, top-p, min-p, temperature."""

    vocabulary_size: int
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    repeat_penalty: float
    frequency_penalty: float
    presence_penalty: float
    penalty_window: int

    @property
    def penalizes(self) -> bool:
        """Whether earlier tokens change the logits at all."""
        changes = self.repeat_penalty != 1.0 or self.frequency_penalty != 0.0 or self.presence_penalty != 0.0
        return changes and self.penalty_window > 0


class Chain:
    """A sampler chain without a last, selecting sampler: it shapes candidates, the drawing is ours."""

    def __init__(self, settings: ChainSettings, _handle: object = None) -> None:
        self.settings = settings
        self._handle = _handle or _build(settings)
        self._reserve(_FEW)

    def apply(
        self, ids: NDArray[np.int32], logits: NDArray[np.float32]
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """What is left of the candidates, and their changed logits; both of shape (m,), m <= n, at least one.

        `ids`, `logits`: shape (n,), n >= 1.
        """
        n = ids.size
        if n == 0 or logits.size != n:
            raise ValueError("the chain needs as many logits as ids, and at least one")
        if n > self._ids.size:
            self._reserve(n)
        self._ids[:n] = ids
        self._logits[:n] = logits
        array = self._array
        array.data, array.size, array.selected, array.sorted = self._data, n, -1, False
        lib.llama_sampler_apply(self._live(), self._array_pointer)
        left = array.size
        if not 0 < left <= n:
            raise LlamaError(f"the sampler chain left {left} of {n} candidates")
        # Samplers may put another buffer in the place of ours.
        address = ctypes.addressof(array.data.contents)
        if address == self._address:
            return self._ids[:left].copy(), self._logits[:left].copy()
        other = np.frombuffer((ctypes.c_char * (left * _CANDIDATE.itemsize)).from_address(address), _CANDIDATE)
        return other["id"].copy(), other["logit"].copy()

    def _reserve(self, n: int) -> None:
        """Room for n candidates, laid out once: this runs for every row, and what Python adds to a step counts."""
        buffer = np.zeros(n, _CANDIDATE)
        self._ids, self._logits = buffer["id"], buffer["logit"]
        self._address = buffer.ctypes.data
        self._data = ctypes.cast(self._address, ctypes.POINTER(lib.llama_token_data))
        self._array = lib.llama_token_data_array(self._data, n, -1, False)
        self._array_pointer = ctypes.byref(self._array)

    def accept(self, token: int) -> None:
        """Tell the penalties that a token has been emitted."""
        if not 0 <= token < self.settings.vocabulary_size:
            raise ValueError(f"token id {token} is outside the vocabulary of {self.settings.vocabulary_size}")
        lib.llama_sampler_accept(self._live(), token)

    def reset(self) -> None:
        """Forget every accepted token."""
        lib.llama_sampler_reset(self._live())

    def clone(self) -> "Chain":
        """The same chain in the same state; the two go their own ways from here."""
        return Chain(self.settings, lib.llama_sampler_clone(self._live()))

    def close(self) -> None:
        """Free the chain and its samplers. Safe to call twice."""
        if self._handle:
            lib.llama_sampler_free(self._handle)
            self._handle = None

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.close()

    def _live(self) -> object:
        if not self._handle:
            raise ValueError("the sampler chain is closed")
        return self._handle


def _build(settings: ChainSettings) -> object:
    chain = lib.llama_sampler_chain_init(lib.llama_sampler_chain_default_params())
    samplers = []
    if settings.penalizes:
        samplers.append(
            lib.llama_sampler_init_penalties(
                settings.vocabulary_size,
                settings.penalty_window,
                settings.repeat_penalty,
                settings.frequency_penalty,
                settings.presence_penalty,
            )
        )
    if settings.top_k > 0:
        samplers.append(lib.llama_sampler_init_top_k(settings.top_k))
    if settings.top_p < 1.0:
        samplers.append(lib.llama_sampler_init_top_p(settings.top_p, 1))
    if settings.min_p > 0.0:
        samplers.append(lib.llama_sampler_init_min_p(settings.min_p, 1))
    if settings.temperature not in (0.0, 1.0):
        samplers.append(lib.llama_sampler_init_temp(settings.temperature))
    for sampler in samplers:
        # The chain owns its members from here on.
        lib.llama_sampler_chain_add(chain, sampler)
    return chain
