"""The acceptance table: its figures are those of the definitions, and those of the engine at work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import acceptance_by_hand as by_hand
import numpy as np
import pytest

from localspec.chat.document_spans import document_spans
from localspec.engine.engine import Engine, EngineSettings, Options
from localspec.engine.fixed import Fixed
from localspec.engine.sampling import Sampler, Sampling
from localspec.engine.stop import Stop
from localspec.measure.acceptance_answers import Answering, Answers
from localspec.measure.acceptance_table import (
    AUTO,
    LENGTHS,
    LOOKUP,
    AnswerFigures,
    Counted,
    Reading,
    TaskFigures,
    by_task,
    device_of,
    draft_arm,
    figures_of,
    lookup_run,
    pairs_copied,
)
from localspec.measure.arms import parse_arms
from localspec.measure.profiles import PROFILES
from localspec.measure.prompts import Prompt
from reciting import circle

PROMPTS = [
    Prompt("1", "letters", ("Dear Sir or Madam, dear Sir or ",)),
    Prompt("2", "sums", ("one and two are three, one and three are ",)),
    Prompt("3", "letters", ("the cat sat on the mat and the cat sat ",)),
]
LENGTH, CONTEXT, SEED = 60, 512, 3
GREEDY = Sampling(temperature=0.0)
UNCUT = Sampling(temperature=1.0, top_k=0, top_p=1.0)
TRIALS, POSITIONS = 100, 12


@pytest.fixture(scope="module")
def engine(tiny_llama: Path, tiny_draft: Path) -> Engine:
    """The tiny pair."""
    with Engine(EngineSettings(tiny_llama, tiny_draft, context_length=CONTEXT, threads=1)) as engine:
        yield engine


@pytest.fixture(scope="module")
def answers(engine: Engine) -> list[Answers]:
    """Of three prompts."""
    return _answers(engine)


@pytest.fixture(scope="module")
def figures(engine: Engine, answers: list[Answers]) -> list[AnswerFigures]:
    """What the table says of each."""
    return figures_of(answers, device_of(engine.costs))


def test_the_greedy_answer_is_that_of_plain_decoding(engine: Engine, answers: list[Answers]) -> None:
    """Token for token, with the one that ends it; and the sampled answer is the seed's."""
    for prompt, one in zip(PROMPTS, answers, strict=True):
        for sampling, found in ((GREEDY, one.answer), (UNCUT, one.sampled.recording.answer)):
            options = Options(sampling=sampling, drafter="none", seed=SEED, max_tokens=LENGTH)
            steps = list(engine.generate(_bytes(prompt), options))
            assert [token for step in steps for token in step.tokens] == found.tolist()


def test_a_prompt_is_read_once(engine: Engine) -> None:
    """For both answers to it; then every token is one pass."""
    with Answering(engine, LENGTH, SEED, (), longest_prompt=64) as answering:
        for prompt in PROMPTS[:2]:
            before = engine.target_context.passes
            one = answering.answer(prompt, _bytes(prompt), Stop())
            tokens = one.answer.size + one.sampled.recording.answer.size
            assert engine.target_context.passes - before == 1 + tokens


def test_shares_are_those_of_the_definitions(
    engine: Engine, answers: list[Answers], figures: list[AnswerFigures], tmp_path: Path
) -> None:
    """From saved logits of both models, counted by hand."""
    for one, found in zip(answers, figures, strict=True):
        prompt, answer = one.prompt.tolist(), one.answer.tolist()
        target, draft = _logits(engine, tmp_path, prompt, answer)
        assert target.argmax(axis=1).tolist() == answer
        assert found.tokens == len(answer)
        assert found.greedy.count == (draft.argmax(axis=1) == one.answer).sum()
        assert found.sampled.count == pytest.approx(by_hand.sum_min(target, draft), rel=1e-12)
        assert found.copied.count == by_hand.bigram_hits(prompt, answer)
        sampled = one.sampled.recording.answer.tolist()
        rows = _logits(engine, tmp_path, prompt, sampled)
        assert found.sampled_text.count == pytest.approx(by_hand.sum_min(*rows), rel=1e-12)
        assert found.sampled_text.tokens == len(sampled)


def test_steps_are_those_of_the_definitions(
    engine: Engine, answers: list[Answers], figures: list[AnswerFigures], tmp_path: Path
) -> None:
    """Of drafts of a fixed length, and of prompt lookup."""
    for one, found in zip(answers, figures, strict=True):
        prompt, answer = one.prompt.tolist(), one.answer.tolist()
        _target, draft = _logits(engine, tmp_path, prompt, answer)
        agrees = (draft.argmax(axis=1) == one.answer).tolist()
        for k in LENGTHS:
            assert found.runs[draft_arm(k)].steps == len(by_hand.draft_steps(agrees, k))
        steps = by_hand.lookup_steps(prompt, answer)
        run = found.runs[LOOKUP]
        assert (run.tokens, run.steps) == (len(answer), len(steps))
        assert run.proposals == sum(proposed > 0 for _tokens, proposed, _accepted in steps)
        assert run.hits == sum(accepted > 0 for _tokens, _proposed, accepted in steps)


@pytest.mark.parametrize("letters", [2, 4, 12])
def test_copies_are_those_of_the_definitions(engine: Engine, letters: int) -> None:
    """In texts of few letters, where many places look alike and copies are long."""
    random = np.random.default_rng(letters)
    for _ in range(20):
        prompt, answer = (random.integers(letters, size=size, dtype=np.int32) for size in (50, 50))
        answer[10:40] = prompt[5:35]
        text = prompt.tolist(), answer.tolist()
        assert pairs_copied(*text).count == by_hand.bigram_hits(*text)
        run = lookup_run(Answers("1", "letters", prompt, answer), device_of(engine.costs))
        steps = by_hand.lookup_steps(*text)
        assert run.steps == len(steps)
        assert run.proposals == sum(proposed > 0 for _tokens, proposed, _accepted in steps)
        assert run.hits == sum(accepted > 0 for _tokens, _proposed, accepted in steps)


@pytest.mark.parametrize("k", LENGTHS)
def test_replayed_steps_are_those_of_the_engine(
    engine: Engine, answers: list[Answers], figures: list[AnswerFigures], k: int
) -> None:
    """With that fixed length: the same tokens in the same steps."""
    for one, found in zip(answers, figures, strict=True):
        options = Options(sampling=GREEDY, drafter="draft", draft_max=k, seed=0, max_tokens=LENGTH)
        steps = list(engine.generate(one.prompt.tolist(), options))
        assert [token for step in steps for token in step.tokens] == one.answer.tolist()
        agrees = one.greedy.recording.agrees.tolist()
        assert [len(step.tokens) for step in steps] == by_hand.draft_steps(agrees, k)
        run = found.runs[draft_arm(k)]
        assert (run.steps, run.tokens) == (len(steps), one.answer.size)


def test_replayed_lookup_is_that_of_the_engine(
    engine: Engine, answers: list[Answers], figures: list[AnswerFigures]
) -> None:
    """With the same rule: the same tokens in the same steps."""
    make = parse_arms("lookup:n3k10")[1].start()
    for one, found in zip(answers, figures, strict=True):
        options = Options(sampling=GREEDY, seed=0, max_tokens=LENGTH)
        steps = list(engine.generate(one.prompt.tolist(), options, chooser=make))
        by_definition = by_hand.lookup_steps(one.prompt.tolist(), one.answer.tolist())
        assert [len(step.tokens) for step in steps] == [tokens for tokens, _proposed, _accepted in by_definition]
        # Near the longest answer the engine drafts no more than it may emit.
        judged = [(step.drafted, step.accepted) for step in steps[:-1]]
        room = [LENGTH - 1 - sum(len(step.tokens) for step in steps[:number]) for number in range(len(judged))]
        assert judged == [
            (min(left, proposed), accepted)
            for left, (_tokens, proposed, accepted) in zip(room, by_definition[:-1], strict=True)
        ]
        assert found.runs[LOOKUP].steps == len(steps)


@pytest.mark.parametrize("column", ["greedy", "sampled"])
def test_sum_of_min_is_what_rejection_accepts(
    engine: Engine, answers: list[Answers], column: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By drafting at the same positions very often, with other random numbers each time."""
    # A draft model's own sampler leaves out its least likely tokens; the column is of all of them.
    monkeypatch.setattr("localspec.engine.engine.DraftSampler", Sampler)
    expected = variance = 0.0
    accepted = 0
    followed, start = getattr(answers[0], column), answers[0].prompt.size
    text = [*answers[0].prompt.tolist(), *followed.recording.answer.tolist()]
    for position, alpha in enumerate(followed.overlap[:POSITIONS]):
        expected += TRIALS * alpha
        variance += TRIALS * alpha * (1.0 - alpha)
        accepted += sum(_accepts(engine, text[: start + position], seed) for seed in range(TRIALS))
    assert 0.5 < expected / (POSITIONS * TRIALS) < 0.95
    assert abs(accepted - expected) < 4 * variance**0.5


def test_a_task_pools_tokens_and_averages_steps(figures: list[AnswerFigures]) -> None:
    """As docs/measure.md says."""
    tasks = by_task(figures)
    assert list(tasks) == ["letters", "sums"]
    one, other = tasks["letters"].answers
    assert tasks["sums"].answers == (figures[1],)
    # Of another length than the first one.
    other = replace(other, tokens=20, greedy=Counted(5.0, 20))
    letters = TaskFigures((one, other))
    assert letters.tokens == one.tokens + 20
    assert letters.greedy.mean == (one.greedy.count + other.greedy.count) / letters.tokens
    shares = sorted(answer.greedy.count / answer.tokens for answer in (one, other))
    assert [letters.greedy.least, letters.greedy.largest] == shares
    a = letters.greedy.mean
    assert letters.formula(4) == pytest.approx(sum(a**i for i in range(5)))
    steps = [answer.runs["draft:4"].tokens / answer.runs["draft:4"].steps for answer in (one, other)]
    assert letters.tokens_per_step("draft:4") == pytest.approx(sum(steps) / 2)
    runs = [answer.runs[LOOKUP] for answer in (one, other)]
    assert letters.steps_with_proposal == pytest.approx(sum(run.proposals / run.steps for run in runs) / 2)


def test_acceptance_by_position_falls_out_of_the_steps(answers: list[Answers], figures: list[AnswerFigures]) -> None:
    """The first drafted token of every step, the first two, ..."""
    task = TaskFigures((figures[0],))
    agrees = answers[0].greedy.recording.agrees.tolist()
    starts = np.cumsum([0, *by_hand.draft_steps(agrees, 8)])[:-1]
    drafts = [agrees[start : start + 8] for start in starts if start + 8 <= len(agrees)]
    assert len(drafts) < len(starts)
    assert task.accepted_at == tuple(sum(all(draft[:place]) for draft in drafts) / len(drafts) for place in range(1, 9))


def test_modelled_speedup_is_time_by_the_cost_curve(engine: Engine, figures: list[AnswerFigures]) -> None:
    """Drafts of k tokens: the draft model's passes and one wider pass of the target for each step."""
    device = device_of(engine.costs)
    for found in figures:
        run = found.runs["draft:4"]
        least = (run.steps - 1) * (4 * device.draft_ms(1) + device.target_ms(5))
        most = run.steps * (3 * device.draft_ms(1) + device.draft_ms(2) + device.target_ms(5))
        assert least <= run.ms <= most
        assert found.plain_ms == found.tokens * device.target_ms(1)
        assert TaskFigures((found,)).modelled_speedup("draft:4") == found.plain_ms / run.ms


def test_without_a_draft_model_lookup_and_auto_remain(tiny_llama: Path, answers: list[Answers]) -> None:
    """On the same text."""
    with Engine(EngineSettings(tiny_llama, context_length=CONTEXT, threads=1)) as alone:
        found = _answers(alone)
        figures = figures_of(found, device_of(alone.costs))
    assert [one.answer.tolist() for one in found] == [one.answer.tolist() for one in answers]
    for one in figures:
        assert (one.greedy, one.sampled, one.sampled_text, one.accepted_at) == (None, None, None, ())
        assert list(one.runs) == [LOOKUP, AUTO]
        assert one.runs[AUTO].tokens == one.tokens


ALPHABET = "abcdefghijklmnopqrstuvwxyz"
ALPHABETS = [
    Prompt(str(number), "letters", (f"--- document: it ---\n{document}\n--- end of it ---\nSay it a",))
    for number, document in enumerate((f"{ALPHABET[:9]}+{ALPHABET[9:20]}-u{ALPHABET[21:]}", ALPHABET * 3, "nothing"))
]
"""A document that is edited, one that is copied, and one of no use."""


@pytest.mark.parametrize("drafts", [False, True])
def test_auto_is_replayed_as_the_engine_runs_it(tmp_path: Path, drafts: bool) -> None:
    """On a device of made-up costs: also where a prompt holds a document, whose place auto follows. Without a draft model
    in the same steps and the same time."""
    model = circle(tmp_path / "alphabet.gguf", ALPHABET)
    draft = circle(tmp_path / "draft.gguf", f"{ALPHABET[:4]}{ALPHABET[6:]}") if drafts else None
    with Engine(EngineSettings(model, draft, context_length=CONTEXT, threads=1)) as engine:
        piece = engine.target.vocabulary.piece
        reading = Reading(piece, lambda tokens: document_spans(tokens, piece))
        device = PROFILES["cuda"]
        found = _answers(engine, prompts=ALPHABETS)
        steps_of = {}
        for known in (reading, None):
            engine.simulate(device.target_ms, device.draft_ms)
            figures = steps_of[known] = figures_of(found, device, known)
            for one, figure in zip(found, figures, strict=True):
                prompt, options = one.prompt.tolist(), Options(sampling=GREEDY, seed=0, max_tokens=LENGTH)
                steps = list(engine.generate(prompt, options, documents=known.documents(prompt) if known else ()))
                assert [token for step in steps for token in step.tokens] == one.answer.tolist()
                if drafts:
                    # Where a draft went wrong, a recording has only a few more tokens of the draft model's own way.
                    continue
                assert figure.runs[AUTO].steps == len(steps)
                assert figure.runs[AUTO].ms == pytest.approx(sum(step.verify_ms for step in steps))
        # Knowing the document makes a difference.
        assert steps_of[reading] != steps_of[None]


@pytest.mark.parametrize("drafts", [True, False])
def test_an_answer_ends_where_a_chat_would_end_it(tiny_llama: Path, tiny_draft: Path, drafts: bool) -> None:
    """At a stop string of the template too."""
    settings = EngineSettings(tiny_llama, tiny_draft if drafts else None, context_length=CONTEXT, threads=1)
    with Engine(settings) as engine:
        options = Options(sampling=GREEDY, drafter="none", seed=0, max_tokens=LENGTH)
        pieces = [piece for step in engine.generate(_bytes(PROMPTS[0]), options) for piece in step.pieces]
        stop = next(piece for piece in pieces[5:] if piece and piece not in "".join(pieces[:5]))
        one = _answers(engine, (stop,))[0]
    assert 5 < one.answer.size < LENGTH
    assert bytes(one.answer.tolist()[-len(stop.encode()) :]) == stop.encode()


def _answers(engine: Engine, stop: tuple[str, ...] = (), prompts: Sequence[Prompt] = PROMPTS) -> list[Answers]:
    with Answering(engine, LENGTH, SEED, stop, longest_prompt=64) as answering:
        return [answering.answer(prompt, _bytes(prompt), Stop()) for prompt in prompts]


def _bytes(prompt: Prompt) -> list[int]:
    return list(prompt.turns[0].encode())


def _logits(engine: Engine, folder: Path, prompt: list[int], answer: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Of target and draft, shapes (n, V), saved and read again."""
    pair = {"target": (engine.target, 512), "draft": (engine.draft, 256)}
    return tuple(
        np.load(by_hand.save_logits(folder / f"{name}.npy", model, prompt, answer, CONTEXT, batch))
        for name, (model, batch) in pair.items()
    )


def _accepts(engine: Engine, text: list[int], seed: int) -> int:
    """Whether rejection accepts the one token that the draft model draws after a text."""
    options = Options(sampling=UNCUT, drafter="draft", verification="rejection", seed=seed, max_tokens=2)
    step = next(engine.generate(text, options, chooser=lambda session: Fixed(session.chain.model, 1)))
    assert step.drafted == 1
    return step.accepted
