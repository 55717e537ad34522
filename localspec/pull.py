"""`localspec pull`: models from the hub."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localspec.console import Progress, say, write_out
from localspec.hub.catalog import usable_catalog
from localspec.hub.catalog_file import USER_CATALOG
from localspec.hub.download import megabytes
from localspec.hub.plan import Plan, PlannedModel
from localspec.hub.pull import fetch, plan_stoppably, problem_of
from localspec.hub.starter import FetchCancelledError
from localspec.interruption import Stoppable
from localspec.models_report import as_json
from localspec.program import EXIT_FAILED, EXIT_INTERRUPTED
from localspec.pull_bars import bars
from localspec.settings import Folders

EXIT_DONE = 0


@dataclass(frozen=True)
class Pull:
    """One use of the command."""

    folders: Folders
    interruption: Stoppable
    quiet: bool = False
    as_json: bool = False

    def run(self, names: Sequence[str]) -> int:
        """Say what comes, fetch it, say what is there. Returns the exit code; raises UserError."""
        shown = bars(self.quiet)
        try:
            what = self._plan(names)
            self._announce(what)
            try:
                fetch(what, shown.show, self._cancelled, shown.note)
            finally:
                shown.end()
        except FetchCancelledError:
            self._say(f"Stopped; what has come is kept, and localspec pull {' '.join(names)} goes on from there.")
            return EXIT_INTERRUPTED
        problems = {model.path: problem_of(model) for model in what.models}
        if self.as_json:
            written = write_out(as_json(_report(what, problems)))
        else:
            self._conclude(what, problems)
            written = EXIT_DONE
        for problem in filter(None, problems.values()):
            say(problem)
        return EXIT_FAILED if any(problems.values()) else written

    def _plan(self, names: Sequence[str]) -> Plan:
        catalog = usable_catalog(self.folders.config / USER_CATALOG)
        progress = Progress(self.quiet)
        progress.show("asking the hub")
        try:
            found = plan_stoppably(names, self.folders.models, catalog, self._cancelled, progress.show)
        finally:
            progress.clear()
        if catalog.problem:
            self._say(catalog.problem)
        return found

    def _cancelled(self) -> bool:
        return self.interruption.stop.asked

    def _announce(self, what: Plan) -> None:
        for model in what.models:
            if model.missing:
                here = model.bytes - model.missing
                rest = f", {megabytes(here)} of it are here" if here else ""
                self._say(f"{model.name}: {megabytes(model.bytes)} from {model.repository}{rest}.")
        if what.starter and what.starter.missing:
            self._say(f"{what.starter.starter.name}: {megabytes(what.starter.missing)}, the model to start with.")
        for name, verdict in what.verdicts:
            takes = f"with a context of {verdict.context:,} tokens it takes {megabytes(verdict.bytes)} of memory"
            self._say(f"{name}: {verdict.text}; {takes}.")

    def _conclude(self, what: Plan, problems: Mapping[Path, str]) -> None:
        for model in what.models:
            if problems[model.path]:
                continue
            places = {str(file.place.parent) for file in model.files if file.place}
            if places:
                self._say(f"{model.name} is used where it is, in {', '.join(sorted(places))}.")
            elif model.missing:
                self._say(f"{model.name} is here; localspec -m {model.name} chats with it.")
            else:
                self._say(f"{model.name} was here already.")
        if what.starter:
            self._say(f"{what.starter.starter.name} {'was here already' if what.starter.is_here else 'is here'}.")

    def _say(self, sentence: str) -> None:
        if not self.quiet:
            say(sentence)


def _report(what: Plan, problems: Mapping[Path, str]) -> dict[str, Any]:
    models = [{**_model_report(model), "problem": problems[model.path] or None} for model in what.models]
    if what.starter:
        starter = what.starter.starter
        models.append(
            {
                "name": starter.name,
                "path": str(what.starter.path),
                "bytes": starter.bytes,
                "quantization": "Q4_1",
                "repository": None,
                "commit": None,
                "state": "here" if what.starter.is_here else "downloaded",
                "problem": None,
            }
        )
    return {
        "models": models,
        "downloaded_bytes": what.bytes_to_download,
        "verdicts": {
            name: {"text": verdict.text, "fits": verdict.fits, "context": verdict.context, "bytes": verdict.bytes}
            for name, verdict in what.verdicts
        },
    }


def _model_report(model: PlannedModel) -> dict[str, Any]:
    in_place = any(file.place for file in model.files)
    return {
        "name": model.name,
        "path": str(model.path),
        "bytes": model.bytes,
        "quantization": model.quantization or None,
        "repository": model.repository,
        "commit": model.files[0].file.commit if model.files else None,
        "state": "in place" if in_place else "downloaded" if model.missing else "here",
    }
