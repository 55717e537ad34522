"""`localspec bench --edits`: ways of drafting an edited text, on simulated devices."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from localspec.chat.conversation import template_of
from localspec.chat.document_spans import document_spans
from localspec.chat.messages import Document, Message, attach_documents
from localspec.console import Progress, json_text, write_out
from localspec.engine.drafters.place import Span
from localspec.engine.engine import Engine, EngineSettings
from localspec.engine.errors import UserError
from localspec.engine.llama import LOGGER_NAME, LoadCancelledError
from localspec.hub.starter import FetchCancelledError
from localspec.interruption import Stoppable
from localspec.launch import load_engine
from localspec.logs import log_to_file
from localspec.measure.edit_arms import chosen_edit_arms
from localspec.measure.edit_replay import EditAnswer, EditArm, Piece, Replay, Replayed, Words, answer_of
from localspec.measure.edit_report import EditSummary, document, markdown, text
from localspec.measure.edit_verdict import EditVerdict
from localspec.measure.edits import EditPair, Half, edit_pairs
from localspec.measure.profiles import PROFILES, Profile
from localspec.program import EXIT_INTERRUPTED
from localspec.run import EXIT_DONE
from localspec.settings import Folders, Settings

_DOCUMENT_NAME = "text"

Form = Literal["text", "json", "markdown"]


@dataclass(frozen=True, slots=True)
class EditComparison:
    """What to compare."""

    half: Half
    arms: tuple[EditArm, ...]
    profiles: tuple[Profile, ...]


def chosen_arms(names: str | None) -> tuple[EditArm, ...]:
    """The arms by name, or all of them without names. Raises UserError."""
    return chosen_edit_arms(names)


def chosen_profiles(name: str | None) -> tuple[Profile, ...]:
    """The device to simulate, or all of them without a name."""
    return (PROFILES[name],) if name else tuple(PROFILES.values())


class Answers:
    """Pairs as a loaded model would have met and answered them."""

    def __init__(self, engine: Engine, system: str | None) -> None:
        self._template, self._system = template_of(engine), system
        self._words = engine.target.vocabulary

    def of(self, pairs: Sequence[EditPair]) -> list[EditAnswer]:
        """Their tokens."""
        words: Words = self._words
        return [answer_of(pair, self._render, words) for pair in pairs]

    @property
    def piece(self) -> Piece:
        """The bytes of a token."""
        words = self._words

        def piece(token: int) -> bytes:
            return words.piece(token)

        return piece

    def _render(self, source: str, instruction: str) -> tuple[list[int], Span]:
        """As a chat would read it. Raises UserError where a template loses the document."""
        system = [Message("system", self._system)] if self._system else []
        words = attach_documents([Document(_DOCUMENT_NAME, source)], instruction)
        prompt = self._template.encode([*system, Message("user", words)])
        spans = document_spans(prompt, self._words.piece)
        if not spans:
            raise UserError("This model's chat template changes the documents of a message; choose another model.")
        return prompt, spans[-1]


@dataclass(frozen=True)
class EditBenchRun:
    """One use of the command."""

    settings: Settings
    folders: Folders
    interruption: Stoppable
    comparison: EditComparison
    form: Form = "text"
    quiet: bool = False

    def run(self) -> int:
        """Load, replay, report. Returns the exit code; raises UserError."""
        log_to_file(self.folders.logs, LOGGER_NAME)
        progress = Progress(self.quiet)
        settings = replace(self.settings, drafter="auto", draft=None)
        try:
            with load_engine(settings, self.folders, progress, self.interruption, _without_costs) as engine:
                summary = self._compare(engine, progress)
        except (LoadCancelledError, FetchCancelledError):
            return EXIT_INTERRUPTED
        finally:
            progress.clear()
        write_out(_SHAPES[self.form](summary))
        return EXIT_DONE if summary.complete else EXIT_INTERRUPTED

    def _compare(self, engine: Engine, progress: Progress) -> EditSummary:
        comparison = self.comparison
        answers = Answers(engine, self.settings.system)
        edits = answers.of(edit_pairs(comparison.half))
        training = answers.of(edit_pairs("design")) if comparison.half == "held-out" else None
        verdicts: list[EditVerdict] = []
        for profile in comparison.profiles:
            replayed: dict[str, list[Replayed]] = {}
            for arm in comparison.arms:
                replay = Replay(arm, profile, answers.piece)
                found = replay.run_folds(edits) if training is None else replay.run(edits, training)
                replayed[arm.name] = []
                for one in found:
                    if self.interruption.stop.asked:
                        break
                    replayed[arm.name].append(one)
                    progress.show(f"{profile.name}, {arm.name}: {len(replayed[arm.name])} of {len(edits)} edits")
            if self.interruption.stop.asked:
                break
            verdicts.append(EditVerdict(profile.name, replayed))
        return EditSummary(
            model=engine.settings.target.stem,
            half=comparison.half,
            arms=tuple(arm.name for arm in comparison.arms),
            edits=tuple(edits),
            verdicts=tuple(verdicts),
            complete=len(verdicts) == len(comparison.profiles),
        )


def _without_costs(chosen: EngineSettings) -> EngineSettings:
    return replace(chosen, measure_costs=False, cost_file=None)


_SHAPES: dict[Form, Callable[[EditSummary], str]] = {
    "text": text,
    "markdown": markdown,
    "json": lambda summary: json_text(document(summary)),
}
