"""The caches of an engine in a file: the text after a restart is the same, and nothing but a whole file of ours is used."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded import CLOSE, MemoryCase, Passes, draft_context, open_engine, opening, truth

import tiny
from localspec.engine import saved_state
from localspec.engine.engine import Engine, EngineSettings, Options
from localspec.engine.gguf import inspect
from localspec.engine.llama import Context, ContextSettings, Model, load_state, save_state
from localspec.engine.saved_state import Cache, ModelFile, read_caches, write_caches
from tiny_checks import GREEDY, PROMPT, WARM, write

TOKENS = [int(token) for token in np.random.default_rng(8).integers(0, 256, 150)]
FEW = Options(GREEDY, "draft", draft_max=4, max_tokens=20)
PLAIN = Options(GREEDY, "none", max_tokens=20)


# --- the text goes on -------------------------------------------------------------------------------------------------


def test_a_chat_goes_on_after_a_restart(
    memory_case: MemoryCase, own: Path, coarse: Path, tmp_path: Path, passes: Passes
) -> None:
    """Only what is new is read, by both models, and the answer is that of an engine that was never closed, and of one that
    reads all of it."""
    file = tmp_path / "chat.state"
    with opening(memory_case, own, coarse) as engine:
        write(engine, FEW)
        stream = list(engine.stream)
        assert engine.save_state(file) == file.stat().st_size
        held, drafts = list(engine.target_context.tokens), list(draft_context(engine).tokens)
        question = [*stream, *b" and what then? "]
        for options in (FEW, Options(WARM, "none", seed=3, max_tokens=20)):
            assert engine.load_state(file) == len(held)
            live = write(engine, options, question)[0]
            with opening(memory_case, own, coarse) as other:
                assert other.load_state(file) == len(held)
                assert list(other.stream) == []
                assert (other.target_context.tokens, draft_context(other).tokens) == (held, drafts)
                passes.clear()
                assert write(other, options, question)[0] == live
                assert other.reused_tokens == len(held)
                assert all(entry.start > 0 for entry in passes)
            with opening(memory_case, own, coarse) as fresh:
                assert write(fresh, options, question)[0] == live


def test_the_last_answer_anew_after_a_restart(memory_case: MemoryCase, own: Path, tmp_path: Path) -> None:
    """Also a running state goes back to the end of the last question."""
    file = tmp_path / "chat.state"
    with opening(memory_case, own, None) as engine:
        write(engine, PLAIN)
        engine.save_state(file)
    for prompt in (PROMPT, [*PROMPT[:-1], *b"another end"], PROMPT[:20]):
        with opening(memory_case, own, None) as engine:
            engine.load_state(file)
            text = write(engine, PLAIN, prompt)[0]
            if len(prompt) == 20:
                assert engine.reused_tokens == (19 if memory_case.model == "tiny_llama" else 0)
            else:
                # A state has of the past of a sliding window that window alone.
                assert engine.reused_tokens == (0 if memory_case.model == "tiny_gemma" else len(PROMPT) - 1)
        with opening(memory_case, own, None) as fresh:
            assert write(fresh, PLAIN, prompt)[0] == text


def test_marks_come_back_with_a_state(memory_case: MemoryCase, model_of_kind: Model) -> None:
    """After a cut back to a mark that was saved, the logits are those of a text read anew."""
    chosen = ContextSettings(**{"length": 512, "batch": 64, "rows": 9, "threads": 1, **memory_case.settings})
    source, copy = Context(model_of_kind, chosen), Context(model_of_kind, chosen)
    source.decode(TOKENS[:90])
    source.mark("prompt")
    for token in TOKENS[90:110]:
        source.decode([token])
    state = save_state(source)
    for _ in range(2):
        copy.decode(TOKENS[100:120])
        assert load_state(copy, state)
        kept = {"tiny_llama": 100, "tiny_gemma": 0}.get(memory_case.model, 90)
        assert copy.truncate(100) == kept
        copy.decode(TOKENS[len(copy.tokens) : 130])
        copy.decode(TOKENS[130:135], rows=5)
        for index in range(5):
            assert abs(copy.row(index) - truth(copy, TOKENS[:135])[130 + index]).max() < CLOSE


def test_another_text_is_read(target: Path, draft: Path, tmp_path: Path) -> None:
    """The file is not trusted over the prompt: of a text that differs from it, what differs is read."""
    file = tmp_path / "chat.state"
    with open_engine(target, draft) as engine:
        write(engine, FEW)
        engine.save_state(file)
    for prompt in ([*PROMPT[:30], *b"something else"], list(b"nothing in common")):
        with open_engine(target, draft) as engine, open_engine(target, draft) as fresh:
            assert engine.load_state(file) > 0
            assert write(engine, FEW, prompt)[0] == write(fresh, FEW, prompt)[0]
            assert engine.reused_tokens == (30 if len(prompt) > 30 else 0)


def test_an_answer_under_way_ends_at_a_load(target: Path, tmp_path: Path) -> None:
    """It must not write on in caches that are not its own any more."""
    with open_engine(target) as engine:
        write(engine, PLAIN)
        engine.save_state(tmp_path / "chat.state")
        answer = engine.generate(PROMPT, PLAIN)
        next(answer)
        held = engine.load_state(tmp_path / "chat.state")
        assert not any(step.tokens for step in answer)
        assert len(engine.target_context.tokens) == held


# --- which file is used -----------------------------------------------------------------------------------------------


class Saved:
    """Caches for many loads, and a file of them. A class, so that a failing example does not print the bytes."""

    def __init__(self, target: Path, draft: Path, folder: Path) -> None:
        self.file = folder / "chat.state"
        self.engine = open_engine(target, draft, context=256)
        write(self.engine, FEW)
        self.engine.save_state(self.file)
        self.whole = self.file.read_bytes()
        self.held = list(self.engine.target_context.tokens)
        self.draft_held = list(draft_context(self.engine).tokens)
        self.engine.load_state(self.file)

    def load(self, data: bytes) -> int:
        """Load a file of these bytes."""
        self.file.write_bytes(data)
        return self.engine.load_state(self.file)


@pytest.fixture(scope="module")
def saved(target: Path, draft: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Saved]:
    """A conversation of a target and a draft model."""
    saved = Saved(target, draft, tmp_path_factory.mktemp("saved"))
    yield saved
    saved.engine.close()


@settings(max_examples=60, deadline=None)
@given(at=st.floats(0, 1, exclude_max=True), change=st.integers(1, 255), near=st.booleans())
def test_a_damaged_byte_anywhere(saved: Saved, at: float, change: int, near: bool) -> None:
    """It is noticed and the file removed. A draft model's damaged state costs the draft model's alone."""
    damaged = bytearray(saved.whole)
    damaged[int(at * (1500 if near else len(damaged)))] ^= change
    target, draft = saved.engine.target_context, draft_context(saved.engine)
    target.clear()
    draft.clear()
    held = saved.load(bytes(damaged))
    assert not saved.file.exists()
    assert target.tokens == (saved.held if held else [])
    assert draft.tokens == []
    assert (target.memory.length(), draft.memory.length()) == (held, 0)
    assert saved.load(saved.whole) == len(saved.held)
    assert draft.tokens == saved.draft_held != []
    assert saved.file.exists()


def test_a_file_cut_short_or_too_long(saved: Saved) -> None:
    size = len(saved.whole)
    for length in (0, 1, 18, 22, 200, 1500, size // 2, size - 33, size - 1):
        assert saved.load(saved.whole[:length]) == 0
        assert not saved.file.exists()
    assert saved.load(saved.whole + b"\0") == 0
    assert not saved.file.exists()


def test_nothing_is_touched_by_a_file_of_others(saved: Saved, caplog: pytest.LogCaptureFixture) -> None:
    """The caches keep what they have: the next text may share its beginning."""
    saved.load(saved.whole)
    assert saved.load(b"GGUF" * 1000) == 0
    assert saved.engine.target_context.tokens == saved.held
    assert "not used and removed" in caplog.text
    assert saved.engine.load_state(saved.file.with_name("none")) == 0
    assert saved.engine.load_state(saved.file.parent) == 0
    assert saved.file.parent.is_dir()


def test_other_settings_and_models(
    saved: Saved, target: Path, draft: Path, exactly: Callable[[Path], Path], tiny_gemma: Path, tmp_path: Path
) -> None:
    """Another cache type, another architecture, and other weights of the very same shape and size."""
    weights = tiny.llama(tmp_path / "x.gguf", seed=5, chat_template=tiny.CHAT_TEMPLATE)
    others = [
        EngineSettings(target, context_length=256, threads=1, kv_type="f16"),
        EngineSettings(exactly(tiny_gemma), context_length=256, threads=1, kv_type="q8_0"),
        EngineSettings(exactly(weights), context_length=256, threads=1, kv_type="q8_0"),
    ]
    for other in others:
        saved.file.write_bytes(saved.whole)
        with Engine(other) as engine:
            assert engine.load_state(saved.file) == 0
            assert engine.target_context.tokens == []
            assert not saved.file.exists()


def test_a_shorter_context(saved: Saved, target: Path, tmp_path: Path) -> None:
    """A text that fits is restored, one that does not is refused."""
    with open_engine(target, context=512) as long:
        write(long, PLAIN, PROMPT * 6)
        long.save_state(tmp_path / "long.state")
    assert saved.engine.load_state(tmp_path / "long.state") == 0
    assert not (tmp_path / "long.state").exists()
    saved.file.write_bytes(saved.whole)
    with open_engine(target, context=512) as long:
        assert long.load_state(saved.file) == len(saved.held)


def test_another_draft_model_or_none(
    saved: Saved, target: Path, exactly: Callable[[Path], Path], tmp_path: Path
) -> None:
    """The target's cache is good all the same."""
    other = exactly(tiny.llama(tmp_path / "other-draft.gguf", seed=9))
    saved.file.write_bytes(saved.whole)
    for draft in (None, other):
        with open_engine(target, draft, context=256) as engine, open_engine(target, draft, context=256) as fresh:
            assert engine.load_state(saved.file) == len(saved.held)
            if draft:
                assert draft_context(engine).tokens == []
            options = FEW if draft else PLAIN
            assert write(engine, options, saved.held)[0] == write(fresh, options, saved.held)[0]
    assert saved.file.exists()


def test_weights_that_change(target: Path, tmp_path: Path) -> None:
    """Nobody knows any more which weights are in memory, so that nothing is written; and a byte anywhere in the file, or
    another time of change, makes another model of it."""
    path = Path(shutil.copy(target, tmp_path / "model.gguf"))
    file = ModelFile(inspect(path))
    before = file.identity()
    assert before
    assert ModelFile(inspect(path)).identity() == before
    status = path.stat()
    with path.open("r+b") as weights:
        weights.seek(status.st_size * 3 // 4)
        weights.write(b"\x55\xaa")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert (ModelFile(inspect(path)).identity() or {})["digest"] != before["digest"]
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 10**9))
    assert file.identity() is None
    path.unlink()
    assert file.identity() is None


# --- writing ----------------------------------------------------------------------------------------------------------


def test_only_its_owner_can_read_it(saved: Saved, tmp_path: Path) -> None:
    saved.load(saved.whole)
    assert saved.engine.save_state(tmp_path / "a.state") == len(saved.whole)
    assert stat.S_IMODE((tmp_path / "a.state").stat().st_mode) == 0o600
    assert (tmp_path / "a.state").read_bytes() == saved.whole


def test_what_is_not_written(saved: Saved, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too large, nowhere to write to, too little memory, nothing to keep: the file before stays as it is."""
    saved.load(saved.whole)
    file = tmp_path / "a.state"
    file.write_bytes(b"before")
    assert saved.engine.save_state(file, most=len(saved.whole) // 2) == 0
    assert saved.engine.save_state(tmp_path / "none" / "a.state") == 0
    with open_engine(target) as empty:
        assert empty.save_state(file) == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(saved_state, "system_memory_free", lambda: 1000)
        assert saved.engine.save_state(file) == 0
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a.state", b"before")]


def test_a_save_that_nobody_wants_any_more(saved: Saved, tmp_path: Path) -> None:
    """At every question whether it is still wanted the answer may be no."""
    saved.load(saved.whole)
    for asked in range(50):
        answers = iter([False] * asked + [True] * 100)
        written = saved.engine.save_state(tmp_path / "a.state", unwanted=lambda answers=answers: next(answers))
        if written:
            break
        assert list(tmp_path.iterdir()) == []
    assert asked > 4
    assert saved.engine.load_state(tmp_path / "a.state") == len(saved.held)


KILLED = """
import os, signal, sys
from pathlib import Path
from localspec.engine.gguf import inspect
from localspec.engine.llama import Context, ContextSettings, Model
from localspec.engine.saved_state import Cache, ModelFile, write_caches
model, file, calls = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
identity = ModelFile(inspect(model))
context = Context(Model(model), ContextSettings(length=256, batch=64, rows=9, threads=1))
context.decode(list(range(100)))
asked = 0
def unwanted():
    global asked
    asked += 1
    if asked == calls:
        os.kill(os.getpid(), signal.SIGKILL)
    return False
write_caches(file, [Cache("target", context, identity)], unwanted=unwanted)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_killed_while_writing(target: Path, tmp_path: Path) -> None:
    """What was there before is still there, whole; the half file has another name and is never looked at."""
    file = tmp_path / "chat.state"
    with Model(target) as model:
        chosen = ContextSettings(length=256, batch=64, rows=9, threads=1)
        cache = Cache("target", Context(model, chosen), ModelFile(inspect(target)))
        cache.context.decode(list(range(40)))
        assert write_caches(file, [cache]) > 0
        for calls in (1, 4):
            done = subprocess.run([sys.executable, "-c", KILLED, str(target), str(file), str(calls)], check=False)
            assert done.returncode == -signal.SIGKILL
            assert read_caches(file, [cache]) == 40
        halves = [path for path in tmp_path.iterdir() if path != file]
        assert len(halves) == 2
        assert all(path.name.endswith(saved_state.PART_SUFFIX) for path in halves)
        done = subprocess.run([sys.executable, "-c", KILLED, str(target), str(file), "0"], check=False)
        assert done.returncode == 0
        assert read_caches(file, [cache]) == 100
