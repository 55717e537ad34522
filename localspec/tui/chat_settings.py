"""What a chat sets for itself, between the settings screen, the store and the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from localspec.chat.answer_options import AnswerOptions
from localspec.chat.store import JSON
from localspec.engine.errors import UserError
from localspec.settings import Settings, check_value

_NAMES = tuple(field.name for field in fields(AnswerOptions))


def answer_options(settings: Mapping[str, JSON]) -> AnswerOptions | None:
    """The settings of a chat as the engine takes them; None when it has none. What makes no sense is left out."""
    values: dict[str, Any] = {}
    for name in _NAMES:
        if settings.get(name) is not None:
            try:
                values[name] = check_value(name, settings[name])
            except UserError:
                continue
    return AnswerOptions(**values) if values else None


def changed(
    system: str | None, settings: Mapping[str, JSON], changes: Mapping[str, JSON]
) -> tuple[str | None, dict[str, JSON]]:
    """System prompt and settings of a chat after the changes that the settings screen gives back."""
    merged: dict[str, JSON] = {**settings, "system": system, **changes}
    merged = {name: value for name, value in merged.items() if value is not None}
    prompt = merged.pop("system", None)
    return prompt if isinstance(prompt, str) else None, merged


def temperature_and_seed(
    start: Settings, settings: Mapping[str, JSON], loaded: Mapping[str, float]
) -> tuple[float | None, int | None]:
    """For the status line. `loaded`: how the loaded engine samples, empty without one; the temperature may be None then."""
    own = answer_options(settings) or AnswerOptions()
    temperatures = (own.temp, start.temp, loaded.get("temp"))
    temperature = next((value for value in temperatures if value is not None), None)
    return temperature, own.seed if own.seed is not None else start.seed
