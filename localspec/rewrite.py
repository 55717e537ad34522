"""`localspec rewrite`: texts rewritten by an instruction."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from localspec.chat.conversation import template_of
from localspec.chat.document_spans import document_spans
from localspec.chat.rewrite import (
    Finished,
    OnPrompt,
    PartDone,
    PartFailed,
    Reading,
    Request,
    Rewriting,
    Started,
    Wrote,
    digest_of,
)
from localspec.chat.rewrite_options import rewrite_settings
from localspec.chat.text_bytes import TextBytes, text_of
from localspec.chat.text_file import TextFile, check_writable, read_text_file
from localspec.console import Progress, abandon, json_text, say, write_out
from localspec.engine.engine import Engine, Options
from localspec.engine.errors import UserError
from localspec.engine.llama import LOGGER_NAME, LoadCancelledError
from localspec.engine.step import Finish, Step, Totals
from localspec.hub.starter import FetchCancelledError
from localspec.interruption import Stoppable
from localspec.launch import load_engine, options
from localspec.logs import log_to_file
from localspec.program import EXIT_FAILED, EXIT_INTERRUPTED
from localspec.report import Prompts, figures, median_plain, plain_ms
from localspec.rewrite_output import Collected, Comparison, File, Outlet, Stream, colors_wanted
from localspec.settings import Folders, Settings

EXIT_DONE = 0


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be done, and where the result goes: to stdout unless said otherwise."""

    instruction: str
    files: tuple[Path, ...] = ()
    piped: bytes | None = None
    """The text, where there are no files."""
    output: Path | None = None
    in_place: bool = False
    backup: bool = False
    diff: bool = False
    as_json: bool = False


@dataclass(frozen=True, slots=True)
class _Source:
    """One text."""

    content: TextBytes
    file: TextFile | None = None

    @property
    def name(self) -> str:
        """As it was given."""
        return self.file.shown if self.file else "stdin"

    @property
    def short_name(self) -> str:
        """Without the folders, which would push the figures out of a line."""
        return Path(self.name).name


@dataclass(slots=True)
class _Figures:
    """What is measured while one text is rewritten."""

    totals: Totals = field(default_factory=Totals)
    prompts: Prompts = field(default_factory=Prompts)
    plain: list[float] = field(default_factory=list)
    parts: int = 0
    reasons: dict[int, str] = field(default_factory=dict)
    """Why parts failed, by their numbers."""

    def add(self, step: Step) -> None:
        """Count one more step."""
        self.totals.add(step)
        if (ms := plain_ms(step)) is not None:
            self.plain.append(ms)


@dataclass
class Rewrite:
    """One use of the command."""

    settings: Settings
    folders: Folders
    interruption: Stoppable
    job: Job
    quiet: bool = False

    def __post_init__(self) -> None:
        self._progress = Progress(self.quiet)
        self._documents: list[dict[str, Any]] = []
        self._code = EXIT_DONE

    def run(self) -> int:
        """Load, rewrite, report. Returns the exit code; raises UserError."""
        sources = self._sources()
        log_to_file(self.folders.logs, LOGGER_NAME)
        try:
            with load_engine(self.settings, self.folders, self._progress, self.interruption) as engine:
                chosen = _options(self.settings, engine)
                for source in sources:
                    if self._code != EXIT_INTERRUPTED:
                        self._try(engine, chosen, source, alone=len(sources) == 1)
            if self.job.as_json:
                write_out(json_text({"files": self._documents}))
        except (LoadCancelledError, FetchCancelledError):
            return EXIT_INTERRUPTED
        except BrokenPipeError:
            # Whoever read our output has seen enough.
            abandon(sys.stdout)
        finally:
            self._progress.clear()
        return self._code

    def _sources(self) -> list[_Source]:
        """Read everything before a model is loaded in vain."""
        job = self.job
        # A file that was named twice would have changed by itself when its second turn comes.
        files = {file.path: file for file in reversed([read_text_file(path) for path in job.files])}
        sources = [_Source(file.content, file) for file in reversed(files.values())]
        if job.piped is not None:
            sources.append(_Source(text_of(job.piped, "The text on stdin")))
        if not any(source.content.text.strip() for source in sources):
            names = "The text on stdin is" if job.piped is not None else f"{sources[0].name} is"
            raise UserError(f"{names} empty; there is nothing to rewrite.")
        if job.output is not None:
            check_writable(job.output)
        for path in job.files if job.in_place else ():
            check_writable(path)
        if job.output is None and not job.in_place and sys.stdout is None:
            raise UserError("There is no stdout to write the text to; name a file with -o.")
        return sources

    def _try(self, engine: Engine, chosen: Options, source: _Source, alone: bool) -> None:
        """Rewrite one text. Where there are several, what goes wrong with one is no reason to leave out the others."""
        try:
            with closing(self._outlet(source)) as outlet:
                self._rewrite(engine, chosen, source, outlet)
        except UserError as error:
            if alone:
                raise
            self._progress.clear()
            say(str(error))
            self._code = EXIT_FAILED

    def _outlet(self, source: _Source) -> Outlet:
        job, content, file = self.job, source.content, source.file
        target = job.output or (Path(file.shown) if file and job.in_place else None)
        if target:
            return File(content, digest_of(content.text, job.instruction), file, target, job.backup)
        if job.diff:
            return Comparison(content, source.name)
        return Collected(content) if job.as_json else Stream(content, sys.stdout)

    def _rewrite(self, engine: Engine, chosen: Options, source: _Source, outlet: Outlet) -> None:
        measured = _Figures()
        writer = _Writer(engine, chosen, measured, self.interruption)
        rewriting = Rewriting(
            source.content.text,
            self.job.instruction,
            writer.ask,
            writer.count,
            engine.context_length,
            system=self.settings.system,
            max_tokens=self.settings.max_tokens,
            on_reading=lambda reading: self._show_reading(source, reading, measured),
            objection=source.content.objection,
            state=outlet.state,
            stop=self.interruption.stop,
        )
        finished = self._follow(rewriting, source, outlet, measured)
        self._progress.clear()
        self._report(engine, chosen, source, outlet, measured, finished)

    def _follow(self, rewriting: Rewriting, source: _Source, outlet: Outlet, measured: _Figures) -> Finished:
        """Hand over what comes. Returns how it ended."""
        text, begun = source.content.text, ""
        at = rewriting.state.source_position
        for event in rewriting:
            match event:
                case Started():
                    measured.parts = event.parts
                case Wrote():
                    measured.add(event.step)
                    begun += event.text
                    self._show(source, event, rewriting, measured)
                case PartDone() | PartFailed():
                    if isinstance(event, PartFailed):
                        measured.reasons[event.index] = event.reason
                    self._hand_over(outlet, text[at : event.source_position], event, rewriting)
                    at, begun = event.source_position, ""
                case Finished():
                    finished = event
        if finished.finish is Finish.INTERRUPTED:
            self._code = EXIT_INTERRUPTED
            if (kept := outlet.interrupted(begun, rewriting.state)) and not self.quiet:
                self._progress.clear()
                say(kept)
        else:
            outlet.end(text)
        return finished

    def _hand_over(self, outlet: Outlet, source: str, event: PartDone | PartFailed, rewriting: Rewriting) -> None:
        """A part that its file cannot take is not lost: it goes to stdout, where nothing else is written."""
        try:
            outlet.part(source, event.text, rewriting.state)
        except UserError as error:
            if not isinstance(outlet, File) or self.job.as_json or event.text == source:
                raise
            self._progress.clear()
            with suppress(UserError):
                write_out(event.text)
            raise UserError(f"{str(error).removesuffix('.')}; what was written last is on stdout.") from error

    def _report(
        self,
        engine: Engine,
        chosen: Options,
        source: _Source,
        outlet: Outlet,
        measured: _Figures,
        finished: Finished,
    ) -> None:
        """Say what came of it."""
        if finished.failed:
            self._code = self._code or EXIT_FAILED
            say(_failure(source.name, measured, finished))
        links = source.file.links if source.file and outlet.path and outlet.changed and self.job.in_place else 1
        if links > 1 and not self.quiet and finished.finish is not Finish.INTERRUPTED:
            say(f"{source.name} was known by {links} names (hard links); the other ones keep the old text.")
        if isinstance(outlet, Comparison) and not self.job.as_json:
            colored = colors_wanted(sys.stdout)
            write_out(outlet.lines(colored), colored=colored)
        if self.job.as_json:
            self._documents.append(_document(engine, chosen, source, outlet, measured, finished))

    def _show(self, source: _Source, event: Wrote, rewriting: Rewriting, measured: _Figures) -> None:
        share = event.source_position / max(1, len(source.content.text))
        part = f", part {rewriting.state.part + 1} of {measured.parts}" if measured.parts > 1 else ""
        rate = measured.totals.tokens_per_step
        speed = f", {rate:.1f} tokens per step" if rate else ""
        self._progress.show(f"rewriting {source.short_name} {share:4.0%}{part}{speed}")

    def _show_reading(self, source: _Source, reading: Reading, measured: _Figures) -> None:
        part = f"part {reading.part + 1} of {measured.parts} of " if measured.parts > 1 else ""
        self._progress.show(f"reading {part}{source.short_name} {reading.done / max(1, reading.total):4.0%}")


@dataclass(frozen=True, slots=True)
class _Writer:
    """Asks the engine, and counts."""

    engine: Engine
    options: Options
    measured: _Figures
    interruption: Stoppable

    def count(self, text: str) -> int:
        """The tokens of a text."""
        return len(self.engine.target.vocabulary.tokenize(text, special=False))

    def ask(self, request: Request, on_prompt: OnPrompt) -> Iterator[Step]:
        """Stream the answer to a request."""

        template = template_of(self.engine)
        prompt = template.encode(request.messages)
        if request.begun:
            prompt += template.continuation(request.begun)
        ends = (*self.options.stop, *template.stop_strings)
        chosen = replace(self.options, max_tokens=request.max_tokens, stop=ends, rewrites=True)
        documents, stop = document_spans(prompt, self.engine.target.vocabulary.piece), self.interruption.stop
        counted = False
        for step in self.engine.generate(prompt, chosen, on_prompt, documents=documents, stop=stop):
            if not counted:
                self.measured.prompts.add(self.engine)
                counted = True
            yield step


def _options(settings: Settings, engine: Engine) -> Options:
    chosen = options(rewrite_settings(settings), engine)
    seed = settings.seed if settings.seed is not None else int.from_bytes(os.urandom(4))
    # One seed for all parts, and it is the one that is reported.
    return replace(chosen, seed=seed, verification=chosen.resolved_verification)


def _failure(name: str, measured: _Figures, finished: Finished) -> str:
    """The sentence about failed parts."""
    count, index = len(finished.failed), finished.failed[0]
    reason = next((measured.reasons[part] for part in finished.failed if part in measured.reasons), "failed")
    if measured.parts == 1:
        return f"The rewritten text of {name} {reason}, so it keeps its text; try another instruction or model."
    first = f"part {index + 1}" if count == 1 else f"{count} parts"
    keeps = "keeps its text" if count == 1 else "keep their text"
    failed = f"Of the {measured.parts} parts of {name}, {first} could not be rewritten and {keeps} ({reason})"
    return f"{failed}; try another model for it."


def _document(
    engine: Engine, chosen: Options, source: _Source, outlet: Outlet, measured: _Figures, finished: Finished
) -> dict[str, Any]:
    """One entry of the document of --json."""
    values = figures(engine, measured.totals, measured.prompts, median_plain(measured.plain), chosen)
    if finished.finish is Finish.INTERRUPTED or values["finish_reason"] is None:
        values["finish_reason"] = finished.finish.value
    return {
        "file": source.file.shown if source.file else None,
        "output": str(outlet.path) if outlet.path else None,
        "text": outlet.text if isinstance(outlet, Collected) else None,
        **values,
        "parts": measured.parts,
        "failed": [{"part": index + 1, "reason": measured.reasons.get(index)} for index in finished.failed],
        "changed": outlet.changed,
    }
