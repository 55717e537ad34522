"""All of `measure theory` together: what was checked by drawing, and what follows by formula."""

from dataclasses import dataclass

from localspec.measure.charts import Chart, speedup_chart, tokens_per_step_chart
from localspec.measure.theory import (
    Best,
    TargetCost,
    best_length,
    break_even,
    costliest_draft,
    flat,
    speedup,
    tokens_per_step,
)
from localspec.measure.theory_simulation import Mean, RuleCheck, check_rule, simulate_steps

ALPHAS = (0.6, 0.7, 0.8, 0.9)
LENGTHS = (1, 2, 4, 8, 16)
SPEEDUP_ALPHA = 0.8
DRAFT_COSTS = (0.0, 0.05, 0.1, 0.3)
BEST_ALPHAS = (0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 0.95)
IDEAL_ALPHA, IDEAL_COSTS = 0.75, (0.32, 0.10, 0.05, 0.03)
"""0.32 is what a draft of 0.5 billion parameters costs a target of 1.5 billion, by the bytes of the two."""
WANTED = (2.0, 3.0)

MEASURED_AGREEMENT = {"rewrite a paragraph": 0.787, "open question": 0.718}
"""Share of greedy tokens on which Qwen2.5-0.5B agreed with Qwen2.5-1.5B-Instruct, as published with the derivation."""
MEASURED_LENGTHS = (4, 8)

USUAL_DRAFT_COST = 0.1
_SHARE_OF_STEPS = 5
"""One step is simulated for this many tokens that the rule check draws."""


@dataclass(frozen=True, slots=True)
class Curve:
    """What the target's passes cost."""

    name: str
    source: str
    cost: TargetCost
    """In plain steps, by width."""


FLAT = Curve("flat verification", "every pass costs as much as a plain step, however wide", flat)


@dataclass(frozen=True, slots=True)
class Study:
    """Everything that `measure theory` has to say."""

    seed: int
    rule: RuleCheck
    steps: int
    """Simulated for each acceptance."""
    simulated: dict[float, dict[int, Mean]]
    """Tokens per step by acceptance and draft length."""
    curve: Curve | None
    """The device's, beside flat verification."""
    draft_cost: float
    """Of the pair on the device, or of the charts."""

    @property
    def curves(self) -> tuple[Curve, ...]:
        """Flat verification, and the device's curve where there is one."""
        return (FLAT, self.curve) if self.curve else (FLAT,)

    @property
    def draft_costs(self) -> tuple[float, ...]:
        """The columns of the tables."""
        return tuple(sorted({*DRAFT_COSTS, self.draft_cost}))

    def tokens_per_step(self) -> dict[float, dict[int, float]]:
        """By acceptance and draft length."""
        return {alpha: {length: tokens_per_step(alpha, length) for length in LENGTHS} for alpha in ALPHAS}

    def speedups(self, curve: Curve) -> dict[int, dict[float, float]]:
        """By draft length and draft cost, at SPEEDUP_ALPHA."""
        return {
            length: {cost: speedup(SPEEDUP_ALPHA, length, cost, curve.cost) for cost in self.draft_costs}
            for length in LENGTHS
        }

    def best(self, curve: Curve) -> dict[float, dict[float, Best]]:
        """By acceptance and draft cost."""
        return {
            alpha: {cost: best_length(alpha, cost, curve.cost) for cost in self.draft_costs} for alpha in BEST_ALPHAS
        }

    def break_evens(self, curve: Curve) -> dict[float, float]:
        """By draft cost."""
        return {cost: break_even(cost, curve.cost) for cost in self.draft_costs}

    def ideal(self) -> dict[float, Best]:
        """By draft cost, at IDEAL_ALPHA and flat verification."""
        return {cost: best_length(IDEAL_ALPHA, cost) for cost in IDEAL_COSTS}

    def measured(self) -> dict[str, dict[int, float]]:
        """Tokens per step by task and draft length: the formula at the agreement that was measured."""
        return {
            task: {length: tokens_per_step(alpha, length) for length in MEASURED_LENGTHS}
            for task, alpha in MEASURED_AGREEMENT.items()
        }

    def costliest(self) -> dict[float, dict[float, float | None]]:
        """By acceptance and wanted speedup, flat verification."""
        return {alpha: {wanted: costliest_draft(alpha, wanted) for wanted in WANTED} for alpha in BEST_ALPHAS}

    def charts(self) -> tuple[Chart, ...]:
        """Tokens per step, and speedup on the device's curve or else on flat verification."""
        curve = self.curve or FLAT
        name = curve.name if curve is FLAT else f"the passes of {curve.name}"
        return (
            tokens_per_step_chart(ALPHAS),
            speedup_chart(name, curve.cost, self.draft_cost, ALPHAS),
        )


def study(samples: int, seed: int, curve: Curve | None, draft_cost: float) -> Study:
    """Draw and simulate; the same seed gives the same figures."""
    steps = samples // _SHARE_OF_STEPS
    simulated = {alpha: simulate_steps(alpha, LENGTHS, steps, seed) for alpha in ALPHAS}
    return Study(seed, check_rule(samples, seed), steps, simulated, curve, draft_cost)
