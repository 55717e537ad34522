"""Settings with which a pass over several tokens gives the very bits that passes over one give: tried, never assumed."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from localspec.engine.errors import Interrupted, ModelError
from localspec.engine.evaluator import Evaluator
from localspec.engine.llama import Context, ContextSettings, Model

WIDTHS = (2, 3, 4, 5, 8, 9, 16, 17, 33)
"""Kernels change at 2, 4, 8 and 16 rows; 33 is the longest draft and one more."""
PLACES = (32, 300, 700)
"""Tokens of context before the passes: some CPU kernels change at 256 and 512."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One way to open a model."""

    name: str
    """As it is shown."""
    kv_type: str
    threads: int | None
    option: str | None
    """What to give to localspec; None where it has no option for it."""
    repack: bool = True


@dataclass(frozen=True, slots=True)
class Check:
    """What was found out about a setting."""

    setting: Setting
    equal: bool
    rows: int
    """How many rows were compared."""
    longest: int
    """Tokens of context that were reached."""
    first_difference: tuple[int, int] | None
    """Tokens of context and width of the first pass that differs."""
    plain_ms: float
    """Milliseconds of a pass over one token, the shortest seen."""
    wide_ms: float
    """The same over five."""
    problem: str = ""
    """Why it could not be tried: a sentence."""


def settings_to_try(kv_type: str, threads: int | None) -> list[Setting]:
    """The setting as it is, and those known to help, the cheapest first."""
    found = [Setting(f"{kv_type} cache, as now", kv_type, threads, "")]
    if kv_type != "q8_0":
        found.append(Setting("q8_0 cache", "q8_0", threads, "--kv-type q8_0"))
    if threads != 1:
        found.append(Setting(f"{kv_type} cache, one thread", kv_type, 1, "--threads 1"))
    found.append(Setting("q8_0 cache, weights not reordered", "q8_0", threads, None, repack=False))
    return found


def check_all(
    model: Model,
    settings: Sequence[Setting],
    text: Sequence[int],
    gpu_layers: int,
    progress: Callable[[Setting], object] | None = None,
    stopping: Callable[[], bool] = lambda: False,
) -> Iterator[Check]:
    """Try settings one after the other on a loaded model, up to the first that is equal; weights that are not reordered are
    loaded once more. `progress` is
    told what comes next. Raises Interrupted before the next pass when `stopping`."""
    for setting in settings:
        if progress:
            progress(setting)
        try:
            if setting.repack:
                check = _check(model, setting, text, stopping)
            else:
                with Model(model.path, header=model.header, gpu_layers=gpu_layers, repack=False) as other:
                    check = _check(other, setting, text, stopping)
        except ModelError as error:
            check = Check(setting, False, 0, 0, None, 0.0, 0.0, str(error))
        yield check
        if check.equal:
            return


def _check(model: Model, setting: Setting, text: Sequence[int], stopping: Callable[[], bool]) -> Check:
    length = len(text) + max(WIDTHS)
    with Context(model, ContextSettings(length, threads=setting.threads, kv_type=setting.kv_type)) as context:
        return compare(context, text, setting, stopping)


def compare(
    target: Evaluator, text: Sequence[int], setting: Setting, stopping: Callable[[], bool] = lambda: False
) -> Check:
    """Read pieces of `text` one token at a time and in passes of every width, and compare all bits of all rows.
    Raises Interrupted."""
    rows, longest, first = 0, 0, None
    best = {1: float("inf"), 5: float("inf")}

    def read(tokens: Sequence[int]) -> list[bytes]:
        if stopping():
            raise Interrupted
        started = time.perf_counter()
        target.decode(tokens, rows=len(tokens))
        got = [target.row(index).tobytes() for index in range(len(tokens))]
        if len(tokens) in best:
            best[len(tokens)] = min(best[len(tokens)], 1000 * (time.perf_counter() - started))
        return got

    widest = max(WIDTHS)
    for place in [place for place in PLACES if place + widest <= len(text)] or [0]:
        _reach(target, text, place)
        narrow = [bits for token in text[place : place + widest] for bits in read([token])]
        longest = max(longest, place + len(narrow))
        for width in [width for width in WIDTHS if width <= len(narrow)]:
            _reach(target, text, place)
            wide = read(text[place : place + width])
            rows += width
            if first is None and wide != narrow[:width]:
                first = (place, width)
    return Check(setting, first is None and rows > 0, rows, longest, first, best[1], _finite(best[5]))


def _reach(target: Evaluator, text: Sequence[int], place: int) -> None:
    """Hold exactly the first `place` tokens of the text. What is held already stays, so that passes of all widths begin with
    the same bits."""
    target.truncate(place)
    while len(target.tokens) < place:
        done = len(target.tokens)
        target.decode(text[done : min(place, done + target.batch_size)])


def _finite(value: float) -> float:
    return value if np.isfinite(value) else 0.0
