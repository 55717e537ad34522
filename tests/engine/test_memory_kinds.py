"""Every kind of memory, as target and as draft model: the text is the target's own, and each goes back its own way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from recorded import MEMORY_CASES, MemoryCase, Passes, draft_context, opening

from localspec.engine.engine import Engine, Options
from localspec.engine.llama.library import lib
from localspec.engine.llama.memory import MemoryKind
from localspec.engine.sampling import Sampling
from tiny_checks import GREEDY, PROMPT, WARM, write

SAMPLINGS = [GREEDY, WARM, Sampling(temperature=1.0, repeat_penalty=1.3, frequency_penalty=0.2)]


def same_texts(engine: Engine, draft_max: int = 6, tokens: int = 70) -> tuple[int, int]:
    """Texts are equal whoever drafts. Returns how many tokens the draft model has drafted, and how many were accepted."""
    drafted = accepted = 0
    for sampling in SAMPLINGS:
        for seed in (1, 2):
            texts = {}
            for drafter in ("none", "lookup", "draft"):
                options = Options(sampling, drafter, draft_max=draft_max, seed=seed, max_tokens=tokens)
                texts[drafter], totals, _ = write(engine, options)
                if drafter == "draft":
                    drafted, accepted = drafted + totals.drafted, accepted + totals.accepted
            assert texts["lookup"] == texts["draft"] == texts["none"], f"{sampling}, seed {seed}"
    return drafted, accepted


def test_as_target_and_draft_of_itself(memory_case: MemoryCase, own: Path, coarse: Path) -> None:
    """Drafts that are right in part: every step goes back in the target and in the draft model."""
    with opening(memory_case, own, coarse) as engine:
        assert engine.target_context.memory.kind is memory_case.kind
        drafted, accepted = same_texts(engine)
        assert 0.1 * drafted < accepted < drafted


def test_as_target_of_another_kind(memory_case: MemoryCase, own: Path, draft: Path) -> None:
    """Drafts by attention that are refused nearly always: the memory goes back all the way at every step."""
    with opening(memory_case, own, draft) as engine:
        drafted, accepted = same_texts(engine)
        assert drafted > 400
        assert accepted < 0.9 * drafted


def test_as_draft_of_another_kind(memory_case: MemoryCase, own: Path, target: Path) -> None:
    with opening(memory_case, target, own) as engine:
        kind = draft_context(engine).memory.kind
        assert kind is (MemoryKind.CHECKPOINTS if memory_case.kind is MemoryKind.SNAPSHOTS else memory_case.kind)
        drafted, _ = same_texts(engine)
        assert drafted > 300


def test_a_draft_model_is_not_read_from_the_beginning(memory_case: MemoryCase, own: Path, passes: Passes) -> None:
    """After a refusal it goes back to the end of the text it knew, whatever its memory."""
    with opening(memory_case, own, own) as engine:
        for seed in range(3):
            options = Options(WARM, "draft", draft_max=5, verification="rejection", seed=seed, max_tokens=60)
            passes.clear()
            write(engine, Options(WARM, "lookup", seed=seed, max_tokens=20))
            write(engine, options)
            read = passes.of(draft_context(engine))
            assert sum(entry.start == 0 for entry in read) <= 1
            assert passes.tokens_of(draft_context(engine)) < len(PROMPT) + 60 * (5 + 1)


@contextmanager
def restores() -> Iterator[list[int]]:
    """One entry for every state that is put back."""
    put, seen = lib.llama_state_seq_set_data_ext, []

    def counted(*arguments: object) -> int:
        seen.append(len(seen))
        return int(put(*arguments))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lib, "llama_state_seq_set_data_ext", counted)
        yield seen


def test_who_goes_back_by_checkpoint(memory_case: MemoryCase, own: Path, coarse: Path, passes: Passes) -> None:
    """A running state is put back and what was accepted is evaluated again, in the next pass; others do neither."""
    with opening(memory_case, own, coarse) as engine, restores() as put_back:
        write(engine, Options(WARM, "lookup", draft_max=6, seed=1, max_tokens=70))
        put_back.clear()
        passes.clear()
        tokens, _, steps = write(engine, Options(WARM, "draft", draft_max=6, seed=1, max_tokens=70))
        target = passes.of(engine.target_context)
        refusals = sum(step.accepted < step.drafted for step in steps[:-1])
        assert refusals > 5
        replayed = sum(step.width - step.drafted - 1 for step in steps)
        if memory_case.kind is MemoryKind.CHECKPOINTS:
            assert len(put_back) >= refusals
            assert replayed > 0
        else:
            assert replayed == 0
        if memory_case.kind in (MemoryKind.PLAIN, MemoryKind.WINDOW):
            assert not put_back
        # Every pass begins where the memory has gone back to, and each token of the text is in place at the end.
        cache: list[int] = []
        for entry in target:
            assert entry.start <= len(cache) or not cache
            cache = [*cache[: entry.start], *entry.tokens] if cache else [*PROMPT[: entry.start], *entry.tokens]
        assert cache[: len(PROMPT) + len(tokens) - 1] == [*PROMPT, *tokens][:-1]


@pytest.mark.parametrize("draft_max", [2, 12, 32])
def test_replays_do_not_pile_up(memory_case: MemoryCase, own: Path, coarse: Path, draft_max: int) -> None:
    """Where every draft is refused in part, accepted tokens wait to be evaluated again, but never for long."""
    with opening(memory_case, own, coarse) as engine:
        options = Options(WARM, "draft", draft_max=draft_max, seed=1, max_tokens=150)
        tokens, totals, steps = write(engine, options)
        assert max(step.width - step.drafted for step in steps) <= 8 + draft_max + 1
        assert write(engine, Options(WARM, "none", seed=1, max_tokens=150))[0] == tokens
        assert totals.accepted > 0


def test_longer_drafts_than_snapshots(exactly: Callable[[Path], Path], tiny_lfm2: Path, draft: Path) -> None:
    """Eight tokens go back for free; refusals of more are put back to before the pass."""
    case = MEMORY_CASES["hybrid with snapshots"]
    with opening(case, exactly(tiny_lfm2), draft) as engine:
        replays = {}
        for draft_max in (8, 9, 20):
            with restores():
                _, _, steps = write(engine, Options(GREEDY, "draft", draft_max=draft_max, max_tokens=60))
            replays[draft_max] = sum(step.width - step.drafted - 1 for step in steps)
        assert replays[8] == 0
        assert replays[20] > 0
        same_texts(engine, draft_max=20)


def test_turns_edits_and_regenerations(memory_case: MemoryCase, own: Path, coarse: Path) -> None:
    """A conversation in one engine, with every prompt also given to a fresh one."""
    prompts = [PROMPT, PROMPT, [*PROMPT, *b" more"], [*PROMPT[:11], *b"edit", *PROMPT[11:]], PROMPT[:25], PROMPT]
    answers = []
    with opening(memory_case, own, coarse) as engine:
        for number, prompt in enumerate(prompts):
            options = Options(WARM, ("draft", "lookup", "none")[number % 3], draft_max=6, seed=number, max_tokens=25)
            answers.append(write(engine, options, prompt)[0])
        stream = list(engine.stream)
        answers.append(write(engine, Options(WARM, "draft", seed=9, max_tokens=25), [*stream, *b" and?"])[0])
        assert engine.reused_tokens == len(stream) - 1
    for number, prompt in enumerate([*prompts, [*stream, *b" and?"]]):
        with opening(memory_case, own, None) as engine:
            options = Options(WARM, "none", seed=9 if number == 6 else number, max_tokens=25)
            assert write(engine, options, prompt)[0] == answers[number]


def test_the_same_prompt_again_is_not_read_again(memory_case: MemoryCase, own: Path, passes: Passes) -> None:
    """Regenerate: also a running state goes back to the end of the prompt."""
    with opening(memory_case, own, None) as engine:
        for seed in range(3):
            passes.clear()
            write(engine, Options(WARM, "none", seed=seed, max_tokens=10))
            assert [len(entry.tokens) for entry in passes if not entry.rows] == ([53] if seed == 0 else [])
            assert engine.reused_tokens == (0 if seed == 0 else 53)
