"""Models that are probability tables: exact in float64, a few tokens wide, so that a wrong rule cannot hide in rounding."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from localspec.engine.distribution import Distribution
from localspec.engine.drafters.base import Draft, Drafter
from localspec.engine.fixed import Fixed
from localspec.engine.generate import Loop, Request
from localspec.engine.noise import noise_key, uniform
from localspec.engine.step import Step

VOCABULARY = 12
END = 11
"""The token that ends an answer."""


def tables(
    seed: int, vocabulary: int = VOCABULARY, sharpness: float = 1.5, end_bias: float = -1.0
) -> NDArray[np.float64]:
    """Logits of the next token given the last two, shape (V, V, V)."""
    logits = np.random.default_rng(seed).normal(0.0, sharpness, (vocabulary,) * 3)
    logits[:, :, -1] += end_bias
    return logits


class TableModel:
    """An evaluator whose row is a table entry. It checks its caller as strictly as llama.cpp punishes it."""

    def __init__(self, logits: NDArray[np.float64], length: int = 4096, batch_size: int = 512) -> None:
        self.logits = logits
        self.tokens: list[int] = []
        self.length = length
        self.batch_size = batch_size
        self.busy_seconds = 0.0
        self.passes = 0
        self.evaluated = 0
        self._rows: list[NDArray[np.float64]] = []

    def decode(self, tokens: Sequence[int], rows: int = 0) -> None:
        assert tokens, "an empty pass"
        assert len(self.tokens) + len(tokens) <= self.length, "a pass beyond the end of the context"
        assert rows <= len(tokens), "more rows than tokens in a pass"
        self._rows = []
        for index, token in enumerate(tokens):
            self.tokens.append(token)
            if index >= len(tokens) - rows:
                before = self.tokens[-2] if len(self.tokens) > 1 else 0
                self._rows.append(self.logits[before, token])
        self.passes += 1
        self.evaluated += len(tokens)

    def row(self, index: int) -> NDArray[np.float64]:
        return self._rows[index]

    def truncate(self, length: int) -> int:
        assert length >= 0
        self._rows = []
        del self.tokens[length:]
        return len(self.tokens)

    def mark(self, name: str) -> None:
        pass


class TableSampler:
    """Temperature and top-k in plain numpy, with a repetition penalty over everything accepted."""

    def __init__(self, temperature: float = 1.0, top_k: int = 0, penalty: float = 0.0) -> None:
        self.temperature, self.top_k, self.penalty = temperature, top_k, penalty
        self.seen: list[int] = []

    def begin(self, tokens: Iterable[int]) -> None:
        self.seen = list(tokens)

    def accept(self, token: int) -> None:
        self.seen.append(token)

    def fork(self) -> "TableSampler":
        other = TableSampler(self.temperature, self.top_k, self.penalty)
        other.seen = list(self.seen)
        return other

    def distribution(self, row: NDArray[np.float64]) -> Distribution:
        logits = row.copy()
        for token in self.seen if self.penalty else ():
            logits[token] -= self.penalty
        ids = np.argsort(-logits)[: self.top_k or None].astype(np.int32)
        if self.temperature == 0.0:
            return Distribution(ids[:1], np.ones(1))
        return Distribution.from_logits(ids, logits[ids] / self.temperature)

    def draw(self, row: NDArray[np.float64], key: int) -> int:
        return self.distribution(row).draw(key)


class TableCodec:
    """Token n is the letter at n; the last one ends the answer."""

    def __init__(self, vocabulary: int = VOCABULARY, end: int | None = END) -> None:
        self.vocabulary, self.end = vocabulary, end

    def piece(self, token: int) -> bytes:
        return bytes([ord("a") + token])

    def is_end(self, token: int) -> bool:
        return token == self.end


class Adversary:
    """A drafter that is a function of the text and of its own random numbers: it repeats, guesses, cheats or gives up.

    It may know the target: drafts that are right on purpose, or wrong in the last place, are the ones that shake a loop.
    """

    def __init__(self, name: str, seed: int, oracle: Callable[[Sequence[int], int], list[int]] | None = None) -> None:
        self.name = name
        self._seed = seed
        self._oracle = oracle
        self.stream: list[int] = []
        self.calls = 0

    def observe(self, tokens: Sequence[int]) -> None:
        self.stream.extend(tokens)

    def rewind(self, length: int) -> None:
        del self.stream[length:]

    def propose(self, limit: int, step: int) -> Draft:
        self.calls += 1
        rng = np.random.default_rng([self._seed, self.calls])
        length = int(rng.integers(0, limit + 1))
        tokens = [int(token) for token in rng.integers(0, VOCABULARY, length)]
        if self._oracle and rng.random() < 0.7:
            known = self._oracle(self.stream, length)
            tokens[: len(known)] = known
            if tokens and rng.random() < 0.3:
                tokens[-1] = (tokens[-1] + 1) % VOCABULARY
        return Draft(self.name, tuple(tokens), tuple(0.5**i for i in range(1, length + 1)))


class Unlearning:
    """A chooser without a memory."""

    decision = None

    def learn(self, *what: object) -> None:
        """Nothing."""


class Switching(Unlearning):
    """A policy that picks a drafter and a length at random, plain decoding included."""

    def __init__(self, drafters: Sequence[Drafter], seed: int, draft_max: int = 16) -> None:
        self._drafters, self._seed, self._draft_max = drafters, seed, draft_max

    def choose(self, room: int, step: int) -> Draft:
        pick = uniform(noise_key(self._seed, 9, step))  # type: ignore[arg-type]
        index = int(pick * (len(self._drafters) + 1))
        limit = min(room, 1 + int(uniform(noise_key(self._seed, 10, step)) * self._draft_max))  # type: ignore[arg-type]
        if index == len(self._drafters) or limit <= 0:
            return Draft("none")
        return self._drafters[index].propose(limit, step)


def answer(
    target: TableModel,
    sampler: TableSampler,
    *,
    prompt: Sequence[int] = (0, 1),
    drafters: Sequence[Drafter] = (),
    policy: object = None,
    request: Request,
    codec: TableCodec | None = None,
) -> Iterator[Step]:
    """Run the real loop over tables. `policy`: None for plain decoding."""
    stream = list(prompt)
    target.truncate(0)
    target.decode(stream[:-1]) if len(stream) > 1 else None
    sampler.begin(stream)
    for drafter in drafters:
        drafter.rewind(0)
        drafter.observe(stream)
    loop = Loop(
        target=target,
        sampler=sampler,
        policy=policy or Fixed(),  # type: ignore[arg-type]
        drafters=drafters,
        codec=codec or TableCodec(),
        request=request,
        stream=stream,
    )
    for step in loop.run():
        yield step
        assert target.tokens == stream[: len(target.tokens)], "the cache holds what was never emitted"
        assert len(target.tokens) >= len(stream) - 1, "the cache has lost tokens"
        for drafter in drafters:
            followed = getattr(drafter, "stream", stream)
            assert followed == stream, f"{drafter.name} no longer follows the stream"


def emitted(steps: Iterable[Step]) -> list[int]:
    """All tokens of an answer."""
    return [token for step in steps for token in step.tokens]
