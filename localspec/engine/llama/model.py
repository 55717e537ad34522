"""A loaded model: weights and vocabulary, shared by its contexts."""

import os
import weakref
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Protocol

from localspec.engine.errors import ModelError
from localspec.engine.gguf import GgufHeader, inspect
from localspec.engine.llama.library import forget_errors, lib, recent_errors
from localspec.engine.llama.vocabulary import Vocabulary

ALL_LAYERS = -1
Progress = Callable[[float], bool | None]
"""Called with the share loaded so far, 0 to 1; returning False cancels the load."""

_SAMPLING_KEYS = {
    "temp": "general.sampling.temp",
    "top_k": "general.sampling.top_k",
    "top_p": "general.sampling.top_p",
    "min_p": "general.sampling.min_p",
    "repeat_penalty": "general.sampling.penalty_repeat",
}


class LoadCancelledError(Exception):
    """The progress callback asked to stop loading."""


class Dependent(Protocol):
    """Something that reads the weights, and so must be closed before them."""

    def close(self) -> None:
        """Free it. Safe to call twice."""


class Model:
    """The weights of one GGUF file. Close it, or use it as a context manager."""

    def __init__(
        self,
        path: Path,
        *,
        header: GgufHeader | None = None,
        gpu_layers: int = ALL_LAYERS,
        progress: Progress | None = None,
        repack: bool = True,
    ) -> None:
        """Load `path`.

        `header`: that of `path`, where it has been inspected already. `gpu_layers`: how many layers to put on the GPU,
        ALL_LAYERS for all. `repack`: let the CPU back end reorder weights for speed. Raises ModelError with one sentence for
        a file that cannot answer.
        """
        self._handle: object = None
        self._dependents: weakref.WeakSet[Dependent] = weakref.WeakSet()
        self.header: GgufHeader = header or inspect(path)
        self.path = path
        params = lib.llama_model_default_params()
        params.n_gpu_layers = gpu_layers
        params.use_extra_bufts = repack
        cancelled = False

        def on_progress(share: float, _data: object) -> bool:
            nonlocal cancelled
            cancelled = cancelled or (progress is not None and progress(share) is False)
            return not cancelled

        callback = lib.llama_progress_callback(on_progress)
        params.progress_callback = callback
        forget_errors()
        self._handle = lib.llama_model_load_from_file(os.fsencode(path), params)
        if not self._handle:
            if cancelled:
                raise LoadCancelledError
            raise ModelError(_why_not_loaded(path))
        self._refuse_what_cannot_chat()
        self.vocabulary = Vocabulary(self, lib.llama_model_get_vocab(self._handle))

    @property
    def handle(self) -> object:
        """The C pointer, never NULL."""
        if not self._handle:
            raise ValueError("the model is closed")
        return self._handle

    @property
    def window(self) -> int:
        """The size of the sliding attention window in tokens, 0 when there is none."""
        return int(lib.llama_model_n_swa(self.handle))

    @property
    def is_recurrent(self) -> bool:
        """Whether any layer keeps a running state (recurrent and hybrid models): such a memory cannot be cut back."""
        return bool(lib.llama_model_is_recurrent(self.handle) or lib.llama_model_is_hybrid(self.handle))

    @property
    def bytes(self) -> int:
        """The size of the weights in bytes."""
        return int(lib.llama_model_size(self.handle))

    @property
    def chat_template(self) -> str | None:
        """The chat template in the file, None when it has none."""
        text = lib.llama_model_chat_template(self.handle, None)
        return text.decode("utf-8", "replace") if text else None

    def recommended_sampling(self) -> dict[str, float]:
        """The sampling settings that the model's makers put into the file; only those that are there."""
        metadata = self.header.metadata
        found = {name: metadata[key] for name, key in _SAMPLING_KEYS.items() if key in metadata}
        return {name: float(value) for name, value in found.items() if isinstance(value, int | float)}

    def closes_first(self, dependent: Dependent) -> None:
        """Have `close` close this one too: a context that outlives its weights ends the process when it is used."""
        self._dependents.add(dependent)

    def close(self) -> None:
        """Free the contexts that are still open, and the weights. Safe to call twice."""
        for dependent in tuple(self._dependents):
            dependent.close()
        if self._handle:
            lib.llama_model_free(self._handle)
            self._handle = None

    def __enter__(self) -> "Model":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _refuse_what_cannot_chat(self) -> None:
        reasons = {
            "reads a text with an encoder first": lib.llama_model_has_encoder(self._handle),
            "has no decoder": not lib.llama_model_has_decoder(self._handle),
            "writes by diffusion, not token by token": lib.llama_model_is_diffusion(self._handle),
        }
        for reason, holds in reasons.items():
            if holds:
                self.close()
                raise ModelError(f"{self.path.name} {reason}; localspec needs a model that writes token by token.")


def _why_not_loaded(path: Path) -> str:
    errors = recent_errors()
    for line in errors:
        if "unknown model architecture" in line:
            architecture = line.rsplit("unknown model architecture:", 1)[1].strip().strip("'")
            return (
                f"{path.name} has the architecture '{architecture}', which this build of llama.cpp does not know; "
                "choose another model, or update localspec."
            )
        if "allocate" in line:
            return f"There is not enough memory for {path.name}; close other programs, or choose a smaller model."
    detail = errors[0].split(": ", 1)[-1] if errors else "no reason given"
    return f"llama.cpp could not load {path.name} ({detail}); download the file again, or choose another model."
