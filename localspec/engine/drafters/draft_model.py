"""A small model that drafts: it keeps its own cache, catches up only when asked, and never evaluates a token twice."""

from collections.abc import Sequence
from enum import Enum
from typing import Any

from numpy.typing import NDArray

from localspec.engine.distribution import Distribution
from localspec.engine.drafters.base import Draft
from localspec.engine.evaluator import Evaluator, RowSampler
from localspec.engine.noise import Stream, noise_key, uniform
from localspec.engine.shortlist import top_probability

_USUAL_ACCEPTANCE = 0.7


class Drafting(Enum):
    """How the draft model picks its tokens."""

    COUPLED = "coupled"
    """With the target's own random numbers, judged by match (argmax when greedy): where the two distributions agree, so
    do the two draws, with probability at least (1 - TV) / (1 + TV)."""
    SAMPLED = "sampled"
    """With random numbers of its own, judged by rejection: accepted with probability 1 - TV."""


class DraftModel:
    """Drafts by decoding token by token with a smaller model of the same vocabulary.

    A draft is made in turns of `look` (evaluate, and say how sure the model is) and `take` (draw the token). Whoever
    drives it decides between the two whether to go on, when the token's own value is not known yet: in rejection mode a
    decision that looked at it would bias the text. `push` puts a token of somebody else in the place of its own.
    """

    name = "draft"

    def __init__(self, context: Evaluator, vocabulary_size: int) -> None:
        """`vocabulary_size`: token ids that the draft and the target model have in common."""
        self.context = context
        self._vocabulary_size = vocabulary_size
        self._stream: list[int] = []
        self._agreed = 0
        self._sampler: RowSampler | None = None
        self._ahead: RowSampler | None = None
        self._drafting = Drafting.COUPLED
        self._greedy = True
        self._seed = self._step = 0
        self._opened = False
        self._tokens: list[int] = []
        self._looked: tuple[int, Distribution | None] | None = None
        """The model's token at the place of the last look, and what it is drawn from unless greedy."""
        self.passes: list[tuple[int, float]] = []
        """(width, milliseconds) of the evaluations of the present draft."""

    def begin(self, sampler: RowSampler, drafting: Drafting, seed: int, greedy: bool = False) -> None:
        """A new answer begins: these are its sampling settings, the same as the target's."""
        sampler.begin(self._stream)
        self._sampler, self._drafting, self._seed, self._greedy = sampler, drafting, seed, greedy
        self._tokens, self._looked = [], None

    def observe(self, tokens: Sequence[int]) -> None:
        """Follow the stream without evaluating anything."""
        self._stream.extend(tokens)
        self._tokens, self._looked = [], None
        self._agreed = self._agreement()
        if self._sampler is not None:
            for token in tokens:
                self._sampler.accept(token)

    def rewind(self, length: int) -> None:
        """Forget the stream beyond `length`; the cache is cut when it is next used."""
        del self._stream[length:]
        self._agreed = min(self._agreed, length)
        self._tokens, self._looked = [], None

    def read(self, until: int) -> None:
        """Evaluate the stream up to `until` tokens, short of its last one, which the next draft needs."""
        kept = self._roll_back()
        missing = self._stream[kept : min(until, len(self._stream) - 1)]
        if missing:
            self.context.decode(self._known(missing))

    @property
    def room(self) -> int:
        """Longest draft that the draft model's own context allows."""
        return max(0, self.context.length - len(self._stream))

    @property
    def lag(self) -> int:
        """Tokens that the next look has to evaluate, at least 1."""
        evaluated = len(self.context.tokens) if self._opened else self._agreed
        return max(1, len(self._stream) + len(self._tokens) - evaluated)

    @property
    def may_cut(self) -> bool:
        """Whether a drafted token may be dropped again after its value is known: only under the match rule."""
        return self._drafting is not Drafting.SAMPLED

    def open(self, step: int) -> None:
        """Begin a draft after the stream as it is. `step` tells the target passes of an answer apart."""
        if self._sampler is None:
            raise ValueError("a draft model needs begin() before it can draft")
        self._tokens, self._looked, self._step = [], None, step
        self._opened = False
        self.passes = []
        self._ahead = None

    def look(self) -> int:
        """Evaluate what is missing, and return the token that the model would draft; in rejection mode, where nobody may
        know that yet, its most probable one."""
        first, self._opened = not self._opened, True
        if self._ahead is None:
            self._ahead = self._fork()
        if first:
            self._roll_back()
            if self._tokens:
                # A memory that cannot be cut must be able to come back to before the tokens of the draft.
                self.context.mark("stream")
        known, length = len(self.context.tokens), len(self._stream)
        missing = self._stream[known:] + self._tokens[max(0, known - length) :]
        if missing:
            before = self.context.busy_seconds
            self.context.decode(self._known(missing), rows=1)
            self.passes.append((len(missing), 1000 * (self.context.busy_seconds - before)))
        if first and not self._tokens:
            self.context.mark("stream")
        self._looked = self._read_row()
        return self._looked[0]

    def confidence(self) -> float:
        """How sure the model is, 0 to 1, of its most probable token at the place of the last look."""
        if self._looked is None:
            raise ValueError("confidence() comes after look()")
        q = self._looked[1]
        return top_probability(self._row()) if q is None else q.top

    def _fork(self) -> RowSampler:
        """A sampler that has seen the stream and the draft."""
        if self._sampler is None:
            raise ValueError("a draft model needs begin() before it can draft")
        ahead = self._sampler.fork()
        for token in self._tokens:
            ahead.accept(token)
        return ahead

    def take(self) -> tuple[int, Distribution | None]:
        """Draft the token that was looked at; with the distribution it was drawn from where rejection is to judge it."""
        if self._looked is None:
            raise ValueError("take() comes after look()")
        token, q = self._looked
        if self._drafting is Drafting.COUPLED:
            q = None
        if q is not None:
            position = len(self._stream) + len(self._tokens)
            token = q.pick(uniform(noise_key(self._seed, Stream.DRAFT, position, self._step)))
        self.push(token)
        return token, q

    def push(self, token: int) -> None:
        """The draft goes on with this token, whoever it is from."""
        self._looked = None
        self._tokens.append(token)
        if self._ahead is not None:
            self._ahead.accept(token)

    def propose(self, limit: int, step: int) -> Draft:
        """A draft of `limit` tokens, or as many as the context has room for. The last of them is never evaluated: nobody
        has asked what follows it yet."""
        self.open(step)
        drawn_from: list[Distribution | None] = []
        for _ in range(min(limit, self.room)):
            self.look()
            drawn_from.append(self.take()[1])
        q = tuple(drawn_from) if any(item is not None for item in drawn_from) else None
        survival = tuple(_USUAL_ACCEPTANCE ** (i + 1) for i in range(len(drawn_from)))
        return Draft(self.name, tuple(self._tokens), survival, q)

    def _read_row(self) -> tuple[int, Distribution | None]:
        if self._ahead is None:
            raise ValueError("look() comes after open()")
        row = self._row()
        if self._greedy:
            return self._ahead.draw(row, 0), None
        q = self._ahead.distribution(row)
        if self._drafting is Drafting.SAMPLED:
            return q.mode(), q
        position = len(self._stream) + len(self._tokens)
        return q.draw(noise_key(self._seed, Stream.TARGET, position)), q

    def _row(self) -> NDArray[Any]:
        row = self.context.row(0)
        return row if row.size == self._vocabulary_size else row[: self._vocabulary_size]

    def _roll_back(self) -> int:
        """Cut the cache to what it shares with the stream; accepted drafts stay, refused ones go."""
        self._agreed = kept = self.context.truncate(self._agreement())
        return kept

    def _agreement(self) -> int:
        """How many tokens the cache shares with the stream, short of the last one: it is evaluated for its row."""
        cached, stream = self.context.tokens, self._stream
        end = max(0, min(len(cached), len(stream) - 1))
        agreed = min(self._agreed, end)
        while agreed < end and cached[agreed] == self._known_token(stream[agreed]):
            agreed += 1
        return agreed

    def _known(self, tokens: Sequence[int]) -> Sequence[int]:
        if max(tokens) < self._vocabulary_size:
            return tokens
        return [self._known_token(token) for token in tokens]

    def _known_token(self, token: int) -> int:
        # A target with a padded vocabulary can emit an id that the draft model has not; any id will do in its place.
        return token if token < self._vocabulary_size else 0
