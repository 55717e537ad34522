"""A comparison as a person reads it, as Markdown, and as JSON."""

import platform
from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Any

from localspec import __version__
from localspec.engine.llama import version
from localspec.measure.bench import Round
from localspec.measure.summary import Figures, Setup, Summary, speedup

_DIGITS = 6
_CURVE = (1, 2, 3, 5, 9, 17, 33)
"""Widths that a person is shown."""
_HEADINGS = ("arm", "tokens/step", "ms/token", "accepted", "speedup", "80 % of answers")
_COLUMNS = (18, 12, 10, 10, 9, 17)
_LONGEST_NAME = 60
_COLUMNS_OF_TERMINAL = 80


def text(summary: Summary) -> str:
    """For a terminal, inside 80 columns."""
    lines = _wrapped(_about(summary.setup), indent=10)
    for category, by_arm in summary.categories.items():
        count = sum(round_.prompt.category == category for round_ in summary.rounds)
        lines += ["", f"{printable(category)[:_LONGEST_NAME]}, {count} {'answer' if count == 1 else 'answers'} an arm"]
        lines += [_row(_HEADINGS), *(_row((arm, *_cells(figures))) for arm, figures in by_arm.items())]
    if summary.means:
        lines += ["", "all categories, geometric mean of their speedups"]
        lines += [_row((arm, "", "", "", f"{mean:.2f}x", "")) for arm, mean in summary.means.items()]
    if hosts := list(_hosts(summary)):
        lines += ["", "outside the models' passes: ms of a step, and of 95 in 100 steps no more than"]
        lines += [_host_row(("", "all", "", "choosing", "")), *map(_host_row, hosts)]
    return "\n".join([*lines, "", *_wrapped(_remarks(summary), indent=2)]) + "\n"


def markdown(summary: Summary) -> str:
    """One table of all figures."""
    lines = [f"- {line}" for line in _about(summary.setup)]
    lines += ["", _markdown_row(("category", *_HEADINGS)), "|---|---|" + "---:|" * (len(_HEADINGS) - 1)]
    for category, by_arm in summary.categories.items():
        name = printable(category).replace("|", "\\|")
        lines += [_markdown_row((name, arm, *_cells(figures))) for arm, figures in by_arm.items()]
    lines += [
        _markdown_row(("**geometric mean**", arm, "", "", "", f"**{mean:.2f}x**", ""))
        for arm, mean in summary.means.items()
    ]
    return "\n".join([*lines, "", *(f"- {remark}" for remark in _remarks(summary))]) + "\n"


def document(summary: Summary) -> dict[str, Any]:
    """The document of `bench --json`. Times in milliseconds, on a simulated device in plain steps of the target; null where
    there is no figure."""
    return {
        **_setup(summary.setup),
        "complete": summary.complete,
        "skipped": list(summary.setup.skipped),
        "arms": list(summary.arms),
        "categories": {
            category: {arm: _figures(figures) for arm, figures in by_arm.items()}
            for category, by_arm in summary.categories.items()
        },
        "overall": {arm: _figures(figures) for arm, figures in summary.overall.items()},
        "geometric_mean": {arm: _rounded(mean) for arm, mean in summary.means.items()},
        "texts_compared": len(summary.rounds) if summary.setup.same_texts else 0,
        "differing_texts": summary.differing,
        "prompts": [_round(round_) for round_ in summary.rounds],
    }


def printable(words: str) -> str:
    """Words out of a file, which must neither break a table nor command a terminal."""
    return "".join(character if character.isprintable() else " " for character in words)


def _wrapped(lines: Iterator[str], indent: int) -> list[str]:
    return [part for line in lines for part in wrap(line, _COLUMNS_OF_TERMINAL, subsequent_indent=" " * indent)]


def _about(setup: Setup) -> Iterator[str]:
    options, profile = setup.options, setup.profile
    how = "greedy"
    if not options.sampling.greedy:
        how = f"temperature {options.sampling.temperature:g}, {options.resolved_verification}"
    yield f"model:    {printable(setup.model)[:_LONGEST_NAME]}"
    yield f"draft:    {printable(setup.draft or 'none')[:_LONGEST_NAME]}"
    yield f"answers:  {how}, up to {options.max_tokens} tokens"
    if profile:
        yield f"device:   {profile.name}, simulated; times in plain steps of the target"
    else:
        names = ", ".join(description or name for name, description in setup.device)
        yield f"device:   {printable(names)[:_LONGEST_NAME]}"
    yield f"versions: localspec {__version__}, llama-cpp-python {version()}, Python {platform.python_version()}"
    curve = ", ".join(f"{width}: {setup.cost_curve[width]:.3g}" for width in _CURVE if width in setup.cost_curve)
    yield f"a pass:   {curve} {'plain steps' if profile else 'ms'} by width"
    if setup.draft_ms is not None:
        yield f"a look:   {setup.draft_ms:.3g} {'plain steps' if profile else 'ms'} by the draft model"


def _cells(figures: Figures) -> tuple[str, ...]:
    rate, spread = figures.acceptance_rate, figures.speedup
    return (
        f"{figures.tokens_per_step:.2f}",
        f"{figures.ms_per_token:.2f}",
        "" if rate is None else f"{rate:.0%}",
        f"{spread.median:.2f}x",
        f"{spread.p10:.2f} to {spread.p90:.2f}",
    )


def _hosts(summary: Summary) -> Iterator[tuple[str, ...]]:
    for arm, figures in summary.overall.items():
        if figures.host_ms and figures.policy_ms:
            yield (arm, *(f"{ms:.2f}" for ms in (*figures.host_ms, *figures.policy_ms)))


def _host_row(cells: Sequence[str]) -> str:
    first, *others = cells
    return f"  {first.ljust(_COLUMNS[0])}{''.join(cell.rjust(10) for cell in others)}".rstrip()


def _row(cells: Sequence[str]) -> str:
    first, *others = zip(cells, _COLUMNS, strict=True)
    row = first[0].ljust(first[1]) + "".join(cell.rjust(width) for cell, width in others)
    return f"  {row.rstrip()}"


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _remarks(summary: Summary) -> Iterator[str]:
    setup, count = summary.setup, len(summary.rounds)
    differing = summary.differing
    if differing is not None and any(differing.values()):
        found = ", ".join(f"{arm} {number}" for arm, number in differing.items() if number)
        yield f"texts that are not plain decoding's, of {count}: {found} (passes of different widths round differently)"
    elif differing is not None and count:
        yield f"texts: every arm wrote what plain decoding wrote, {count} times of {count}"
    if setup.skipped:
        yield f"left out, because they do not fit into the context: {len(setup.skipped)} of {setup.prompts} prompts"
    if not summary.complete:
        yield f"interrupted after {count} of {setup.repeats * (setup.prompts - len(setup.skipped))} answers an arm"


def _setup(setup: Setup) -> dict[str, Any]:
    profile, options = setup.profile, setup.options
    return {
        "simulated": {"profile": profile.name, "source": profile.source} if profile else None,
        "device": [{"name": name, "description": description} for name, description in setup.device],
        "system": platform.platform(),
        "threads": setup.threads,
        "versions": {
            "localspec": __version__,
            "python": platform.python_version(),
            "llama-cpp-python": version(),
        },
        "model": setup.model,
        "draft": setup.draft,
        "temp": options.sampling.temperature,
        "seed": options.seed,
        "verification": options.resolved_verification,
        "max_tokens": options.max_tokens,
        "repeat": setup.repeats,
        "cost_curve": [{"width": width, "ms": _rounded(ms)} for width, ms in setup.cost_curve.items()],
        "draft_ms": _rounded(setup.draft_ms),
    }


def _figures(figures: Figures) -> dict[str, Any]:
    return {
        "tokens": figures.tokens,
        "steps": figures.steps,
        "tokens_per_step": _rounded(figures.tokens_per_step),
        "drafted": figures.drafted,
        "accepted": figures.accepted,
        "acceptance_rate": _rounded(figures.acceptance_rate),
        "ms_per_token": _rounded(figures.ms_per_token),
        "speedup": {
            "median": _rounded(figures.speedup.median),
            "p10": _rounded(figures.speedup.p10),
            "p90": _rounded(figures.speedup.p90),
        },
        "host_ms_per_step": _usual_and_rare(figures.host_ms),
        "policy_ms_per_step": _usual_and_rare(figures.policy_ms),
    }


def _usual_and_rare(figures: tuple[float, float] | None) -> dict[str, float | None] | None:
    return {"median": _rounded(figures[0]), "p95": _rounded(figures[1])} if figures else None


def _round(round_: Round) -> dict[str, Any]:
    return {
        "id": round_.prompt.id,
        "category": round_.prompt.category,
        "repeat": round_.repeat,
        "arms": {
            arm: {
                "tokens": len(answer.tokens),
                "steps": answer.steps,
                "ms_per_token": _rounded(answer.ms_per_token),
                "speedup": _rounded(speedup(round_, arm)),
            }
            for arm, answer in round_.answers.items()
        },
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)
