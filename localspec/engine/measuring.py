"""Timing passes of a loaded model, and keeping the result per model, device and settings."""

import contextlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from localspec.engine.costs import MEASURED_WIDTHS, CostCurve
from localspec.engine.evaluator import Evaluator
from localspec.whole_file import put_entry, read_entries

DRAFT_WIDTHS = (1, 2, 8, 32)

_REPEATS = 3
_WARM_UP = 2
_LEAST_WIDTHS = 3
"""A curve of fewer widths was cut short by a busy machine, says nothing about drafts, and is not kept."""
_TOKEN = 1
"""Any token costs the same."""
_MEASURED = "measured"
"""Beside the widths of a curve: when it was measured."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A curve that was measured."""

    curve: CostCurve
    measured: float | None
    """When, in seconds since 1970; None where that was not kept."""


def measure(
    context: Evaluator,
    widths: Sequence[int] = MEASURED_WIDTHS,
    budget_seconds: float = 2.0,
    progress: Callable[[float], bool | None] | None = None,
) -> dict[int, float]:
    """Milliseconds of a pass by width, each the shortest of a few: what disturbs a timing only makes it longer.

    Takes about `budget_seconds`, and leaves out the last of `widths` when that is too short for them; width 1 is always
    there. Forgets what the context held. `progress` is told the share done; when it returns False, what there is must do.
    """
    context.truncate(0)
    best: dict[int, float] = {}
    deadline = time.perf_counter() + budget_seconds
    for _ in range(_WARM_UP):
        context.decode([_TOKEN], rows=1)
    # The first pass of a width also lays out its graph, so each is timed twice; a large model has time for no more than that.
    rounds = [width for width in widths for _ in range(2)] + list(widths) * (_REPEATS - 2)
    for index, width in enumerate(rounds):
        if time.perf_counter() > deadline and 1 in best:
            break
        before = context.busy_seconds
        context.decode([_TOKEN] * width, rows=min(width, _rows(context)))
        ms = 1000 * (context.busy_seconds - before)
        best[width] = min(ms, best.get(width, math.inf))
        context.truncate(0)
        if progress and progress((index + 1) / len(rounds)) is False:
            break
    context.truncate(0)
    return best


def _rows(context: Evaluator) -> int:
    settings = getattr(context, "settings", None)
    return int(settings.rows) if settings else 1


def load_curve(file: Path | None, key: str) -> CostCurve | None:
    """A curve measured before; None when there is none, or the file is unreadable (it can be measured again)."""
    kept = load_kept(file, key)
    return kept.curve if kept else None


def load_kept(file: Path | None, key: str) -> Kept | None:
    """The same, and when it was measured."""
    timings = read_entries(file).get(key) if file else None
    if not isinstance(timings, dict):
        return None
    try:
        ms_by_width = {int(width): float(ms) for width, ms in timings.items() if width != _MEASURED}
        measured = float(timings.get(_MEASURED, 0.0))
    except (TypeError, ValueError, OverflowError):
        return None
    sound = len(ms_by_width) >= _LEAST_WIDTHS and 1 in ms_by_width
    sound = sound and all(width > 0 and 0 < ms < math.inf for width, ms in ms_by_width.items())
    return Kept(CostCurve.measured(ms_by_width), measured if 0 < measured < math.inf else None) if sound else None


def save_curve(file: Path | None, key: str, ms_by_width: Mapping[int, float]) -> Kept:
    """Keep a curve that was measured just now, if it has widths enough, and give it with that moment. A file that cannot be
    written is only measured again next time."""
    now = int(time.time())
    if file and len(ms_by_width) >= _LEAST_WIDTHS:
        timings = {str(width): round(ms, 4) for width, ms in sorted(ms_by_width.items())}
        with contextlib.suppress(OSError):
            put_entry(file, key, {**timings, _MEASURED: now}, sync=False)
    return Kept(CostCurve.measured(ms_by_width), now)
