"""Arms against plain decoding on one loaded engine, taking turns on every prompt."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from localspec.engine.drafters.place import Span
from localspec.engine.engine import Engine, Options
from localspec.engine.step import Finish, Totals
from localspec.engine.stop import Stop
from localspec.measure.arms import Arm
from localspec.measure.profiles import Profile
from localspec.measure.prompts import Prompt
from localspec.measure.recording import Render
from localspec.measure.replay import device_ms

_WARM_UP = 8
"""Tokens written before anything is timed: the first passes of a loaded model are slower than all others."""
_SEEDS = 1 << 32
_LEAST_MS = 1e-3
"""A clock that stands still makes no answer infinitely fast."""

BenchProgress = Callable[[Prompt, Arm, int, int], None]
"""Called before each answer with its prompt and arm, how many answers are done and how many there will be."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one arm made of one prompt."""

    tokens: tuple[int, ...]
    steps: int
    drafted: int
    accepted: int
    ms: float
    """From the prompt's end to the answer's, by the clock on the wall; on a simulated device the two models' passes."""
    host_ms: tuple[float, ...]
    """Of each step, what it took besides the two models' passes; empty on a simulated device."""
    policy_ms: tuple[float, ...]
    """The part of it that is not sampling: choosing, looking up, keeping books."""

    @property
    def ms_per_token(self) -> float:
        """Milliseconds of a token."""
        return self.ms / len(self.tokens)


@dataclass(frozen=True, slots=True)
class Round:
    """One prompt, answered once by every arm."""

    prompt: Prompt
    repeat: int
    answers: dict[str, Answer]
    """By the arm's name."""


class Bench:
    """One comparison on a loaded engine."""

    def __init__(
        self,
        engine: Engine,
        arms: Sequence[Arm],
        options: Options,
        render: Render,
        profile: Profile | None = None,
        documents: Callable[[Sequence[int]], Sequence[Span]] = lambda _tokens: (),
    ) -> None:
        """`options`: of every answer; needs a seed, and the longest answer. `render`: a prompt's words as token ids.
        `profile`: the device to simulate. `documents`: which of a prompt's tokens are documents."""
        self._engine, self._arms, self._options, self._render = engine, arms, options, render
        self._documents = documents
        self._simulated = profile is not None
        if profile:
            engine.simulate(profile.target_ms, profile.draft_ms)
        self._makers = {arm.name: arm.start() for arm in arms}

    def fits(self, prompt: Prompt) -> bool:
        """Whether the prompt and its longest answer have room in the context."""
        return len(self._render(prompt.turns[0])) + (self._options.max_tokens or 0) <= self._engine.context_length

    def rounds(
        self,
        prompts: Sequence[Prompt],
        repeats: int = 1,
        progress: BenchProgress | None = None,
        stop: Stop | None = None,
    ) -> Iterator[Round]:
        """Answer the first turn of every prompt, all of them `repeats` times over. From prompt to prompt another arm begins,
        so that whatever changes while the machine is busy changes for all alike. Ends when `stop` is asked for, without the
        round under way."""
        stop = stop or Stop()
        self._warm_up(prompts, stop)
        total = repeats * len(prompts) * len(self._arms)
        for number in range(repeats * len(prompts)):
            repeat, index = divmod(number, len(prompts))
            prompt, answers = prompts[index], dict[str, Answer]()
            # The shift by `repeat` lets another arm begin with a prompt each time it comes round.
            start = (index + repeat) % len(self._arms)
            for place, arm in enumerate([*self._arms[start:], *self._arms[:start]]):
                if progress:
                    progress(prompt, arm, number * len(self._arms) + place, total)
                answer = self._answer(prompt, arm, repeat, stop)
                if answer is None:
                    return
                answers[arm.name] = answer
            yield Round(prompt, repeat, {arm.name: answers[arm.name] for arm in self._arms})

    def _warm_up(self, prompts: Sequence[Prompt], stop: Stop) -> None:
        if self._simulated or not prompts:
            return
        options = replace(self._options, drafter="none", max_tokens=_WARM_UP)
        for _step in self._engine.generate(self._render(prompts[0].turns[0]), options, stop=stop):
            pass

    def _answer(self, prompt: Prompt, arm: Arm, repeat: int, stop: Stop) -> Answer | None:
        """None when it was stopped."""
        started = 0.0

        def reading(_done: int, _total: int) -> None:
            nonlocal started
            started = time.perf_counter()

        if stop.asked:
            return None
        seed = ((self._options.seed or 0) + repeat) % _SEEDS
        options = replace(self._options, seed=seed)
        tokens: list[int] = []
        policy_ms: list[float] = []
        totals, ids = Totals(), self._render(prompt.turns[0])
        documents = self._documents(ids)
        for step in self._engine.generate(ids, options, reading, self._makers[arm.name], documents, stop):
            tokens.extend(step.tokens)
            totals.add(step)
            policy_ms.append(step.policy_ms)
        ms = max(_LEAST_MS, 1000 * (time.perf_counter() - started))
        if totals.finish is Finish.INTERRUPTED:
            return None
        if self._simulated:
            ms = device_ms(totals)
            totals.host_ms, policy_ms = [], []
        return Answer(
            tuple(tokens),
            totals.steps,
            totals.drafted,
            totals.accepted,
            ms,
            tuple(totals.host_ms),
            tuple(policy_ms),
        )
