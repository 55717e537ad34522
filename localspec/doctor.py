"""`localspec doctor`: what this machine, this build and these models can do, and whether their texts are exact."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import dataclass, replace

from localspec import __version__
from localspec.chat.store import STORE_FILE
from localspec.console import Progress, json_text, write_out
from localspec.doctor_audit import Auditor
from localspec.doctor_report import Build, Loaded, Report, as_text, document
from localspec.doctor_warnings import (
    Host,
    Warned,
    build_warnings,
    cache_warnings,
    memory_warnings,
    pair_warnings,
    payoff_warnings,
    thread_warnings,
)
from localspec.engine.cores import performance_cores
from localspec.engine.engine import Engine, EngineSettings
from localspec.engine.errors import Interrupted, UserError
from localspec.engine.gguf import inspect
from localspec.engine.llama import LOGGER_NAME, LoadCancelledError, devices
from localspec.engine.llama.about import backends, library_versions, processor_features
from localspec.engine.options import DEFAULT_LENGTHS
from localspec.hub.opening import weight_bytes
from localspec.hub.resolve import default_model
from localspec.interruption import Stoppable
from localspec.launch import engine_settings
from localspec.logs import LOG_FILE, log_to_file
from localspec.measure.break_even import best_lengths, least_for_copies, least_for_drafts
from localspec.program import EXIT_FAILED, EXIT_INTERRUPTED
from localspec.settings import CONFIG_FILE, Folders, Settings

EXIT_DONE = 0
_MOST_MEASURING = 60.0
"""Seconds that passes are timed for where somebody has asked for it."""
_DRAFT_KV_TYPE = "f16"
"""The engine opens the cache of a draft model in no other type."""


@dataclass(frozen=True)
class Doctor:
    """One use of the command."""

    settings: Settings
    folders: Folders
    interruption: Stoppable
    as_json: bool = False
    quiet: bool = False
    auditor: Auditor | None = None
    """Makes the audits that are asked for."""
    measure: bool = False
    """Time passes anew, whatever is known of them."""
    host: Host | None = None
    """What the machine has; None: look."""

    def run(self) -> int:
        """Look at everything, and report. Returns the exit code; raises UserError."""
        log_to_file(self.folders.logs, LOGGER_NAME)
        progress = Progress(self.quiet)
        report = Report(self._build(), list(build_warnings(backends(), self.host or Host.here(), _library())))
        report.warnings += thread_warnings(self.settings.threads, performance_cores())
        try:
            if self.settings.model or default_model(self.folders.models):
                self._look_at_models(report, progress)
            elif self.auditor or self.measure:
                what = "audit" if self.auditor else "measure"
                raise UserError(f"There is no model to {what}; name one with --model, or get one with localspec pull.")
        except (LoadCancelledError, Interrupted):
            return EXIT_INTERRUPTED
        finally:
            progress.clear()
        write_out(json_text(document(report)) if self.as_json else as_text(report))
        if report.interrupted:
            return EXIT_INTERRUPTED
        return EXIT_FAILED if report.problem else EXIT_DONE

    def _build(self) -> Build:
        threads = self.settings.threads
        cores = performance_cores()
        return Build(
            versions={"localspec": __version__, **library_versions(), "Python": platform.python_version()},
            system=platform.platform(),
            backends=backends(),
            features=processor_features(),
            devices=devices(),
            threads=threads or cores,
            threads_why="as asked for" if threads else "one for each fast core that this process may use",
            places={
                "config": self.folders.config / CONFIG_FILE,
                "models": self.folders.models,
                "chats": self.folders.data / STORE_FILE,
                "cache": self.folders.cache,
                "log": self.folders.logs / LOG_FILE,
            },
        )

    def _look_at_models(self, report: Report, progress: Progress) -> None:
        chosen = engine_settings(self.settings, self.folders)
        chosen = replace(chosen, measure_costs=True, measure_anew=self.measure)
        if self.measure:
            chosen = replace(chosen, measure_seconds=_MOST_MEASURING)
        report.warnings += memory_warnings(chosen.note)
        try:
            engine = self._open(chosen, report, progress)
        except UserError as error:
            report.problem = str(error)
            report.loaded = Loaded(chosen.target, chosen.draft, chosen, None, None, None, {}, None)
            return
        with engine:
            report.loaded = loaded = self._loaded(engine, chosen, report)
            report.warnings += _model_warnings(loaded)
            if self.auditor:
                self.auditor.examine(engine, self.settings, self.folders, report, progress, self.interruption)
            report.last_audit = Auditor.last(engine, self.folders)

    def _open(self, chosen: EngineSettings, report: Report, progress: Progress) -> Engine:
        """The pair, or the target alone where the draft model does not go with it."""

        def loading(what: str, share: float) -> bool:
            doing = "measuring what passes cost" if what == "costs" else f"loading the {what} model"
            progress.show(f"{doing} {share:4.0%}")
            return not self.interruption.stop.asked

        try:
            return Engine(chosen, loading)
        except UserError as error:
            if chosen.draft is None:
                raise
            report.incompatible_reason = str(error)
            return Engine(replace(chosen, draft=None), loading)

    def _loaded(self, engine: Engine, chosen: EngineSettings, report: Report) -> Loaded:
        target, draft = engine.costs.target, engine.costs.draft
        longest = self.settings.draft_max or DEFAULT_LENGTHS["auto"]
        draft_ms = engine.costs.draft_ms(1) if draft else None
        return Loaded(
            target=chosen.target,
            draft=chosen.draft,
            settings=chosen,
            context=engine.context_length,
            compatible=report.incompatible_reason is None if chosen.draft else None,
            draft_ms=draft_ms,
            curve=target.table(),
            measured=engine.costs_measured,
            copies=least_for_copies(target.ms),
            drafts=least_for_drafts(target.ms, draft_ms, longest) if draft_ms else None,
            best=best_lengths(target.ms, draft_ms, longest) if draft_ms else [],
        )


def _model_warnings(loaded: Loaded) -> Iterator[Warned]:
    copies = min((least for least in (loaded.copies or {}).values() if least is not None), default=None)
    drafts = loaded.drafts[0] if loaded.drafts else None
    yield from payoff_warnings(copies, drafts, loaded.draft_ms is not None)
    if loaded.draft and loaded.draft_ms is not None:
        target_bytes, draft_bytes = (weight_bytes(inspect(path)) for path in (loaded.target, loaded.draft))
        yield from pair_warnings(target_bytes, draft_bytes, loaded.curve[1], loaded.draft_ms)
        yield from cache_warnings(_DRAFT_KV_TYPE)


def _library() -> str:
    return library_versions()["llama-cpp-python"]
