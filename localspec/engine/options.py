"""How an answer is asked for."""

from dataclasses import dataclass, field

from localspec.engine.errors import UserError
from localspec.engine.policy import CHOICES
from localspec.engine.sampling import Sampling

LONGEST_DRAFT = 32
DEFAULT_LENGTHS = {"auto": 32, "draft": 4, "lookup": 10, "none": 0}
"""Longest draft by drafter, where none is asked for."""
VERIFICATIONS = ("auto", "match", "rejection")


@dataclass(frozen=True, slots=True)
class Options:
    """How one answer is written."""

    sampling: Sampling = field(default_factory=Sampling)
    drafter: str = "auto"
    draft_max: int | None = None
    """Longest draft in tokens; None: the drafter's own."""
    verification: str = "auto"
    seed: int | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    logprobs: bool = False
    rewrites: bool = False
    """The answer is an edited copy of the last document in the prompt: the first guess is its beginning."""

    def __post_init__(self) -> None:
        if self.drafter not in CHOICES:
            raise UserError(f"'{self.drafter}' is not a drafter; choose one of {', '.join(CHOICES)}.")
        if self.verification not in VERIFICATIONS:
            raise UserError(f"'{self.verification}' is not a verification; choose one of {', '.join(VERIFICATIONS)}.")
        if self.draft_max is not None and not 1 <= self.draft_max <= LONGEST_DRAFT:
            raise UserError(
                f"A longest draft of {self.draft_max} makes no sense; give a number from 1 to {LONGEST_DRAFT}."
            )
        if self.max_tokens is not None and self.max_tokens < 1:
            raise UserError(f"An answer of {self.max_tokens} tokens makes no sense; ask for at least 1.")
        if self.seed is not None and not 0 <= self.seed < 2**32:
            raise UserError(f"Seed {self.seed} makes no sense; give a whole number from 0 to 4294967295.")

    @property
    def resolved_draft_max(self) -> int:
        """The longest draft."""
        return DEFAULT_LENGTHS[self.drafter] if self.draft_max is None else self.draft_max

    @property
    def resolved_verification(self) -> str:
        """`auto` is match when a seed is given or nothing is drawn at random, and rejection otherwise."""
        if self.verification != "auto":
            return self.verification
        return "match" if self.seed is not None or self.sampling.greedy else "rejection"
