"""The figures of an answer as JSON values."""

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from localspec.engine.engine import Engine, Options
from localspec.engine.rates import ratio
from localspec.engine.step import NO_DRAFTER, Finish, Step, Totals

_ENOUGH_PLAIN_STEPS = 8
"""Fewer undrafted steps than this say little about plain decoding."""
_DIGITS = 6
"""Behind the point: to a microsecond where the unit is a second."""


def step_report(step: Step) -> dict[str, Any]:
    """One line of `run --jsonl`. Times in milliseconds."""
    values = asdict(step)
    values["tokens"] = list(step.tokens)
    values["finish"] = _finish(step.finish)
    del values["logprobs"]
    return {name: round(value, _DIGITS) if isinstance(value, float) else value for name, value in values.items()}


@dataclass(slots=True)
class Prompts:
    """Sums over the prompts that were read."""

    tokens: int = 0
    reused: int = 0
    """Tokens that were in the cache already."""
    seconds: float = 0.0

    def add(self, engine: Engine) -> Self:
        """Count the engine's last prompt."""
        self.tokens += engine.prompt_tokens
        self.reused += engine.reused_tokens
        self.seconds += engine.prompt_seconds
        return self


def answer_report(engine: Engine, totals: Totals, steps: Sequence[Step], options: Options) -> dict[str, Any]:
    """The document of `run --json`. Times in seconds or milliseconds, as their names say; null where there is no figure."""
    text = "".join(step.text for step in steps)
    return {"text": text, **figures(engine, totals, Prompts().add(engine), plain_ms_per_token(steps), options)}


def figures(engine: Engine, totals: Totals, prompts: Prompts, plain: float | None, options: Options) -> dict[str, Any]:
    """All of that document but the text, of one answer or of several together. `plain`: see `plain_ms_per_token`."""
    draft = engine.settings.draft
    ms = totals.ms_per_token
    return {
        "finish_reason": _finish(totals.finish),
        "context_full": totals.finish is Finish.CONTEXT,
        "model": engine.settings.target.stem,
        "draft": draft.stem if draft else None,
        "prompt_tokens": prompts.tokens,
        "reused_tokens": prompts.reused,
        "tokens": totals.tokens,
        "steps": totals.steps,
        "tokens_per_step": _rounded(totals.tokens_per_step),
        "drafted": totals.drafted,
        "accepted": totals.accepted,
        "acceptance_rate": _rounded(totals.acceptance_rate),
        "by_drafter": {name: asdict(sums) for name, sums in totals.by_drafter.items()},
        "seconds": {
            "load": _rounded(engine.load_seconds),
            "prompt": _rounded(prompts.seconds),
            "decode": _rounded(totals.decode_seconds),
            "draft": _rounded(totals.draft_seconds),
            "verify": _rounded(totals.verify_seconds),
            "sample": _rounded(totals.sample_seconds),
            "policy": _rounded(totals.policy_seconds),
        },
        "host_ms_per_step": _rounded(totals.host_ms_per_step),
        "plain_ms_per_token": _rounded(plain),
        "ms_per_token": _rounded(ms),
        "speedup": _rounded(ratio(plain, ms)) if plain and ms else None,
        "seed": engine.seed,
        "verification": options.resolved_verification,
        "speculation_off_reason": _off_reason(totals, options),
    }


def plain_ms_per_token(steps: Sequence[Step]) -> float | None:
    """Milliseconds of a token by plain decoding, measured on this answer's own undrafted steps; None without enough.

    A step's pass and its sampling count. Choosing does not, and neither does a step in which the draft model was asked:
    plain decoding looks for no drafts.
    """
    return median_plain([ms for step in steps if (ms := plain_ms(step)) is not None])


def plain_ms(step: Step) -> float | None:
    """What a step would have taken by plain decoding, in milliseconds, where that can be told from it."""
    is_plain = step.drafter == NO_DRAFTER and step.width == 1 and step.draft_ms == 0
    return step.verify_ms + step.sample_ms if is_plain else None


def median_plain(measured: Sequence[float]) -> float | None:
    """The usual one of what `plain_ms` gives; None without enough."""
    return statistics.median(measured) if len(measured) >= _ENOUGH_PLAIN_STEPS else None


def _off_reason(totals: Totals, options: Options) -> str | None:
    if totals.drafted:
        return None
    if options.drafter == NO_DRAFTER:
        return "turned off with --drafter none"
    return totals.off_reason or ("nothing in the text so far was repeated" if totals.steps else "nothing was generated")


def _finish(finish: Finish | None) -> str | None:
    """A full context is the end of a length too."""
    return Finish.LENGTH.value if finish is Finish.CONTEXT else finish.value if finish else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)
