"""The figures of an answer, from its steps."""

from __future__ import annotations

from dataclasses import replace

from localspec.engine.step import NO_DRAFTER, Step
from localspec.report import plain_ms_per_token

PLAIN = Step((1,), "a", NO_DRAFTER, 0, 0, 1, draft_ms=0.0, verify_ms=10.0, sample_ms=2.0, policy_ms=5.0)


def test_a_plain_token_takes_a_pass_and_its_sampling() -> None:
    """Choosing is not part of it: plain decoding has nothing to choose."""
    assert plain_ms_per_token([PLAIN] * 8) == 12.0


def test_only_steps_without_any_drafting_are_plain() -> None:
    looked = replace(PLAIN, draft_ms=3.0, verify_ms=11.0)
    drafted = replace(PLAIN, drafter="lookup", drafted=2, accepted=1, width=3, verify_ms=14.0)
    replayed = replace(PLAIN, width=2, verify_ms=13.0)
    assert plain_ms_per_token([PLAIN] * 8 + [looked] * 9 + [drafted] * 9 + [replayed] * 9) == 12.0
    assert plain_ms_per_token([PLAIN] * 7 + [looked] * 9) is None


def test_few_steps_say_little() -> None:
    assert plain_ms_per_token([PLAIN] * 7) is None
