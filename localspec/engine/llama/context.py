"""A context: one token stream evaluated by one model, with the logits of the rows that were asked for."""

import ctypes
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from localspec.engine.cores import performance_cores
from localspec.engine.errors import ContextFullError, Interrupted, ModelError
from localspec.engine.gguf import head_widths, kv_bytes_per_token
from localspec.engine.llama.devices import devices
from localspec.engine.llama.library import LlamaError, forget_errors, lib, recent_errors
from localspec.engine.llama.memory import SequenceMemory
from localspec.engine.llama.model import Model

KV_TYPES = {"f16": (lib.GGML_TYPE_F16, 2.0), "q8_0": (lib.GGML_TYPE_Q8_0, 34 / 32)}
"""Name to (ggml type, bytes per element)."""

_MOST_SNAPSHOTS = 8
"""Each is another copy of the whole running state, and some nodes per layer in the graph of a pass: with 20 of them a
16-layer LFM2 has more nodes than llama.cpp reserves for it, and the process ends. Longer drafts go back by checkpoint."""

_TICK = 2.0**-40
"""Seconds of a simulated clock: sums of these are exact, so that no time depends on what was counted before."""
_Q8_BLOCK = 32
_NO_SLOT, _ABORTED = 1, 2

_libc = ctypes.CDLL(None) if os.name == "posix" else ctypes.CDLL("msvcrt")
# llama.cpp asks an abort callback at every graph node, which is too often for Python. strlen of a two-byte buffer answers
# without the interpreter: 0 while the first byte is 0, 1 once it is set.
_abort_when_set = ctypes.cast(_libc.strlen, lib.ggml_abort_callback)

# The same function as the binding's, but it returns the address itself: a pointer object per row costs more than the call.
_get_logits = lib._lib["llama_get_logits_ith"]
_get_logits.argtypes = [ctypes.c_void_p, ctypes.c_int32]
_get_logits.restype = ctypes.c_void_p


@dataclass(frozen=True, slots=True)
class ContextSettings:
    """How to open a context. Every field of llama.cpp's own that matters is set from these on purpose."""

    length: int
    """Tokens it can hold."""
    batch: int = 512
    """Most tokens in one pass; longer inputs are cut into several."""
    rows: int = 33
    """Most rows of logits from one pass: 1 + the longest draft."""
    threads: int | None = None
    """None: the physical performance cores, for narrow and wide passes alike."""
    kv_type: str = "f16"
    flash_attention: bool = True
    full_window: bool = True
    """Keep all of the past for sliding-window layers too, so that every rollback is exact and free."""
    snapshots: bool = True
    """Ask for snapshots of running states (granted by few architectures), so that refused drafts are dropped for free."""


class Context:
    """The evaluated token stream of a model. Not thread-safe, but for `interrupt()`."""

    def __init__(self, model: Model, settings: ContextSettings) -> None:
        """Open a context. Raises ModelError with one sentence when memory or the model do not allow it."""
        self._handle: object = None
        self._batch: object = None
        self.model = model
        self.settings = settings
        self.tokens: list[int] = []
        """The tokens whose evaluation the memory holds, in order. Read only."""
        self.busy_seconds = 0.0
        """Time spent inside evaluations so far, up to the moment the logits can be read."""
        self.passes = 0
        """Evaluations so far."""
        self.pass_ms: Callable[[int], float] | None = None
        """Milliseconds of an evaluation by its width, counted in the place of the time it really takes; those that leave no
        logits then take none."""
        self._first_row = self._row_count = 0
        self._row_views: dict[int, NDArray[np.float32]] = {}
        self._only_row: NDArray[np.float32] | None = None
        self._stop = ctypes.create_string_buffer(2)
        self._check(model, settings)
        forget_errors()
        self._handle = lib.llama_init_from_model(model.handle, self._params())
        if not self._handle:
            detail = (recent_errors() or ["no reason given"])[-1]
            raise ModelError(
                f"A context of {settings.length} tokens could not be opened ({detail}); choose a smaller one with --ctx."
            )
        self.length: int = lib.llama_n_ctx(self._handle)
        """Tokens it can hold, as granted."""
        self.batch_size: int = lib.llama_n_batch(self._handle)
        self.memory = SequenceMemory(
            self._handle,
            recurrent=model.is_recurrent,
            window=0 if settings.full_window else model.window,
            snapshots=lib.llama_n_rs_seq(self._handle),
        )
        self._open_batch()
        model.closes_first(self)

    def decode(self, tokens: Sequence[int], rows: int = 0) -> None:
        """Evaluate `tokens` after what the context holds, keeping the logits of the last `rows` of them.

        Raises ContextFullError when they do not fit, Interrupted when stopped in between, ValueError for arguments that
        would end the process.
        """
        if not (
            self._handle
            and tokens
            and 0 <= rows <= min(self.settings.rows, len(tokens))
            and len(self.tokens) + len(tokens) <= self.length
            and min(tokens) >= 0
            and max(tokens) < self.model.vocabulary.size
        ):
            self._refuse(tokens, rows)
        self._row_count = 0
        started = time.perf_counter()
        done = 0
        try:
            while done < len(tokens):
                # The last pass must hold all the rows.
                width = len(tokens) - done
                if width > self.batch_size:
                    width = min(self.batch_size, width - rows)
                self._pass(tokens[done : done + width], rows if done + width == len(tokens) else 0)
                done += width
        finally:
            lib.llama_synchronize(self._live())
            self.busy_seconds += self._seconds(started, len(tokens), rows)

    def row(self, index: int) -> NDArray[np.float32]:
        """Logits of row `index` (0 is the first of the rows asked for), shape (V,): a view, valid until the next decode."""
        handle = self._live()
        if self._only_row is not None and index == 0 and self._row_count == 1:
            return self._only_row
        if not 0 <= index < self._row_count:
            raise ValueError(f"row {index} was not asked for; there are {self._row_count}")
        address = _get_logits(handle, self._first_row + index)
        if not address:
            raise LlamaError(f"llama.cpp has no logits for row {index}")
        view = self._row_views.get(address)
        if view is None:
            # A row's place in the output buffer stays the same from pass to pass.
            view = np.ctypeslib.as_array((ctypes.c_float * self.model.vocabulary.size).from_address(address))
            self._row_views[address] = view
        if self.settings.rows == 1:
            # An output buffer for one row is never made larger, so that its place is known for good.
            self._only_row = view
        return view

    def truncate(self, length: int) -> int:
        """Roll back to the first `length` tokens. Returns how many are kept: fewer than asked for where the memory cannot
        go back to exactly there, and then the missing ones have to be decoded again."""
        if length < 0:
            raise ValueError("a context cannot be cut to a negative length")
        self._live()
        self._row_count = 0
        if length >= len(self.tokens):
            return len(self.tokens)
        kept = self.memory.cut(len(self.tokens), length)
        del self.tokens[kept:]
        return kept

    def mark(self, name: str) -> None:
        """Make the present length one that `truncate` can come back to, whatever the memory. Costs nothing for attention."""
        self._live()
        self.memory.mark(name, len(self.tokens))

    def clear(self) -> None:
        """Forget everything."""
        self.truncate(0)

    def interrupt(self) -> None:
        """Stop the evaluation under way and every later one, from any thread, until `resume`. CPU back ends stop within a
        graph node, others after the pass."""
        self._stop[0] = b"\1"

    def resume(self) -> None:
        """Evaluations may run again."""
        self._stop[0] = b"\0"

    def close(self) -> None:
        """Free the context. Safe to call twice."""
        if self._batch is not None:
            lib.llama_batch_free(self._batch)
            self._batch = None
        if self._handle:
            lib.llama_free(self._handle)
            self._handle = None

    def __enter__(self) -> "Context":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def handle(self) -> object:
        """The C pointer, never NULL."""
        return self._live()

    def _live(self) -> object:
        if not self._handle:
            raise ValueError("the context is closed")
        return self._handle

    def _params(self) -> object:
        settings = self.settings
        threads = settings.threads or performance_cores()
        kv_type = KV_TYPES[settings.kv_type][0]
        params = lib.llama_context_default_params()
        params.n_ctx = settings.length
        params.n_batch = params.n_ubatch = min(settings.batch, settings.length)
        params.n_seq_max = 1
        params.n_outputs_max = settings.rows
        # llama.cpp also ends the process when a micro-batch is not longer than its snapshots and one more.
        snapshots = max(0, min(settings.rows - 1, params.n_ubatch - 2, _MOST_SNAPSHOTS))
        params.n_rs_seq = snapshots if settings.snapshots and self.model.is_recurrent else 0
        # The second is for every pass wider than one token: verification, not only prompts.
        params.n_threads = params.n_threads_batch = threads
        params.type_k = params.type_v = kv_type
        params.flash_attn_type = (
            lib.LLAMA_FLASH_ATTN_TYPE_ENABLED if settings.flash_attention else lib.LLAMA_FLASH_ATTN_TYPE_DISABLED
        )
        params.swa_full = settings.full_window
        params.kv_unified = False
        params.offload_kqv = params.op_offload = True
        params.embeddings = False
        params.no_perf = True
        params.abort_callback = _abort_when_set
        params.abort_callback_data = ctypes.addressof(self._stop)
        return params

    def _open_batch(self) -> None:
        size = self.batch_size
        self._batch = batch = lib.llama_batch_init(size, 0, 1)
        self._batch_tokens = np.ctypeslib.as_array(batch.token, shape=(size,))
        self._batch_positions = np.ctypeslib.as_array(batch.pos, shape=(size,))
        self._batch_outputs = np.ctypeslib.as_array(batch.logits, shape=(size,))
        np.ctypeslib.as_array(batch.n_seq_id, shape=(size,))[:] = 1
        for index in range(size):
            batch.seq_id[index][0] = 0

    def _seconds(self, started: float, width: int, rows: int) -> float:
        if self.pass_ms is None:
            return time.perf_counter() - started
        return round(self.pass_ms(width) / 1000 / _TICK) * _TICK if rows else 0.0

    def _pass(self, tokens: Sequence[int], rows: int) -> None:
        width, past = len(tokens), len(self.tokens)
        self._batch_tokens[:width] = tokens
        self._batch_positions[:width] = range(past, past + width)
        self._batch_outputs[:width] = 0
        self._batch_outputs[width - rows : width] = 1
        self._batch.n_tokens = width  # type: ignore[attr-defined]
        result = lib.llama_decode(self._live(), self._batch)
        self.passes += 1
        if result == 0:
            self.tokens.extend(tokens)
            self.memory.evaluated(width)
            self._first_row, self._row_count = width - rows, rows
            return
        self._after_failure(tokens)
        if result == _ABORTED:
            raise Interrupted
        if result == _NO_SLOT:
            raise ContextFullError("The context is full; start again with a larger --ctx.")
        raise LlamaError(f"llama_decode failed with {result}: {'; '.join(recent_errors()) or 'no reason given'}")

    def _after_failure(self, tokens: Sequence[int]) -> None:
        """Finished parts of a failed pass stay in the memory: keep them where that is exact, else go back further."""
        if self.memory.is_recurrent:
            del self.tokens[self.memory.recover() :]
            return
        finished = self.memory.length() - len(self.tokens)
        self.tokens.extend(tokens[: max(0, finished)])

    def _check(self, model: Model, settings: ContextSettings) -> None:
        if not 1 <= settings.rows <= min(settings.batch, settings.length):
            raise ValueError("a context needs room for at least one row, and no more rows than its batch")
        if settings.kv_type not in KV_TYPES:
            raise ModelError(f"'{settings.kv_type}' is not a KV cache type; choose {' or '.join(KV_TYPES)}.")
        key, value = head_widths(model.header)
        if settings.kv_type == "q8_0" and (key % _Q8_BLOCK or value % _Q8_BLOCK):
            raise ModelError(
                f"{model.path.name} has attention heads of {key}, which a q8_0 cache cannot hold; use --kv-type f16."
            )
        # The cache alone: a guard against what cannot be had at all, whatever a person asks for. The weights are loaded by
        # now; those on a card are missing from what is free there, and those in memory are pages of their file, which the
        # system takes back and reads again. Whether all of it fits well is judged before loading, by hub/opening.py.
        element = KV_TYPES[settings.kv_type][1]
        needed = settings.length * kv_bytes_per_token(model.header, element, element)
        free = sum(device.free_bytes for device in devices())
        if needed > free:
            fits = math.floor(settings.length * free / needed * 0.9) // 256 * 256
            remedy = f"choose --ctx {fits} or less" if fits else "close other programs, or choose a smaller model"
            raise ModelError(
                f"A context of {settings.length} tokens needs {needed / 1e9:.1f} GB of memory for {model.path.name}, and "
                f"{free / 1e9:.1f} GB are free; {remedy}."
            )

    def _refuse(self, tokens: Sequence[int], rows: int) -> None:
        """Say what is wrong with the arguments of a pass that must not be made."""
        self._live()
        if not tokens:
            raise ValueError("there are no tokens to decode")
        if not 0 <= rows <= min(self.settings.rows, len(tokens)):
            raise ValueError(
                f"{rows} rows of {len(tokens)} tokens cannot be had; the context gives {self.settings.rows}"
            )
        size = self.model.vocabulary.size
        if min(tokens) < 0 or max(tokens) >= size:
            raise ValueError(f"a token id is outside the vocabulary of {size}")
        raise ContextFullError(
            f"{len(self.tokens) + len(tokens)} tokens do not fit into a context of {self.length}; "
            "start again with a larger --ctx, or with a shorter text."
        )
