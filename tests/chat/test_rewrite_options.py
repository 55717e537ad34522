"""How a text is rewritten where nobody has said how."""

from __future__ import annotations

from localspec.chat.answer_options import AnswerOptions
from localspec.chat.rewrite_options import rewrite_options, rewrite_settings
from localspec.settings import Settings


def test_nothing_is_left_to_chance_unless_the_person_wants_that() -> None:
    """What the chat or the start says counts, and what a model's file recommends for conversations does not."""
    usual = rewrite_options(Settings(), None)
    assert (usual.temp, usual.repeat_penalty, usual.frequency_penalty, usual.presence_penalty) == (0.0, 1.0, 0.0, 0.0)
    assert usual.rewrites
    seeded = rewrite_options(Settings(temp=0.5), AnswerOptions(seed=3))
    assert (seeded.temp, seeded.seed) == (0.5, 3)
    own = rewrite_options(Settings(temp=0.5), AnswerOptions(temp=0.9, repeat_penalty=1.2))
    assert (own.temp, own.repeat_penalty) == (0.9, 1.2)


def test_the_command_line_has_the_same_defaults() -> None:
    """With what it was started with."""
    usual = rewrite_settings(Settings(model="m", presence_penalty=0.3))
    assert (usual.model, usual.temp, usual.repeat_penalty, usual.presence_penalty) == ("m", 0.0, 1.0, 0.3)
