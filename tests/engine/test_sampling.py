"""The distribution that is sampled from, against the definitions of the settings written out in numpy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from localspec.engine.distribution import Distribution
from localspec.engine.errors import ModelError, UserError
from localspec.engine.noise import Stream, noise_key
from localspec.engine.sampling import Sampler, Sampling, largest, log_probability

OPEN = Sampling(temperature=1.0, top_k=0, top_p=1.0)
"""Nothing is changed or cut."""


def defined(row: NDArray[np.float32], chosen: Sampling, seen: Sequence[int]) -> dict[int, float]:
    """Token to probability: penalties, then top-k, top-p, min-p, temperature, in float64.

    Penalties as in Keskar et al. (CTRL, 2019) and the OpenAI API; top-p after Holtzman et al. (2020); min-p after Nguyen
    et al. (2024).
    """
    logits = row.astype(np.float64)
    recent = Counter(seen[-chosen.penalty_window :] if chosen.penalty_window else ())
    for token, count in recent.items():
        logits[token] *= chosen.repeat_penalty if logits[token] <= 0 else 1 / chosen.repeat_penalty
        logits[token] -= count * chosen.frequency_penalty + chosen.presence_penalty
    kept = np.argsort(-logits, kind="stable")
    kept = kept[: chosen.top_k or None]
    probs = softmax(logits[kept])
    before = np.cumsum(probs) - probs
    kept = kept[(before < chosen.top_p) | (np.arange(kept.size) == 0)]
    probs = softmax(logits[kept])
    kept = kept[probs >= chosen.min_p * probs.max()]
    probs = softmax(logits[kept] / chosen.temperature)
    return dict(zip(kept.tolist(), probs.tolist(), strict=True))


def softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """exp, normalized."""
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def same(row: NDArray[np.float32], chosen: Sampling, seen: Sequence[int] = (), tolerance: float = 1e-4) -> bool:
    """The sampler's distribution is the defined one, whichever of equal logits it keeps at the edge of a cut."""
    sampler = Sampler(chosen, row.size)
    sampler.begin(seen)
    ours = sampler.distribution(row)
    assert len(set(ours.ids.tolist())) == ours.ids.size
    assert ours.probs.sum() == pytest.approx(1.0, abs=1e-12)
    # Where the kept probability is top-p to the last bit, rounding decides about one token more.
    nearly = [min(1.0, chosen.top_p + change) for change in (0.0, 1e-6, -1e-6)] if chosen.top_p < 1 else [1.0]
    return any(_agree(ours, defined(row, replace(chosen, top_p=top_p), seen), tolerance) for top_p in nearly)


def _agree(ours: Distribution, wanted: dict[int, float], tolerance: float) -> bool:
    if ours.ids.size != len(wanted):
        return False
    if not np.allclose(sorted(ours.probs), sorted(wanted.values()), rtol=tolerance, atol=1e-7):
        return False
    probs = dict(zip(ours.ids.tolist(), ours.probs.tolist(), strict=True))
    edge = min(wanted.values()) * (1 + tolerance)
    sure = {token: p for token, p in wanted.items() if p > edge}
    return all(token in probs and abs(probs[token] - p) < tolerance * p + 1e-7 for token, p in sure.items())


SETTINGS = {
    "open": OPEN,
    "temperature": replace(OPEN, temperature=0.6),
    "hot": replace(OPEN, temperature=4.0),
    "top-k": replace(OPEN, top_k=7),
    "top-k of all": replace(OPEN, top_k=100_000),
    "top-p": replace(OPEN, top_p=0.83),
    "min-p": replace(OPEN, min_p=0.07),
    "defaults": Sampling(),
    "all cuts": Sampling(temperature=0.9, top_k=30, top_p=0.9, min_p=0.04),
    "repeat": replace(OPEN, repeat_penalty=1.3),
    "repeat less than 1": replace(OPEN, repeat_penalty=0.8, top_k=9),
    "frequency": replace(OPEN, frequency_penalty=0.7, top_k=20),
    "negative frequency": replace(OPEN, frequency_penalty=-0.4, top_k=20),
    "presence": replace(OPEN, presence_penalty=1.5, top_k=5),
    "everything": Sampling(0.8, 12, 0.95, 0.02, 1.2, 0.3, 0.5, 16),
    "short window": Sampling(0.8, 40, 1.0, 0.0, 1.5, 0.0, 0.0, 2),
    "greedy with penalties": Sampling(temperature=1.0, top_k=1, repeat_penalty=1.6, presence_penalty=0.5),
}


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("size", [5, 261, 3000, 20_011])
def test_random_rows(name: str, size: int) -> None:
    """Rows of every size and spread; among the recent tokens are the most probable ones and others."""
    chosen, rng = SETTINGS[name], np.random.default_rng(size)
    for spread in (0.5, 3.0, 12.0):
        row = rng.normal(0, spread, size).astype(np.float32)
        top = np.argsort(-row)
        seen = [*top[:3].tolist(), *rng.integers(0, size, 20).tolist(), int(top[0]), int(top[-1]), int(top[size // 2])]
        assert same(row, chosen, seen)
        assert same(row, chosen)


@pytest.mark.parametrize("name", SETTINGS)
def test_ties_and_impossible_tokens(name: str) -> None:
    """Equal logits at every edge, and tokens that are ruled out by an infinitely low one."""
    rng = np.random.default_rng(8)
    row = rng.integers(-3, 4, 3000).astype(np.float32)
    assert same(row, SETTINGS[name], [5, 6, 7])
    row[:] = 0.5
    assert same(row, SETTINGS[name], [5, 6, 7])
    row = rng.normal(0, 3, 3000).astype(np.float32)
    row[rng.random(3000) < 0.9] = -np.inf
    possible = np.flatnonzero(np.isfinite(row))
    assert same(row, SETTINGS[name], [int(possible[0]), int(np.argmax(row)), int(possible[0])])


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("shift", [-1e4, 1e4])
def test_huge_logits(name: str, shift: float) -> None:
    """Far from zero nothing overflows. Whole numbers, which are exact there."""
    if "repeat" in name or name in ("everything", "short window", "greedy with penalties"):
        shift = 0.0  # A factor on the logit depends on where zero is.
    row = (np.random.default_rng(9).integers(-40, 41, 3000) + shift).astype(np.float32)
    # A logit of 10,000 has a thousandth in its last bit once it is divided by a temperature.
    assert same(row, SETTINGS[name], [3, 4, 4], tolerance=4e-3)


def test_one_possible_token() -> None:
    row = np.full(500, -np.inf, np.float32)
    row[123] = -7.0
    for chosen in (OPEN, Sampling(), replace(OPEN, min_p=0.5), Sampling(temperature=0)):
        sampler = Sampler(chosen, 500)
        assert sampler.distribution(row).of(123) == 1.0
        assert {sampler.draw(row, noise_key(1, Stream.TARGET, position)) for position in range(50)} == {123}


def test_a_token_outside_the_top_k_is_lifted_into_it() -> None:
    """A penalty can favor a token that stands far below the raw top k, and push raw favorites below it."""
    row = np.linspace(0.1, 12, 5000, dtype=np.float32)
    favored = Sampling(temperature=1.0, top_k=3, top_p=1.0, frequency_penalty=-10.0)
    sampler = Sampler(favored, 5000)
    sampler.begin([17, 17])
    assert 17 in sampler.distribution(row).ids
    sampler.accept(23)
    sampler.accept(23)
    assert {17, 23} <= set(sampler.distribution(row).ids.tolist())
    pushed = Sampling(temperature=1.0, top_k=3, top_p=1.0, presence_penalty=9.0)
    sampler = Sampler(pushed, 5000)
    sampler.begin(range(4950, 5000))
    assert sorted(sampler.distribution(row).ids.tolist()) == [4947, 4948, 4949]
    assert same(row, favored, [17, 17])
    assert same(row, pushed, list(range(4960, 5000)))


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 10**6), size=st.integers(1, 6000), k=st.integers(1, 200), kind=st.integers(0, 3))
def test_largest_is_a_superset_of_the_k_largest(seed: int, size: int, k: int, kind: int) -> None:
    """Whatever the row, ties and infinities included; in rising order, each once."""
    rng = np.random.default_rng(seed)
    row = rng.normal(0, 3, size).astype(np.float32)
    if kind == 1:
        row = rng.integers(0, 3, size).astype(np.float32)
    elif kind == 2:
        row[rng.random(size) < 0.7] = -np.inf
    elif kind == 3:
        row = np.sort(row)
    ids = largest(row, k)
    assert (np.diff(ids) > 0).all()
    kept = np.sort(row[ids])[::-1][: min(k, size)]
    assert np.array_equal(kept, np.sort(row)[::-1][: min(k, size)])


def test_largest_leaves_most_out() -> None:
    """On a real vocabulary's size it is what makes a row cheap."""
    row = np.random.default_rng(1).normal(0, 3, 150_000).astype(np.float32)
    assert largest(row, 40).size < 200


def test_greedy_is_the_argmax() -> None:
    """At temperature 0 and with one candidate; whatever else is set, and of a prefix of the vocabulary too."""
    rng = np.random.default_rng(2)
    for chosen in (
        Sampling(temperature=0),
        Sampling(temperature=0, top_k=50, top_p=0.3),
        Sampling(temperature=2, top_k=1),
        Sampling(temperature=0, repeat_penalty=1.0, frequency_penalty=0.5, penalty_window=0),
    ):
        assert chosen.greedy
        sampler = Sampler(chosen, 900)
        for size in (900, 850):
            row = rng.normal(0, 3, size).astype(np.float32)
            assert sampler.draw(row, 1) == sampler.draw(row, 2) == row.argmax()
            assert (sampler.distribution(row).ids.tolist(), sampler.distribution(row).probs.tolist()) == (
                [row.argmax()],
                [1.0],
            )


@pytest.mark.parametrize("name", SETTINGS)
def test_a_draw_is_a_draw_from_the_distribution(name: str) -> None:
    """The short way and the long way pick the same token for the same key."""
    rng = np.random.default_rng(4)
    sampler = Sampler(SETTINGS[name], 1000)
    sampler.begin([1, 2, 3, 3])
    for position in range(300):
        row = rng.normal(0, 4, 1000).astype(np.float32)
        key = noise_key(9, Stream.TARGET, position)
        assert sampler.draw(row, key) == sampler.distribution(row).draw(key)


def test_penalties_see_what_was_accepted_and_forget() -> None:
    """`begin` starts over, the window moves on, and tokens outside the row's prefix do no harm."""
    row = np.zeros(100, np.float32)
    sampler = Sampler(replace(OPEN, presence_penalty=5.0, penalty_window=3), 200)
    sampler.begin([9, 8, 7, 6])

    def rare() -> list[int]:
        p = sampler.distribution(row)
        return sorted(p.ids[p.probs < p.probs.max() / 2].tolist())

    assert rare() == [6, 7, 8]
    sampler.accept(20)
    assert rare() == [6, 7, 20]
    sampler.accept(150)
    sampler.accept(20)
    assert rare() == [20]
    sampler.begin([])
    assert rare() == []


def test_seen_tokens_beyond_a_shorter_row() -> None:
    """A draft model's row ends where the common vocabulary does; the target may have said padding."""
    row = np.linspace(0, 9, 4000, dtype=np.float32)
    sampler = Sampler(Sampling(temperature=1.0, top_k=5, presence_penalty=1.0), 4100)
    sampler.begin([4050, 4099, 3999])
    assert set(sampler.distribution(row).ids.tolist()) <= set(range(3990, 4000))


@pytest.mark.parametrize("name", SETTINGS)
def test_forks_go_their_own_ways(name: str) -> None:
    """A fork knows what was before it; what either of them accepts afterwards is its own."""
    rng = np.random.default_rng(5)
    row = rng.normal(0, 2, 300).astype(np.float32)
    one, two = [Sampler(SETTINGS[name], 300) for _ in range(2)]
    one.begin([1, 2, 3])
    two.begin([1, 2, 3])
    fork = one.fork()
    for token in (int(row.argmax()), 5, 6):
        fork.accept(token)
    assert as_dict(one, row) == as_dict(two, row)
    second = fork.fork()
    for token in (int(row.argmax()), 5, 6):
        two.accept(token)
    assert as_dict(fork, row) == as_dict(second, row) == as_dict(two, row)
    one.accept(77)
    assert as_dict(fork, row) == as_dict(two, row)


def as_dict(sampler: Sampler, row: NDArray[np.float32]) -> dict[int, float]:
    """Token to probability."""
    p = sampler.distribution(row)
    return dict(zip(p.ids.tolist(), p.probs.tolist(), strict=True))


@pytest.mark.parametrize("settings_", [Sampling(temperature=1.5), Sampling(temperature=0.0)])
@pytest.mark.parametrize("nonsense", [np.nan, np.inf])
def test_a_model_that_computes_nonsense_is_reported(settings_: Sampling, nonsense: float) -> None:
    """Damaged weights and broken kernels leave such logits; a token drawn from them would mean nothing."""
    row = np.random.default_rng(6).normal(0, 1, 5000).astype(np.float32)
    row[[7, 4000]] = nonsense
    with pytest.raises(ModelError, match="no number"):
        Sampler(settings_, 5000).draw(row, 1)


def test_a_temperature_next_to_zero_is_greedy() -> None:
    """Dividing by it would overflow."""
    row = np.random.default_rng(6).normal(0, 1, 5000).astype(np.float32)
    for temperature in (1e-6, 1e-20, 1e-40):
        sampler = Sampler(Sampling(temperature=temperature, top_k=0, top_p=1.0), 5000)
        assert sampler.draw(row, 1) == row.argmax()


@pytest.mark.parametrize("name", ["top_k", "penalty_window"])
def test_half_a_token_makes_no_sense(name: str) -> None:
    """What is counted is a whole number."""
    with pytest.raises(UserError, match=r"2\.5"):
        Sampling(**{name: 2.5})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("temperature", value) for value in (-0.1, 10.1, float("nan"), float("inf"))),
        *(("top_k", value) for value in (-1, 1_000_001, float("nan"))),
        *(("top_p", value) for value in (-0.1, 1.01, float("nan"))),
        *(("min_p", value) for value in (-0.1, 1.01)),
        *(("repeat_penalty", value) for value in (0.0, -1.0, 11.0, float("inf"))),
        *(("frequency_penalty", value) for value in (-11.0, 11.0, float("-inf"))),
        *(("presence_penalty", value) for value in (-11.0, 11.0)),
        *(("penalty_window", value) for value in (-1, 65_537)),
    ],
)
def test_nonsense_is_refused(name: str, value: float) -> None:
    """One sentence that names the setting, the value and what would do."""
    with pytest.raises(UserError) as error:
        Sampling(**{name: value})
    assert str(error.value).startswith(f"{name.replace('_', ' ')} {value} makes no sense; give a number from ")


def test_log_probability() -> None:
    """ln of the plain softmax, also of tokens that are next to impossible and of huge logits."""
    row = np.random.default_rng(7).normal(0, 5, 1000).astype(np.float32)
    wanted = np.log(softmax(row.astype(np.float64)))
    assert [log_probability(row, token) for token in range(1000)] == pytest.approx(wanted.tolist(), abs=1e-9)
    shifted = (row * 100 + 30_000).astype(np.float32)
    assert log_probability(shifted, int(shifted.argmax())) == pytest.approx(0.0, abs=1e-6)
    row[3] = -np.inf
    assert log_probability(row, 3) == -np.inf
