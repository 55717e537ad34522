"""What a draft model draws from: short lists that say what the arrays say."""

import numpy as np
import pytest

from localspec.engine.distribution import Distribution
from localspec.engine.errors import ModelError
from localspec.engine.noise import Stream, noise_key, uniform, uniforms
from localspec.engine.sampling import Sampler, Sampling
from localspec.engine.shortlist import DraftSampler, Shortlist, top_probability

RNG = np.random.default_rng(5)
SETTINGS = {
    "usual": Sampling(temperature=0.8, top_k=40, top_p=0.95),
    "hot": Sampling(temperature=1.5, top_k=0, top_p=0.9),
    "few": Sampling(temperature=0.5, top_k=3, top_p=1.0),
    "min p": Sampling(temperature=1.0, top_k=0, top_p=1.0, min_p=0.1),
    "penalties": Sampling(temperature=0.8, presence_penalty=2.0),
    "greedy": Sampling(temperature=0.0),
}


def peaked_row(size: int = 5000, sharpness: float = 4.0) -> np.ndarray:
    return (RNG.standard_normal(size) * sharpness).astype(np.float32)


def test_a_number_of_a_token_is_the_one_that_the_field_gives_it():
    ids = np.array([0, 1, 77, 151_935], np.int32)
    for position in range(50):
        key = noise_key(3, Stream.TARGET, position)
        assert [uniform(key, token) for token in ids.tolist()] == uniforms(key, ids).tolist()


@pytest.mark.parametrize("name", SETTINGS)
def test_lists_and_arrays_pick_and_draw_the_same_tokens(name):
    sampler = DraftSampler(SETTINGS[name], 5000)
    kinds = set()
    for position in range(200):
        q = sampler.distribution(peaked_row())
        kinds.add(type(q))
        same = Distribution(q.ids, q.probs)
        key = noise_key(9, Stream.DRAFT, position)
        assert q.draw(key) == same.draw(key)
        assert q.pick(uniform(key)) == same.pick(uniform(key))
        assert (q.mode(), q.top) == (same.mode(), same.top)
        assert [q.of(token) for token in q.ids.tolist()] == q.probs.tolist()
        assert q.of(4999 if 4999 not in q.ids else 4998) == same.of(4999 if 4999 not in q.ids else 4998)
        assert q.probs.sum() == pytest.approx(1.0)
    assert Shortlist in kinds or name in ("penalties", "greedy")


def test_a_number_of_almost_one_still_picks_a_token():
    q = Shortlist([4, 2, 9], [0.7, 0.2, 0.1])
    assert q.pick(1.0 - 2**-53) == 9
    assert q.pick(0.0) == 4


@pytest.mark.parametrize("name", ["usual", "few", "min p"])
def test_shape_is_the_target_samplers_but_for_the_least_likely_tokens(name):
    target, draft = Sampler(SETTINGS[name], 5000), DraftSampler(SETTINGS[name], 5000)
    for sharpness in (2.0, 4.0, 8.0):
        row = peaked_row(sharpness=sharpness)
        p, q = target.distribution(row), draft.distribution(row)
        shared = sum(min(p.of(token), q.of(token)) for token in q.ids.tolist())
        assert shared > 0.93
        assert set(q.ids.tolist()) <= set(p.ids.tolist())
        assert q.mode() == p.mode()


def test_a_flat_row_is_shaped_as_the_target_samples_it():
    row = peaked_row(sharpness=0.2)
    settings = SETTINGS["usual"]
    p, q = Sampler(settings, 5000).distribution(row), DraftSampler(settings, 5000).distribution(row)
    assert (q.ids.tolist(), q.probs.tolist()) == (p.ids.tolist(), p.probs.tolist())


@pytest.mark.parametrize(("sharpness", "off"), [(0.2, 1e-6), (2.0, 0.02), (5.0, 0.01)])
def test_confidence_is_nearly_the_softmax_of_the_largest_logit(sharpness, off):
    row = peaked_row(sharpness=sharpness)
    exact = 1.0 / np.exp(row.astype(np.float64) - row.max()).sum()
    assert top_probability(row) == pytest.approx(exact, abs=off)


@pytest.mark.parametrize("nonsense", [np.nan, np.inf])
def test_a_draft_model_that_computes_nonsense_is_reported(nonsense):
    row = peaked_row()
    row[123] = nonsense
    for read in (top_probability, DraftSampler(SETTINGS["usual"], 5000).distribution):
        with pytest.raises(ModelError, match="no number"):
            read(row)


def test_draws_have_the_frequencies_of_the_list():
    q = DraftSampler(SETTINGS["usual"], 5000).distribution(peaked_row())
    count = 40_000
    picked = [q.pick(uniform(noise_key(1, Stream.DRAFT, position))) for position in range(count)]
    raced = [q.draw(noise_key(2, Stream.TARGET, position)) for position in range(count)]
    for draws in (picked, raced):
        for token in q.ids.tolist():
            expected = q.of(token)
            spread = (expected * (1 - expected) / count) ** 0.5
            assert draws.count(token) / count == pytest.approx(expected, abs=5 * spread + 1e-9)
