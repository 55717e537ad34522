"""How a text is rewritten unless a person says otherwise: nothing is left to chance, and nothing keeps the model from
copying. What a model's file recommends is meant for conversations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from localspec.chat.answer_options import AnswerOptions
from localspec.settings import Settings

_USUAL: dict[str, Any] = {"temp": 0.0, "repeat_penalty": 1.0, "frequency_penalty": 0.0, "presence_penalty": 0.0}


def rewrite_settings(settings: Settings) -> Settings:
    """What the program was started with, and what a rewriting wants where nothing was said."""
    given = {name: value for name in _USUAL if (value := getattr(settings, name)) is not None}
    return replace(settings, **{**_USUAL, **given})


def rewrite_options(start: Settings, own: AnswerOptions | None) -> AnswerOptions:
    """The same for one answer. `own`: what a chat sets for itself."""
    own, usual = own or AnswerOptions(), rewrite_settings(start)
    missing = {name: getattr(usual, name) for name in _USUAL if getattr(own, name) is None}
    return replace(own, **missing, rewrites=True)
