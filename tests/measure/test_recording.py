"""Recordings: they come back as they were, and say what the real loop would have done."""

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

import tiny
from localspec.engine.drafters.base import Draft
from localspec.engine.drafters.draft_model import Drafting, DraftModel
from localspec.engine.errors import ModelError, UserError
from localspec.engine.generate import Loop, Request
from localspec.engine.llama import Context, ContextSettings, Model
from localspec.engine.noise import Stream, noise_key
from localspec.engine.sampling import Sampler, Sampling
from localspec.engine.step import Step
from localspec.measure.prompts import Prompt
from localspec.measure.recording import BRANCH, PER_POSITION, Recording, load, record, save

PROMPTS = [Prompt("1", "letters", ("Dear Sir or Madam, ", "second turn")), Prompt("2", "sums", ("one and two are ",))]
LENGTH, SEED = 48, 11
SAMPLINGS = {
    "greedy": Sampling(temperature=0.0),
    "sampled": Sampling(temperature=0.7, top_k=40, top_p=0.95),
}


@pytest.fixture(scope="module", params=SAMPLINGS)
def sampling(request: pytest.FixtureRequest) -> Sampling:
    """Greedy, and with random numbers."""
    return SAMPLINGS[request.param]


@pytest.fixture(scope="module")
def pair(tiny_llama: Path, tiny_draft: Path) -> tuple[Model, Model]:
    """Target and draft model, loaded."""
    return Model(tiny_llama), Model(tiny_draft)


@pytest.fixture(scope="module")
def recordings(pair: tuple[Model, Model], sampling: Sampling) -> list[Recording]:
    """Two answers."""
    return list(
        record(
            *pair, PROMPTS, _bytes, sampling=sampling, seed=SEED, longest_prompt=64, longest_answer=LENGTH, threads=1
        )
    )


def test_one_recording_for_each_first_turn(recordings: list[Recording]) -> None:
    """With the prompt's name, and as many entries as the answer has tokens."""
    assert [(r.id, r.category, bytes(r.prompt.tolist()).decode()) for r in recordings] == [
        ("1", "letters", "Dear Sir or Madam, "),
        ("2", "sums", "one and two are "),
    ]
    for recording in recordings:
        assert recording.answer.size == LENGTH or recording.ended
        assert {len(getattr(recording, name)) for name in PER_POSITION} == {recording.answer.size}
        assert (recording.source.target, recording.source.draft) == ("llama.gguf", "draft.gguf")
        assert 0.3 < recording.agrees.mean() < 1.0


@pytest.mark.parametrize("k", [1, 4, 8])
def test_replay_gives_the_steps_of_the_real_loop(
    pair: tuple[Model, Model], recordings: list[Recording], sampling: Sampling, k: int
) -> None:
    """The same tokens, drafts and accepted counts, step by step."""
    for recording in recordings:
        real = _FixedDraft(pair, recording, sampling, k)
        steps = real.steps()
        assert [token for step in steps for token in step.tokens] == recording.answer.tolist()
        replayed = _replay(recording, k)
        assert [step.accepted for step in steps] == [accepted for _, accepted in replayed]
        assert real.drafts == [drafts for drafts, _ in replayed]


def test_probabilities_are_those_of_the_models(
    pair: tuple[Model, Model], recordings: list[Recording], sampling: Sampling
) -> None:
    """Checked against one pass over the whole text."""
    recording = recordings[0]
    target, draft = (_probabilities(model, recording) for model in pair)
    second, first = np.sort(draft, axis=1)[:, -2:].T
    assert np.allclose(recording.target_top, target.max(axis=1), atol=0.01)
    assert np.allclose(recording.draft_top, first, atol=0.01)
    assert np.allclose(recording.draft_second, second, atol=0.01)
    if sampling.greedy:
        assert recording.answer.tolist() == target.argmax(axis=1).tolist()
        assert recording.overlap.tolist() == recording.agrees.astype(float).tolist()
        assert np.array_equal(recording.drafted, recording.q_token)


def test_distributions_are_those_that_are_sampled_from(pair: tuple[Model, Model], recordings: list[Recording]) -> None:
    """What is stored of p and q at a position, from the two distributions themselves."""
    recording, at = recordings[0], 5
    tokens = [*recording.prompt.tolist(), *recording.answer.tolist()[:at]]
    p, q = (_distribution(model, tokens, recording.source.sampling) for model in pair)
    key = noise_key(SEED, Stream.TARGET, len(tokens))
    assert (recording.answer[at], recording.drafted[at], recording.q_token[at]) == (p.draw(key), q.draw(key), q.mode())
    shared = sum(min(p.of(int(token)), q.of(int(token))) for token in p.ids)
    stored = [getattr(recording, name)[at] for name in ("answer_p", "drafted_q", "q_top", "overlap")]
    assert stored == pytest.approx([p.of(p.draw(key)), q.of(q.draw(key)), q.probs.max(), shared], abs=0.01)


def test_branches_only_where_the_draft_was_wrong(recordings: list[Recording]) -> None:
    """Elsewhere there is nothing to follow."""
    for recording in recordings:
        assert recording.branch.shape == (recording.answer.size, BRANCH)
        assert (recording.branch[recording.agrees] == -1).all()
        assert (recording.branch_top[recording.agrees] == 0).all()
        assert (recording.branch[~recording.agrees] >= 0).all()
        assert (recording.branch_top[~recording.agrees] > 0).all()


def test_long_prompts_are_left_out(pair: tuple[Model, Model]) -> None:
    """And only they."""
    kept = record(*pair, PROMPTS, _bytes, longest_prompt=16, longest_answer=2, threads=1)
    assert [recording.id for recording in kept] == ["2"]


def test_other_sampling_settings_are_refused(pair: tuple[Model, Model]) -> None:
    """They would be lost in the file."""
    with pytest.raises(ValueError, match="only temperature"):
        next(record(*pair, PROMPTS, _bytes, sampling=Sampling(repeat_penalty=1.1)))


def test_strangers_are_refused(pair: tuple[Model, Model], tmp_path: Path) -> None:
    """A draft model with another vocabulary has nothing to say."""
    recipe = tiny.llama_recipe()
    recipe.tokens[100] = "zz"
    with Model(recipe.write(tmp_path / "stranger.gguf")) as stranger, pytest.raises(ModelError, match="token 100"):
        next(record(pair[0], stranger, PROMPTS, _bytes))


def test_a_file_gives_back_what_was_saved(recordings: list[Recording], tmp_path: Path) -> None:
    """Every field, of every recording, without pickle."""
    path = save(tmp_path / "some.npz", recordings)
    back = load(path)
    assert len(back) == len(recordings)
    for before, after in zip(recordings, back, strict=True):
        for name in (field.name for field in fields(Recording)):
            one, other = getattr(before, name), getattr(after, name)
            assert np.array_equal(one, other) if isinstance(one, np.ndarray) else one == other
            assert getattr(one, "dtype", None) == getattr(other, "dtype", None)
    assert [file.name for file in tmp_path.iterdir()] == ["some.npz"]


def test_recordings_of_two_sources_do_not_share_a_file(recordings: list[Recording], tmp_path: Path) -> None:
    """Their source would be lost."""
    other = replace(recordings[0], source=replace(recordings[0].source, seed=SEED + 1))
    with pytest.raises(ValueError, match="one source"):
        save(tmp_path / "some.npz", [recordings[0], other])


@pytest.mark.parametrize("damage", ["missing", "text", "cut", "foreign"])
def test_damaged_files_are_refused_in_one_sentence(recordings: list[Recording], tmp_path: Path, damage: str) -> None:
    """With the file's name in it."""
    path = save(tmp_path / "some.npz", recordings)
    if damage == "missing":
        path.unlink()
    elif damage == "text":
        path.write_text("hello")
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:-200])
    else:
        with path.open("wb") as file:
            np.savez(file, weights=np.ones(3))
    with pytest.raises(UserError, match=r"some\.npz") as error:
        load(path)
    assert str(error.value).count("\n") == 0


def _bytes(text: str) -> list[int]:
    return list(text.encode())


def _replay(recording: Recording, k: int) -> list[tuple[tuple[int, ...], int]]:
    """The drafts of k tokens and how many of them are accepted, step by step, from the recording alone."""
    found = []
    at, end = 0, recording.answer.size
    while at < end:
        length = min(k, LENGTH - at - 1)
        draft: list[int] = []
        while len(draft) < length and at + len(draft) < end:
            here = at + len(draft)
            draft.append(int(recording.drafted[here]))
            if not recording.agrees[here]:
                draft += recording.branch[here].tolist()[: length - len(draft)]
        agreed = recording.agrees[at : at + length]
        accepted = int(agreed.size if agreed.all() else agreed.argmin())
        found.append((tuple(draft), accepted))
        at += accepted + 1
    return found


class _FixedDraft:
    """The real loop with drafts of always k tokens."""

    decision = None

    def __init__(self, pair: tuple[Model, Model], recording: Recording, sampling: Sampling, k: int) -> None:
        self.drafts: list[tuple[int, ...]] = []
        self._pair, self._recording, self._sampling, self._k = pair, recording, sampling, k
        self._drafter: DraftModel

    def choose(self, room: int, step: int) -> Draft:
        limit = min(room, self._k)
        draft = self._drafter.propose(limit, step) if limit > 0 else Draft("none")
        self.drafts.append(draft.tokens)
        return draft

    def learn(self, emitted: Sequence[int], draft: Draft, width: int, verify_ms: float, draft_ms: float) -> None:
        """It stays as it is."""

    def steps(self) -> list[Step]:
        """The whole answer."""
        prompt, settings = self._recording.prompt.tolist(), ContextSettings(length=256, batch=64, rows=33, threads=1)
        target, draft = self._pair
        sampler = Sampler(self._sampling, target.vocabulary.size)
        with Context(target, settings) as context, Context(draft, settings) as draft_context:
            self._drafter = DraftModel(draft_context, target.vocabulary.size)
            self._drafter.observe(prompt)
            self._drafter.begin(sampler, Drafting.COUPLED, SEED, greedy=self._sampling.greedy)
            context.decode(prompt[:-1])
            loop = Loop(
                target=context,
                sampler=sampler,
                policy=self,
                drafters=(self._drafter,),
                codec=target.vocabulary,
                request=Request(SEED, max_tokens=LENGTH),
                stream=prompt,
            )
            return list(loop.run())


def _probabilities(model: Model, recording: Recording) -> np.ndarray:
    """Softmax at every position of the answer, shape (n, V), from one pass."""
    n = recording.answer.size
    tokens = [*recording.prompt.tolist(), *recording.answer.tolist()[:-1]]
    with Context(model, ContextSettings(length=256, batch=128, rows=n, threads=1)) as context:
        context.decode(tokens, rows=n)
        logits = np.array([context.row(index) for index in range(n)], np.float64)
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def _distribution(model: Model, tokens: list[int], sampling: Sampling):
    with Context(model, ContextSettings(length=256, batch=128, rows=1, threads=1)) as context:
        context.decode(tokens, rows=1)
        return Sampler(sampling, model.vocabulary.size).distribution(context.row(0))
