"""`localspec measure acceptance`: how often a pair's drafts are right, and what that is worth on this machine."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

from localspec.chat.conversation import template_of
from localspec.chat.document_spans import document_spans
from localspec.chat.messages import Message
from localspec.console import Progress, json_text, write_out
from localspec.durations import time_left
from localspec.engine.engine import Engine, EngineSettings, Options
from localspec.engine.errors import UserError
from localspec.engine.llama import LOGGER_NAME, LoadCancelledError
from localspec.hub.starter import FetchCancelledError
from localspec.interruption import Stoppable
from localspec.launch import load_engine
from localspec.logs import log_to_file
from localspec.measure.acceptance_answers import GREEDY, Answering, Answers
from localspec.measure.acceptance_cache import AnswerCache, cache_name
from localspec.measure.acceptance_report import AcceptanceSummary, chart, document, markdown, text
from localspec.measure.acceptance_table import Reading, device_of, figures_of
from localspec.measure.arms import Arm
from localspec.measure.bench import Bench
from localspec.measure.plots import check_plot_file, save_charts
from localspec.measure.prompts import Prompt, limit_per_category, load_prompts
from localspec.measure.report import printable
from localspec.measure.text_plot import Look
from localspec.measure.wall_clock import TimedPrompt, arms_to_time, timed
from localspec.measure_theory import terminal_look
from localspec.program import EXIT_INTERRUPTED, WrongUsageError
from localspec.run import EXIT_DONE
from localspec.settings import Folders, Settings, make_private

LONGEST_ANSWER = 128
SEED = 0
MOST_MEASURING = 60.0
"""Seconds. What is modelled comes from these times, so every width gets the time that it takes, even on a slow machine."""
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
    wall_clock: bool = False
    """Time real answers, too."""

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
        write_out(_shaped(summary, self.form, look), colored=self.form == "text" and look.color)
        if self.plot and summary.figures:
            save_charts([chart(summary)], self.plot)
        return EXIT_DONE if summary.complete else EXIT_INTERRUPTED

    def _measure(self, engine: Engine, progress: Progress) -> AcceptanceSummary:
        if self.plot and engine.draft is None:
            raise UserError("The picture shows a draft model's acceptance; name one with --draft, or leave out --plot.")
        # Before anything is answered: these are the costs that were just measured.
        device = device_of(engine.costs)
        tasks = self._fitting(engine)
        cache = self._cache(engine)
        found = self._answers(engine, tasks, cache, progress)
        answered = [task for task in tasks if task in found]
        times = self._times(engine, answered, cache, progress) if self.wall_clock else None
        fitting = {task.prompt for task in tasks}
        skipped = [prompt.id for prompt in self.prompts if prompt not in fitting]
        progress.show("replaying the answers")
        figures = figures_of([found[task] for task in answered], device, _reading(engine))
        asked = self._longest, self._seed
        clocked = None if times is None else [times.get(task) for task in answered]
        return AcceptanceSummary.of(engine, device, asked, len(self.prompts), skipped, figures, clocked)

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

    def _answers(
        self, engine: Engine, tasks: Sequence[Task], cache: AnswerCache | None, progress: Progress
    ) -> dict[Task, Answers]:
        """The answers to all of them, or to those that there was time for; what was answered before is taken from the
        cache."""
        stop = template_of(engine).stop_strings
        found = {task: answers for task in tasks if (answers := cache.find(task.prompt, task.tokens))} if cache else {}
        if found:
            progress.tell(f"{len(found)} of {len(tasks)} prompts were measured before and are not measured again.")
        missing = [task for task in tasks if task not in found]
        show = _progress_line(progress, len(missing), "prompts")
        if missing:
            longest_prompt = max(len(task.tokens) for task in missing)
            with Answering(engine, self._longest, self._seed, stop, longest_prompt) as answering:
                for done, task in enumerate(missing):
                    show(task.prompt.category, done)
                    answers = answering.answer(task.prompt, task.tokens, self.interruption.stop)
                    if answers is None:
                        break
                    found[task] = answers
                    cache = _keep(cache, partial(AnswerCache.keep, answers=answers), task, progress)
        return found

    def _times(
        self, engine: Engine, tasks: Sequence[Task], cache: AnswerCache | None, progress: Progress
    ) -> dict[Task, TimedPrompt]:
        """Real answers to all of them, by every arm in turn, likewise."""
        found = (
            {task: times for task in tasks if (times := cache.find_timed(task.prompt, task.tokens))} if cache else {}
        )
        if found and cache:
            since = min(times.day for times in found.values())
            progress.tell(
                f"{len(found)} of {len(tasks)} prompts were timed before, since {since}; remove {cache.folder} to have "
                "everything measured anew."
            )
        missing = [task for task in tasks if task not in found]
        bench = self._bench(engine, missing)
        arms = len(arms_to_time(engine.draft is not None))
        show = _progress_line(progress, len(missing) * arms, "timed answers")

        def showing(prompt: Prompt, arm: Arm, done: int, _total: int) -> None:
            show(f"{prompt.category}, {arm.name}", done)

        rounds = bench.rounds([task.prompt for task in missing], 1, showing, self.interruption.stop)
        for task, round_ in zip(missing, rounds, strict=False):
            found[task] = times = timed(round_)
            cache = _keep(cache, partial(AnswerCache.keep_timed, timed=times), task, progress)
        return found

    def _bench(self, engine: Engine, tasks: Sequence[Task]) -> Bench:
        """That of `localspec bench`, for prompts that are tokens already."""
        tokens = {task.prompt.turns[0]: list(task.tokens) for task in tasks}
        options = Options(
            sampling=GREEDY,
            verification="match",
            seed=self._seed,
            max_tokens=self._longest,
            stop=template_of(engine).stop_strings,
        )
        arms = arms_to_time(engine.draft is not None)
        return Bench(engine, arms, options, tokens.__getitem__, documents=_reading(engine).documents)

    def _cache(self, engine: Engine) -> AnswerCache | None:
        try:
            stop = template_of(engine).stop_strings
            name = cache_name(engine.settings, self._longest, self._seed, stop)
            return AnswerCache(make_private(self.folders.cache) / _CACHE / name)
        except (OSError, UserError):
            # Answers can be made again every time.
            return None


def _with_fresh_costs(chosen: EngineSettings) -> EngineSettings:
    return replace(chosen, measure_costs=True, cost_file=None, measure_seconds=MOST_MEASURING)


def _reading(engine: Engine) -> Reading:
    """What the engine knows of a prompt when it answers in a chat."""
    piece = engine.target.vocabulary.piece
    return Reading(piece, lambda tokens: document_spans(tokens, piece))


def _keep(
    cache: AnswerCache | None,
    keep: Callable[[AnswerCache, Prompt, Sequence[int]], None],
    task: Task,
    progress: Progress,
) -> AnswerCache | None:
    """Keep what was measured; where that cannot be done, say so once and go on without a cache."""
    if cache is None:
        return None
    try:
        keep(cache, task.prompt, task.tokens)
    except OSError as error:
        progress.tell(f"What is measured cannot be kept ({error.strerror}); if this is stopped, it begins anew.")
        return None
    return cache


def _progress_line(progress: Progress, total: int, things: str) -> Callable[[str, int], None]:
    """Says what is under way, and how long the rest will take if it goes on like this."""
    started = time.monotonic()

    def show(what: str, done: int) -> None:
        progress.show(f"{done} of {total} {things}{time_left(started, done, total)}: {printable(what)}")

    return show


def _shaped(summary: AcceptanceSummary, form: Form, look: Look) -> str:
    if form == "json":
        return json_text(document(summary))
    return markdown(summary) if form == "markdown" else text(summary, look)
