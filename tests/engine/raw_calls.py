"""Calls of llama.cpp that end the process: what the guards of the engine are there for. Each runs in a process of its own."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run_alone(function: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Call one function of this module in a new process. It prints "survived" when the process lives on."""
    script = f"import sys, raw_calls; raw_calls.{function}(*sys.argv[1:]); print('survived')"
    folders = os.pathsep.join(str(folder) for folder in (ROOT, ROOT / "tests", ROOT / "tests" / "engine"))
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": folders, "GGML_NO_BACKTRACE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def _open(path: str, batch: int = 32, rows: int = 5):
    from localspec.engine.llama import Context, ContextSettings, Model

    return Context(Model(Path(path)), ContextSettings(length=256, batch=batch, rows=rows, threads=1))


def _decode(context: object, tokens: int, rows: int) -> int:
    from localspec.engine.llama.library import lib

    batch = lib.llama_batch_init(tokens, 0, 1)
    batch.n_tokens = tokens
    for index in range(tokens):
        batch.token[index], batch.pos[index], batch.n_seq_id[index] = 1, index, 1
        batch.seq_id[index][0] = 0
        batch.logits[index] = int(index >= tokens - rows)
    return int(lib.llama_decode(context, batch))


def nothing_wrong(path: str) -> None:
    """A pass as it should be, so that a process that dies here says something about the others."""
    assert _decode(_open(path).handle, 10, 5) == 0


def more_tokens_than_a_batch(path: str) -> None:
    """33 tokens where n_batch is 32."""
    _decode(_open(path, batch=32).handle, 33, 1)


def more_rows_than_granted(path: str) -> None:
    """6 rows of logits where n_outputs_max is 5."""
    _decode(_open(path, rows=5).handle, 10, 6)


def no_context(path: str) -> None:
    """The NULL that a failed llama_init_from_model returns."""
    _open(path)
    _decode(None, 1, 1)


def no_model(path: str) -> None:
    """The NULL that a failed llama_model_load_from_file returns."""
    from localspec.engine.llama.library import lib

    _open(path)
    lib.llama_n_ctx_train(None)


def row_that_was_not_flagged(path: str) -> None:
    """The sampler reads the row of the first token, and only the last has one."""
    from localspec.engine.llama.library import lib

    context = _open(path)
    assert _decode(context.handle, 3, 1) == 0
    lib.llama_sampler_sample(_chain(lib.llama_sampler_init_greedy()), context.handle, 0)


def chain_that_selects_nothing(path: str) -> None:
    """A chain that ends in a sampler which only shortens the list."""
    from localspec.engine.llama.library import lib

    context = _open(path)
    assert _decode(context.handle, 3, 1) == 0
    lib.llama_sampler_sample(_chain(lib.llama_sampler_init_top_k(5)), context.handle, 2)


def snapshots_as_long_as_a_micro_batch(path: str) -> None:
    """n_rs_seq = 4 with n_ubatch = 5: the tail that must stay together is the whole micro-batch."""
    _decode(_with_snapshots(path, 4, 5), 5, 1)


def a_snapshot_for_every_draft(path: str) -> None:
    """n_rs_seq = 32 on a model of many layers: the graph of a pass has more nodes than were reserved."""
    _decode(_with_snapshots(path, 32, 512), 40, 1)


def _with_snapshots(path: str, snapshots: int, batch: int) -> object:
    from localspec.engine.llama import Model
    from localspec.engine.llama.library import lib

    params = lib.llama_context_default_params()
    params.n_ctx, params.n_batch, params.n_ubatch, params.n_rs_seq = 512, batch, batch, snapshots
    context = lib.llama_init_from_model(Model(Path(path)).handle, params)
    assert lib.llama_n_rs_seq(context) == snapshots
    return context


def state_file_cut_short(path: str, folder: str) -> None:
    """A state file of which the second half is missing."""
    from localspec.engine.llama.library import lib

    context = _open(path)
    assert _decode(context.handle, 10, 1) == 0
    tokens, count = (lib.llama_token * 10)(*[1] * 10), ctypes.c_size_t()
    file = Path(folder) / "state"
    lib.llama_state_seq_save_file(context.handle, str(file).encode(), 0, tokens, 10)
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    lib.llama_state_seq_load_file(context.handle, str(file).encode(), 0, tokens, 10, ctypes.byref(count))


def peak_memory_of_a_prompt(path: str, tokens: str) -> None:
    """Prints by how many bytes the process has grown, at its largest, while it read a prompt of so many tokens."""
    import resource

    from localspec.engine.llama import Context, ContextSettings, Model

    unit = 1 if sys.platform == "darwin" else 1024
    context = Context(Model(Path(path)), ContextSettings(length=int(tokens), threads=1))
    context.decode([1] * 512, rows=1)
    context.clear()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    context.decode([1] * int(tokens), rows=1)
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit)


def _chain(sampler: object) -> object:
    from localspec.engine.llama.library import lib

    chain = lib.llama_sampler_chain_init(lib.llama_sampler_chain_default_params())
    lib.llama_sampler_chain_add(chain, sampler)
    return chain
