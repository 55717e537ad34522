"""The command line of `localspec doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from localspec.cli_input import settings_of
from localspec.cli_options import CONTEXT, ModelCommand, model_options
from localspec.program import Before, WrongUsageError

_EPILOG = """An audit writes answers of 64 tokens unless --max-tokens says otherwise, always
greedily, with every drafter there is unless --drafter names one.

docs/measure.md defines every number, docs/exactness.md says what an audit shows."""


@click.command(cls=ModelCommand, heading="Checks", context_settings=CONTEXT, epilog=_EPILOG)
@model_options
@click.option("--measure", is_flag=True, help="Time what passes cost anew.")
@click.option("--audit", is_flag=True, help="Whether drafting changes a greedy text here.")
@click.option("--bit-exact", is_flag=True, help="Look for settings equal in every bit.")
@click.option("--prompts", metavar="FILE", type=click.Path(path_type=Path), help="Of the audit, as in Spec-Bench.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
@click.pass_context
def doctor(context: click.Context, /, **given: Any) -> int:
    """Look at this machine and its models.

    Versions, back ends, devices, memory, threads, and where files are; with a
    model what passes cost here, what drafting can gain by that, whether the
    draft model goes with it, and what could be better. Passes are timed once
    for a model and its settings, and then again with --measure: best on a
    machine that has nothing else to do.

    \b
    Examples:
      localspec doctor
      localspec doctor -m large.gguf -d small.gguf --audit
      localspec doctor -m large.gguf --measure
      localspec doctor --bit-exact --json
    """
    before = context.find_object(Before) or Before()
    before.debug = before.debug or given.pop("debug")
    if given["prompts"] and not given["audit"]:
        raise WrongUsageError("Prompts are for the audit; add --audit, or leave out --prompts.")
    settings = settings_of(before.given, given)
    if given["audit"] and settings.drafter == "none":
        raise WrongUsageError("Without a drafter there is nothing to audit; leave out --drafter none.")

    from localspec.doctor import Doctor
    from localspec.doctor_audit import Auditor
    from localspec.interruption import Interruption
    from localspec.settings import find_folders

    wanted = given["audit"] or given["bit_exact"]
    auditor = Auditor(given["audit"], given["bit_exact"], given["prompts"]) if wanted else None
    with Interruption() as interruption:
        doctor = Doctor(
            settings, find_folders(), interruption, given["as_json"], given["quiet"], auditor, given["measure"]
        )
        return doctor.run()
