"""What came out of a comparison: per category and arm, and over all."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from localspec.engine.cores import performance_cores
from localspec.engine.engine import Engine, Options
from localspec.engine.llama import devices
from localspec.measure.arms import PLAIN
from localspec.measure.bench import Round
from localspec.measure.profiles import Profile


@dataclass(frozen=True, slots=True)
class Spread:
    """The middle of several figures and where eight of ten of them lie."""

    median: float
    p10: float
    p90: float

    @classmethod
    def of(cls, figures: Sequence[float]) -> "Spread":
        """Of at least one figure."""
        p10, median, p90 = np.quantile(figures, (0.1, 0.5, 0.9))
        return cls(float(median), float(p10), float(p90))


@dataclass(frozen=True, slots=True)
class Figures:
    """One arm over the prompts of one category."""

    tokens: int
    steps: int
    drafted: int
    accepted: int
    ms: float
    speedup: Spread
    """Of each answer against plain decoding of the same prompt in the same round."""
    host_ms: tuple[float, float] | None
    """Of a step, what it takes besides the two models' passes: median, and 95 of 100 steps take no more."""
    policy_ms: tuple[float, float] | None
    """The part of it that is not sampling, likewise."""

    @classmethod
    def of(cls, rounds: Sequence[Round], arm: str) -> "Figures":
        """Of at least one round."""
        answers = [round_.answers[arm] for round_ in rounds]
        return cls(
            tokens=sum(len(answer.tokens) for answer in answers),
            steps=sum(answer.steps for answer in answers),
            drafted=sum(answer.drafted for answer in answers),
            accepted=sum(answer.accepted for answer in answers),
            ms=sum(answer.ms for answer in answers),
            speedup=Spread.of([speedup(round_, arm) for round_ in rounds]),
            host_ms=_usual_and_rare([ms for answer in answers for ms in answer.host_ms]),
            policy_ms=_usual_and_rare([ms for answer in answers for ms in answer.policy_ms]),
        )

    @property
    def tokens_per_step(self) -> float:
        """Over all target passes, undrafted ones included."""
        return self.tokens / self.steps

    @property
    def ms_per_token(self) -> float:
        """Milliseconds of a token."""
        return self.ms / self.tokens

    @property
    def acceptance_rate(self) -> float | None:
        """Accepted of drafted tokens; None where nothing was drafted."""
        return self.accepted / self.drafted if self.drafted else None


@dataclass(frozen=True, slots=True)
class Setup:
    """What was compared, where and how."""

    device: tuple[tuple[str, str], ...]
    """Name and description of every device."""
    profile: Profile | None
    """The simulated one."""
    model: str
    draft: str | None
    threads: int
    options: Options
    repeats: int
    prompts: int
    """How many prompts there were."""
    skipped: tuple[str, ...]
    """Names of the prompts that do not fit into the context."""
    cost_curve: dict[int, float]
    """Milliseconds of a target pass by its width; on a simulated device in plain steps, as all its times."""
    draft_ms: float | None

    @classmethod
    def of(
        cls,
        engine: Engine,
        options: Options,
        profile: Profile | None,
        repeats: int,
        prompts: int,
        skipped: Sequence[str],
    ) -> "Setup":
        """As the engine is now: before the comparison, since costs are learned."""
        draft = engine.settings.draft
        return cls(
            device=tuple((device.name, device.description) for device in devices()),
            profile=profile,
            model=engine.settings.target.stem,
            draft=draft.stem if draft else None,
            threads=engine.settings.threads or performance_cores(),
            options=options,
            repeats=repeats,
            prompts=prompts,
            skipped=tuple(skipped),
            cost_curve=engine.costs.target.table(),
            draft_ms=engine.costs.draft_ms(1) if engine.costs.draft else None,
        )

    @property
    def same_texts(self) -> bool:
        """Whether every arm has to write what plain decoding writes: not where drafts are judged by rejection."""
        return self.options.sampling.greedy or self.options.resolved_verification == "match"


@dataclass(frozen=True, slots=True)
class Summary:
    """A whole comparison, or as much as there was time for."""

    setup: Setup
    arms: tuple[str, ...]
    rounds: tuple[Round, ...]

    @property
    def complete(self) -> bool:
        """Whether every prompt was answered as often as was asked for."""
        return len(self.rounds) == self.setup.repeats * (self.setup.prompts - len(self.setup.skipped))

    @property
    def categories(self) -> dict[str, dict[str, Figures]]:
        """By category, in the order of the prompts, then by arm."""
        by_category: dict[str, list[Round]] = {}
        for round_ in self.rounds:
            by_category.setdefault(round_.prompt.category, []).append(round_)
        return {
            category: {arm: Figures.of(rounds, arm) for arm in self.arms} for category, rounds in by_category.items()
        }

    @property
    def overall(self) -> dict[str, Figures]:
        """By arm over all prompts; empty before the first."""
        return {arm: Figures.of(self.rounds, arm) for arm in self.arms} if self.rounds else {}

    @property
    def means(self) -> dict[str, float]:
        """By arm, the geometric mean over the categories of the median speedup; empty before the first prompt."""
        categories = self.categories.values()
        if not categories:
            return {}
        return {arm: geometric_mean(figures[arm].speedup.median for figures in categories) for arm in self.arms}

    @property
    def differing(self) -> dict[str, int] | None:
        """By arm, in how many rounds its text was another one than plain decoding's; None where it may be."""
        if not self.setup.same_texts:
            return None
        return {
            arm: sum(round_.answers[arm].tokens != round_.answers[PLAIN].tokens for round_ in self.rounds)
            for arm in self.arms
            if arm != PLAIN
        }


def _usual_and_rare(figures: Sequence[float]) -> tuple[float, float] | None:
    if not figures:
        return None
    median, rare = np.quantile(figures, (0.5, 0.95))
    return float(median), float(rare)


def speedup(round_: Round, arm: str) -> float:
    """How many times faster than plain decoding."""
    return round_.answers[PLAIN].ms_per_token / round_.answers[arm].ms_per_token


def geometric_mean(figures: Iterable[float]) -> float:
    """Of at least one figure, all above 0."""
    logarithms = [math.log(figure) for figure in figures]
    return math.exp(sum(logarithms) / len(logarithms))
