"""`localspec bench`: arms against plain decoding on this machine, or on a simulated one."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from localspec.chat.conversation import template_of
from localspec.chat.document_spans import Span, document_spans
from localspec.chat.messages import Message
from localspec.console import Progress, json_text, write_out
from localspec.durations import time_left
from localspec.engine.engine import Engine, EngineSettings, Options
from localspec.engine.errors import UserError
from localspec.engine.llama import LOGGER_NAME, LoadCancelledError
from localspec.hub.starter import FetchCancelledError
from localspec.interruption import Stoppable
from localspec.launch import load_engine, options
from localspec.logs import log_to_file
from localspec.measure.arms import Arm, parse_arms
from localspec.measure.bench import Bench
from localspec.measure.profiles import PROFILES, Profile
from localspec.measure.prompts import Prompt, limit_per_category, load_prompts
from localspec.measure.report import document, markdown, printable, text
from localspec.measure.summary import Setup, Summary
from localspec.program import EXIT_INTERRUPTED
from localspec.run import EXIT_DONE
from localspec.settings import Folders, Settings

DEFAULT_ARMS = "plain,auto,draft:3,lookup,lookup:n3k10"
LONGEST_ANSWER = 128
SEED = 0

Form = Literal["text", "json", "markdown"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What to compare, and how often."""

    arms: tuple[Arm, ...]
    prompts: tuple[Prompt, ...]
    repeats: int = 1
    profile: Profile | None = None


def chosen_arms(names: str | None, settings: Settings) -> tuple[Arm, ...]:
    """The arms by name, or without names those that the models allow. Raises UserError."""
    arms = parse_arms(names or DEFAULT_ARMS, settings.draft_max)
    if settings.draft in (None, "none"):
        wanting = [arm.name for arm in arms if arm.needs_draft]
        if names and wanting:
            raise UserError(f"The arm {wanting[0]} needs a draft model; name one with --draft, or leave the arm out.")
        arms = [arm for arm in arms if not arm.needs_draft]
    return tuple(arms)


def chosen_prompts(file: Path | None, limit: int | None) -> tuple[Prompt, ...]:
    """The prompts of a file, or our own without one; the first `limit` of each category. Raises UserError."""
    return tuple(limit_per_category(load_prompts(file), limit))


def chosen_profile(name: str | None) -> Profile | None:
    """The device to simulate."""
    return PROFILES[name] if name else None


@dataclass(frozen=True)
class BenchRun:
    """One use of the command."""

    settings: Settings
    folders: Folders
    interruption: Stoppable
    comparison: Comparison
    form: Form = "text"
    quiet: bool = False

    def run(self) -> int:
        """Load, compare, report. Returns the exit code; raises UserError."""
        log_to_file(self.folders.logs, LOGGER_NAME)
        progress = Progress(self.quiet)
        try:
            with self._load(progress) as engine:
                summary = self._compare(engine, progress)
        except (LoadCancelledError, FetchCancelledError):
            return EXIT_INTERRUPTED
        finally:
            progress.clear()
        write_out(_shaped(summary, self.form))
        return EXIT_DONE if summary.complete else EXIT_INTERRUPTED

    def _load(self, progress: Progress) -> Engine:
        settings = replace(self.settings, drafter="auto")
        return load_engine(settings, self.folders, progress, self.interruption, self._with_fresh_costs)

    def _with_fresh_costs(self, chosen: EngineSettings) -> EngineSettings:
        return replace(chosen, measure_costs=self.comparison.profile is None, cost_file=None)

    def _compare(self, engine: Engine, progress: Progress) -> Summary:
        comparison, template = self.comparison, template_of(engine)

        def render(words: str) -> list[int]:
            system = [Message("system", self.settings.system)] if self.settings.system else []
            return template.encode([*system, Message("user", words)])

        how = replace(self._options(engine), stop=template.stop_strings)

        def documents(tokens: Sequence[int]) -> list[Span]:
            return document_spans(tokens, engine.target.vocabulary.piece)

        bench = Bench(engine, comparison.arms, how, render, comparison.profile, documents)
        fitting = {prompt for prompt in comparison.prompts if bench.fits(prompt)}
        if not fitting:
            raise UserError(
                f"No prompt fits into a context of {engine.context_length} tokens with an answer of {how.max_tokens}; "
                "choose a larger --ctx or a smaller --max-tokens."
            )
        prompts = [prompt for prompt in comparison.prompts if prompt in fitting]
        skipped = [prompt.id for prompt in comparison.prompts if prompt not in fitting]
        setup = Setup.of(engine, how, comparison.profile, comparison.repeats, len(comparison.prompts), skipped)
        rounds = bench.rounds(prompts, comparison.repeats, _progress_line(progress), self.interruption.stop)
        return Summary(setup, tuple(arm.name for arm in comparison.arms), tuple(rounds))

    def _options(self, engine: Engine) -> Options:
        """Greedy and with a fixed seed unless something else is asked for, so that a comparison can be repeated. Drafts are
        judged as they would be without a seed, unless one is given."""
        given = self.settings
        chosen = options(replace(given, temp=0.0 if given.temp is None else given.temp), engine)
        return replace(
            chosen,
            verification=chosen.resolved_verification,
            seed=SEED if given.seed is None else given.seed,
            max_tokens=given.max_tokens or LONGEST_ANSWER,
            drafter="auto",
        )


def _progress_line(progress: Progress) -> Callable[[Prompt, Arm, int, int], None]:
    """Says what is under way, and how long the rest will take if it goes on like this."""
    started = time.monotonic()

    def show(prompt: Prompt, arm: Arm, done: int, total: int) -> None:
        progress.show(
            f"{done} of {total} answers{time_left(started, done, total)}: {printable(prompt.category)}, {arm.name}"
        )

    return show


def _shaped(summary: Summary, form: Form) -> str:
    if form == "json":
        return json_text(document(summary))
    return markdown(summary) if form == "markdown" else text(summary)
