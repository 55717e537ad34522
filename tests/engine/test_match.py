"""Match mode: the text is a function of prompt, settings and seed. No statistics needed, only equality."""

import itertools
from collections.abc import Sequence

import pytest

from fakes import VOCABULARY, Adversary, Switching, TableModel, TableSampler, Unlearning, answer, emitted, tables
from localspec.engine.generate import Request

LOGITS = tables(seed=7)
SAMPLINGS = {
    "plain temperature": {"temperature": 1.0},
    "cool with top-k": {"temperature": 0.7, "top_k": 5},
    "repetition penalty": {"temperature": 0.9, "penalty": 0.8},
    "greedy": {"temperature": 0.0},
}


def _oracle(seed: int, sampling: dict[str, float]):
    """Knows exactly what the target will say next: drafts of it are right as far as they go."""

    def tell(stream: Sequence[int], length: int) -> list[int]:
        if length == 0:
            return []
        steps = answer(
            TableModel(LOGITS), TableSampler(**sampling), prompt=stream, request=Request(seed, max_tokens=length)
        )
        return emitted(steps)

    return tell


def _plain(seed: int, sampling: dict[str, float], length: int) -> list[int]:
    return emitted(answer(TableModel(LOGITS), TableSampler(**sampling), request=Request(seed, max_tokens=length)))


def _drafted(seed: int, sampling: dict[str, float], length: int) -> list[int]:
    oracle = _oracle(seed, sampling) if seed % 10 == 0 else None
    drafters = [Adversary("guess", seed), Adversary("oracle", seed + 1, oracle)]
    steps = answer(
        TableModel(LOGITS),
        TableSampler(**sampling),
        drafters=drafters,
        policy=Switching(drafters, seed),
        request=Request(seed, max_tokens=length),
    )
    return emitted(steps)


def test_ten_thousand_seeds_give_the_same_text_whoever_drafts() -> None:
    """Adversarial drafters, random draft lengths, random switching between them and plain decoding."""
    samplings = itertools.cycle(SAMPLINGS.values())
    different = [
        seed for seed, sampling in zip(range(10_000), samplings, strict=False)
        if _plain(seed, sampling, 12) != _drafted(seed, sampling, 12)
    ]  # fmt: skip
    assert different == []


def test_seeds_give_different_texts() -> None:
    """The equality above would be worthless if every seed said the same."""
    texts = {tuple(_plain(seed, SAMPLINGS["plain temperature"], 12)) for seed in range(200)}
    assert len(texts) > 150


@pytest.mark.parametrize("length", range(1, 17))
def test_every_draft_length_gives_the_same_text(length: int) -> None:
    """A fault beyond the usual draft length hides from tests that never go there."""

    class Fixed(Unlearning):
        def __init__(self, drafter: Adversary) -> None:
            self.drafter = drafter

        def choose(self, room: int, step: int):
            from localspec.engine.drafters.base import Draft

            if room <= 0:
                return Draft("none")
            tokens = tuple(_oracle(3, SAMPLINGS["plain temperature"])(self.drafter.stream, min(room, length)))
            return Draft("oracle", tokens, tuple(1.0 for _ in tokens))

    drafter = Adversary("oracle", 0)
    steps = list(
        answer(
            TableModel(LOGITS),
            TableSampler(temperature=1.0),
            drafters=[drafter],
            policy=Fixed(drafter),
            request=Request(3, max_tokens=60),
        )
    )
    assert emitted(steps) == _plain(3, SAMPLINGS["plain temperature"], 60)
    assert all(step.accepted == step.drafted for step in steps)


def test_the_target_draws_its_own_distribution() -> None:
    """One draw per seed at a fixed position: frequencies against the table, chi-square with 11 degrees of freedom."""
    import numpy as np

    sampler = TableSampler(temperature=1.0)
    wanted = sampler.distribution(LOGITS[0, 1])
    counts = np.zeros(VOCABULARY)
    for seed in range(20_000):
        first = next(answer(TableModel(LOGITS), sampler, request=Request(seed, max_tokens=1)))
        counts[first.tokens[0]] += 1
    expected = np.zeros(VOCABULARY)
    expected[wanted.ids] = wanted.probs * counts.sum()
    chi_square = float(((counts - expected) ** 2 / expected).sum())
    assert chi_square < 40.0, f"chi-square {chi_square:.1f}, p < 1e-4"
