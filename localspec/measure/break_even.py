"""From a cost curve: how often a guess must be right before guessing pays.

Each drafted token is taken to be accepted with the same probability, whatever came before, as in `theory.tokens_per_step`.
"""

from dataclasses import dataclass

from localspec.measure.theory import TargetCost, best_length, tokens_per_step

ACCEPTANCES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
COPIES = (1, 2, 4, 8, 16, 32)
"""Lengths of copies that are told apart."""
_HALVINGS = 40


@dataclass(frozen=True, slots=True)
class BestLength:
    """The longest draft that is worth most at one acceptance."""

    acceptance: float
    length: int
    """0: plain decoding is best."""
    speedup: float


def least_acceptance(passes: float, length: int) -> float | None:
    """The acceptance from which a step that takes as long as so many plain ones gives as many tokens; None where even drafts
    that are always right do not."""
    if passes <= 1.0:
        return 0.0
    if passes >= length + 1:
        return None
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if tokens_per_step(middle, length) < passes else (low, middle)
    return high


def least_for_copies(target: TargetCost) -> dict[int, float | None]:
    """By the length of a copy, which costs nothing to make: the acceptance from which it pays."""
    return {length: least_acceptance(target(1 + length) / target(1), length) for length in COPIES}


def least_for_drafts(target: TargetCost, draft_ms: float, longest: int) -> tuple[float, int] | None:
    """The acceptance from which the draft model pays, and the length that needs no more; None where it never does."""
    found = []
    for length in range(1, longest + 1):
        least = least_acceptance((length * draft_ms + target(1 + length)) / target(1), length)
        if least is not None:
            found.append((least, length))
    return min(found, default=None)


def best_lengths(target: TargetCost, draft_ms: float, longest: int) -> list[BestLength]:
    """The best longest draft of the draft model for each of a few acceptances."""
    found = [(alpha, best_length(alpha, draft_ms / target(1), target, longest)) for alpha in ACCEPTANCES]
    return [BestLength(alpha, best.length, best.speedup) for alpha, best in found]
