"""What there is to draw, whoever draws it: `plots` into a file, `text_plot` on a terminal."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from localspec.measure.theory import LENGTHS_DRAWN, speedup, tokens_per_step


@dataclass(frozen=True, slots=True)
class Line:
    """One row of points."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    """As many as in `x`."""


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines over the same axes."""

    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    level: tuple[str, float] | None = None
    """A horizontal line to compare with, and what it is."""
    in_sight: tuple[float, ...] = ()
    """What the axis at the left shows, wherever the points are."""


def tokens_per_step_chart(alphas: Sequence[float], lengths: Sequence[int] = LENGTHS_DRAWN) -> Chart:
    """Tokens per step against draft length, a line for each acceptance."""
    return Chart(
        "Tokens per step, by acceptance of one drafted token",
        "draft length k",
        "tokens per step",
        tuple(_line(f"acceptance {alpha:g}", lengths, partial(tokens_per_step, alpha)) for alpha in alphas),
    )


def speedup_chart(
    curve: str,
    target_cost: Callable[[int], float],
    draft_cost: float,
    alphas: Sequence[float],
    lengths: Sequence[int] = LENGTHS_DRAWN,
) -> Chart:
    """Speedup against draft length, a line for each acceptance.

    `curve`: what the passes are of, in words. `target_cost`: a target pass by its width, in plain steps; `draft_cost`: one
    draft step in the same unit.
    """

    def gain(alpha: float) -> Callable[[int], float]:
        return lambda length: speedup(alpha, length, draft_cost, target_cost)

    return Chart(
        f"Speedup with {curve}, a draft step costing {draft_cost:g}",
        "draft length k",
        "times plain decoding",
        tuple(_line(f"acceptance {alpha:g}", lengths, gain(alpha)) for alpha in alphas),
        ("plain decoding", 1.0),
    )


def acceptance_by_position_chart(rates: Mapping[str, Sequence[float]]) -> Chart:
    """Share of drafted tokens that were accepted against their position in the draft, from 1 on: a line for each label."""
    return Chart(
        "Acceptance by position in the draft",
        "position in the draft",
        "share accepted",
        tuple(
            Line(label, tuple(float(place) for place in range(1, len(shares) + 1)), tuple(map(float, shares)))
            for label, shares in rates.items()
        ),
        in_sight=(0.0, 1.0),
    )


def _line(label: str, lengths: Sequence[int], value: Callable[[int], float]) -> Line:
    return Line(label, tuple(map(float, lengths)), tuple(value(length) for length in lengths))
