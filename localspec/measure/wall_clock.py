"""The arms of the acceptance table by the clock on the wall: real answers to its prompts, timed as `bench` times them."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from localspec.measure.acceptance_table import AUTO, COPIED, LENGTHS, LONGEST_NGRAM, LOOKUP, draft_arm
from localspec.measure.arms import PLAIN, Arm, parse_arms
from localspec.measure.bench import Round

_DEPLOYED = f"lookup:n{LONGEST_NGRAM}k{COPIED}"
"""What `bench` calls the prompt lookup of the table."""
_NAMES = {PLAIN: PLAIN, **{draft_arm(length): draft_arm(length) for length in LENGTHS}, _DEPLOYED: LOOKUP, AUTO: AUTO}
"""Names of arms in `bench` -> those in the table."""


@dataclass(frozen=True, slots=True)
class TimedArm:
    """One real answer."""

    tokens: int
    steps: int
    ms: float
    """From the prompt's end to the answer's."""
    same: bool
    """Whether its text is that of plain decoding."""

    def __post_init__(self) -> None:
        if not (self.tokens > 0 and self.steps > 0 and 0 < self.ms < math.inf):
            raise ValueError("an answer has a token and takes its time")


@dataclass(frozen=True, slots=True)
class TimedPrompt:
    """One prompt, answered once by every arm."""

    day: str
    """When: 2026-05-12."""
    arms: dict[str, TimedArm]
    """By the table's names, plain decoding as PLAIN."""

    @classmethod
    def read(cls, document: Any) -> "TimedPrompt":
        """As it was written down. Raises ValueError, KeyError, TypeError or AttributeError for anything else."""
        arms = {
            str(name): TimedArm(int(arm["tokens"]), int(arm["steps"]), float(arm["ms"]), bool(arm["same"]))
            for name, arm in document["arms"].items()
        }
        if not {PLAIN, LOOKUP, AUTO} <= set(arms):
            raise KeyError("an arm is missing")
        return cls(str(document["day"]), arms)


def arms_to_time(with_draft: bool) -> list[Arm]:
    """The arms of the table, and plain decoding to compare them with."""
    return [arm for arm in parse_arms(",".join(_NAMES)) if with_draft or not arm.needs_draft]


def timed(round_: Round) -> TimedPrompt:
    """What is kept of a round."""
    plain = round_.answers[PLAIN].tokens
    return TimedPrompt(
        time.strftime("%Y-%m-%d"),
        {
            _NAMES[name]: TimedArm(len(answer.tokens), answer.steps, answer.ms, answer.tokens == plain)
            for name, answer in round_.answers.items()
        },
    )


@dataclass(frozen=True, slots=True)
class TimedTask:
    """One arm over the answers of a task."""

    tokens: int
    steps: int
    ms: float

    @classmethod
    def of(cls, prompts: Sequence[TimedPrompt], arm: str) -> "TimedTask":
        """Of at least one prompt."""
        found = [prompt.arms[arm] for prompt in prompts]
        return cls(sum(one.tokens for one in found), sum(one.steps for one in found), sum(one.ms for one in found))

    @property
    def ms_per_token(self) -> float:
        """Of all answers together, as the modelled times are."""
        return self.ms / self.tokens


Timings = dict[str, TimedTask]
"""By arm; empty where nothing, or not everything, was timed."""


def by_arm(prompts: Sequence[TimedPrompt | None]) -> Timings:
    """Every arm over the prompts of a task."""
    known = [prompt for prompt in prompts if prompt is not None]
    if not known or len(known) < len(prompts):
        return {}
    return {arm: TimedTask.of(known, arm) for arm in known[0].arms if all(arm in prompt.arms for prompt in known)}


def speedup(timings: Timings, arm: str) -> float | None:
    """Over plain decoding of the same prompts; None where the arm was not timed."""
    return timings[PLAIN].ms_per_token / timings[arm].ms_per_token if arm in timings else None


def differing(prompts: Sequence[TimedPrompt | None]) -> Iterator[tuple[str, int]]:
    """By arm, how many answers had another text than plain decoding's; only arms that had any."""
    known = [prompt for prompt in prompts if prompt is not None]
    for arm in known[0].arms if known else ():
        if count := sum(arm in prompt.arms and not prompt.arms[arm].same for prompt in known):
            yield arm, count
