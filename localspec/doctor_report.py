"""What `localspec doctor` has found, as text and as JSON."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import wrap
from typing import Any

from localspec.console import one_line
from localspec.doctor_warnings import Warned
from localspec.engine.engine import EngineSettings
from localspec.engine.llama import Device
from localspec.measure.ages import JUST_NOW, ago, moment
from localspec.measure.audit import WORST_GAP, Audit
from localspec.measure.audit_file import verdict
from localspec.measure.bit_exact import Check
from localspec.measure.break_even import BestLength

_COLUMNS = 80
_BAR_CELLS = 40
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Build:
    """What runs here, and where."""

    versions: Mapping[str, str]
    system: str
    backends: Sequence[str]
    features: Sequence[str]
    """What the CPU back end was compiled to use."""
    devices: Sequence[Device]
    threads: int
    threads_why: str
    places: Mapping[str, Path]


@dataclass(frozen=True, slots=True)
class Loaded:
    """The models, and what passes cost."""

    target: Path
    draft: Path | None
    settings: EngineSettings
    context: int | None
    compatible: bool | None
    """None without a draft model, or where nothing could be loaded."""
    draft_ms: float | None
    """A token of the draft model."""
    curve: Mapping[int, float]
    """Milliseconds of a target pass by its width."""
    copies: Mapping[int, float | None] | None
    """By the length of a copy, the acceptance from which it pays; None where it never does."""
    measured: float | None = None
    """When the curve was measured, in seconds since 1970; None where nobody knows."""
    drafts: tuple[float, int] | None = None
    """The acceptance from which the draft model pays, and with what length."""
    best: Sequence[BestLength] = ()


@dataclass(slots=True)
class Report:
    """Everything."""

    build: Build
    warnings: list[Warned] = field(default_factory=list)
    loaded: Loaded | None = None
    incompatible_reason: str | None = None
    problem: str | None = None
    """Why the model cannot be used: a sentence."""
    audit: Audit | None = None
    audited_with: tuple[str, ...] = ()
    checks: list[Check] | None = None
    last_audit: str | None = None
    interrupted: bool = False


def as_text(report: Report) -> str:
    """For people."""
    parts = [_build_text(report.build), _models_text(report)]
    if report.loaded and report.loaded.curve:
        parts += [_curve_text(report.loaded), auto_text(report.loaded)]
    if report.audit:
        parts.append(_audit_text(report.audit, report.audited_with))
    elif report.last_audit:
        parts.append(_paragraph(report.last_audit))
    if report.checks is not None:
        parts.append(_checks_text(report.checks))
    parts.append(_warnings_text(report.warnings))
    return "\n\n".join(part for part in parts if part) + "\n"


def document(report: Report) -> dict[str, Any]:
    """As JSON. Bytes and milliseconds, as the names say; null where there is no figure."""
    build, loaded = report.build, report.loaded
    return {
        "versions": dict(build.versions),
        "system": build.system,
        "backends": list(build.backends),
        "cpu_features": list(build.features),
        "devices": [
            {
                "name": device.name,
                "description": device.description,
                "gpu": device.is_gpu,
                "free_bytes": device.free_bytes,
                "total_bytes": device.total_bytes,
            }
            for device in build.devices
        ],
        "threads": build.threads,
        "threads_why": build.threads_why,
        "paths": {name: str(path) for name, path in build.places.items()},
        "model": str(loaded.target) if loaded else None,
        "draft": str(loaded.draft) if loaded and loaded.draft else None,
        "problem": report.problem,
        "kv_type": loaded.settings.kv_type if loaded else None,
        "gpu_layers": loaded.settings.gpu_layers if loaded else None,
        "context": loaded.context if loaded else None,
        "compatible": loaded.compatible if loaded else None,
        "incompatible_reason": report.incompatible_reason,
        "cost_curve": [{"width": width, "ms": _rounded(ms)} for width, ms in (loaded.curve if loaded else {}).items()],
        "cost_measured": moment(loaded.measured) if loaded else None,
        "draft_ms": _rounded(loaded.draft_ms) if loaded else None,
        "auto": _auto_document(loaded) if loaded and loaded.curve else None,
        "audit": _audit_document(report.audit, report.audited_with) if report.audit else None,
        "last_audit": report.last_audit,
        "bit_exact": None if report.checks is None else [_check_document(check) for check in report.checks],
        "warnings": [{"kind": warned.kind, "sentence": warned.sentence} for warned in report.warnings],
    }


def _auto_document(loaded: Loaded) -> dict[str, Any]:
    least = loaded.drafts
    return {
        "least_acceptance_of_copies": [
            {"tokens": length, "acceptance": _rounded(value)} for length, value in (loaded.copies or {}).items()
        ],
        "least_acceptance_of_draft": _rounded(least[0]) if least else None,
        "best_draft": [
            {"acceptance": best.acceptance, "length": best.length, "speedup": _rounded(best.speedup)}
            for best in loaded.best
        ],
    }


def _audit_document(audit: Audit, drafters: Sequence[str]) -> dict[str, Any]:
    return {
        "tokens": audit.tokens,
        "wide_tokens": audit.wide,
        "flips": len(audit.flips),
        "max_gap": _rounded(audit.max_gap),
        "histogram": [{"from": low, "flips": flips, "tokens": every} for low, flips, every in audit.histogram()],
        "by_width": _counts(audit.by(lambda token: token.width), "width"),
        "by_drafter": _counts(audit.by(lambda token: token.drafter), "drafter"),
        "by_context": _counts(audit.by_context(), "context"),
        "flipped": [
            {"position": token.position, "width": token.width, "drafter": token.drafter, "gap": _rounded(token.gap)}
            for token in audit.flips
        ],
        "max_logprob_difference": _rounded(audit.moved),
        "noise_floor": _rounded(audit.noise_floor),
        "faulty": audit.is_faulty,
        "drafters": list(drafters),
        "complete": audit.complete,
    }


def _counts(groups: Mapping[object, tuple[int, int]], name: str) -> list[dict[str, Any]]:
    return [{name: key, "flips": flips, "tokens": every} for key, (flips, every) in sorted(groups.items(), key=str)]


def _check_document(check: Check) -> dict[str, Any]:
    place, width = check.first_difference or (None, None)
    return {
        "setting": check.setting.name,
        "option": check.setting.option,
        "equal": check.equal,
        "rows": check.rows,
        "context": check.longest,
        "first_difference": None if place is None else {"context": place, "width": width},
        "plain_ms": _rounded(check.plain_ms),
        "wide_ms": _rounded(check.wide_ms),
        "problem": check.problem or None,
    }


def _build_text(build: Build) -> str:
    versions = ", ".join(f"{name} {value}" for name, value in build.versions.items())
    facts = [
        ("versions", versions),
        ("system", build.system),
        ("back ends", ", ".join(build.backends)),
        ("processor", ", ".join(build.features)),
        *(
            ("device", f"{device.name}: {device.description}, {_size(device.free_bytes)} of "
             f"{_size(device.total_bytes)} free")
            for device in build.devices
        ),
        ("threads", f"{build.threads}, {build.threads_why}"),
        *((name, str(path)) for name, path in build.places.items()),
    ]  # fmt: skip
    return _facts(facts)


def _models_text(report: Report) -> str:
    loaded = report.loaded
    if loaded is None:
        return _paragraph("No model is installed, so there is nothing to measure: localspec pull gets one.")
    facts = [("model", str(loaded.target))]
    if report.problem:
        return _facts([*facts, ("problem", report.problem)])
    facts.append(("context", f"{loaded.context} tokens, {loaded.settings.kv_type} cache"))
    facts.append(("draft model", str(loaded.draft) if loaded.draft else "none"))
    if loaded.draft:
        facts.append(
            ("together", report.incompatible_reason or "they have the same vocabulary; the draft's cache is f16")
        )
    return _facts(facts)


def _curve_text(loaded: Loaded) -> str:
    plain, most = loaded.curve[1], max(loaded.curve.values())
    lines = [f"{'tokens':>6}  {'What a target pass costs':<{_BAR_CELLS}}{'ms':>10}{'plain passes':>14}"]
    for width, ms in loaded.curve.items():
        bar = "█" * max(1, round(_BAR_CELLS * ms / most))
        lines.append(f"{width:>6}  {bar:<{_BAR_CELLS}}{ms:>10,.2f}{ms / plain:>14.2f}")
    if loaded.draft_ms is not None:
        lines.append(
            f"A token of the draft model costs {loaded.draft_ms:,.2f} ms, {loaded.draft_ms / plain:.2f} plain passes."
        )
    return "\n".join([*lines, _paragraph(age(loaded.measured, time.time()))])


def age(measured: float | None, now: float) -> str:
    """How old the curve is, in a sentence; both in seconds since 1970."""
    anew = "localspec doctor --measure measures it anew."
    words = ago(measured, now)
    if words is None:
        return f"When this was measured is not known; {anew}"
    return "Measured just now." if words == JUST_NOW else f"Measured {words}; {anew}"


def auto_text(loaded: Loaded) -> str:
    """What `auto` will do, and why."""
    words = [_copies_sentence(loaded)]
    if loaded.draft_ms is not None:
        words.append(_draft_sentence(loaded))
    lines = [_paragraph("What auto does here: " + " ".join(words))]
    if loaded.best:
        lines += [
            "",
            f"{'tokens of the draft model accepted':<36}{'best draft':>12}{'speedup':>10}",
            *(f"{best.acceptance:<36.0%}{best.length or 'none':>12}{best.speedup:>10.2f}" for best in loaded.best),
        ]
    return "\n".join(lines)


def _copies_sentence(loaded: Loaded) -> str:
    copies = loaded.copies or {}
    paying = {length: least for length, least in copies.items() if least is not None}
    if not paying:
        return "copies from the text never pay, so that it makes none."
    each = ", ".join(f"{length} {f'{least:.0%}' if least is not None else 'never'}" for length, least in copies.items())
    return (
        f"a copy from the text pays where its tokens are right more often than this, by the length of the copy: {each}. "
        "Others are left out."
    )


def _draft_sentence(loaded: Loaded) -> str:
    if loaded.drafts is None:
        return "The draft model never pays, so that it is asked only now and then."
    least, length = loaded.drafts
    return (
        f"The draft model pays from an acceptance of {least:.0%} (with {length} {'token' if length == 1 else 'tokens'}); "
        "below that it is asked only now and then."
    )


def _audit_text(audit: Audit, drafters: Sequence[str]) -> str:
    if not audit.tokens:
        return "The audit was stopped before the first answer was judged."
    longest = max(token.position for token in audit.judged)
    found = verdict(len(audit.flips), audit.tokens, audit.max_gap, longest)
    words = [f"Audit of {' and '.join(drafters)}: {found}"]
    if not audit.wide:
        words.append("Nothing was drafted, so that this says nothing; try other prompts with --prompts.")
    else:
        words.append(f"{audit.wide} of the tokens came from passes over several.")
    words.append(
        f"Log-probabilities differ by up to {audit.moved:.4f}, and without any drafter by up to {audit.noise_floor:.4f}."
    )
    if audit.is_faulty:
        words.append(
            f"That is more than rounding explains (a gap over {WORST_GAP} logit, or twice the difference without a drafter); "
            "please report it with the output of --json."
        )
    elif audit.flips:
        words.append("localspec doctor --bit-exact looks for settings without any such token.")
    if not audit.complete:
        words.append("It was stopped before its end.")
    lines = [_paragraph(" ".join(words)), "", f"{'gap of the top two, logits':<30}{'flips':>8}{'tokens':>10}"]
    bins = audit.histogram()
    for index, (low, flips, every) in enumerate(bins):
        name = f"{low:g} to {bins[index + 1][0]:g}" if index + 1 < len(bins) else f"{low:g} and more"
        lines.append(f"{name:<30}{flips:>8}{every:>10}")
    for title, groups in (
        ("tokens of context", audit.by_context()),
        ("width of the pass", audit.by(lambda token: token.width)),
        ("drafter", audit.by(lambda token: token.drafter)),
    ):
        lines += ["", f"{title:<30}{'flips':>8}{'tokens':>10}"]
        lines += [f"{name!s:<30}{flips:>8}{every:>10}" for name, (flips, every) in sorted(groups.items(), key=_order)]
    return "\n".join(lines)


def _order(item: tuple[object, tuple[int, int]]) -> tuple[int, str]:
    name = item[0]
    return (name if isinstance(name, int) else 0, f"{name!s:>10}")


def _checks_text(checks: Sequence[Check]) -> str:
    lines = [f"{'Bit for bit, one token against several':<42}{'equal':<24}{'1 token':>7}{'5':>7}"]
    for check in checks:
        place, width = check.first_difference or (0, 0)
        found = "yes" if check.equal else f"no: {width} after {place}" if width else "not tried"
        times = f"{check.plain_ms:>7.2f}{check.wide_ms:>7.2f}" if check.rows else ""
        lines.append(f"{check.setting.name:<42}{found:<24}{times}".rstrip())
    lines.append("")
    lines.append(_paragraph(_exact_sentence(checks)))
    lines += [_paragraph(f"{check.setting.name}: {check.problem}") for check in checks if check.problem]
    return "\n".join(lines)


def _exact_sentence(checks: Sequence[Check]) -> str:
    """What to set, and what it costs."""
    usable = [check for check in checks if check.equal and check.setting.option is not None]
    if not usable:
        return (
            "With none of the settings that localspec has are all bits equal here; texts can part where two tokens tie."
        )
    best, now = usable[0], checks[0]
    scope = f"all bits were equal at every width tried, up to {best.longest} tokens of context ({best.rows} rows)"
    if not best.setting.option:
        return f"As it is, {scope}; that costs nothing."
    cost = f"a token takes {best.plain_ms:.2f} ms instead of {now.plain_ms:.2f}" if now.rows else "its cost is unknown"
    return (
        f"With {best.setting.option} {scope}; {cost}, five in one pass {best.wide_ms:.2f} instead of {now.wide_ms:.2f}."
    )


def _warnings_text(warnings: Sequence[Warned]) -> str:
    return "\n".join(_paragraph(f"Warning: {warned.sentence}") for warned in warnings)


def _facts(facts: Sequence[tuple[str, str]]) -> str:
    width = max(len(name) for name, _ in facts) + 2
    return "\n".join(
        line
        for name, value in facts
        for line in wrap(
            one_line(value), max(20, _COLUMNS), initial_indent=f"{name:<{width}}", subsequent_indent=" " * width,
            break_long_words=False, break_on_hyphens=False,
        )
    )  # fmt: skip


def _paragraph(words: str) -> str:
    return "\n".join(wrap(one_line(words), _COLUMNS, break_long_words=False, break_on_hyphens=False))


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)
