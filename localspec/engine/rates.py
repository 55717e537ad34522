"""Rates, shares and times that can be shown: never a division by nothing, never NaN or infinity.

Every figure that is one number by another comes from `ratio`, and every document of figures goes through `finite`.
"""

from __future__ import annotations

import math
from typing import Any


def ratio(part: float, whole: float) -> float | None:
    """part / whole; None where that says nothing: nothing to divide by, or a result that is no number."""
    try:
        value = part / whole if whole > 0 else math.nan
    except OverflowError:
        return None
    return value if math.isfinite(value) else None


def share(part: float, whole: float, of_nothing: float = 1.0) -> float:
    """How much of `whole` is done, 0 to 1; `of_nothing` where there is nothing to do."""
    value = ratio(part, whole)
    return of_nothing if value is None else max(0.0, min(1.0, value))


def elapsed(now: float, before: float) -> float:
    """Seconds from `before` to `now`; 0 by a clock that stands still or goes back."""
    seconds = now - before
    return seconds if 0 < seconds < math.inf else 0.0


def finite(value: Any) -> Any:
    """`value` as JSON can hold it, which has no infinity: an answer is not to be lost because of a figure."""
    if isinstance(value, dict):
        return {name: finite(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
