"""The speculation loop: propose, verify, accept, roll back, Step.

Speculative decoding after Leviathan, Kalman, Matias (2023) and Chen et al. (2023): the drafter proposes k tokens, one
target pass over [last token, draft...] gives k + 1 rows, the agreed prefix is kept and the row after it gives one more
token. Every emitted token is a draw from the target's own distribution under the sampling settings in force.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from localspec.engine.acceptance import accepts, matches, residual
from localspec.engine.drafters.base import Draft, Drafter
from localspec.engine.errors import Interrupted
from localspec.engine.evaluator import Codec, Evaluator, RowSampler
from localspec.engine.noise import Stream, noise_key, uniform
from localspec.engine.policy import Chooser
from localspec.engine.rates import elapsed
from localspec.engine.sampling import log_probability
from localspec.engine.step import NO_DRAFTER, Finish, Step, closing_step
from localspec.engine.text import TextStream

_MOST_REPLAYED = 8
"""A memory that cannot drop a refused draft goes back to before the pass, and what was accepted is evaluated again in the
next one. Beyond this many tokens a step goes without a draft, so that its pass settles them for good."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of one answer."""

    seed: int
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    logprobs: bool = False


@dataclass(slots=True)
class Loop:
    """One answer being written. `stream` holds every token of the conversation so far; its last one is not evaluated yet."""

    target: Evaluator
    sampler: RowSampler
    policy: Chooser
    drafters: Sequence[Drafter]
    codec: Codec
    request: Request
    stream: list[int]
    stopping: Callable[[], bool] = lambda: False
    emitted: int = 0
    text: TextStream = field(init=False)
    _finish: Finish | None = None
    _draft_contexts: list[Evaluator] = field(init=False)

    def __post_init__(self) -> None:
        self.text = TextStream(self.request.stop)
        contexts = (getattr(drafter, "context", None) for drafter in self.drafters)
        self._draft_contexts = [context for context in contexts if context]

    def run(self) -> Iterator[Step]:
        """Yield a Step for each target pass until the answer ends. Between two steps every cache is consistent, so the
        iterator can be dropped at any of them."""
        if self.request.max_tokens == 0:
            yield self._closing_step(Finish.LENGTH)
        number = 0
        while self._finish is None:
            if self.stopping():
                yield self._closing_step(Finish.INTERRUPTED)
                return
            try:
                step = self._step(number)
            except Interrupted:
                self.target.truncate(len(self.stream) - 1)
                yield self._closing_step(Finish.INTERRUPTED)
                return
            number += 1
            yield step

    def _step(self, number: int) -> Step:
        clock = _Stopwatch(self.target, self._draft_contexts)
        base = len(self.stream)
        pending = self.stream[len(self.target.tokens) :]
        settled = len(pending) <= _MOST_REPLAYED
        draft = self.policy.choose(self._room() if settled else 0, number)
        clock.lap("policy")
        if draft.tokens:
            self.target.mark("step")
        self.target.decode([*pending, *draft.tokens], rows=1 + len(draft.tokens))
        clock.lap("verify")
        tokens, accepted, pieces, logprobs = self._verify(draft, number)
        clock.lap("sample")
        self.stream.extend(tokens)
        self.emitted += len(tokens)
        # The cache holds the accepted drafts; the correction or bonus token gets its own row in the next pass.
        self.target.truncate(base + accepted)
        for drafter in self.drafters:
            drafter.observe(tokens)
        self._finish = self._finish or self._limit_reached()
        if self._finish:
            pieces[-1] += self.text.finish()
        clock.lap("policy")
        width, times = len(pending) + len(draft.tokens), clock.milliseconds()
        self.policy.learn(tokens, draft, width, times["verify_ms"], times["draft_ms"])
        return Step(
            tokens=tuple(tokens),
            text="".join(pieces),
            drafter=draft.drafter if draft.tokens else NO_DRAFTER,
            drafted=len(draft.tokens),
            accepted=accepted,
            width=width,
            finish=self._finish,
            logprobs=tuple(logprobs),
            pieces=tuple(pieces),
            sources=draft.sources,
            decision=self.policy.decision,
            **times,
        )

    def _verify(self, draft: Draft, number: int) -> tuple[list[int], int, list[str], list[float]]:
        """Walk the rows in order until the first disagreement or the end of the answer. Rows after it are never looked
        at: they cost nothing, and no random number is used on them."""
        tokens: list[int] = []
        pieces: list[str] = []
        logprobs: list[float] = []
        accepted = 0
        for index in range(len(draft.tokens) + 1):
            row = self.target.row(index)
            token, agreed = self._judge(row, draft, index, number)
            self.sampler.accept(token)
            tokens.append(token)
            accepted += agreed
            if self.request.logprobs:
                logprobs.append(log_probability(row, token))
            pieces.append(self._take(token))
            if not agreed or self._finish:
                break
        return tokens, accepted, pieces, logprobs

    def _judge(self, row: NDArray[np.float32], draft: Draft, index: int, number: int) -> tuple[int, bool]:
        """The token of one row, and whether it is the drafted one. The row after the draft has none to agree with."""
        seed, position = self.request.seed, len(self.stream) + index
        q = draft.q[index] if draft.q is not None and index < len(draft.tokens) else None
        if q is not None:
            p, drafted = self.sampler.distribution(row), draft.tokens[index]
            if accepts(p, q, drafted, uniform(noise_key(seed, Stream.ACCEPT, position, number))):
                return drafted, True
            return residual(p, q).pick(uniform(noise_key(seed, Stream.RESIDUAL, position, number))), False
        token = self.sampler.draw(row, noise_key(seed, Stream.TARGET, position))
        return token, index < len(draft.tokens) and matches(token, draft.tokens[index])

    def _take(self, token: int) -> str:
        """The text that the token makes certain; notices when it ends the answer."""
        if self.codec.is_end(token):
            self._finish = Finish.STOP
            return ""
        text = self.text.push(self.codec.piece(token))
        if self.text.stopped:
            self._finish = Finish.STOP
        return text

    def _room(self) -> int:
        """Longest draft that cannot run past the asked-for tokens or the end of the context."""
        room = self.target.length - len(self.stream)
        if self.request.max_tokens is not None:
            room = min(room, self.request.max_tokens - self.emitted - 1)
        return room

    def _limit_reached(self) -> Finish | None:
        if self.request.max_tokens is not None and self.emitted >= self.request.max_tokens:
            return Finish.LENGTH
        return Finish.CONTEXT if len(self.stream) > self.target.length else None

    def _closing_step(self, finish: Finish) -> Step:
        """A step without a pass: it gives the text that was held back, and the reason."""
        self._finish = finish
        return closing_step(finish, self.text.finish())


class _Stopwatch:
    """Splits a step's time into the two models' evaluations and what Python adds around them."""

    def __init__(self, target: Evaluator, draft_contexts: Sequence[Evaluator]) -> None:
        self._target, self._contexts = target, draft_contexts
        self._spent = {"policy": 0.0, "verify": 0.0, "sample": 0.0}
        self._target_busy = target.busy_seconds
        self._draft_busy = self._drafting()
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        """Everything since the last lap belongs to `name`."""
        now = time.perf_counter()
        self._spent[name] += elapsed(now, self._last)
        self._last = now

    def milliseconds(self) -> dict[str, float]:
        """The four times of a Step. What surrounds the evaluations inside their laps counts as policy."""
        verify = elapsed(self._target.busy_seconds, self._target_busy)
        draft = elapsed(self._drafting(), self._draft_busy)
        around = self._spent["policy"] - draft + self._spent["verify"] - verify
        return {
            "draft_ms": 1000 * draft,
            "verify_ms": 1000 * verify,
            "sample_ms": 1000 * self._spent["sample"],
            "policy_ms": 1000 * max(0.0, around),
        }

    def _drafting(self) -> float:
        return float(sum(context.busy_seconds for context in self._contexts))
