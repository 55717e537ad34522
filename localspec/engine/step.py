"""What a step leaves behind, and the sums over an answer."""

import statistics
from dataclasses import dataclass, field
from enum import Enum

from localspec.engine.rates import ratio

NO_DRAFTER = "none"


class Finish(Enum):
    """Why an answer ended."""

    STOP = "stop"
    """The model ended it, or a stop string did."""
    LENGTH = "length"
    """As many tokens as were asked for."""
    CONTEXT = "context"
    """The context is full."""
    INTERRUPTED = "interrupted"
    """A person stopped it."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Why a step was what it was. Rates in tokens per second, as promised by the costs and the survival estimates."""

    drafter: str
    length: int
    plain_rate: float
    promised_rate: float
    off_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One target pass and what came of it. Times in milliseconds."""

    tokens: tuple[int, ...]
    """Emitted tokens: the accepted part of the draft, then the correction or bonus token."""
    text: str
    """Text that became certain; may lag behind the tokens by part of a character or of a stop string."""
    drafter: str
    """Who drafted: a drafter's name, or "none"."""
    drafted: int
    accepted: int
    width: int
    """Positions in the target pass."""
    draft_ms: float
    """Inside the draft model's evaluations."""
    verify_ms: float
    """Inside the target's evaluation."""
    sample_ms: float
    """Distributions, acceptance, text."""
    policy_ms: float
    """Choosing, looking up, and everything else around the evaluations."""
    finish: Finish | None = None
    """Set on the last step of an answer."""
    logprobs: tuple[float, ...] = ()
    """The target's own log-probability of each emitted token, where asked for."""
    pieces: tuple[str, ...] = ()
    """What each emitted token added to the text; together they are the text."""
    sources: tuple[str, ...] = ()
    """Who proposed each drafted token, where it was not one drafter alone."""
    decision: Decision | None = None
    """Why the step was what it was, where that was a choice."""

    @property
    def host_ms(self) -> float:
        """Everything but the two models' evaluations."""
        return self.sample_ms + self.policy_ms


def closing_step(finish: Finish, text: str = "") -> Step:
    """The last step of an answer that ends without a pass: the reason, and the text that was held back."""
    return Step((), text, NO_DRAFTER, 0, 0, 0, 0.0, 0.0, 0.0, 0.0, finish)


@dataclass(slots=True)
class DrafterTotals:
    """Steps of one drafter ("none" for undrafted steps)."""

    steps: int = 0
    drafted: int = 0
    accepted: int = 0


@dataclass(slots=True)
class Totals:
    """Sums over the steps of an answer. Times in seconds."""

    tokens: int = 0
    steps: int = 0
    drafted: int = 0
    accepted: int = 0
    by_drafter: dict[str, DrafterTotals] = field(default_factory=dict)
    draft_seconds: float = 0.0
    verify_seconds: float = 0.0
    sample_seconds: float = 0.0
    policy_seconds: float = 0.0
    finish: Finish | None = None
    off_reason: str | None = None
    """Why the last undrafted step was one, where that was a choice."""
    host_ms: list[float] = field(default_factory=list)

    def add(self, step: Step) -> None:
        """Count one more step. The one that only reports an interruption has no pass and is no step."""
        self.finish = step.finish or self.finish
        if step.width == 0:
            return
        self.tokens += len(step.tokens)
        self.steps += 1
        self.drafted += step.drafted
        self.accepted += step.accepted
        self._by_drafter(step.drafter).steps += 1
        for index, source in enumerate(step.sources or (step.drafter,) * step.drafted):
            drafter = self._by_drafter(source)
            drafter.drafted += 1
            drafter.accepted += index < step.accepted
        if step.decision and step.decision.off_reason:
            self.off_reason = step.decision.off_reason
        self.draft_seconds += step.draft_ms / 1000
        self.verify_seconds += step.verify_ms / 1000
        self.sample_seconds += step.sample_ms / 1000
        self.policy_seconds += step.policy_ms / 1000
        self.host_ms.append(step.host_ms)

    def _by_drafter(self, name: str) -> DrafterTotals:
        return self.by_drafter.setdefault(name, DrafterTotals())

    @property
    def decode_seconds(self) -> float:
        """All the time of all the steps."""
        return self.draft_seconds + self.verify_seconds + self.sample_seconds + self.policy_seconds

    @property
    def tokens_per_step(self) -> float | None:
        """Tokens emitted / all target passes, undrafted ones included; None before the first."""
        return ratio(self.tokens, self.steps)

    @property
    def acceptance_rate(self) -> float | None:
        """Accepted / drafted; None while nothing has been drafted."""
        return ratio(self.accepted, self.drafted)

    @property
    def ms_per_token(self) -> float | None:
        """Milliseconds of a token, everything included; None before the first."""
        return ratio(1000 * self.decode_seconds, self.tokens)

    @property
    def host_ms_per_step(self) -> float | None:
        """The median of what a step costs besides the two models' evaluations; None before the first."""
        return statistics.median(self.host_ms) if self.host_ms else None
