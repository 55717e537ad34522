"""The acceptance table as a person reads it, as Markdown, and as JSON."""

import platform
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from textwrap import wrap
from typing import Any

from localspec import __version__
from localspec.engine.cores import performance_cores
from localspec.engine.engine import Engine
from localspec.engine.llama import devices, version
from localspec.measure.acceptance_table import (
    AUTO,
    COPIED,
    LENGTHS,
    LONGEST_NGRAM,
    LOOKUP,
    AnswerFigures,
    Counted,
    MeasuredDevice,
    Share,
    TaskFigures,
    by_task,
    draft_arm,
)
from localspec.measure.charts import Chart, acceptance_by_position_chart
from localspec.measure.report import printable
from localspec.measure.text_plot import Look, draw
from localspec.measure.wall_clock import TimedPrompt, Timings, by_arm, differing, speedup

_DIGITS = 6
_CURVE = (1, 2, 3, 5, 9, 17, 33)
"""Widths that a person is shown."""
_LONGEST_NAME = 60
_COLUMNS_OF_TERMINAL = 80
_LABEL, _CELL, _TIMED_CELL = 42, 11, 9
"""A table with timed speedups has a column more."""
_ARMS = (*(draft_arm(length) for length in LENGTHS), LOOKUP, AUTO)
_ALL = "all"


@dataclass(frozen=True, slots=True)
class AcceptanceSummary:
    """A whole table, or as much as there was time for."""

    model: str
    draft: str | None
    threads: int
    longest: int
    """Tokens of an answer."""
    seed: int
    device: MeasuredDevice
    """What passes cost here."""
    prompts: int
    """How many there were."""
    skipped: tuple[str, ...]
    """Names of the prompts that do not fit into the context."""
    figures: tuple[AnswerFigures, ...]
    timed: tuple[TimedPrompt | None, ...] | None = None
    """Of each of these answers, real ones to the same prompt; None where none were asked for."""

    @classmethod
    def of(
        cls,
        engine: Engine,
        device: MeasuredDevice,
        asked: tuple[int, int],
        prompts: int,
        skipped: Sequence[str],
        figures: Sequence[AnswerFigures],
        timed: Sequence[TimedPrompt | None] | None = None,
    ) -> "AcceptanceSummary":
        """`asked`: the longest answer and the seed."""
        draft = engine.settings.draft
        return cls(
            model=engine.settings.target.stem,
            draft=draft.stem if draft else None,
            threads=engine.settings.threads or performance_cores(),
            longest=asked[0],
            seed=asked[1],
            device=device,
            prompts=prompts,
            skipped=tuple(skipped),
            figures=tuple(figures),
            timed=None if timed is None else tuple(timed),
        )

    @property
    def complete(self) -> bool:
        """Whether every prompt that fits has been answered, and timed where that was asked for."""
        return len(self.figures) == self.prompts - len(self.skipped) and None not in (self.timed or ())

    @property
    def tasks(self) -> dict[str, TaskFigures]:
        """By category, in the order of the prompts."""
        return by_task(self.figures)

    @property
    def overall(self) -> TaskFigures | None:
        """All answers together; None before the first."""
        return TaskFigures(self.figures) if self.figures else None

    def timings(self, category: str | None = None) -> Timings:
        """Of the prompts of a task, or of all."""
        pairs = zip(self.figures, self.timed or (), strict=False)
        return by_arm([timed for figures, timed in pairs if category in (None, figures.category)])

    @property
    def draft_cost(self) -> float | None:
        """A step of the draft model, in plain steps of the target."""
        return self.device.draft_ms(1) / self.device.target_ms(1) if self.draft else None


def chart(summary: AcceptanceSummary) -> Chart:
    """Acceptance by position in a draft of the largest of LENGTHS, by task."""
    named = {printable(name)[:_LONGEST_NAME]: task.accepted_at for name, task in summary.tasks.items()}
    return acceptance_by_position_chart(named)


def text(summary: AcceptanceSummary, look: Look) -> str:
    """For a terminal, inside 80 columns. `look`: of the chart."""
    lines = _wrapped(_about(summary), indent=10)
    tasks = dict(summary.tasks)
    for name, task in tasks.items():
        lines += ["", f"{printable(name)[:_LONGEST_NAME]}, {_size(task)}", *_block(task, summary.timings(name))]
    if summary.overall and len(tasks) > 1:
        lines += ["", f"all tasks, {_size(summary.overall)}", *_block(summary.overall, summary.timings())]
    if summary.draft and summary.figures:
        lines += ["", *draw(chart(summary), look)]
    return "\n".join([*lines, "", *_wrapped(_remarks(summary), indent=2)]) + "\n"


def _size(task: TaskFigures) -> str:
    count = len(task.answers)
    return f"{count} {'answer' if count == 1 else 'answers'}, {task.tokens} tokens"


def _block(task: TaskFigures, timings: Timings) -> Iterator[str]:
    shares = {
        "draft's first choice is the target's": task.greedy,
        "draft sampled, on the same text": task.sampled,
        "draft sampled, on text sampled at temp 1": task.sampled_text,
        "2-gram lookup": task.copied,
    }
    yield _row("acceptance of a token", "mean", "lowest", "highest")
    for label, share in shares.items():
        if share:
            yield _row(label, *map(_percent, (share.mean, share.least, share.largest)))
    narrow = _TIMED_CELL if timings else _CELL
    yield _row(
        "tokens per step, and speedup", "replayed", "formula", "modelled", "timed" if timings else "", cell=narrow
    )
    labels = {draft_arm(length): f"draft model, {length} tokens" for length in LENGTHS}
    labels |= {LOOKUP: f"lookup, n-grams {LONGEST_NGRAM} to 1, {COPIED} tokens", AUTO: "localspec (auto)"}
    formulas = {draft_arm(length): task.formula(length) for length in LENGTHS}
    for arm, label in labels.items():
        if (steps := task.tokens_per_step(arm)) is not None:
            gains = _times(task.modelled_speedup(arm)), _times(speedup(timings, arm))
            yield _row(label, _number(steps), _number(formulas.get(arm)), *gains, cell=narrow)
    yield _row("lookup: steps with a proposal", _percent(task.steps_with_proposal), cell=narrow)
    yield _row("lookup: proposals with a token accepted", _percent(task.proposals_with_hit), cell=narrow)


def _row(label: str, *cells: str, cell: int = _CELL) -> str:
    return f"  {label.ljust(_LABEL)}{''.join(words.rjust(cell) for words in cells)}".rstrip()


def markdown(summary: AcceptanceSummary) -> str:
    """One table, a row for each task."""
    ks = [f"k = {length}" for length in LENGTHS]
    headings = ["task", "tokens", "greedy", "sampled", "on sampled text", "2-gram lookup"]
    headings += [f"tokens/step {k} (formula)" for k in ks]
    headings += ["lookup tokens/step", "steps with a proposal", "proposals with a hit", "auto tokens/step"]
    headings += [f"modelled speedup, {arm}" for arm in _ARMS]
    if summary.timed is not None:
        headings += [f"timed speedup, {arm}" for arm in _ARMS]
    lines = [f"- {line}" for line in _about(summary)]
    lines += ["", _markdown_row(headings), "|---|" + "---:|" * (len(headings) - 1)]
    rows = [(printable(name).replace("|", "\\|"), task, summary.timings(name)) for name, task in summary.tasks.items()]
    if summary.overall and len(rows) > 1:
        rows.append((f"**{_ALL}**", summary.overall, summary.timings()))
    for name, task, timings in rows:
        timed = [] if summary.timed is None else [_times(speedup(timings, arm)) for arm in _ARMS]
        lines.append(_markdown_row([name, *_cells(task), *timed]))
    return "\n".join([*lines, "", *(f"- {remark}" for remark in _remarks(summary))]) + "\n"


def _cells(task: TaskFigures) -> Iterator[str]:
    yield str(task.tokens)
    for share in (task.greedy, task.sampled, task.sampled_text, task.copied):
        yield f"{_percent(share.mean)} ({_percent(share.least)} to {_percent(share.largest)})" if share else ""
    for length in LENGTHS:
        steps = task.tokens_per_step(draft_arm(length))
        yield "" if steps is None else f"{steps:.2f} ({_number(task.formula(length))})"
    yield _number(task.tokens_per_step(LOOKUP))
    yield _percent(task.steps_with_proposal)
    yield _percent(task.proposals_with_hit)
    yield _number(task.tokens_per_step(AUTO))
    for arm in _ARMS:
        yield _times(task.modelled_speedup(arm))


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.0%}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _times(gain: float | None) -> str:
    return "" if gain is None else f"{gain:.2f}x"


def _ms(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _wrapped(lines: Iterator[str], indent: int) -> list[str]:
    return [part for line in lines for part in wrap(line, _COLUMNS_OF_TERMINAL, subsequent_indent=" " * indent)]


def _about(summary: AcceptanceSummary) -> Iterator[str]:
    device = summary.device
    yield f"model:    {printable(summary.model)[:_LONGEST_NAME]}"
    yield f"draft:    {printable(summary.draft or 'none')[:_LONGEST_NAME]}"
    yield f"answers:  up to {summary.longest} tokens; greedy, and sampled at temperature 1 with seed {summary.seed}"
    yield f"versions: localspec {__version__}, llama-cpp-python {version()}, Python {platform.python_version()}"
    yield f"a pass:   {', '.join(f'{width}: {_ms(device.target_ms(width))}' for width in _CURVE)} ms by width"
    if summary.draft_cost is not None:
        yield f"a look:   {_ms(device.draft_ms(1))} ms by the draft model, {summary.draft_cost:.2f} of a plain pass"


def _remarks(summary: AcceptanceSummary) -> Iterator[str]:
    if summary.figures:
        timed = "--wall-clock times real answers"
        if summary.timed is not None:
            timed = "timed ones are by the clock on the wall"
        yield f"Modelled speedups come from what passes cost above; {timed}. docs/measure.md defines every number."
    if summary.device.estimated:
        widths = ", ".join(map(str, summary.device.estimated))
        yield f"passes over {widths} tokens are not measured but estimated from the others: there was no time for them"
    if summary.timed and (found := ", ".join(f"{arm} {count}" for arm, count in differing(summary.timed))):
        yield f"timed texts that are not plain decoding's: {found} (passes of different widths round differently)"
    if summary.skipped:
        count = len(summary.skipped)
        yield f"left out, because they do not fit into the context: {count} of {summary.prompts} prompts"
    if not summary.complete:
        timed = "" if summary.timed is None else f", {sum(one is not None for one in summary.timed)} of them timed"
        yield f"interrupted after {len(summary.figures)} of {summary.prompts - len(summary.skipped)} prompts{timed}"


def document(summary: AcceptanceSummary) -> dict[str, Any]:
    """The document of `measure acceptance --json`. Times in milliseconds; null where there is no figure."""
    device = summary.device
    return {
        "model": summary.model,
        "draft": summary.draft,
        "device": [{"name": one.name, "description": one.description} for one in devices()],
        "system": platform.platform(),
        "threads": summary.threads,
        "versions": {
            "localspec": __version__,
            "python": platform.python_version(),
            "llama-cpp-python": version(),
        },
        "max_tokens": summary.longest,
        "seed": summary.seed,
        "cost_curve": [
            {"width": width, "ms": _rounded(device.target_ms(width)), "measured": width not in device.estimated}
            for width in device.widths
        ],
        "draft_ms": _rounded(device.draft_ms(1)) if summary.draft else None,
        "draft_cost": _rounded(summary.draft_cost),
        "complete": summary.complete,
        "skipped": list(summary.skipped),
        "tasks": {name: _task(task, summary.timings(name)) for name, task in summary.tasks.items()},
        "overall": _task(summary.overall, summary.timings()) if summary.overall else None,
        "prompts": [
            _answer(answer, timed)
            for answer, timed in zip(summary.figures, summary.timed or [None] * len(summary.figures), strict=True)
        ],
    }


def _task(task: TaskFigures, timings: Timings) -> dict[str, Any]:
    return {
        "answers": len(task.answers),
        "tokens": task.tokens,
        "greedy_acceptance": _share(task.greedy),
        "sampled_acceptance": _share(task.sampled),
        "lookup_acceptance": _share(task.copied),
        "sampled_text_acceptance": _share(task.sampled_text),
        "acceptance_by_position": [_rounded(share) for share in task.accepted_at],
        "tokens_per_step": {
            str(length): {
                "replayed": _rounded(task.tokens_per_step(draft_arm(length))),
                "formula": _rounded(task.formula(length)),
            }
            for length in LENGTHS
        },
        "lookup": {
            "tokens_per_step": _rounded(task.tokens_per_step(LOOKUP)),
            "steps_with_proposal": _rounded(task.steps_with_proposal),
            "proposals_with_hit": _rounded(task.proposals_with_hit),
        },
        "auto": {"tokens_per_step": _rounded(task.tokens_per_step(AUTO))},
        "modelled_speedup": {arm: _rounded(task.modelled_speedup(arm)) for arm in _ARMS},
        "wall_clock": {
            arm: {
                "tokens": timed.tokens,
                "steps": timed.steps,
                "ms_per_token": _rounded(timed.ms_per_token),
                "speedup": _rounded(speedup(timings, arm)),
            }
            for arm, timed in timings.items()
        }
        or None,
    }


def _share(share: Share | None) -> dict[str, float | None] | None:
    if share is None:
        return None
    return {"mean": _rounded(share.mean), "min": _rounded(share.least), "max": _rounded(share.largest)}


def _answer(answer: AnswerFigures, timed: TimedPrompt | None) -> dict[str, Any]:
    def share(counted: Counted | None) -> float | None:
        return _rounded(counted.share) if counted else None

    return {
        "id": answer.id,
        "category": answer.category,
        "tokens": answer.tokens,
        "greedy_acceptance": share(answer.greedy),
        "sampled_acceptance": share(answer.sampled),
        "lookup_acceptance": share(answer.copied),
        "sampled_text_acceptance": share(answer.sampled_text),
        "steps": {arm: run.steps for arm, run in answer.runs.items()},
        "wall_clock": timed
        and {
            "day": timed.day,
            "arms": {arm: {**asdict(one), "ms": _rounded(one.ms)} for arm, one in timed.arms.items()},
        },
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)
