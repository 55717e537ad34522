"""`localspec measure theory`: the mathematics of drafting, checked by simulation and applied to a cost curve."""

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from localspec.console import Progress, json_text, one_line, write_out
from localspec.engine.costs import CostCurve
from localspec.engine.errors import ModelError, UserError
from localspec.engine.measuring import load_curve
from localspec.hub.catalog import load_catalog
from localspec.hub.catalog_file import USER_CATALOG
from localspec.hub.resolve import resolve
from localspec.measure.plots import check_plot_file, save_charts
from localspec.measure.profiles import PROFILES
from localspec.measure.text_plot import Look
from localspec.measure.theory_report import document, markdown, text
from localspec.measure.theory_study import USUAL_DRAFT_COST, Curve, study
from localspec.program import PROGRAM, WrongUsageError
from localspec.settings import Folders

Form = Literal["text", "json", "markdown"]

_COST_FILE = "costs.json"


@dataclass(frozen=True)
class TheoryRun:
    """One use of the command."""

    folders: Folders
    samples: int
    seed: int
    profile: str | None = None
    """The name of a device profile, or a model whose passes have been measured on this machine."""
    draft_cost: float | None = None
    plot: Path | None = None
    form: Form = "text"
    quiet: bool = False

    def run(self) -> int:
        """Check, draw, report. Returns the exit code; raises UserError."""
        if self.plot:
            try:
                check_plot_file(self.plot)
            except UserError as error:
                # Said before any work, as about every other option.
                raise WrongUsageError(str(error)) from error
        curve, draft_cost = self._curve()
        progress = Progress(self.quiet)
        progress.show(f"simulating {self.samples:,} tokens")
        try:
            found = study(self.samples, self.seed, curve, draft_cost)
            if self.plot:
                progress.show(f"drawing {self.plot.name}")
                save_charts(found.charts(), self.plot)
        finally:
            progress.clear()
        if self.form == "json":
            return write_out(json_text(document(found)))
        if self.form == "markdown":
            return write_out(markdown(found))
        look = terminal_look()
        # The names in it are printable, the only control characters are our own colors.
        return write_out(text(found, look), colored=look.color)

    def _curve(self) -> tuple[Curve | None, float]:
        """The curve that was asked for, and the cost of a draft step."""
        profile = PROFILES.get((self.profile or "").lower())
        usual = profile.draft_step if profile else USUAL_DRAFT_COST
        draft_cost = usual if self.draft_cost is None else self.draft_cost
        if profile:
            return Curve(profile.name, profile.source, profile.target_ms), draft_cost
        if self.profile is None:
            return None, draft_cost
        return self._measured(self.profile), draft_cost

    def _measured(self, ref: str) -> Curve:
        """The curve of a model that an earlier run on this machine has measured."""
        try:
            model = resolve(ref, self.folders.models, lambda: load_catalog(self.folders.config / USER_CATALOG))
        except ModelError as error:
            raise WrongUsageError(
                f"{one_line(ref)} is neither a profile ({', '.join(PROFILES)}) nor a model that is here "
                f"({str(error).rstrip('.')}); give one of the two."
            ) from error
        file = self.folders.cache / _COST_FILE
        found = measured_curve(file, model)
        measuring = f'{PROGRAM} run -m {one_line(ref)} "Hello."'
        if found is None:
            raise UserError(
                f"What passes of {one_line(model.stem)} cost here has not been measured yet; {measuring} does it."
            )
        how, curve = found
        widths = ", ".join(map(str, curve.table()))
        return Curve(one_line(model.stem), f"measured on this machine at widths {widths}; {one_line(how)}", curve.ms)


def measured_curve(file: Path, model: Path) -> tuple[str, CostCurve] | None:
    """What passes of `model` cost on this machine, from the file of measured costs, and how the model ran; the curve over
    most widths where there are several (that of a target, not of a draft), of these the last one. None without any."""
    try:
        keys = list(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    own = [(key, curve) for key in keys if key.startswith(f"{model.name}/") and (curve := load_curve(file, key))]
    if not own:
        return None
    key, curve = max(reversed(own), key=lambda found: len(found[1].table()))
    return ", ".join(key.split("/")[2:]), curve


def terminal_look() -> Look:
    """What stdout can show: colors on a terminal that has them and unless NO_COLOR is set; ASCII alone on a dumb one, or
    where the locale has nothing else."""
    dumb = os.environ.get("TERM") == "dumb"
    encoding = (sys.stdout.encoding or "ascii") if sys.stdout else "ascii"
    unicode = encoding.lower().replace("-", "").startswith("utf")
    terminal = sys.stdout is not None and sys.stdout.isatty()
    return Look(ascii_only=dumb or not unicode, color=terminal and not dumb and not os.environ.get("NO_COLOR"))
