"""What drafting can gain, by formula. Costs are in plain steps of the target: one pass over one token costs 1.

Leviathan, Kalman, Matias: Fast Inference from Transformers via Speculative Decoding (2023), called L below.
alpha is the probability that one drafted token is accepted, the same at every position and independent of the others;
k is the draft length; c is what one step of the draft model costs; t(m) is what a target pass of width m costs.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

LONGEST = 32
"""The longest draft that is considered, as in the engine."""
LENGTHS_DRAWN = tuple(range(1, 17))
"""Draft lengths that a chart shows."""

TargetCost = Callable[[int], float]
"""t: the cost of a target pass by its width."""


def flat(_width: int) -> float:
    """Flat verification: a pass over several tokens costs as much as a pass over one."""
    return 1.0


def tokens_per_step(alpha: float, length: int) -> float:
    """(1 - alpha^(k+1)) / (1 - alpha): a run of accepted tokens, cut at k, and the one token that the target always adds
    (L equation 1)."""
    if alpha == 1.0:
        return length + 1.0
    return (1.0 - alpha ** (length + 1)) / (1.0 - alpha)


def speedup(alpha: float, length: int, draft_cost: float, target_cost: TargetCost = flat) -> float:
    """E(alpha, k) / (k c + t(1 + k)), times plain decoding, for which t(1) is 1. Flat: E / (1 + k c) (L theorem 3.8)."""
    return tokens_per_step(alpha, length) / (length * draft_cost + target_cost(1 + length) / target_cost(1))


@dataclass(frozen=True, slots=True)
class Best:
    """The draft length that is fastest."""

    length: int
    """0 where nothing is gained by drafting."""
    speedup: float


def best_length(alpha: float, draft_cost: float, target_cost: TargetCost = flat, longest: int = LONGEST) -> Best:
    """The k up to `longest` with the largest `speedup`, the shortest of equal ones; 0 where plain decoding is as fast."""
    best = Best(0, 1.0)
    for length in range(1, longest + 1):
        gained = speedup(alpha, length, draft_cost, target_cost)
        if gained > best.speedup:
            best = Best(length, gained)
    return best


def break_even(draft_cost: float, target_cost: TargetCost = flat) -> float:
    """t(2) - 1 + c: one drafted token pays only where it is accepted with a larger probability. From
    speedup(alpha, 1) = (1 + alpha) / (c + t(2)) > 1."""
    return target_cost(2) / target_cost(1) - 1.0 + draft_cost


def costliest_draft(alpha: float, wanted: float, longest: int = LONGEST) -> float | None:
    """The largest c with which some k reaches the speedup `wanted` on flat verification; None where not even a free draft
    does. E / (1 + k c) = wanted, solved for c: (E / wanted - 1) / k."""
    most = max((tokens_per_step(alpha, length) / wanted - 1.0) / length for length in range(1, longest + 1))
    return most if most >= 0.0 else None


@dataclass(frozen=True, slots=True)
class Device:
    """A processor, and a model on it."""

    parameters: float
    bytes_per_parameter: float
    bytes_per_second: float
    """How fast it reads its memory."""
    operations_per_second: float
    """How fast it multiplies and adds, both counted."""

    @property
    def pass_seconds(self) -> float:
        """Reading every weight once: the least that a pass takes, of whatever width."""
        return self.parameters * self.bytes_per_parameter / self.bytes_per_second

    @property
    def token_seconds(self) -> float:
        """Arithmetic of one token: a multiplication and an addition for each weight."""
        return 2.0 * self.parameters / self.operations_per_second

    @property
    def widest_flat(self) -> float:
        """Tokens in a pass from which its arithmetic takes longer than reading the weights."""
        return self.pass_seconds / self.token_seconds


SERVER_GPU = Device(8e9, 2.0, 3.35e12, 989e12)
"""A model of 8 billion parameters at 16 bits on an H100 SXM (data sheet: 3.35 TB/s; 989 TFLOP/s dense at 16 bits)."""


def chi_square(observed: Sequence[float], expected: Sequence[float]) -> float:
    """Pearson's statistic: the sum of (observed - expected)^2 / expected, over cells with something to expect.

    Something observed where nothing can be is infinitely far off.
    """
    pairs = list(zip(observed, expected, strict=True))
    if any(seen and not due for seen, due in pairs):
        return math.inf
    return sum((seen - due) ** 2 / due for seen, due in pairs if due)


def chi_square_tail(statistic: float, freedom: int) -> float:
    """The probability that chance alone gives at least this statistic, with `freedom` degrees of freedom (at least 1).

    Q(x; 1) = erfc(sqrt(x/2)), Q(x; 2) = exp(-x/2), Q(x; n+2) = Q(x; n) + (x/2)^(n/2) exp(-x/2) / Gamma(n/2 + 1)
    (Abramowitz and Stegun, 26.4.4, 26.4.5 and 26.4.8).
    """
    half = statistic / 2.0
    if math.isinf(half):
        return 0.0
    tail = math.erfc(math.sqrt(half)) if freedom % 2 else math.exp(-half)
    for below in range(2 - freedom % 2, freedom, 2):
        tail += half ** (below / 2) * math.exp(-half) / math.gamma(below / 2 + 1)
    return tail
