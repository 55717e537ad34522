"""Saved states: what comes back is exact, and what is damaged or of another kind is not let in."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded import CLOSE, MemoryCase, truth

import tiny
from localspec.engine.llama import Context, ContextSettings, Model, load_state, save_state
from localspec.engine.llama.memory import MemoryKind

Open = Callable[..., Context]
TOKENS = [int(token) for token in np.random.default_rng(4).integers(0, 256, 150)]
SETTINGS = ContextSettings(length=256, batch=64, rows=9, threads=1)


class Saved:
    """A context for many loads, and a state of it. A class, so that a failing example does not print the state."""

    def __init__(self, path: Path) -> None:
        self.context = Context(Model(path), SETTINGS)
        self.context.decode(TOKENS[:30])
        self.state = save_state(self.context)


def usable_and_empty(context: Context) -> bool:
    """The context has nothing, knows it, and reads a text as a fresh one does."""
    if context.tokens or context.memory.length():
        return False
    with Context(context.model, context.settings) as fresh:
        fresh.decode(TOKENS[:20], rows=1)
        context.decode(TOKENS[:20], rows=1)
        return np.array_equal(context.row(0), fresh.row(0))


@pytest.mark.parametrize("length", [1, 5, 140])
def test_a_state_goes_on_where_it_was_saved(open_kind: Open, length: int) -> None:
    """The very same logits as without saving, in a context of another size and of other rows, for several steps."""
    source = open_kind()
    source.decode(TOKENS[:length])
    state = save_state(source)
    for changes in ({}, {"length": 1024, "batch": 32, "rows": 5}):
        copy = open_kind(**changes)
        copy.decode([9, 9, 9])
        copy.mark("prompt")
        assert load_state(copy, state)
        assert copy.tokens == TOKENS[:length]
        assert copy.memory.length() == length
        source.truncate(length) if len(source.tokens) == length else load_state(source, state)
        for token in TOKENS[length : length + 4]:
            source.decode([token], rows=1)
            copy.decode([token], rows=1)
            assert np.array_equal(source.row(0), copy.row(0))
        assert abs(copy.row(0) - truth(copy, TOKENS[: length + 4])[-1]).max() < CLOSE


def test_marks_and_snapshots_do_not_survive_a_load(open_kind: Open, memory_case: MemoryCase) -> None:
    """What could be cut before belongs to the old text; a cut after the load keeps less, or is exact."""
    context = open_kind()
    context.decode(TOKENS[:30])
    state = save_state(context)
    context.clear()
    context.decode(TOKENS[50:80])
    context.mark("prompt")
    context.decode(TOKENS[80:88])
    assert load_state(context, state)
    kept = context.truncate(28)
    assert kept == (28 if memory_case.kind in (MemoryKind.PLAIN, MemoryKind.WINDOW) else 0)
    context.decode(TOKENS[kept:60], rows=1)
    assert abs(context.row(0) - truth(context, TOKENS[:60])[-1]).max() < CLOSE


def test_rows_are_gone_after_a_load(open_kind: Open) -> None:
    """llama.cpp would give the row of an earlier pass."""
    context = open_kind()
    context.decode(TOKENS[:30], rows=1)
    state = save_state(context)
    context.decode([1], rows=1)
    assert load_state(context, state)
    with pytest.raises(ValueError, match="not asked for"):
        context.row(0)


def test_the_state_of_nothing(open_kind: Open) -> None:
    context = open_kind()
    state = save_state(context)
    context.decode(TOKENS[:5])
    assert load_state(context, state)
    assert usable_and_empty(context)


@pytest.fixture(scope="module")
def saved(tiny_llama: Path) -> Saved:
    """A state of thirty tokens."""
    return Saved(tiny_llama)


def test_cut_short_or_too_long(saved: Saved) -> None:
    """At every length up to the end of the header, and at some beyond."""
    context, state = saved.context, saved.state
    for length in [*range(700), *range(700, len(state), 997), len(state) - 33, len(state) - 32, len(state) - 1]:
        assert not load_state(context, state[:length])
    assert usable_and_empty(context)
    assert not load_state(context, state + b"\0")
    assert usable_and_empty(context)
    assert load_state(context, state)
    assert context.tokens == TOKENS[:30]


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_flipped_bits(saved: Saved, data: st.DataObject) -> None:
    """One bit anywhere, or a few of them, is noticed."""
    damaged = bytearray(saved.state)
    for bit in data.draw(st.sets(st.integers(0, 8 * len(damaged) - 1), min_size=1, max_size=3)):
        damaged[bit // 8] ^= 1 << bit % 8
    saved.context.clear()
    saved.context.decode([1, 2, 3])
    assert not load_state(saved.context, bytes(damaged))
    assert saved.context.tokens == []
    assert saved.context.memory.length() == 0


@settings(max_examples=150, deadline=None)
@given(cut=st.booleans(), at=st.floats(0, 1), change=st.integers(1, 255))
def test_damage_under_a_right_checksum(saved: Saved, cut: bool, at: float, change: int) -> None:
    """Somebody has put the checksum right: lengths that lie and headers that are none are refused all the same."""
    body = bytearray(saved.state[:-32])
    if cut:
        body = body[: int(at * (len(body) - 1))]
    else:
        body[int(at * 900)] ^= change
    if load_state(saved.context, bytes(body) + hashlib.sha256(body).digest()):
        assert len(saved.context.tokens) == saved.context.memory.length() == 30
        saved.context.decode([1], rows=1)
    else:
        assert usable_and_empty(saved.context)


OTHERS: dict[str, dict[str, object]] = {
    "another cache type": {"kv_type": "q8_0"},
    "no flash attention": {"flash_attention": False},
    "another window": {"full_window": False},
}


@pytest.mark.parametrize("what", OTHERS)
def test_states_of_other_settings(saved: Saved, what: str) -> None:
    """Those that change what the numbers in a state mean."""
    settings_ = {"length": 256, "batch": 64, "rows": 9, "threads": 1} | OTHERS[what]
    with Context(saved.context.model, ContextSettings(**settings_)) as other:  # type: ignore[arg-type]
        other.decode([1, 2])
        assert not load_state(other, saved.state)
        assert usable_and_empty(other)


def test_a_state_that_does_not_fit(saved: Saved) -> None:
    """300 tokens into 256."""
    with Context(saved.context.model, ContextSettings(length=512, batch=64, rows=9, threads=1)) as long:
        long.decode(TOKENS * 2)
        state = save_state(long)
    assert not load_state(saved.context, state)
    assert usable_and_empty(saved.context)


def test_states_of_other_models(saved: Saved, tmp_path: Path, tiny_gemma: Path, tiny_lfm2: Path) -> None:
    """Another architecture, and another file of the same one that even has the same name."""
    same_name = tiny.llama(tmp_path / "llama.gguf", layers=3, chat_template=tiny.CHAT_TEMPLATE)
    for path in (tiny_gemma, tiny_lfm2, same_name):
        with Model(path) as model:
            context = Context(model, SETTINGS)
            assert not load_state(context, saved.state)
            assert usable_and_empty(context)


def test_a_closed_context_neither_saves_nor_loads(saved: Saved) -> None:
    context = Context(saved.context.model, SETTINGS)
    context.close()
    with pytest.raises(ValueError, match="context is closed"):
        save_state(context)
    with pytest.raises(ValueError, match="context is closed"):
        load_state(context, saved.state)
