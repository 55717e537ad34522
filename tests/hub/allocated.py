"""What llama.cpp really allocated for a model and a context, by what it says in its log."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from localspec.engine.llama import LOGGER_NAME, Context, ContextSettings, Model
from localspec.hub.need import Need

_MIB = 1 << 20
_CACHE = re.compile(r"(?:KV|RS) buffer size = +([\d.]+) MiB")
_COMPUTE = re.compile(r"compute buffer size is +([\d.]+) MiB, matches")
_RESERVED = re.compile(r"compute buffer size = +([\d.]+) MiB")
_SIMULATED = re.compile(r"size = +([\d.]+) MiB \(")


@dataclass
class Opened:
    """How a context is opened."""

    length: int
    batch: int = 512
    rows: int = 33
    kv_type: str = "f16"

    def __str__(self) -> str:
        return f"{self.length}/{self.batch}/{self.rows}/{self.kv_type}"


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.text: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.text.append(record.getMessage())

    def megabytes(self, pattern: re.Pattern[str]) -> int:
        """The sum of what the lines say (MiB), in bytes."""
        return round(sum(float(found[1]) for line in self.text if (found := pattern.search(line))) * _MIB)


@contextmanager
def log_lines() -> Iterator[_Lines]:
    """Everything that llama.cpp logs meanwhile, debugging lines included."""
    logger, lines = logging.getLogger(LOGGER_NAME), _Lines()
    level = logger.level
    logger.addHandler(lines)
    logger.setLevel(logging.DEBUG)
    try:
        yield lines
    finally:
        logger.removeHandler(lines)
        logger.setLevel(level)


def allocated(model: Model, opened: Opened) -> Need:
    """Open a context, make a pass with the most rows, and add up what it took by then."""
    settings = ContextSettings(length=opened.length, batch=opened.batch, rows=opened.rows, kv_type=opened.kv_type)
    # The buffer's final size is logged when the context is closed.
    with log_lines() as lines, Context(model, settings) as context:
        context.decode([1] * opened.rows, opened.rows)
        first, last = context.row(0), context.row(opened.rows - 1)
        outputs = last.ctypes.data - first.ctypes.data + last.nbytes
    # Weights that are copied for speed leave pages of the file behind, which the system takes back at once.
    return Need(model.bytes, lines.megabytes(_CACHE), lines.megabytes(_COMPUTE), outputs)


def simulated(path: Path, opened: Opened, snapshots: int = 0) -> tuple[int, int]:
    """Bytes of cache and compute buffer that llama.cpp would allocate for a model of which only the header is there."""
    from localspec.engine.llama.library import forget_errors, lib

    forget_errors()
    how = lib.llama_model_default_params()
    how.no_alloc, how.load_mode = True, lib.LLAMA_LOAD_MODE_NONE
    model = lib.llama_model_load_from_file(bytes(path), how)
    assert model
    params = lib.llama_context_default_params()
    params.n_ctx, params.n_batch, params.n_ubatch = opened.length, opened.batch, opened.batch
    params.n_outputs_max, params.n_seq_max, params.n_rs_seq = opened.rows, 1, snapshots
    params.flash_attn_type, params.swa_full = lib.LLAMA_FLASH_ATTN_TYPE_ENABLED, True
    params.type_k = params.type_v = lib.GGML_TYPE_F16 if opened.kv_type == "f16" else lib.GGML_TYPE_Q8_0
    with log_lines() as lines:
        context = lib.llama_init_from_model(model, params)
        assert context
        lib.llama_free(context)
    lib.llama_model_free(model)
    return lines.megabytes(_SIMULATED), lines.megabytes(_RESERVED)
