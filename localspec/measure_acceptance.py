"""`localspec measure acceptance`: how often a pair's drafts are right, and what that is worth on this machine."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from localspec.chat.conversation import template_of
from localspec.chat.messages import Message
from localspec.console import Progress, json_text, write_out
from localspec.durations import time_left
from localspec.engine.engine import Engine, EngineSettings
from localspec.engine.errors import UserError
from localspec.engine.llama import LOGGER_NAME, LoadCancelledError
from localspec.hub.starter import FetchCancelledError
from localspec.interruption import Stoppable
from localspec.launch import load_engine
from localspec.logs import log_to_file
from localspec.measure.acceptance_answers import Answering, Answers
from localspec.measure.acceptance_cache import AnswerCache, cache_name
from localspec.measure.acceptance_report import AcceptanceSummary, chart, document, markdown, text
from localspec.measure.acceptance_table import device_of, figures_of
from localspec.measure.plots import check_plot_file, save_charts
from localspec.measure.prompts import Prompt, limit_per_category, load_prompts
from localspec.measure.report import printable
from localspec.measure.text_plot import Look
from localspec.measure_theory import terminal_look
from localspec.program import EXIT_INTERRUPTED, WrongUsageError
from localspec.run import EXIT_DONE
from localspec.settings import Folders, Settings, make_private

LONGEST_ANSWER = 128
SEED = 0
_CACHE = "acceptance"

Form = Literal["text", "json", "markdown"]


@dataclass(frozen=True, slots=True)
class Task:
    """A prompt as the model reads it."""

    prompt: Prompt
    tokens: tuple[int, ...]


def chosen_prompts(file: Path | None, limit: int | None) -> tuple[Prompt, ...]:
    """The prompts of a file, or our own without one; the first `limit` of each category. Raises UserError."""
    return tuple(limit_per_category(load_prompts(file), limit))


@dataclass(frozen=True)
class AcceptanceRun:
    """One use of the command."""

    settings: Settings
    folders: Folders
    interruption: Stoppable
    prompts: tuple[Prompt, ...]
    form: Form = "text"
    quiet: bool = False
    plot: Path | None = None

    def run(self) -> int:
        """Load, measure, report. Returns the exit code; raises UserError."""
        log_to_file(self.folders.logs, LOGGER_NAME)
        progress = Progress(self.quiet)
        if self.plot:
            try:
                check_plot_file(self.plot)
            except UserError as error:
                # Said before any work, as about every other option.
                raise WrongUsageError(str(error)) from error
        settings = replace(self.settings, drafter="auto")
        try:
            with load_engine(settings, self.folders, progress, self.interruption, _with_fresh_costs) as engine:
                summary = self._measure(engine, progress)
        except (LoadCancelledError, FetchCancelledError):
            return EXIT_INTERRUPTED
        finally:
            progress.clear()
        look = terminal_look()
        # What names hold is printable, the only control characters are our own colors.
        write_out(_shaped(summary, self.form, look), exact=self.form == "text" and look.color)
        if self.plot and summary.figures:
            save_charts([chart(summary)], self.plot)
        return EXIT_DONE if summary.complete else EXIT_INTERRUPTED

    def _measure(self, engine: Engine, progress: Progress) -> AcceptanceSummary:
        if self.plot and engine.draft is None:
            raise UserError("The picture shows a draft model's acceptance; name one with --draft, or leave out --plot.")
        # Before anything is answered: these are the costs that were just measured.
        device = device_of(engine.costs)
        tasks = self._fitting(engine)
        answers = self._answers(engine, tasks, progress)
        fitting = {task.prompt for task in tasks}
        skipped = [prompt.id for prompt in self.prompts if prompt not in fitting]
        progress.show("replaying the answers")
        figures = figures_of(answers, device)
        return AcceptanceSummary.of(engine, device, (self._longest, self._seed), len(self.prompts), skipped, figures)

    @property
    def _longest(self) -> int:
        return self.settings.max_tokens or LONGEST_ANSWER

    @property
    def _seed(self) -> int:
        return SEED if self.settings.seed is None else self.settings.seed

    def _fitting(self, engine: Engine) -> list[Task]:
        """The prompts that have room in the context with their answers. Raises UserError where none has."""
        template = template_of(engine)
        system = [Message("system", self.settings.system)] if self.settings.system else []
        tasks = [
            Task(prompt, tuple(template.encode([*system, Message("user", prompt.turns[0])]))) for prompt in self.prompts
        ]
        fitting = [task for task in tasks if 1 < len(task.tokens) <= engine.context_length - self._longest]
        if not fitting:
            raise UserError(
                f"No prompt fits into a context of {engine.context_length} tokens with an answer of {self._longest}; "
                "choose a larger --ctx or a smaller --max-tokens."
            )
        return fitting

    def _answers(self, engine: Engine, tasks: Sequence[Task], progress: Progress) -> list[Answers]:
        """The answers to all of them, or to those that there was time for; what was answered before is taken from the
        cache folder."""
        stop = template_of(engine).stop_strings
        cache = self._cache(engine, stop)
        found = {task: answers for task in tasks if (answers := cache.find(task.prompt, task.tokens))} if cache else {}
        if found:
            progress.tell(f"{len(found)} of {len(tasks)} prompts were measured before and are not measured again.")
        missing = [task for task in tasks if task not in found]
        show = _progress_line(progress, len(missing))
        if missing:
            longest_prompt = max(len(task.tokens) for task in missing)
            with Answering(engine, self._longest, self._seed, stop, longest_prompt) as answering:
                self.interruption.on_request = answering.stop
                for done, task in enumerate(missing):
                    show(task.prompt, done)
                    answers = answering.answer(task.prompt, task.tokens, lambda: self.interruption.requested)
                    if answers is None:
                        break
                    found[task] = answers
                    cache = _keep(cache, task, answers, progress)
                self.interruption.on_request = lambda: None
        return [found[task] for task in tasks if task in found]

    def _cache(self, engine: Engine, stop: Sequence[str]) -> AnswerCache | None:
        try:
            name = cache_name(engine.settings, self._longest, self._seed, stop)
            return AnswerCache(make_private(self.folders.cache) / _CACHE / name)
        except (OSError, UserError):
            # Answers can be made again every time.
            return None


def _with_fresh_costs(chosen: EngineSettings) -> EngineSettings:
    return replace(chosen, measure_costs=True, cost_file=None)


def _keep(cache: AnswerCache | None, task: Task, answers: Answers, progress: Progress) -> AnswerCache | None:
    """Keep what was measured; where that cannot be done, say so once and go on without a cache."""
    if cache is None:
        return None
    try:
        cache.keep(task.prompt, task.tokens, answers)
    except OSError as error:
        progress.tell(f"What is measured cannot be kept ({error.strerror}); if this is stopped, it begins anew.")
        return None
    return cache


def _progress_line(progress: Progress, total: int) -> Callable[[Prompt, int], None]:
    """Says what is under way, and how long the rest will take if it goes on like this."""
    started = time.monotonic()

    def show(prompt: Prompt, done: int) -> None:
        progress.show(f"{done} of {total} prompts{time_left(started, done, total)}: {printable(prompt.category)}")

    return show


def _shaped(summary: AcceptanceSummary, form: Form, look: Look) -> str:
    if form == "json":
        return json_text(document(summary))
    return markdown(summary) if form == "markdown" else text(summary, look)
