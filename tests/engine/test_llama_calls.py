"""No call of ours ends the process. The first tests show that the raw calls do; the others, that we refuse them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from raw_calls import run_alone
from recorded import CLOSE, Passes, truth

from localspec.engine.errors import ContextFullError, ModelError
from localspec.engine.llama import Chain, ChainSettings, Context, ContextSettings, LlamaError, Model, quantize
from localspec.engine.llama.library import lib
from tiny import VOCABULARY_SIZE, lfm2

DEADLY = {
    "more_tokens_than_a_batch": signal.SIGABRT,
    "more_rows_than_granted": signal.SIGABRT,
    "no_context": signal.SIGSEGV,
    "no_model": signal.SIGSEGV,
    "row_that_was_not_flagged": signal.SIGABRT,
    "chain_that_selects_nothing": signal.SIGABRT,
}


@pytest.mark.parametrize("call", DEADLY)
def test_the_raw_call_ends_the_process(call: str, tiny_llama: Path) -> None:
    done = run_alone(call, tiny_llama)
    assert (done.returncode, "survived" in done.stdout) == (-DEADLY[call], False), done.stderr


def test_raw_snapshots_and_state_files_end_the_process(tiny_lfm2: Path, tiny_llama: Path, tmp_path: Path) -> None:
    assert run_alone("snapshots_as_long_as_a_micro_batch", tiny_lfm2).returncode == -signal.SIGABRT
    assert run_alone("state_file_cut_short", tiny_llama, tmp_path).returncode == -signal.SIGABRT


def test_a_sound_raw_call_does_not(tiny_llama: Path) -> None:
    """Else the processes above could have died of anything."""
    done = run_alone("nothing_wrong", tiny_llama)
    assert (done.returncode, done.stdout) == (0, "survived\n"), done.stderr


@pytest.fixture
def model(tiny_llama: Path) -> Iterator[Model]:
    with Model(tiny_llama) as model:
        yield model


@pytest.fixture
def context(model: Model) -> Iterator[Context]:
    with Context(model, ContextSettings(length=256, batch=8, rows=5, threads=1)) as context:
        yield context


def test_long_inputs_are_cut_into_batches(model: Model, passes: Passes) -> None:
    """Every length around the batch with every number of rows: the last pass has all the rows, and they are right."""
    tokens = list(np.random.default_rng(1).integers(0, 256, 26))
    with Context(model, ContextSettings(length=256, batch=8, rows=8, threads=1)) as context:
        wanted = truth(context, tokens)
        passes.clear()
        for length in range(1, 27):
            for rows in range(min(8, length) + 1):
                context.clear()
                passes.clear()
                context.decode(tokens[:length], rows=rows)
                assert max(len(entry.tokens) for entry in passes) <= 8
                assert [entry.rows for entry in passes[:-1]] == [()] * (len(passes) - 1)
                assert len(passes[-1].rows) == rows
                assert sum((entry.tokens for entry in passes), ()) == tuple(tokens[:length])
                for row in range(rows):
                    assert abs(context.row(row) - wanted[length - rows + row]).max() < CLOSE


@pytest.mark.parametrize(("tokens", "rows"), [(10, 6), (3, 4), (3, -1), (9, 9)])
def test_rows_that_cannot_be_had(context: Context, passes: Passes, tokens: int, rows: int) -> None:
    """More than granted, more than there are tokens, less than none."""
    with pytest.raises(ValueError, match="rows"):
        context.decode([1] * tokens, rows=rows)
    assert not passes
    assert context.tokens == []


@pytest.mark.parametrize("token", [-1, VOCABULARY_SIZE, -(2**31), 2**31, 10**12])
def test_ids_outside_the_vocabulary(context: Context, passes: Passes, token: int) -> None:
    for tokens in ([token], [1, token, 2], [1] * 20 + [token]):
        with pytest.raises(ValueError, match="outside the vocabulary"):
            context.decode(tokens, rows=1)
    assert not passes
    vocabulary = context.model.vocabulary
    for ask in (vocabulary.piece, vocabulary.is_end, vocabulary.token_text, vocabulary.attributes):
        with pytest.raises(ValueError, match="outside the vocabulary"):
            ask(token)
    context.decode([0, VOCABULARY_SIZE - 1], rows=1)


def test_a_pass_over_nothing(context: Context, passes: Passes) -> None:
    with pytest.raises(ValueError, match="no tokens"):
        context.decode([])
    assert not passes


def test_more_than_the_context_holds(context: Context, passes: Passes) -> None:
    """Nothing is evaluated of an input that does not fit whole, and the rest of the room can still be used."""
    context.decode([1] * 250)
    passes.clear()
    with pytest.raises(ContextFullError, match="256"):
        context.decode([1] * 7)
    assert not passes
    context.decode([1] * 6, rows=1)
    with pytest.raises(ContextFullError):
        context.decode([1])
    context.truncate(10)
    context.decode([1])
    assert len(context.tokens) == context.memory.length() == 11


def test_rows_that_were_not_asked_for(context: Context) -> None:
    def refused(index: int) -> bool:
        with pytest.raises(ValueError, match="was not asked for"):
            context.row(index)
        return True

    assert refused(0)
    context.decode([1, 2, 3], rows=2)
    assert context.row(0).shape == context.row(1).shape == (VOCABULARY_SIZE,)
    assert refused(2)
    assert refused(-1)
    context.decode([4])
    assert refused(0)
    context.decode([5], rows=1)
    context.truncate(2)
    assert refused(0)
    context.decode([5], rows=1)
    with pytest.raises(ValueError):
        context.decode([], rows=1)
    assert context.row(0).shape == (VOCABULARY_SIZE,)


def test_no_logits_from_llama(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    """A NULL row is noticed before it is read."""
    context.decode([1, 2], rows=1)
    monkeypatch.setattr("localspec.engine.llama.context._get_logits", lambda handle, index: None)
    with pytest.raises(LlamaError, match="no logits"):
        context.row(0)


def test_a_pass_that_llama_refuses(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it answers is an error of ours, and the context knows that nothing has changed."""
    context.decode([1, 2])
    for answer, error in ((1, ContextFullError), (-1, LlamaError), (-2, LlamaError)):
        with monkeypatch.context() as patch:
            patch.setattr(lib, "llama_decode", lambda handle, batch, answer=answer: answer)
            with pytest.raises(error):
                context.decode([3])
        assert context.tokens == [1, 2]
    context.decode([3])
    assert context.tokens == [1, 2, 3]


def test_a_closed_context(model: Model) -> None:
    context = Context(model, ContextSettings(length=256, rows=2, threads=1))
    context.decode([1, 2, 3], rows=2)
    context.close()
    context.close()
    uses = {
        "decode": lambda: context.decode([1]),
        "row": lambda: context.row(0),
        "truncate": lambda: context.truncate(1),
        "clear": lambda: context.clear(),
        "mark": lambda: context.mark("name"),
        "handle": lambda: context.handle,
    }
    for use in uses.values():
        with pytest.raises(ValueError, match="context is closed"):
            use()
    context.interrupt()
    context.resume()


def test_a_closed_model(tiny_llama: Path) -> None:
    model = Model(tiny_llama)
    vocabulary = model.vocabulary
    assert vocabulary.piece(65) == b"A"
    model.close()
    model.close()
    uses = {
        "context": lambda: Context(model, ContextSettings(length=256, threads=1)),
        "window": lambda: model.window,
        "kind": lambda: model.is_recurrent,
        "size": lambda: model.bytes,
        "template": lambda: model.chat_template,
        "tokenize": lambda: vocabulary.tokenize("a", special=False),
        "piece": lambda: vocabulary.piece(66),
        "end": lambda: vocabulary.is_end(66),
        "text": lambda: vocabulary.token_text(66),
        "attributes": lambda: vocabulary.attributes(66),
        "bos": lambda: vocabulary.bos,
        "eos": lambda: vocabulary.eos,
        "add_bos": lambda: vocabulary.add_bos,
        "special": lambda: vocabulary.special_texts,
    }
    for use in uses.values():
        with pytest.raises(ValueError, match="model is closed"):
            use()
    assert vocabulary.piece(65) == b"A"


def test_a_model_closed_before_its_contexts(tiny_llama: Path) -> None:
    """llama.cpp would read freed weights; here the contexts go first, and closing them again is fine."""
    model = Model(tiny_llama)
    contexts = [Context(model, ContextSettings(length=256, rows=1, threads=1)) for _ in range(2)]
    contexts[0].decode([1, 2], rows=1)
    model.close()
    for context in contexts:
        with pytest.raises(ValueError, match="context is closed"):
            context.decode([1])
        context.close()


@pytest.mark.parametrize(("batch", "rows"), [(5, 5), (2, 2), (1, 1), (6, 5), (33, 33), (512, 33)])
def test_snapshots_never_fill_a_micro_batch(tiny_lfm2: Path, batch: int, rows: int) -> None:
    """As many snapshots as can be had, one fewer than would end the process; a cut stays exact beyond them."""
    tokens = list(np.random.default_rng(2).integers(0, 256, 60))
    settings = ContextSettings(length=256, batch=batch, rows=rows, threads=1)
    with Model(tiny_lfm2) as model, Context(model, settings) as context:
        assert lib.llama_n_rs_seq(context.handle) == max(0, min(rows - 1, batch - 2, 8))
        context.decode(tokens[:20])
        context.mark("step")
        context.decode(tokens[20 : 20 + rows], rows=rows)
        kept = context.truncate(21)
        assert 20 <= kept <= 21
        context.decode(tokens[kept:60], rows=1)
        assert abs(context.row(0) - truth(context, tokens)[59]).max() < CLOSE


def test_deep_hybrids_do_not_outgrow_their_graph(tmp_path: Path) -> None:
    """With a snapshot for each of 32 drafted tokens a hybrid of 18 layers ends the process; with ours it decodes."""
    path = lfm2(tmp_path / "deep.gguf", repeats=6)
    assert run_alone("a_snapshot_for_every_draft", path).returncode == -signal.SIGABRT
    with Model(path) as model, Context(model, ContextSettings(length=256, rows=33, threads=1)) as context:
        context.decode([1] * 100, rows=33)


def chained(**changes: float) -> ChainSettings:
    values: dict[str, float] = {
        "vocabulary_size": 8,
        "temperature": 1.0,
        "top_k": 0,
        "top_p": 1.0,
        "min_p": 0.0,
        "repeat_penalty": 1.0,
        "frequency_penalty": 0.0,
        "presence_penalty": 0.0,
        "penalty_window": 64,
    }
    return ChainSettings(**(values | changes))  # type: ignore[arg-type]


IDS, LOGITS = np.arange(8, dtype=np.int32), np.linspace(-1, 1, 8, dtype=np.float32)


def test_a_chain_is_refused_what_it_cannot_take() -> None:
    chain = Chain(chained(repeat_penalty=1.2))
    for token in (-1, 8, 2**31):
        with pytest.raises(ValueError, match="outside the vocabulary"):
            chain.accept(token)
    for ids, logits in ((IDS[:0], LOGITS[:0]), (IDS, LOGITS[:7])):
        with pytest.raises(ValueError, match="at least one"):
            chain.apply(ids, logits)
    other = chain.clone()
    chain.close()
    chain.close()
    for use in (lambda: chain.apply(IDS, LOGITS), lambda: chain.accept(1), chain.reset, chain.clone):
        with pytest.raises(ValueError, match="chain is closed"):
            use()
    assert other.apply(IDS, LOGITS)[0].size == 8


@pytest.mark.parametrize("left", [0, 9])
def test_a_chain_that_leaves_nothing_or_too_much(left: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """llama.cpp would select out of an empty list; we notice before anything is read."""

    def apply(handle: object, array: object) -> None:
        array._obj.size = left  # type: ignore[attr-defined]

    chain = Chain(chained())
    with monkeypatch.context() as patch:
        patch.setattr(lib, "llama_sampler_apply", apply)
        with pytest.raises(LlamaError, match=f"left {left} of 8"):
            chain.apply(IDS, LOGITS)
    assert chain.apply(IDS, LOGITS)[0].size == 8


@pytest.mark.parametrize("changes", [{"top_p": 0.0}, {"min_p": 1.0}, {"top_k": 1}, {"top_p": 0.0, "min_p": 1.0}])
def test_the_strictest_settings_leave_one(changes: dict[str, float]) -> None:
    ids, logits = Chain(chained(**changes)).apply(IDS, LOGITS)
    assert (ids.tolist(), logits.tolist()) == ([7], [1.0])


def test_chains_die_quietly_in_any_thread() -> None:
    """A chain that is dropped is freed wherever the last reference goes."""
    chains = [Chain(chained(repeat_penalty=1.1)) for _ in range(50)]
    thread = threading.Thread(target=chains.clear)
    thread.start()
    thread.join()
    assert chains == []


def test_quantizing_into_a_folder_that_is_not_there(tiny_llama: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="could not be written"):
        quantize(tiny_llama, tmp_path / "no" / "where.gguf", "Q8_0")
    with pytest.raises(ModelError, match="not a known quantization"):
        quantize(tiny_llama, tmp_path / "a.gguf", "Q9_9")
    assert list(tmp_path.iterdir()) == []
