"""What one answer asks for that the others do not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from localspec.engine.engine import Options

_SAMPLING = {
    "temp": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
    "repeat_penalty": "repeat_penalty",
}
_OTHERS = ("seed", "drafter", "max_tokens")


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """By the names of settings; None is as the program was started."""

    temp: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repeat_penalty: float | None = None
    seed: int | None = None
    drafter: str | None = None
    max_tokens: int | None = None

    def applied_to(self, options: Options) -> Options:
        """`options` with what is asked for here. Raises UserError for nonsense."""
        sampling = {ours: value for name, ours in _SAMPLING.items() if (value := getattr(self, name)) is not None}
        others = {name: value for name in _OTHERS if (value := getattr(self, name)) is not None}
        return replace(options, sampling=replace(options.sampling, **sampling), **others)
