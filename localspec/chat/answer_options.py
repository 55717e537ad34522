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
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
}
_OTHERS = ("seed", "drafter", "max_tokens", "rewrites")


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """By the names of settings; None is as the program was started."""

    temp: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repeat_penalty: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    seed: int | None = None
    drafter: str | None = None
    max_tokens: int | None = None
    rewrites: bool | None = None
    """Whether the answer is an edited copy of the last document."""

    def applied_to(self, options: Options) -> Options:
        """`options` with what is asked for here. Raises UserError for nonsense."""
        sampling = {ours: value for name, ours in _SAMPLING.items() if (value := getattr(self, name)) is not None}
        others = {name: value for name in _OTHERS if (value := getattr(self, name)) is not None}
        return replace(options, sampling=replace(options.sampling, **sampling), **others)


def sampling_of(options: Options) -> dict[str, float]:
    """How `options` sample, by the names of settings."""
    return {name: getattr(options.sampling, ours) for name, ours in _SAMPLING.items()}
