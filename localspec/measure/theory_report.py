"""What `measure theory` has found as a person reads it, as Markdown, and as JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from textwrap import wrap
from typing import Any

from localspec import __version__
from localspec.measure.text_plot import Look, draw
from localspec.measure.theory import SERVER_GPU, Best
from localspec.measure.theory_study import (
    ALPHAS,
    IDEAL_ALPHA,
    LENGTHS,
    MEASURED_AGREEMENT,
    SPEEDUP_ALPHA,
    WANTED,
    Curve,
    Study,
)

_DIGITS = 6
_COLUMNS_OF_TERMINAL = 80
_FIRST_COLUMN, _COLUMN = 12, 13


@dataclass(frozen=True, slots=True)
class _Table:
    """A table with a sentence above and perhaps some below."""

    title: str
    heading: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    remarks: tuple[str, ...] = ()


def text(study: Study, look: Look) -> str:
    """For a terminal, inside 80 columns, with the charts."""
    lines: list[str] = []
    for table in _tables(study):
        lines += [*wrap(table.title, _COLUMNS_OF_TERMINAL), *_columns((table.heading, *table.rows))]
        for remark in table.remarks:
            lines += wrap(remark, _COLUMNS_OF_TERMINAL, initial_indent="  ", subsequent_indent="  ")
        lines.append("")
    for chart in study.charts():
        lines += [*draw(chart, look), ""]
    return "\n".join(lines[:-1]) + "\n"


def markdown(study: Study) -> str:
    """All tables."""
    lines: list[str] = []
    for table in _tables(study):
        lines += [f"### {table.title}", "", _markdown_row(table.heading), "|---|" + "---:|" * (len(table.heading) - 1)]
        lines += [*map(_markdown_row, table.rows), "", *(f"- {remark}" for remark in table.remarks)]
        lines += [""] if table.remarks else []
    return "\n".join(lines[:-1]) + "\n"


def _tables(study: Study) -> Iterator[_Table]:
    yield _rule(study)
    yield _steps(study)
    for curve in study.curves:
        yield _speedups(study, curve)
    for curve in study.curves:
        yield _best(study, curve)
    yield _ideal(study)
    yield _costliest(study)
    yield _measured(study)
    yield _memory()


def _rule(study: Study) -> _Table:
    rule = study.rule
    shares = {"p, the target's": rule.p, "q, the draft's": rule.q, "residual": rule.residual, "left": rule.frequencies}
    return _Table(
        f"the acceptance rule: {rule.samples:,} tokens drafted from q, seed {study.seed}",
        ("token", *(str(number + 1) for number in range(len(rule.p)))),
        tuple((name, *(f"{share:.3f}" for share in values)) for name, values in shares.items()),
        (
            f"accepted: {rule.acceptance:.4f}; the sum of min(p, q) is {rule.expected_acceptance:.4f}, the standard error "
            f"{rule.acceptance_error:.4f}",
            f"left against p: chi-square {rule.chi_square:.2f}, {rule.freedom} degrees of freedom; chance alone is as far "
            f"off in {rule.by_chance:.0%} of all cases",
            f"one token at a time the engine decides {rule.alike:,} of the first {rule.one_by_one:,} alike",
        ),
    )


def _steps(study: Study) -> _Table:
    formula = study.tokens_per_step()
    error = max(mean.error for means in study.simulated.values() for mean in means.values())
    return _Table(
        f"tokens per step by formula, and by {study.steps:,} simulated steps",
        ("acceptance", *(f"k={length}" for length in LENGTHS)),
        tuple(
            (f"{alpha:g}", *(f"{formula[alpha][k]:.2f} {study.simulated[alpha][k].value:.3f}" for k in LENGTHS))
            for alpha in ALPHAS
        ),
        (f"standard error of the simulated ones: at most {error:.4f}",),
    )


def _speedups(study: Study, curve: Curve) -> _Table:
    points = ", ".join(f"{width}: {curve.cost(width) / curve.cost(1):.3g}" for width in (2, 3, 5, 9, 17))
    remarks = (f"a pass by width, in plain steps: {points}",) if curve is study.curve else ()
    return _Table(
        f"speedup at acceptance {SPEEDUP_ALPHA:g} by draft length and draft step, {curve.name}",
        ("", *(f"c={cost:g}" for cost in study.draft_costs)),
        tuple(
            (f"k={length}", *(f"{gained:.2f}x" for gained in gains.values()))
            for length, gains in study.speedups(curve).items()
        ),
        (*((curve.source,) if curve is study.curve else ()), *remarks),
    )


def _best(study: Study, curve: Curve) -> _Table:
    found = study.best(curve)
    needed = study.break_evens(curve)
    return _Table(
        f"best draft length by acceptance and draft step, {curve.name}",
        ("acceptance", *(f"c={cost:g}" for cost in study.draft_costs)),
        (
            *((f"{alpha:g}", *map(_shown, by_cost.values())) for alpha, by_cost in found.items()),
            ("pays above", *map(_shown_least, needed.values())),
        ),
        ("pays above: the acceptance that one drafted token needs, t(2) - 1 + c",),
    )


def _ideal(study: Study) -> _Table:
    best = study.ideal()
    return _Table(
        f"best case at acceptance {IDEAL_ALPHA:g}, flat verification",
        ("", *(f"c={cost:g}" for cost in best)),
        (("best draft", *map(_shown, best.values())),),
    )


def _costliest(study: Study) -> _Table:
    return _Table(
        "the costliest draft step that allows a speedup, flat verification",
        ("acceptance", *(f"{wanted:g}x" for wanted in WANTED)),
        tuple(
            (f"{alpha:g}", *("never" if cost is None else f"c={cost:.3f}" for cost in costs.values()))
            for alpha, costs in study.costliest().items()
        ),
    )


def _measured(study: Study) -> _Table:
    return _Table(
        "tokens per step by formula, at a published greedy agreement",
        ("", "agreement", *(f"k={length}" for length in next(iter(study.measured().values())))),
        tuple(
            (task, f"{MEASURED_AGREEMENT[task]:.3f}", *(f"{tokens:.2f}" for tokens in values.values()))
            for task, values in study.measured().items()
        ),
        ("Qwen2.5-0.5B drafting for Qwen2.5-1.5B-Instruct",),
    )


def _memory() -> _Table:
    gpu = SERVER_GPU
    return _Table(
        f"why a pass can be flat: {gpu.parameters / 1e9:g} billion parameters at {gpu.bytes_per_parameter * 8:g} bits, "
        f"{gpu.bytes_per_second / 1e12:g} TB/s, {gpu.operations_per_second / 1e12:g} TFLOP/s",
        ("", "figure"),
        (
            ("weights", f"{gpu.parameters * gpu.bytes_per_parameter / 1e9:.0f} GB"),
            ("reading them", f"{gpu.pass_seconds * 1e3:.1f} ms"),
            ("a token", f"{gpu.token_seconds * 1e6:.0f} us"),
            ("flat up to", f"{gpu.widest_flat:.0f} tokens"),
        ),
    )


def _shown(best: Best) -> str:
    return f"{best.length}: {best.speedup:.2f}x" if best.length else "no draft"


def _shown_least(acceptance: float) -> str:
    if acceptance < 0.0:
        return "always"
    return f"{acceptance:.2f}" if acceptance < 1.0 else "never"


def _columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    left = max(_FIRST_COLUMN, *(len(row[0]) for row in rows))
    width = min(_COLUMN, (_COLUMNS_OF_TERMINAL - 2 - left) // (len(rows[0]) - 1))
    for first, *others in rows:
        yield f"  {first.ljust(left)}{''.join(cell.rjust(width) for cell in others)}".rstrip()


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def document(study: Study) -> dict[str, Any]:
    """The document of `measure theory --json`. Costs in plain steps of the target; null where there is no figure."""
    return {
        "localspec": __version__,
        "seed": study.seed,
        "rule": _rule_values(study),
        "tokens_per_step": [
            {
                "alpha": alpha,
                "k": length,
                "formula": _rounded(value),
                "simulated": _rounded(study.simulated[alpha][length].value),
                "standard_error": _rounded(study.simulated[alpha][length].error),
            }
            for alpha, by_length in study.tokens_per_step().items()
            for length, value in by_length.items()
        ],
        "simulated_steps": study.steps,
        "draft_cost": study.draft_cost,
        "curves": [_curve_values(study, curve) for curve in study.curves],
        "best_case": [{"alpha": IDEAL_ALPHA, "c": cost, **_best_values(best)} for cost, best in study.ideal().items()],
        "costliest_draft": [
            {"alpha": alpha, "speedup": wanted, "c": _rounded(cost)}
            for alpha, costs in study.costliest().items()
            for wanted, cost in costs.items()
        ],
        "published_agreement": [
            {"task": task, "agreement": MEASURED_AGREEMENT[task], "k": length, "tokens_per_step": _rounded(tokens)}
            for task, values in study.measured().items()
            for length, tokens in values.items()
        ],
        "memory_bound": {
            **asdict(SERVER_GPU),
            "pass_seconds": SERVER_GPU.pass_seconds,
            "token_seconds": SERVER_GPU.token_seconds,
            "widest_flat": _rounded(SERVER_GPU.widest_flat),
        },
    }


def _rule_values(study: Study) -> dict[str, Any]:
    rule = study.rule
    return {
        "samples": rule.samples,
        "p": list(rule.p),
        "q": list(rule.q),
        "residual": [_rounded(share) for share in rule.residual],
        "frequencies": [_rounded(share) for share in rule.frequencies],
        "acceptance": _rounded(rule.acceptance),
        "expected_acceptance": _rounded(rule.expected_acceptance),
        "standard_error": _rounded(rule.acceptance_error),
        "chi_square": _rounded(rule.chi_square),
        "degrees_of_freedom": rule.freedom,
        "probability_by_chance": _rounded(rule.by_chance),
        "decided_one_by_one": rule.one_by_one,
        "decided_alike": rule.alike,
    }


def _curve_values(study: Study, curve: Curve) -> dict[str, Any]:
    return {
        "name": curve.name,
        "source": curve.source,
        "cost_curve": [{"width": 1 + k, "cost": _rounded(curve.cost(1 + k) / curve.cost(1))} for k in (0, *LENGTHS)],
        "speedup": [
            {"alpha": SPEEDUP_ALPHA, "k": length, "c": cost, "speedup": _rounded(gained)}
            for length, gains in study.speedups(curve).items()
            for cost, gained in gains.items()
        ],
        "best": [
            {"alpha": alpha, "c": cost, **_best_values(best)}
            for alpha, by_cost in study.best(curve).items()
            for cost, best in by_cost.items()
        ],
        "break_even": [{"c": cost, "acceptance": _rounded(least)} for cost, least in study.break_evens(curve).items()],
    }


def _best_values(best: Best) -> dict[str, Any]:
    return {"k": best.length, "speedup": _rounded(best.speedup)}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)
