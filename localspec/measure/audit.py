"""Exactness on this machine: text written with speculation, read again one token at a time as plain decoding does.

A pass over several tokens may use other kernels than a pass over one and round differently. Here every token of greedy
answers that were drafted is judged again by a plain pass of width 1 over the same text: where that pass would have chosen
another token, the token has flipped. The same text is also read in passes of a fixed width without any drafter, the noise
floor: a log-probability that speculation moves by much more than that is a fault and no rounding.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from localspec.engine.engine import Engine, Options
from localspec.engine.errors import Interrupted
from localspec.engine.evaluator import Evaluator
from localspec.engine.sampling import log_probability
from localspec.engine.step import Finish
from localspec.engine.stop import Stop

BINS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Where the classes of gaps begin, in logits; the last one is open."""
WORST_GAP = 0.5
"""A token this far behind another one is no matter of rounding."""
_FLOORS = 2.0
"""How many times the noise floor speculation may move a log-probability."""
_LEAST_FLOOR = 0.05
"""Below this no difference is suspicious."""
_SHORT = 256
"""Tokens of context up to which a CPU reads a 16-bit cache in one way at every width."""


@dataclass(frozen=True, slots=True)
class Written:
    """One greedy answer, and how each of its tokens came about."""

    prompt: tuple[int, ...]
    tokens: tuple[int, ...]
    widths: tuple[int, ...]
    """Of the pass that gave each token."""
    drafters: tuple[str, ...]
    """Who drafted in that pass."""
    logprobs: tuple[float, ...]
    """What that pass gave each token; natural logarithms."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One token, judged again by a pass of width 1."""

    position: int
    """Tokens before it, those of the prompt included."""
    width: int
    drafter: str
    gap: float
    """By how many logits the two likeliest tokens differ in the pass of width 1; of a flipped token by how many it is behind
    the likeliest, which is the same where it is the second."""
    flipped: bool
    logprob: float
    """Its log-probability in the pass of width 1; a natural logarithm."""
    moved: float
    """By how much that differs between the two passes."""


@dataclass(slots=True)
class Audit:
    """All tokens that were judged."""

    judged: list[Judged] = field(default_factory=list)
    noise_floor: float = 0.0
    """The largest difference of a log-probability between passes of width 1 and of a fixed width, without a drafter."""
    complete: bool = True
    """False where it was stopped."""

    @property
    def tokens(self) -> int:
        """How many tokens were judged."""
        return len(self.judged)

    @property
    def wide(self) -> int:
        """How many of them came from passes over more than one token. Rounding can only make a token flip that came from such
        a pass, or has one of them in its context."""
        return sum(token.width > 1 for token in self.judged)

    @property
    def flips(self) -> list[Judged]:
        """The tokens that plain decoding would not have chosen."""
        return [token for token in self.judged if token.flipped]

    @property
    def max_gap(self) -> float:
        """The largest gap of a flipped token; 0 without one."""
        return max((token.gap for token in self.flips), default=0.0)

    @property
    def moved(self) -> float:
        """The largest difference of a log-probability."""
        return max((token.moved for token in self.judged), default=0.0)

    @property
    def is_faulty(self) -> bool:
        """Whether something else than rounding must be at work."""
        return self.max_gap > WORST_GAP or self.moved > max(_LEAST_FLOOR, _FLOORS * self.noise_floor)

    def histogram(self) -> list[tuple[float, int, int]]:
        """Where each class of gaps begins, how many flipped tokens have such a gap, and how many tokens in all."""
        flipped, every = (_binned([token.gap for token in tokens]) for tokens in (self.flips, self.judged))
        return list(zip(BINS, flipped, every, strict=True))

    def by(self, what: Callable[[Judged], object]) -> dict[object, tuple[int, int]]:
        """Flipped tokens and tokens in all, by something about them."""
        every, flipped = Counter(map(what, self.judged)), Counter(map(what, self.flips))
        return {name: (flipped[name], count) for name, count in every.items()}

    def by_context(self) -> dict[object, tuple[int, int]]:
        """The same by the length of the context: up to 256 tokens, and longer."""
        return self.by(lambda token: f"up to {_SHORT}" if token.position <= _SHORT else f"{_SHORT + 1} and more")


class AuditProgress(Protocol):
    """Follows an audit."""

    def __call__(self, done: int, total: int) -> bool | None:
        """Told how many answers are done; False stops."""


def audit(
    engine: Engine,
    prompts: Sequence[Sequence[int]],
    arms: Sequence[Options],
    progress: AuditProgress | None = None,
    stop: Stop | None = None,
) -> Audit:
    """Answer every prompt with every arm, greedily, and judge every token of the answers. `stop` ends it with what has been
    judged so far."""
    stop = stop or Stop()
    with stop.ending(engine.interrupt):
        return _audited(engine, prompts, arms, progress, stop)


def _audited(
    engine: Engine,
    prompts: Sequence[Sequence[int]],
    arms: Sequence[Options],
    progress: AuditProgress | None,
    stop: Stop,
) -> Audit:
    found, total = Audit(), len(prompts) * len(arms)
    try:
        for number, (prompt, arm) in enumerate((prompt, arm) for prompt in prompts for arm in arms):
            if progress and progress(number, total) is False:
                raise Interrupted
            written = write(engine, prompt, arm, stop)
            judged = list(judge(engine.target_context, written))
            found.judged += judged
            narrow = [token.logprob for token in judged]
            found.noise_floor = max(found.noise_floor, noise_floor(engine.target_context, written, narrow))
    except Interrupted:
        found.complete = False
    return found


def write(engine: Engine, prompt: Sequence[int], arm: Options, stop: Stop | None = None) -> Written:
    """A greedy answer from an empty cache. Raises Interrupted."""
    # What an earlier answer has left in the cache may have been read in passes of other widths.
    engine.target_context.truncate(0)
    sampling = replace(arm.sampling, temperature=0.0, repeat_penalty=1.0, frequency_penalty=0.0, presence_penalty=0.0)
    tokens, widths, drafters, logprobs = list[int](), list[int](), list[str](), list[float]()
    for step in engine.generate(prompt, replace(arm, sampling=sampling, logprobs=True), stop=stop):
        if step.finish is Finish.INTERRUPTED:
            raise Interrupted
        tokens += step.tokens
        logprobs += step.logprobs
        widths += [step.width] * len(step.tokens)
        drafters += [step.drafter] * len(step.tokens)
    return Written(tuple(prompt), tuple(tokens), tuple(widths), tuple(drafters), tuple(logprobs))


def judge(target: Evaluator, written: Written) -> Iterator[Judged]:
    """The tokens of an answer, one by one, by passes of width 1 over an empty cache. Raises Interrupted."""
    for index, row in enumerate(_rows(target, written, 1)):
        token = written.tokens[index]
        second, first = np.partition(row, -2)[-2:]
        flipped = int(row.argmax()) != token
        logprob = log_probability(row, token)
        yield Judged(
            position=len(written.prompt) + index,
            width=written.widths[index],
            drafter=written.drafters[index],
            gap=float(first - (row[token] if flipped else second)),
            flipped=flipped,
            logprob=logprob,
            moved=abs(logprob - written.logprobs[index]),
        )


def noise_floor(target: Evaluator, written: Written, narrow: Sequence[float]) -> float:
    """The largest difference between log-probabilities of the tokens in passes of width 1, `narrow`, and in passes of the
    usual width of this answer, without a drafter. Raises Interrupted."""
    drafted = [width for width in written.widths if width > 1]
    if not drafted:
        return 0.0
    usual = Counter(drafted).most_common(1)[0][0]
    rows = enumerate(_rows(target, written, usual))
    return max(abs(log_probability(row, written.tokens[index]) - narrow[index]) for index, row in rows)


def _rows(target: Evaluator, written: Written, width: int) -> Iterator[NDArray[np.float32]]:
    """The row of each token of the answer, shape (V,), by passes of `width` tokens; the prompt is read in batches."""
    text, first = [*written.prompt, *written.tokens], len(written.prompt) - 1
    target.truncate(0)
    while len(target.tokens) < first:
        done = len(target.tokens)
        target.decode(text[done : min(first, done + target.batch_size)])
    for start in range(first, len(text) - 1, width):
        tokens = text[start : min(start + width, len(text) - 1)]
        target.decode(tokens, rows=len(tokens))
        for index in range(len(tokens)):
            yield target.row(index)


def _binned(gaps: Sequence[float]) -> list[int]:
    places = Counter(int(place) for place in np.searchsorted(BINS, gaps, side="right") - 1)
    return [places[index] for index in range(len(BINS))]
