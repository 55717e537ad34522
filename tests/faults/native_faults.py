"""Faults of native code, injected where the engine runs; importing this is cheap, and its functions can be sent there.

`FAULT` in the environment says which and when, as in "abort:load", "segfault:prompt", "kill:step".
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import resource
import signal
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

VARIABLE = "FAULT"
ONCE = "FAULT_ONCE"
"""The path of a file: where it exists the fault has been, and does not come again."""

STEPS = 6
"""Passes over a few tokens that go well before the one that does not."""
DEATHS = {"abort": 6, "segfault": 11, "kill": 9, "real abort": 6, "real segfault": 11, "terminate": 6}
"""Kinds of fault, and the signals they end in."""


def die(kind: str) -> None:
    """End this process as native code does."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if kind == "abort":
        os.write(2, b"GGML_ASSERT(injected) failed\n")
        os.abort()
    if kind == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "segfault":
        ctypes.string_at(0)
    if kind == "leave":
        ctypes.CDLL(None).exit(1)
    if kind == "terminate":
        # What std::bad_alloc without anybody to catch it comes to.
        ctypes.CDLL("libstdc++.so.6")._ZSt9terminatev()
    if kind == "memory":
        raise MemoryError
    from localspec.engine.llama.library import lib

    if kind == "real segfault":
        lib.llama_n_ctx(None)
    if kind == "real abort":
        _too_many_tokens(lib)
    raise AssertionError(f"{kind} has not ended anything")


def _too_many_tokens(lib: Any) -> None:
    """More tokens in a batch than the context takes: ggml asserts that this never happens."""
    from localspec.engine.llama.context import Context

    context = Context.latest  # type: ignore[attr-defined]
    tokens = (ctypes.c_int32 * 5000)(*([1] * 5000))
    lib.llama_decode(context._handle, lib.llama_batch_get_one(tokens, 5000))


def install() -> None:
    """Have the fault of the environment come when its moment does. Called where the engine is about to be made."""
    from localspec.engine.engine import Engine
    from localspec.engine.llama.context import Context

    kind, _, moment = os.environ.get(VARIABLE, "").partition(":")
    once = os.environ.get(ONCE)
    if not kind or (once and Path(once).exists()):
        return
    if moment == "end":
        atexit.register(die, kind)
    seen = {"step": 0, "answering": False}
    decode, make, generate = Context.decode, Context.__init__, Engine.generate

    def now(at: str) -> None:
        if at == moment:
            if once:
                Path(once).touch()
            die(kind)

    def made(context: Any, *arguments: Any, **named: Any) -> None:
        make(context, *arguments, **named)
        Context.latest = context  # type: ignore[attr-defined]
        now("load")

    def decoded(context: Any, tokens: Sequence[int], *arguments: Any, **named: Any) -> Any:
        if seen["answering"]:
            if len(tokens) > 4 and not seen["step"]:
                now("prompt")
            seen["step"] += len(tokens) <= 4
            if seen["step"] > STEPS:
                now("step")
        return decode(context, tokens, *arguments, **named)

    def generated(engine: Any, *arguments: Any, **named: Any) -> Any:
        seen["answering"] = True
        return generate(engine, *arguments, **named)

    Context.__init__, Context.decode, Engine.generate = made, decoded, generated  # type: ignore[method-assign,assignment]


def faulty(prepare: Any, progress: Any, cancelled: Any) -> Any:
    """The engine settings of a chat_start.wanted, after `install`; in the engine's process."""
    install()
    return prepare(progress, cancelled)


def main() -> None:
    """The `localspec` command with the fault in it, wherever its engine runs."""
    import localspec.chat_start
    import localspec.watched
    from localspec.cli import main as localspec_main

    wanted, go_on = localspec.chat_start.wanted, localspec.watched.go_on_watched

    def faulty_wanted(*arguments: Any) -> Any:
        found = wanted(*arguments)
        return replace(found, engine_settings=partial(faulty, found.engine_settings))

    def go_on_with_it(aftermath: Any) -> Any:
        goodbye = go_on(aftermath)
        if not aftermath.draws:
            # Where there is no memory for the fault there is trouble enough.
            with contextlib.suppress(Exception):
                install()
        return goodbye

    localspec.chat_start.wanted = faulty_wanted
    localspec.watched.go_on_watched = go_on_with_it
    localspec.watched._FORKS = "BEGIN_ANEW" not in os.environ
    localspec_main()


if __name__ == "__main__":
    import native_faults

    # What is sent to another process is a function of a module.
    native_faults.main()
