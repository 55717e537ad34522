"""The engine on tiny models: what is read again between calls and what is not, options, and other vocabularies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from recorded import Passes, draft_context, open_engine

import tiny
import tiny_bad
from localspec.engine.engine import Engine, EngineSettings, Options
from localspec.engine.errors import ContextFullError, UserError
from localspec.engine.llama import Context, ContextSettings
from localspec.engine.sampling import Sampling
from localspec.engine.step import Finish
from tiny_checks import PROMPT, WARM, write

DRAFTERS = ("none", "lookup", "draft")


def options(drafter: str = "none", *, seed: int = 1, tokens: int = 12, **more: object) -> Options:
    """Temperature 0.8 with a seed."""
    return Options(WARM, drafter, draft_max=4, seed=seed, max_tokens=tokens, **more)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def shared(target: Path, draft: Path) -> Iterator[Engine]:
    """One engine for tests that do not care what was before."""
    with open_engine(target, draft) as engine:
        yield engine


# --- prefix reuse -----------------------------------------------------------------------------------------------------


@dataclass
class Reading:
    """What one answer has cost: tokens reused, and tokens that each model has evaluated."""

    tokens: list[int]
    reused: int
    target_prompt: int
    """Target tokens evaluated in passes without rows: the prompt."""
    target_steps: int
    draft: int


def read(engine: Engine, passes: Passes, prompt: list[int], chosen: Options) -> Reading:
    """Answer, and count."""
    passes.clear()
    tokens, totals, steps = write(engine, chosen, prompt)
    target = passes.of(engine.target_context)
    prompt_passes = [entry for entry in target if not entry.rows]
    assert len(target) - len(prompt_passes) == totals.steps
    assert sum(len(entry.tokens) for entry in target if entry.rows) == sum(step.width for step in steps)
    return Reading(
        tokens,
        engine.reused_tokens,
        sum(len(entry.tokens) for entry in prompt_passes),
        sum(len(entry.tokens) for entry in target if entry.rows),
        passes.tokens_of(draft_context(engine)),
    )


def test_only_what_is_new_is_read(target: Path, draft: Path, passes: Passes) -> None:
    """Each call evaluates exactly the tokens of the prompt that it does not share with the stream, short of its last."""
    with open_engine(target, draft) as engine:
        first = read(engine, passes, PROMPT, options())
        assert (first.reused, first.target_prompt, first.target_steps) == (0, len(PROMPT) - 1, 12)
        again = read(engine, passes, PROMPT, options())
        assert (again.reused, again.target_prompt) == (len(PROMPT) - 1, 0)
        assert again.tokens == first.tokens
        extended = read(engine, passes, [*PROMPT, *b"some more"], options())
        assert (extended.reused, extended.target_prompt) == (len(PROMPT), 8)
        answered = [*PROMPT, *b"some more", *extended.tokens, *b"next question"]
        turn = read(engine, passes, answered, options())
        # The last token of an answer has not been evaluated when the answer ends.
        assert turn.reused == len(PROMPT) + 9 + 11
        assert turn.target_prompt == 1 + 13 - 1
        edited = [*answered[:20], ord("X"), *answered[21:]]
        middle = read(engine, passes, edited, options())
        assert (middle.reused, middle.target_prompt) == (20, len(edited) - 21)
        shorter = read(engine, passes, edited[:30], options())
        assert (shorter.reused, shorter.target_prompt) == (29, 0)
        other = read(engine, passes, list(b"zzz"), options())
        assert (other.reused, other.target_prompt) == (0, 2)
        assert engine.prompt_tokens == 3
        assert {entry.context for entry in passes} == {engine.target_context.handle}


def test_the_draft_model_reads_only_what_is_new(target: Path, draft: Path, passes: Passes) -> None:
    """No token of the stream is evaluated twice by it: only refused drafts are, and replaced."""
    with open_engine(target, draft) as engine:
        context = draft_context(engine)

        def again(prompt: list[int]) -> list[int]:
            """The answer; complains about a token that was evaluated though it was there already, in its right place."""
            cache = context.tokens[: len(prompt)]
            answer = read(engine, passes, prompt, options("draft", tokens=40)).tokens
            text = list(engine.stream)
            settled = _shared(cache, text)
            for entry in passes.of(context):
                # The last token of the prompt is evaluated again for its row.
                assert entry.start >= settled or entry.start == len(prompt) - 1
                del cache[entry.start :]
                cache += entry.tokens
                settled = max(settled, _shared(cache, text))
            assert cache == context.tokens
            return answer

        again(PROMPT)
        again(PROMPT)
        answer = again([*PROMPT, *b"more words"])
        again([*PROMPT, *b"more words", *answer, *b"and more"])
        again([*PROMPT[:9], *b"an edited middle", *PROMPT[9:]])
        again(PROMPT[:30])


def _shared(one: list[int], other: list[int]) -> int:
    """Length of the common prefix."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def test_the_draft_model_sleeps_while_others_draft(target: Path, draft: Path, passes: Passes) -> None:
    """It evaluates nothing for answers it does not draft, and then catches up in one pass."""
    with open_engine(target, draft) as engine:
        for drafter in ("none", "lookup"):
            assert read(engine, passes, PROMPT, options(drafter, tokens=30)).draft == 0
        read(engine, passes, PROMPT, options("draft", tokens=30))
        assert len(passes.of(draft_context(engine))[0].tokens) >= len(PROMPT) - 1


@pytest.mark.parametrize("drafter", [*DRAFTERS, "auto"])
def test_reuse_changes_no_text(target: Path, draft: Path, drafter: str) -> None:
    """A conversation with edits, and the same prompts each to a fresh engine."""
    prompts = [PROMPT, PROMPT[:20], [*PROMPT, 1, 2, 3], [*PROMPT[:10], *b"edit", *PROMPT[10:]], PROMPT]
    with open_engine(target, draft) as engine:
        texts = [write(engine, options(drafter, tokens=30), prompt)[0] for prompt in prompts]
    for text, prompt in zip(texts, prompts, strict=True):
        with open_engine(target, draft) as engine:
            assert write(engine, options(drafter, tokens=30), prompt)[0] == text


def test_prompt_progress(target: Path) -> None:
    """Reported before each batch and at the end, in tokens of the prompt, and never for what is reused."""
    with open_engine(target, context=1536) as engine:
        said: list[tuple[int, int]] = []
        prompt = PROMPT * 25
        list(engine.generate(prompt, options(tokens=1), lambda done, total: said.append((done, total))))
        assert said == [(0, 1350), (512, 1350), (1024, 1350), (1350, 1350)]
        said.clear()
        list(engine.generate([*prompt, 5], options(tokens=1), lambda done, total: said.append((done, total))))
        assert said == [(1351, 1351)]


def test_prompt_progress_of_two_models(target: Path, draft: Path) -> None:
    """Each is half of the way, in tokens of the prompt; the draft model's batches are of 256."""
    with open_engine(target, draft, context=1536) as engine:
        said: list[tuple[int, int]] = []
        prompt = PROMPT * 25
        chosen = options("draft", tokens=1)
        list(engine.generate(prompt, chosen, lambda done, total: said.append((done, total))))
        halves = [0, 512, 1024, 1349, 1349 + 256, 1349 + 512, 1349 + 768, 1349 + 1024, 1349 + 1280]
        assert said == [*((half // 2, 1350) for half in halves), (1350, 1350)]
        said.clear()
        list(engine.generate([*prompt, 5], chosen, lambda done, total: said.append((done, total))))
        # The draft model has not seen the last token of the first prompt: nobody has asked it what follows.
        assert said == [((1350 + 1349) // 2, 1351), (1351, 1351)]


def test_a_draft_model_that_auto_has_dropped_does_not_read_the_prompt(target: Path, draft: Path) -> None:
    """It catches up when it is asked again; who asks for it by name still has it at once."""
    with open_engine(target, draft) as engine:
        chosen = options("auto", tokens=1)
        engine._session.worth = -0.1
        write(engine, chosen)
        assert draft_context(engine).tokens == []
        write(engine, options("draft", tokens=1))
        assert draft_context(engine).tokens == PROMPT[:-1]
        engine._session.worth = 0.1
        write(engine, chosen, list(b"another"))
        assert draft_context(engine).tokens == list(b"anothe")


# --- options ----------------------------------------------------------------------------------------------------------

NONSENSE = {
    "drafter": ({"drafter": "magic"}, "'magic' is not a drafter; choose one of"),
    "verification": ({"verification": "trust"}, "'trust' is not a verification; choose one of"),
    "no draft": ({"draft_max": 0}, "from 1 to 32"),
    "long draft": ({"draft_max": 33}, "from 1 to 32"),
    "no tokens": ({"max_tokens": 0}, "at least 1"),
    "negative tokens": ({"max_tokens": -5}, "at least 1"),
    "negative seed": ({"seed": -1}, "from 0 to 4294967295"),
    "large seed": ({"seed": 2**32}, "from 0 to 4294967295"),
}


@pytest.mark.parametrize("what", NONSENSE)
def test_options_that_make_no_sense(what: str) -> None:
    """One sentence with the remedy."""
    arguments, remedy = NONSENSE[what]
    with pytest.raises(UserError) as error:
        Options(**arguments)  # type: ignore[arg-type]
    assert remedy in str(error.value)
    assert str(error.value).endswith(".")
    assert "\n" not in str(error.value)


def test_prompts_that_make_no_sense(shared: Engine, target: Path) -> None:
    """Nothing, and more than the context holds; the conversation stays as it was."""
    write(shared, options())
    before = list(shared.stream)
    with pytest.raises(UserError, match="The prompt is empty"):
        next(shared.generate([], options()))
    with pytest.raises(ContextFullError, match=r"513 tokens and the context holds 512.*--ctx"):
        next(shared.generate([1] * 513, options()))
    assert list(shared.stream) == before
    with open_engine(target) as engine, pytest.raises(UserError, match="No draft model is loaded"):
        next(engine.generate(PROMPT, options("draft")))


def test_verification_follows_seed_and_temperature() -> None:
    """Match wherever the text can be a function of a seed, rejection elsewhere; what is asked for wins."""
    assert Options(WARM).resolved_verification == "rejection"
    assert Options(WARM, seed=0).resolved_verification == "match"
    assert Options(Sampling(temperature=0)).resolved_verification == "match"
    assert Options(WARM, seed=0, verification="rejection").resolved_verification == "rejection"
    assert Options(WARM, verification="match").resolved_verification == "match"


def test_seeds(shared: Engine) -> None:
    """The same seed says the same, others say other things, and a drawn seed can be given again."""
    texts = {seed: tuple(write(shared, options(seed=seed, tokens=20))[0]) for seed in (0, 1, 2, 2**32 - 1)}
    assert len(set(texts.values())) == 4
    assert tuple(write(shared, options(seed=2, tokens=20))[0]) == texts[2]
    drawn = write(shared, Options(WARM, "none", max_tokens=20))[0]
    assert write(shared, options(seed=shared.seed, tokens=20))[0] == drawn


@pytest.mark.parametrize("drafter", DRAFTERS)
def test_logprobs_are_those_of_the_model(shared: Engine, drafter: str) -> None:
    """Teacher-forced through a fresh context: ln softmax of the raw row, accepted tokens included."""
    chosen = options(drafter, tokens=40, logprobs=True)
    tokens, totals, steps = write(shared, chosen)
    assert drafter == "none" or totals.accepted > 0
    settings = ContextSettings(length=512, rows=64, threads=1, kv_type="q8_0")
    with Context(shared.target, settings) as fresh:
        fresh.decode([*PROMPT, *tokens[:-1]], rows=len(tokens))
        rows = np.stack([fresh.row(index) for index in range(len(tokens))]).astype(np.float64)
    peak = rows.max(axis=1, keepdims=True)
    wanted = rows - peak - np.log(np.exp(rows - peak).sum(axis=1, keepdims=True))
    ours = [value for step in steps for value in step.logprobs]
    assert all(len(step.logprobs) == len(step.tokens) for step in steps)
    assert np.allclose(ours, wanted[np.arange(len(tokens)), tokens], atol=1e-5)
    assert max(ours) < 0 and min(ours) < -1
    assert write(shared, options(drafter, tokens=3))[2][0].logprobs == ()


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(temperature=1.0, repeat_penalty=1.4),
        Sampling(temperature=0.9, frequency_penalty=0.6, presence_penalty=0.4, penalty_window=16),
        Sampling(temperature=0, repeat_penalty=1.5),
        Sampling(temperature=1.0, top_k=0, top_p=0.9, presence_penalty=1.0),
        Sampling(temperature=1.2, top_k=0, top_p=1.0, min_p=0.05, repeat_penalty=0.7),
    ],
    ids=str,
)
def test_penalties_say_the_same_whoever_drafts(shared: Engine, sampling: Sampling) -> None:
    """They see the drafted tokens before a row, never refused ones, and the prompt."""
    texts = {}
    for drafter in DRAFTERS:
        texts[drafter], totals, _ = write(shared, Options(sampling, drafter, draft_max=6, seed=7, max_tokens=120))
        assert drafter == "none" or totals.drafted > 0
    assert texts["lookup"] == texts["draft"] == texts["none"]
    unpenalized = Sampling(temperature=sampling.temperature, top_k=sampling.top_k, top_p=sampling.top_p)
    assert write(shared, Options(unpenalized, "none", seed=7, max_tokens=120))[0] != texts["none"]


# --- pairs that are not twins -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("padded", ["target", "draft", "both"])
@pytest.mark.parametrize("penalty", [1.0, 1.2])
def test_vocabularies_that_differ_by_padding(
    exactly: Callable[[Path], Path], target: Path, draft: Path, tmp_path: Path, padded: str, penalty: float
) -> None:
    """Whoever has more of it, penalties or not, the text is that of the target alone; it may hold padding."""
    if padded != "draft":
        target = exactly(tiny_bad.other_vocabulary(tmp_path / "target.gguf", swap=None, padding=40))
    if padded != "target":
        draft = tiny_bad.other_vocabulary(tmp_path / "draft.gguf", swap=None, padding=40, noise=0.08)
    hot = Sampling(temperature=3.0, top_k=0, top_p=1.0, repeat_penalty=penalty)
    with open_engine(target, draft) as engine:
        texts, drafted = {}, 0
        for drafter in DRAFTERS:
            for verification in ("match", "rejection"):
                chosen = Options(hot, drafter, draft_max=5, verification=verification, seed=3, max_tokens=250)
                tokens, totals, _ = write(engine, chosen)
                drafted += totals.drafted
                if verification == "match" or drafter != "draft":
                    texts[drafter, verification] = tokens
        assert drafted > 0
        assert len({tuple(text) for text in texts.values()}) == 1
        highest = max(texts["none", "match"])
        assert (highest >= tiny.VOCABULARY_SIZE) == (padded != "draft")


def test_a_draft_model_trained_on_shorter_texts(target: Path, tmp_path: Path) -> None:
    """Its context is opened as long as the target's; its guesses may get worse, the text does not change."""
    short = tiny.llama(tmp_path / "short.gguf", noise=0.08, context=64)
    with open_engine(target, short) as engine:
        assert draft_context(engine).length == engine.context_length == 512
        texts = {drafter: write(engine, options(drafter, tokens=300))[0] for drafter in DRAFTERS}
        assert len(texts["none"]) > 64
        assert texts["draft"] == texts["lookup"] == texts["none"]


def test_default_context(tmp_path: Path) -> None:
    """What the model was trained with, and not more than eight thousand unless asked."""
    for trained, asked, granted in ((2048, None, 2048), (100_000, None, 8192), (2048, 100, 256), (256, 1000, 1024)):
        path = tiny.llama(tmp_path / f"{trained}.gguf", context=trained)
        with Engine(EngineSettings(path, context_length=asked, threads=1)) as engine:
            assert engine.context_length == granted


def test_a_closed_engine(target: Path, draft: Path) -> None:
    """Everything is freed once, and using it is an error of ours."""
    engine = open_engine(target, draft)
    write(engine, options("draft"))
    engine.close()
    engine.close()
    with pytest.raises(ValueError, match="is closed"):
        next(engine.generate(PROMPT, options()))


def test_every_answer_says_why_it_ended(shared: Engine) -> None:
    """On its last step, and on no other."""
    for drafter in DRAFTERS:
        _, totals, steps = write(shared, options(drafter))
        assert [step.finish for step in steps[:-1]] == [None] * (len(steps) - 1)
        assert steps[-1].finish is totals.finish is Finish.LENGTH
