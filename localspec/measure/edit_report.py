"""A comparison of edits as a person reads it, as Markdown, and as JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from localspec import __version__
from localspec.engine.drafters.lookup import LONGEST_DRAFT
from localspec.measure.edit_arms import PLAIN
from localspec.measure.edit_replay import EditAnswer, Replayed
from localspec.measure.edit_verdict import Claim, EditVerdict, Pace
from localspec.measure.edits import Half
from localspec.measure.profiles import PROFILES

_DIGITS = 6
_CLASS_COLUMN, _COLUMNS_OF_TERMINAL = 20, 80


@dataclass(frozen=True, slots=True)
class EditSummary:
    """A whole comparison, or as much as there was time for."""

    model: str
    """Whose vocabulary and template it was."""
    half: Half
    arms: tuple[str, ...]
    edits: tuple[EditAnswer, ...]
    verdicts: tuple[EditVerdict, ...]
    """Of each device that was finished."""
    complete: bool


def text(summary: EditSummary) -> str:
    """For a terminal, inside 80 columns with the usual arms."""
    lines = [part for line in _about(summary) for part in wrap(line, _COLUMNS_OF_TERMINAL, subsequent_indent=" " * 10)]
    arms = _shown(summary)
    widths = [max(6, len(_heading(arm))) + 1 for arm in arms]
    for verdict in summary.verdicts:
        for what in ("tokens_per_step", "speed"):
            title = f"{verdict.profile}, {_TITLES[what]}"
            lines += ["", title, _row("", [_heading(arm) for arm in arms], widths)]
            for name, cells in _table(verdict, arms, what):
                lines.append(_row(name, cells, widths))
        lines += [
            f"  {part}" for claim in verdict.claims() for part in wrap(_sentence(claim), _COLUMNS_OF_TERMINAL - 2)
        ]
    return "\n".join([*lines, *_remarks(summary)]) + "\n"


def markdown(summary: EditSummary) -> str:
    """One table a device; in a cell tokens per step and speed."""
    lines = [f"- {line}" for line in _about(summary)]
    arms = _shown(summary)
    for verdict in summary.verdicts:
        lines += ["", f"### {verdict.profile}", "", _markdown_row(["class", *arms]), "|---|" + "---:|" * len(arms)]
        tokens, speeds = (list(_table(verdict, arms, what)) for what in ("tokens_per_step", "speed"))
        for (name, left), (_, right) in zip(tokens, speeds, strict=True):
            cells = [f"{one}/{other}" if one else other for one, other in zip(left, right, strict=True)]
            lines.append(_markdown_row([name, *cells]))
        lines += ["", *(f"- {_sentence(claim)}" for claim in verdict.claims())]
    return "\n".join([*lines, *(f"- {remark}" for remark in _remarks(summary))]) + "\n"


def document(summary: EditSummary) -> dict[str, Any]:
    """The document of `bench --edits --json`. Times in plain steps of the target."""
    return {
        "localspec": __version__,
        "model": summary.model,
        "half": summary.half,
        "pairs": len(summary.edits),
        "tokens": sum(len(edit.answer) for edit in summary.edits),
        "longest_draft": LONGEST_DRAFT,
        "complete": summary.complete,
        "arms": list(summary.arms),
        "devices": [_device(verdict) for verdict in summary.verdicts],
    }


_TITLES = {"tokens_per_step": "tokens per step", "speed": "speed over plain decoding"}


def _about(summary: EditSummary) -> Iterator[str]:
    tokens = sum(len(edit.answer) for edit in summary.edits)
    classes = len({edit.pair.edit_class for edit in summary.edits})
    learned = "the design half" if summary.half == "held-out" else "the other pairs of this half, by text"
    yield f"model:    {summary.model}, of which only the vocabulary and the template are used"
    yield f"edits:    {len(summary.edits)} pairs of {classes} classes, {tokens} tokens, the {summary.half} half"
    yield f"drafts:   up to {LONGEST_DRAFT} tokens; what an arm learns before a pair comes from {learned}"
    yield "devices:  simulated; drafting itself takes no time on them"


def _shown(summary: EditSummary) -> list[str]:
    """Plain decoding is 1 everywhere."""
    return [arm for arm in summary.arms if arm != PLAIN]


def _heading(arm: str) -> str:
    return arm.removeprefix("lookup:")


def _table(verdict: EditVerdict, arms: Sequence[str], what: str) -> Iterator[tuple[str, list[str]]]:
    for name, paces in verdict.by_class.items():
        yield name, [_figure(paces[arm], what) for arm in arms]
    yield "geometric mean", [_figure(verdict.means[arm], what) for arm in arms]
    slowest = [f"{verdict.worst_pair(arm).speed:.2f}" for arm in arms]
    yield "slowest pair", slowest if what == "speed" else [""] * len(arms)


def _figure(pace: Pace, what: str) -> str:
    return f"{getattr(pace, what):.2f}"


def _row(name: str, cells: Sequence[str], widths: Sequence[int]) -> str:
    row = "".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
    return f"  {name.ljust(_CLASS_COLUMN - 2)}{row}".rstrip()


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _sentence(claim: Claim) -> str:
    figures = ", ".join(f"{name} {figure:.2f} ({least:.2f} asked)" for name, (figure, least) in claim.figures.items())
    return f"{'met' if claim.holds else 'MISSED'}: {claim.what}: {figures}"


def _remarks(summary: EditSummary) -> Iterator[str]:
    if not summary.complete:
        yield f"interrupted after {len(summary.verdicts)} devices"


def _device(verdict: EditVerdict) -> dict[str, Any]:
    return {
        "profile": verdict.profile,
        "source": PROFILES[verdict.profile].source,
        "classes": {
            name: {arm: _pace(pace) for arm, pace in paces.items()} for name, paces in verdict.by_class.items()
        },
        "geometric_mean": {arm: _pace(pace) for arm, pace in verdict.means.items()},
        "slowest_pair": {
            arm: {"pair": found.pair.name, "speed": round(found.speed, _DIGITS)}
            for arm in verdict.replayed
            for found in [verdict.worst_pair(arm)]
        },
        "claims": [
            {
                "what": claim.what,
                "holds": claim.holds,
                "figures": {
                    name: {"figure": round(figure, _DIGITS), "asked": least}
                    for name, (figure, least) in claim.figures.items()
                },
            }
            for claim in verdict.claims()
        ],
        "pairs": [_pair(verdict, index) for index in range(len(next(iter(verdict.replayed.values()))))],
    }


def _pair(verdict: EditVerdict, index: int) -> dict[str, Any]:
    found: dict[str, Replayed] = {arm: replayed[index] for arm, replayed in verdict.replayed.items()}
    first = next(iter(found.values()))
    return {
        "pair": first.pair.name,
        "class": first.pair.edit_class,
        "tokens": first.tokens,
        "arms": {arm: {"steps": one.steps, "ms": round(one.ms, _DIGITS)} for arm, one in found.items()},
    }


def _pace(pace: Pace) -> dict[str, float]:
    return {"tokens_per_step": round(pace.tokens_per_step, _DIGITS), "speed": round(pace.speed, _DIGITS)}
