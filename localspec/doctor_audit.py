"""The audits of `localspec doctor`: whether drafted texts are those of plain decoding, and with what settings bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from localspec.chat.conversation import template_of
from localspec.chat.messages import Message
from localspec.console import Progress
from localspec.doctor_report import Report
from localspec.engine.cores import performance_cores
from localspec.engine.engine import Engine, Options
from localspec.engine.errors import Interrupted, UserError
from localspec.interruption import Stoppable
from localspec.launch import options
from localspec.measure.audit import audit
from localspec.measure.audit_file import keep_audit, last_audit
from localspec.measure.bit_exact import PLACES, WIDTHS, Setting, check_all, settings_to_try
from localspec.measure.prompts import Prompt, limit_per_category, load_prompts
from localspec.settings import Folders, Settings, make_private

ANSWER_TOKENS = 64
"""Length of an audited answer where none is asked for."""


@dataclass(frozen=True)
class Auditor:
    """What is asked for."""

    texts: bool
    """Audit drafted texts."""
    bits: bool
    """Look for settings that are exact bit for bit."""
    prompts: Path | None = None
    """A file of prompts; None for the first of each category of our own."""

    def examine(
        self,
        engine: Engine,
        settings: Settings,
        folders: Folders,
        report: Report,
        progress: Progress,
        interruption: Stoppable,
    ) -> None:
        """Put what is found into the report; a stop leaves what was found until then. Raises UserError."""
        if self.texts:
            self._audit_texts(engine, settings, folders, report, progress, interruption)
        if self.bits and not report.interrupted:
            self._check_bits(engine, settings, report, progress, interruption)

    @staticmethod
    def last(engine: Engine, folders: Folders) -> str | None:
        """What the last audit has found about the models that are loaded, opened as they are now."""
        return last_audit(folders.cache, engine.opened)

    def _audit_texts(
        self,
        engine: Engine,
        settings: Settings,
        folders: Folders,
        report: Report,
        progress: Progress,
        interruption: Stoppable,
    ) -> None:
        arms, chosen = _arms(engine, settings), engine.settings
        prompts = self._rendered(engine, settings, arms[0].max_tokens or ANSWER_TOKENS)

        def show(done: int, total: int) -> bool:
            progress.show(f"auditing: {done} of {total} answers")
            return not interruption.stop.asked

        found = report.audit = audit(engine, prompts, arms, show, interruption.stop)
        report.audited_with = tuple(arm.drafter for arm in arms)
        report.interrupted = not found.complete
        if not found.complete:
            return
        try:
            folder = make_private(folders.cache)
        except UserError:
            # The finding is shown; only the next start will not know it.
            return
        keep_audit(folder, engine.opened, found, chosen.draft.stem if chosen.draft else None)

    def _rendered(self, engine: Engine, settings: Settings, tokens: int) -> list[list[int]]:
        """The prompts that fit, with an answer behind them, as token ids."""
        template = template_of(engine)
        system = [Message("system", settings.system)] if settings.system else []
        texts = [template.encode([*system, Message("user", prompt.turns[0])]) for prompt in self._chosen_prompts()]
        fitting = [text for text in texts if len(text) + tokens <= engine.context_length]
        if not fitting:
            raise UserError(
                f"No prompt fits into a context of {engine.context_length} tokens with an answer of {tokens}; choose a "
                "larger --ctx or a smaller --max-tokens."
            )
        return fitting

    def _chosen_prompts(self) -> Sequence[Prompt]:
        return load_prompts(self.prompts) if self.prompts else limit_per_category(load_prompts(), 1)

    def _check_bits(
        self, engine: Engine, settings: Settings, report: Report, progress: Progress, interruption: Stoppable
    ) -> None:
        chosen = engine.settings

        def show(setting: Setting) -> None:
            progress.show(f"comparing bits: {setting.name}")

        tried = settings_to_try(chosen.kv_type, chosen.threads or performance_cores())
        text = self._long_text(engine, settings)
        report.checks = []
        try:
            for check in check_all(
                engine.target, tried, text, chosen.gpu_layers, show, lambda: interruption.stop.asked
            ):
                report.checks.append(check)
        except Interrupted:
            report.interrupted = True

    def _long_text(self, engine: Engine, settings: Settings) -> list[int]:
        """The prompts one behind the other, as long as the comparison wants and the context allows."""
        room = min(engine.context_length, PLACES[-1] + 2 * WIDTHS[-1]) - WIDTHS[-1]
        text: list[int] = []
        for prompt in self._rendered(engine, settings, 0):
            text += prompt
        while len(text) < room:
            text += text
        if room < 2:
            raise UserError("The context is too short to compare passes in; choose a larger --ctx.")
        return text[:room]


def _arms(engine: Engine, settings: Settings) -> list[Options]:
    """The drafters to audit: the one that is asked for, or all that are there."""
    if settings.drafter == "none":
        raise UserError("Without a drafter there is nothing to audit; leave out --drafter none.")
    every = ["lookup", *(["draft"] if engine.draft else [])]
    wanted = every if settings.drafter == "auto" else [settings.drafter]
    how = replace(
        options(replace(settings, temp=0.0), engine), verification="match", seed=0,
        max_tokens=settings.max_tokens or ANSWER_TOKENS,
    )  # fmt: skip
    return [replace(how, drafter=name) for name in wanted]
