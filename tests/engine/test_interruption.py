"""An answer can be stopped, dropped or broken off at any point, and the next one does not notice."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded import draft_context, open_engine

from localspec.engine.engine import Engine, Options
from localspec.engine.llama.library import lib
from localspec.engine.sampling import Sampling
from localspec.engine.step import Finish, Step
from reciting import circle
from tiny_checks import GREEDY, PROMPT, WARM, write

DRAFTERS = ("none", "lookup", "draft", "auto")
LONG = PROMPT * 24
"""1,296 tokens: three batches of the target's."""


def options(drafter: str, seed: int = 1, **more: object) -> Options:
    return Options(WARM, drafter, **({"draft_max": 5, "seed": seed, "max_tokens": 30} | more))  # type: ignore[arg-type]


@pytest.fixture
def engine(target: Path, draft: Path) -> Iterator[Engine]:
    with open_engine(target, draft, context=1536) as engine:
        yield engine


@contextmanager
def visitor(call: Callable[[], None], pass_: int, at_once: bool = False) -> Iterator[None]:
    """`call` is made by another thread while pass number `pass_` from here on runs, or just before it."""
    decode, seen = lib.llama_decode, 0

    def visited(handle: object, batch: object) -> int:
        nonlocal seen
        thread = threading.Thread(target=call) if seen == pass_ else None
        seen += 1
        if thread:
            thread.start()
            if at_once:
                thread.join()
        result = int(decode(handle, batch))
        if thread:
            thread.join()
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lib, "llama_decode", visited)
        yield


def consistent(engine: Engine) -> bool:
    """Both caches hold the beginning of the stream and nothing else that anybody believes in."""
    target = engine.target_context
    holds = target.tokens == list(engine.stream)[: len(target.tokens)]
    return holds and all(context.memory.length() == len(context.tokens) for context in (target, draft_context(engine)))


# --- stop() -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("drafter", DRAFTERS)
def test_stop_between_steps(engine: Engine, drafter: str) -> None:
    """What has been said stays; one more step gives the reason, without a pass."""
    for stop_after in range(1, 6):
        steps: list[Step] = []
        for step in engine.generate(PROMPT, options(drafter)):
            steps.append(step)
            if len(steps) == stop_after:
                engine.stop()
                engine.stop()
        assert len(steps) == stop_after + 1
        assert [step.finish for step in steps] == [None] * stop_after + [Finish.INTERRUPTED]
        assert (steps[-1].tokens, steps[-1].width) == ((), 0)
        emitted = [token for step in steps for token in step.tokens]
        assert list(engine.stream) == [*PROMPT, *emitted]
        assert consistent(engine)


def test_stop_gives_the_text_that_was_held_back(tmp_path: Path) -> None:
    """The beginning of a stop string that nobody will ever complete."""
    path = circle(tmp_path / "circle.gguf", "abcdefgh")
    with open_engine(path, path) as engine:
        texts = []
        for step in engine.generate(list(b"abcdefgh"), Options(GREEDY, "none", stop=("defg",))):
            texts.append(step.text)
            if len(texts) == 5:
                engine.stop()
        assert texts == ["a", "b", "c", "", "", "de"]


@pytest.mark.parametrize("drafter", DRAFTERS)
@pytest.mark.parametrize("at_once", [True, False])
def test_stop_from_another_thread_while_a_pass_runs(engine: Engine, drafter: str, at_once: bool) -> None:
    """Of the prompt, of the draft model or of the target. The pass may come to its end; no other begins."""
    fresh = write(engine, options(drafter))[0]
    for pass_ in range(8):
        with visitor(engine.stop, pass_, at_once):
            tokens, totals, steps = write(engine, options(drafter))
        assert tokens == fresh[: len(tokens)]
        assert totals.finish is Finish.INTERRUPTED
        assert sum(step.width > 0 for step in steps) <= pass_ + 1
        assert consistent(engine)
    assert write(engine, options(drafter))[0] == fresh


@pytest.mark.parametrize("drafter", DRAFTERS)
def test_stop_while_the_prompt_is_read(engine: Engine, drafter: str) -> None:
    """One step without tokens; what was read before is not read again."""
    prompt = LONG
    fresh = write(engine, options(drafter), prompt)[0]
    for batch in range(3):
        write(engine, options(drafter, max_tokens=1), [1])
        with visitor(engine.stop, batch, at_once=True):
            _, _, steps = write(engine, options(drafter), prompt)
        assert [(step.tokens, step.width, step.finish) for step in steps] == [((), 0, Finish.INTERRUPTED)]
        assert len(engine.target_context.tokens) == 512 * batch
        assert write(engine, options(drafter), prompt)[0] == fresh
        assert engine.reused_tokens == 512 * batch


@pytest.mark.parametrize("drafter", ["draft", "auto"])
def test_stop_while_the_draft_model_reads_the_prompt(engine: Engine, drafter: str) -> None:
    """It reads a batch at a time too, and keeps what it has read."""
    fresh = write(engine, options(drafter), LONG)[0]
    for batch in range(6):
        write(engine, options(drafter, max_tokens=1), [1])
        with visitor(engine.stop, 3 + batch, at_once=True):
            _, _, steps = write(engine, options(drafter), LONG)
        assert [(step.tokens, step.width, step.finish) for step in steps] == [((), 0, Finish.INTERRUPTED)]
        assert len(engine.target_context.tokens) == len(LONG) - 1
        assert len(draft_context(engine).tokens) == 256 * batch
        assert consistent(engine)
        assert write(engine, options(drafter), LONG)[0] == fresh


def test_stop_in_the_progress_of_the_draft_model(engine: Engine) -> None:
    """Said before a batch, it is heeded before the next one."""
    said: list[int] = []

    def progress(done: int, total: int) -> None:
        said.append(done)
        if len(engine.target_context.tokens) == len(LONG) - 1:
            engine.stop()

    steps = list(engine.generate(LONG, options("draft"), progress))
    assert [step.finish for step in steps] == [Finish.INTERRUPTED]
    assert said == [0, 256, 512, (len(LONG) - 1) // 2]
    assert len(draft_context(engine).tokens) <= 256
    assert consistent(engine)


def test_stop_in_the_progress_of_the_prompt(engine: Engine) -> None:
    """The callback is where an app learns of it first."""
    for at in (0, 512, 1024):
        write(engine, options("none", max_tokens=1), [1])
        progress = lambda done, total, at=at: engine.stop() if done == at else None  # noqa: E731
        steps = list(engine.generate(LONG, options("none"), progress))
        assert [step.finish for step in steps] == [Finish.INTERRUPTED]
        assert len(engine.target_context.tokens) in (at, at + 512)
        assert consistent(engine)


def test_stop_with_nothing_under_way(engine: Engine) -> None:
    """It ends an answer that is being written, and none that begins later."""
    fresh = write(engine, options("draft"))[0]
    engine.stop()
    assert write(engine, options("draft"))[0] == fresh
    answer = engine.generate(PROMPT, options("draft"))
    engine.stop()
    assert [token for step in answer for token in step.tokens] == fresh
    engine.stop()
    assert list(answer) == []


# --- dropped and broken off -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("drafter", DRAFTERS)
def test_dropped_at_any_step(engine: Engine, drafter: str) -> None:
    """Without a word to the engine: the stream has what was yielded."""
    fresh = write(engine, options(drafter))[0]
    for taken in range(1, 7):
        answer = engine.generate(PROMPT, options(drafter))
        emitted = [token for _ in range(taken) for token in next(answer).tokens]
        del answer
        assert list(engine.stream) == [*PROMPT, *emitted]
        assert consistent(engine)
        assert write(engine, options(drafter))[0] == fresh


def test_never_begun(engine: Engine) -> None:
    """An answer that nobody takes a step of changes nothing."""
    write(engine, options("draft"))
    before = list(engine.stream)
    engine.generate([1, 2, 3], options("draft"))
    assert list(engine.stream) == before


def test_an_older_answer_ends_when_a_newer_begins(engine: Engine) -> None:
    """It must not write on in the stream of the newer one."""
    fresh = write(engine, options("draft"), [*PROMPT, 7])[0]
    old = engine.generate(PROMPT, options("draft"))
    next(old)
    new = engine.generate([*PROMPT, 7], options("draft"))
    first = next(new)
    assert [step.finish for step in old] == [Finish.INTERRUPTED]
    assert [*first.tokens, *(token for step in new for token in step.tokens)] == fresh


@pytest.mark.parametrize("drafter", DRAFTERS)
def test_errors_of_whoever_listens(engine: Engine, drafter: str) -> None:
    """Raised in the loop over the steps, or by the progress callback."""
    fresh = write(engine, options(drafter))[0]

    def listen(until: int) -> None:
        for number, _ in enumerate(engine.generate(PROMPT, options(drafter))):
            if number == until:
                raise KeyError(number)

    def progress(done: int, total: int) -> None:
        if done:
            raise KeyError(done)

    for until in range(4):
        with pytest.raises(KeyError):
            listen(until)
        assert consistent(engine)
        with pytest.raises(KeyError):
            next(engine.generate(LONG, options(drafter), progress))
        assert consistent(engine)
        assert write(engine, options(drafter))[0] == fresh


# --- anything, anywhere -----------------------------------------------------------------------------------------------

PAIRS = {"attention": ("target", "draft"), "hybrid": ("tiny_lfm2", "draft"), "recurrent": ("tiny_mamba", "target")}


class Pair:
    """An engine that is interrupted again and again, and what fresh ones of the same models say."""

    def __init__(self, target: Path, draft: Path) -> None:
        self.engine = open_engine(target, draft)

        @cache
        def fresh(prompt: tuple[int, ...], seed: int) -> list[int]:
            with open_engine(target) as engine:
                return write(engine, options("none", seed), list(prompt))[0]

        self.fresh = fresh


@pytest.fixture(scope="module", params=PAIRS)
def pair(request: pytest.FixtureRequest, exactly: Callable[[Path], Path]) -> Iterator[Pair]:
    first, second = (request.getfixturevalue(name) for name in PAIRS[request.param])
    pair = Pair(first if "exact" in str(first) else exactly(first), second)
    yield pair
    pair.engine.close()


def disturb(engine: Engine, rng: np.random.Generator, prompt: list[int]) -> None:
    """Begin an answer and end it in one of the ways that there are."""
    drafter, at = str(rng.choice(DRAFTERS)), int(rng.integers(0, 10))
    chosen = Options(Sampling(temperature=0.9), drafter, draft_max=int(rng.integers(1, 8)), max_tokens=30)
    way = rng.integers(0, 4)
    if way == 0:
        with visitor(engine.stop, at, at_once=bool(rng.integers(0, 2))):
            list(engine.generate(prompt, chosen))
        return
    answer = engine.generate(prompt, chosen)
    for number, _ in enumerate(answer):
        if number < at:
            continue
        if way == 1:
            engine.stop()
        elif way == 2:
            break
        else:
            with suppress(KeyboardInterrupt):
                answer.throw(KeyboardInterrupt)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_random_interruptions(pair: Pair, seed: int) -> None:
    """After a few of them, on prompts that share a beginning, an answer is that of a fresh engine."""
    rng = np.random.default_rng(seed)
    prompts = [PROMPT, PROMPT[:30], [*PROMPT, *b"and so on"], [*PROMPT[:12], *b"edit", *PROMPT[12:]]]
    for _ in range(int(rng.integers(1, 4))):
        disturb(pair.engine, rng, prompts[rng.integers(0, 4)])
        assert consistent(pair.engine)
    prompt, drafter, answer = prompts[rng.integers(0, 4)], str(rng.choice(DRAFTERS)), int(rng.integers(0, 5))
    assert write(pair.engine, options(drafter, answer), prompt)[0] == pair.fresh(tuple(prompt), answer)
