"""A small model that drafts: it keeps its own cache, catches up only when asked, and never evaluates a token twice."""

from collections.abc import Sequence
from enum import Enum

from localspec.engine.distribution import Distribution
from localspec.engine.drafters.base import Draft
from localspec.engine.evaluator import Evaluator, RowSampler
from localspec.engine.noise import Stream, noise_key

_RATE_START, _RATE_MEMORY = 0.6, 0.95


class Drafting(Enum):
    """How the draft model picks its tokens."""

    COUPLED = "coupled"
    """With the target's own random numbers, judged by match (argmax when greedy): where the two distributions agree, so
    do the two draws, with probability at least (1 - TV) / (1 + TV)."""
    SAMPLED = "sampled"
    """With random numbers of its own, judged by rejection: accepted with probability 1 - TV."""


class DraftModel:
    """Drafts by decoding token by token with a smaller model of the same vocabulary."""

    name = "draft"

    def __init__(self, context: Evaluator, vocabulary_size: int) -> None:
        """`vocabulary_size`: token ids that the draft and the target model have in common."""
        self.context = context
        self._vocabulary_size = vocabulary_size
        self._stream: list[int] = []
        self._agreed = 0
        self._sampler: RowSampler | None = None
        self._drafting = Drafting.COUPLED
        self._seed = 0
        self._rate = _RATE_START
        self._pending: tuple[int, ...] = ()

    def begin(self, sampler: RowSampler, drafting: Drafting, seed: int) -> None:
        """A new answer begins: these are its sampling settings, the same as the target's."""
        sampler.begin(self._stream)
        self._sampler, self._drafting, self._seed = sampler, drafting, seed

    def observe(self, tokens: Sequence[int]) -> None:
        """Follow the stream without evaluating anything, and learn how often the last draft was right."""
        self._learn(tokens)
        self._stream.extend(tokens)
        if self._sampler is not None:
            for token in tokens:
                self._sampler.accept(token)

    def rewind(self, length: int) -> None:
        """Forget the stream beyond `length`; the cache is cut when it is next used."""
        del self._stream[length:]
        self._agreed = min(self._agreed, length)
        self._pending = ()

    def read(self, until: int) -> None:
        """Evaluate the stream up to `until` tokens, short of its last one, which the next proposal needs."""
        kept = self._roll_back()
        missing = self._stream[kept : min(until, len(self._stream) - 1)]
        if missing:
            self.context.decode(self._known(missing))

    def propose(self, limit: int, step: int) -> Draft:
        """Decode up to `limit` tokens. The last of them is never evaluated: nobody has asked what follows it yet."""
        if self._sampler is None:
            raise ValueError("a draft model needs begin() before it can draft")
        limit = min(limit, self.context.length - len(self._stream))
        if limit <= 0:
            return Draft(self.name)
        self._catch_up()
        sampler = self._sampler.fork()
        tokens: list[int] = []
        drawn_from: list[Distribution] = []
        while True:
            token, q = self._pick(sampler, len(self._stream) + len(tokens), step)
            tokens.append(token)
            if q is not None:
                drawn_from.append(q)
            if len(tokens) == limit:
                break
            sampler.accept(token)
            self.context.decode((token,), rows=1)
        self._pending = tuple(tokens)
        survival = tuple(self._rate ** (i + 1) for i in range(len(tokens)))
        return Draft(self.name, self._pending, survival, tuple(drawn_from) if drawn_from else None)

    def _pick(self, sampler: RowSampler, position: int, step: int) -> tuple[int, Distribution | None]:
        """The drafted token of a position, and the distribution it was drawn from where the rejection rule needs it."""
        row = self.context.row(0)[: self._vocabulary_size]
        if self._drafting is Drafting.SAMPLED:
            q = sampler.distribution(row)
            return q.draw(noise_key(self._seed, Stream.DRAFT, position, step)), q
        return sampler.draw(row, noise_key(self._seed, Stream.TARGET, position)), None

    def _catch_up(self) -> None:
        """Evaluate what the stream has and the cache has not, in one pass, so that the row of the last token is there."""
        kept = self._roll_back()
        self.context.decode(self._known(self._stream[kept:]), rows=1)
        self.context.mark("stream")

    def _roll_back(self) -> int:
        """Cut the cache to what it shares with the stream; accepted drafts stay, refused ones go."""
        cached, stream = self.context.tokens, self._stream
        end = min(len(cached), len(stream) - 1)
        agreed = min(self._agreed, end)
        while agreed < end and cached[agreed] == self._known_token(stream[agreed]):
            agreed += 1
        kept = self.context.truncate(agreed)
        self._agreed = kept
        return kept

    def _known(self, tokens: Sequence[int]) -> list[int]:
        return [self._known_token(token) for token in tokens]

    def _known_token(self, token: int) -> int:
        # A target with a padded vocabulary can emit an id that the draft model has not; any id will do in its place.
        return token if token < self._vocabulary_size else 0

    def _learn(self, emitted: Sequence[int]) -> None:
        for drafted, token in zip(self._pending, emitted, strict=False):
            self._rate = _RATE_MEMORY * self._rate + (1 - _RATE_MEMORY) * (drafted == token)
            if drafted != token:
                break
        self._pending = ()
