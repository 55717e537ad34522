"""A context holds exactly the tokens it says, whatever was decoded, cut, marked or interrupted before."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from raw_calls import run_alone
from recorded import CLOSE, MemoryCase, Passes, truth

import tiny
import tiny_bad
from localspec.engine.errors import Interrupted, ModelError
from localspec.engine.llama import LOGGER_NAME, Context, ContextSettings, Model
from localspec.engine.llama.library import lib
from localspec.engine.llama.memory import MemoryKind

Open = Callable[..., Context]
TOKENS = [int(token) for token in np.random.default_rng(3).integers(0, 256, 400)]


def last_row(context: Context, tokens: list[int]) -> np.ndarray:
    """The row behind the last of the tokens."""
    context.decode(tokens, rows=1)
    return context.row(0).copy()


def test_kinds_are_told_apart(open_kind: Open, memory_case: MemoryCase) -> None:
    assert open_kind().memory.kind is memory_case.kind


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(widths=st.lists(st.integers(1, 90), min_size=1, max_size=12), rows=st.integers(1, 9))
def test_any_chunking_gives_the_same_logits(open_kind: Open, widths: list[int], rows: int) -> None:
    """Passes of any widths, with any number of rows: the rows are those of one-token passes."""
    context = open_kind(length=1536)
    wanted = truth(context, TOKENS[:200])
    start = 0
    for width in widths:
        width = min(width, 200 - start)
        if width == 0:
            break
        kept = min(rows, width)
        context.decode(TOKENS[start : start + width], rows=kept)
        start += width
        for index in range(kept):
            assert abs(context.row(index) - wanted[start - kept + index]).max() < CLOSE
    assert context.tokens == TOKENS[:start]
    assert context.memory.length() == start
    context.close()


def test_length_and_batch_are_granted(tiny_llama: Path) -> None:
    """llama.cpp rounds the length up; the batch never is larger than asked for."""
    with Model(tiny_llama) as model:
        for length, batch, granted in ((1, 512, 256), (256, 512, 256), (257, 64, 512), (1000, 33, 1024)):
            context = Context(model, ContextSettings(length=length, batch=batch, rows=1, threads=1))
            assert (context.length, context.batch_size) == (granted, min(length, batch))


@pytest.mark.parametrize(("length", "batch", "rows"), [(256, 8, 9), (256, 8, 0), (4, 8, 5), (0, 8, 1), (-1, 8, 1)])
def test_impossible_settings(tiny_llama: Path, length: int, batch: int, rows: int) -> None:
    with Model(tiny_llama) as model, pytest.raises(ValueError, match="at least one row"):
        Context(model, ContextSettings(length=length, batch=batch, rows=rows))


def test_narrow_and_wide_passes_have_the_same_threads(tiny_llama: Path) -> None:
    with Model(tiny_llama) as model:
        for asked in (1, 2, None):
            context = Context(model, ContextSettings(length=256, threads=asked))
            narrow, wide = lib.llama_n_threads(context.handle), lib.llama_n_threads_batch(context.handle)
            assert narrow == wide >= 1
            assert asked in (narrow, None)


# --- cutting back -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("widths", [[50], [50, 1], [1] * 50, [40, 5, 5]])
def test_a_cut_without_a_mark_keeps_what_is_exact(open_kind: Open, memory_case: MemoryCase, widths: list[int]) -> None:
    """Attention keeps all that was asked for; a running state keeps it within its last pass, or nothing."""
    for back in (1, 2, 4, 6, 30):
        context, start = open_kind(), 0
        for width in widths:
            context.decode(TOKENS[start : start + width])
            start += width
        kept = context.truncate(start - back)
        undoable = back < widths[-1] and back <= 8 and memory_case.kind is MemoryKind.SNAPSHOTS
        exact = memory_case.kind in (MemoryKind.PLAIN, MemoryKind.WINDOW) or undoable
        assert kept == (start - back if exact else 0)
        assert context.tokens == TOKENS[:kept]
        assert context.memory.length() == kept
        context.close()


def test_a_mark_can_be_come_back_to(open_kind: Open) -> None:
    """After passes of one token and any number of them; marks of other names stay; what follows is exact."""
    context = open_kind()
    wanted = truth(context, TOKENS[:120])
    context.decode(TOKENS[:40])
    context.mark("prompt")
    context.decode(TOKENS[40:60])
    context.mark("step")
    for token in (1, 2, 3):
        context.decode([token])
    assert context.truncate(60) == 60
    assert abs(last_row(context, TOKENS[60:61]) - wanted[60]).max() < CLOSE
    context.decode([7, 8, 9])
    assert context.truncate(40) == 40
    assert abs(last_row(context, TOKENS[40:90]) - wanted[89]).max() < CLOSE
    context.decode([5])
    assert context.truncate(60) in (40, 60)
    assert abs(last_row(context, TOKENS[len(context.tokens) : 100]) - wanted[99]).max() < CLOSE


def test_a_mark_dies_with_the_text_before_it(open_kind: Open, memory_case: MemoryCase) -> None:
    """Cut further back than a mark, then as long as before with other words: the old state must not come back."""
    context, other = open_kind(), TOKENS[200:280]
    context.decode(TOKENS[:20])
    context.mark("prompt")
    context.decode(TOKENS[20:40])
    context.mark("step")
    context.truncate(20)
    context.decode(other[20:60])
    kept = context.truncate(45)
    assert kept in ((20, 45) if memory_case.kind is MemoryKind.CHECKPOINTS else (45, 20))
    text = [*TOKENS[:20], *other[20:80]]
    assert context.tokens == text[:kept]
    wanted = truth(context, text)[-1]
    assert abs(last_row(context, text[kept:]) - wanted).max() < CLOSE


def test_far_back(open_kind: Open, memory_case: MemoryCase) -> None:
    """A window that has moved on does not pretend to have what is outside it."""
    context = open_kind()
    context.decode(TOKENS)
    kept = context.truncate(100)
    assert kept == (100 if memory_case.kind is MemoryKind.PLAIN else 0)
    assert abs(last_row(context, TOKENS[kept:150]) - truth(context, TOKENS)[149]).max() < CLOSE


def test_a_mark_of_nothing(open_kind: Open) -> None:
    context = open_kind()
    context.mark("empty")
    context.decode(TOKENS[:3])
    assert context.truncate(0) == 0
    assert context.tokens == []
    assert context.truncate(5) == 0
    with pytest.raises(ValueError, match="negative"):
        context.truncate(-1)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10**6))
def test_random_moves_leave_an_exact_context(open_kind: Open, seed: int) -> None:
    """Decode, mark, interrupt and cut at random; then the logits are those of a fresh context."""
    rng, context = np.random.default_rng(seed), open_kind()
    for _ in range(int(rng.integers(1, 12))):
        move = rng.integers(0, 4)
        if move == 0:
            context.mark(str(rng.integers(0, 2)))
        elif move == 1:
            context.truncate(int(rng.integers(0, len(context.tokens) + 1)))
        else:
            tokens = [int(token) for token in rng.integers(0, 256, int(rng.integers(1, 20)))]
            if move == 2:
                with interrupted_before(context, pass_=int(rng.integers(0, 3))):
                    context.decode(tokens if len(tokens) > 9 else tokens * 9)
            else:
                context.decode(tokens)
        assert context.memory.length() == len(context.tokens)
    text = [*context.tokens, 1, 2, 3]
    wanted = truth(context, text)[-1]
    assert abs(last_row(context, [1, 2, 3]) - wanted).max() < CLOSE
    context.close()


# --- interruption -----------------------------------------------------------------------------------------------------


@contextmanager
def interrupted_before(context: Context, pass_: int) -> Iterator[None]:
    """The context is interrupted from another thread while pass number `pass_` from here on runs."""
    decode, seen = lib.llama_decode, 0

    def with_a_visitor(handle: object, batch: object) -> int:
        nonlocal seen
        visitor = threading.Thread(target=context.interrupt) if seen == pass_ else None
        seen += 1
        if visitor:
            visitor.start()
        result = decode(handle, batch)
        if visitor:
            visitor.join()
        return int(result)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lib, "llama_decode", with_a_visitor)
        try:
            yield
        except Interrupted:
            pass
        finally:
            context.resume()


def test_a_long_prompt_stops_within_a_pass(open_kind: Open, passes: Passes) -> None:
    """Whatever pass the interruption falls into, hardly another one is made, and the rest can be read afterwards."""
    for pass_ in (0, 1, 4):
        context = open_kind(length=1024)
        passes.clear()
        with interrupted_before(context, pass_):
            context.decode(TOKENS, rows=1)
        made = len(passes.of(context))
        assert pass_ + 1 <= made <= pass_ + 2 < len(TOKENS) / 64
        finished = len(context.tokens)
        assert context.tokens == TOKENS[:finished]
        assert context.memory.length() == finished <= 64 * made
        assert abs(last_row(context, TOKENS[finished:]) - truth(context, TOKENS)[-1]).max() < CLOSE
        context.close()


def test_an_interrupted_context_stays_so_until_it_resumes(open_kind: Open) -> None:
    context = open_kind()
    context.decode(TOKENS[:10])
    context.mark("prompt")
    context.interrupt()
    for _ in range(2):
        with pytest.raises(Interrupted):
            context.decode(TOKENS[10:12], rows=1)
        with pytest.raises(ValueError, match="not asked for"):
            context.row(0)
        assert context.tokens == TOKENS[:10]
    context.resume()
    context.decode(TOKENS[10:12], rows=1)


# --- cache types and memory -------------------------------------------------------------------------------------------


def test_q8_cache_is_close_to_f16(tiny_llama: Path) -> None:
    """A quantized cache changes the logits a little, and only a little."""
    with Model(tiny_llama) as model:
        rows = {}
        for kind in ("f16", "q8_0"):
            context = Context(model, ContextSettings(length=256, threads=1, kv_type=kind))
            rows[kind] = last_row(context, TOKENS[:200])
    difference = abs(rows["f16"] - rows["q8_0"]).max()
    assert 1e-6 < difference < 0.3


def test_q8_cache_needs_heads_of_32(tmp_path: Path) -> None:
    with Model(tiny.llama(tmp_path / "narrow.gguf", heads=4)) as model:
        with pytest.raises(ModelError, match=r"narrow.gguf has attention heads of 16.*use --kv-type f16"):
            Context(model, ContextSettings(length=256, kv_type="q8_0"))
        with pytest.raises(ModelError, match="'q9' is not a KV cache type"):
            Context(model, ContextSettings(length=256, kv_type="q9"))
        Context(model, ContextSettings(length=256, threads=1)).decode(TOKENS[:3])


def test_a_context_larger_than_memory(tiny_llama: Path) -> None:
    """Refused before llama.cpp tries; what is offered instead is a length, and smaller."""
    with Model(tiny_llama) as model, pytest.raises(ModelError, match=r"needs [\d.]+ GB .*choose --ctx (\d+) or less"):
        Context(model, ContextSettings(length=2**31 - 1, threads=1))


def test_no_memory_for_any_context(tiny_llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then no length is offered."""
    monkeypatch.setattr("localspec.engine.llama.context.devices", list)
    with Model(tiny_llama) as model, pytest.raises(ModelError, match="close other programs, or choose a smaller model"):
        Context(model, ContextSettings(length=256, threads=1))


def test_prompts_of_any_length_leave_one_row(tiny_llama: Path, passes: Passes) -> None:
    """And the output buffer is as large as was granted at the beginning, whatever the context."""
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger(LOGGER_NAME)
    logger.addHandler(handler)
    try:
        with Model(tiny_llama) as model:
            for length in (512, 4096):
                context = Context(model, ContextSettings(length=length, threads=2))
                context.decode([1] * (length - 96), rows=1)
    finally:
        logger.removeHandler(handler)
    assert [len(entry.rows) for entry in passes] == [1, 0, 0, 0, 0, 0, 0, 0, 1]
    granted = [line.split("=")[1].strip() for line in said if "n_outputs_max " in line]
    assert granted == ["33", "33"]


def test_logits_memory_does_not_grow_with_the_prompt(tmp_path: Path) -> None:
    """30,000 tokens of vocabulary: the logits of one batch would be 61 MB, those of this prompt 480 MB."""
    path = tiny_bad.other_vocabulary(tmp_path / "wide.gguf", swap=None, padding=30_000 - tiny.VOCABULARY_SIZE)
    done = run_alone("peak_memory_of_a_prompt", path, 4000)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[0]) < 20e6
