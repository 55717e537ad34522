"""The command lines of `localspec measure`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import click
from click.shell_completion import CompletionItem

from localspec.cli_input import settings_of
from localspec.cli_options import CONTEXT, ModelCommand, installed_names, message_options, model_options
from localspec.program import Before, CommandGroup, WrongUsageError

_PROFILES = ("cuda", "mlx", "cpu", "metal")
_Form = Literal["json", "markdown", "text"]


@click.group(cls=CommandGroup, context_settings=CONTEXT)
def measure() -> None:
    """Measure what drafting can gain, on your models and in theory.

    docs/measure.md defines every number.

    \b
    Examples:
      localspec measure acceptance -m large.gguf -d small.gguf
      localspec measure theory
      localspec measure theory --profile cuda --plot theory.svg
    """


def _between(low: float, high: float) -> Callable[[click.Context, click.Parameter, float | None], float | None]:
    def check(_context: click.Context, _option: click.Parameter, value: float | None) -> float | None:
        if value is not None and not low <= value <= high:
            raise click.BadParameter(f"give a number from {low:.15g} to {high:.15g}")
        return value

    return check


def _profiles(_context: click.Context, _option: click.Parameter, incomplete: str) -> list[CompletionItem]:
    # Bash looks for files only where no name fits.
    words = [CompletionItem(word) for word in (*_PROFILES, *installed_names()) if word.startswith(incomplete)]
    return [CompletionItem(incomplete, type="file"), *words]


_samples, _seed, _cost = _between(1000, 100_000_000), _between(0, (1 << 32) - 1), _between(0.0, 10.0)


def _form(as_json: bool, as_markdown: bool) -> _Form:
    if as_json and as_markdown:
        raise WrongUsageError("A report has one form; choose one of --json and --markdown.")
    return "json" if as_json else "markdown" if as_markdown else "text"


@measure.command(context_settings=CONTEXT)
@click.option("--samples", metavar="N", type=int, callback=_samples, default=1_000_000, help="Draws.  [1000000]")
@click.option("--seed", metavar="N", type=int, callback=_seed, default=0, help="Same seed, same figures.  [0]")
@click.option("--profile", metavar="WHAT", shell_complete=_profiles, help=f"{', '.join(_PROFILES)}, or a model.")
@click.option("--draft-cost", metavar="C", type=float, callback=_cost, help="Of a draft step.  [the profile's, or 0.1]")
@click.option("--plot", metavar="FILE", type=click.Path(path_type=Path), help="Draw it, as .svg or .png.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Tables in Markdown.")
@message_options
def theory(as_json: bool, as_markdown: bool, quiet: bool, **given: Any) -> int:
    """Check the mathematics of drafting by simulation.

    The acceptance rule on a bad draft, tokens per step, speedup, and the best
    draft length: by formula and, where chance is in it, by drawing.

    A pass over several tokens costs as much as a pass over one, or with
    --profile what it costs on a device, or with a model on this machine, once
    that has been measured. A draft step costs C passes of the target.

    \b
    Examples:
      localspec measure theory
      localspec measure theory --profile cuda --plot theory.svg
      localspec measure theory --seed 7 --json
    """
    form = _form(as_json, as_markdown)

    from localspec.measure_theory import TheoryRun
    from localspec.settings import find_folders

    return TheoryRun(find_folders(), form=form, quiet=quiet, **given).run()


_FIXED = ("drafter", "draft_max", "verification", "temp", "top_k", "top_p", "min_p")
_FIXED_PENALTIES = ("repeat_penalty", "frequency_penalty", "presence_penalty")
_ACCEPTANCE_EPILOG = """Answers are greedy, and sampled at temperature 1 with the random numbers of
seed 0, up to 128 tokens long, unless --seed and --max-tokens say otherwise.
Prompts that are finished stay in the cache folder: stop with Ctrl-C, and the
same command goes on from there."""


@measure.command(cls=ModelCommand, heading="Measurement", context_settings=CONTEXT, epilog=_ACCEPTANCE_EPILOG)
@model_options
@click.option("--prompts", metavar="FILE", type=click.Path(path_type=Path), help="Lines as in Spec-Bench.  [our own]")
@click.option("--limit", metavar="N", type=int, callback=_between(1, 1 << 30), help="Prompts of each category.  [all]")
@click.option("--wall-clock", is_flag=True, help="Time real answers, too.")
@click.option("--plot", metavar="FILE", type=click.Path(path_type=Path), help="Draw it, as .svg or .png.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.option("--markdown", "as_markdown", is_flag=True, help="A table in Markdown.")
@click.option("--quiet", is_flag=True, help="No progress and no remarks on stderr.")
@click.pass_context
def acceptance(context: click.Context, /, as_json: bool, as_markdown: bool, **given: Any) -> int:
    """How often your draft model and lookup would be right.

    The target answers every prompt, and at each token of its answers the draft
    model and prompt lookup are asked what they would have said. Tokens per
    step are replays of the answers. Speedups are modelled: from what passes
    cost on this machine. With --wall-clock real answers are timed as well, by
    every way of drafting in turn, and their speedups stand beside the modelled
    ones. Without a draft model only lookup and localspec's own policy are
    measured. Of the options of sampling only --seed is taken, and none of
    those of drafting.

    docs/measure.md defines every number.

    \b
    Examples:
      localspec measure acceptance -m large.gguf -d small.gguf
      localspec measure acceptance -m large.gguf --limit 1 --max-tokens 64
      localspec measure acceptance -m large.gguf -d small.gguf --wall-clock
      localspec measure acceptance -m large.gguf -d small.gguf --plot it.svg
    """
    before = context.find_object(Before) or Before()
    before.debug = before.debug or given.pop("debug")
    form = _form(as_json, as_markdown)
    for name in (*_FIXED, *_FIXED_PENALTIES):
        if before.given.get(name) is not None or given.get(name) is not None:
            option = f"--{name.replace('_', '-')}"
            raise WrongUsageError(
                f"The table is greedy, and at temperature 1, with drafts of its own; leave out {option}."
            )
    settings = settings_of(before.given, given)

    from localspec.interruption import Interruption
    from localspec.measure_acceptance import AcceptanceRun, chosen_prompts
    from localspec.settings import find_folders

    prompts = chosen_prompts(given["prompts"], given["limit"])
    with Interruption() as interruption:
        folders, how = find_folders(), (form, given["quiet"], given["plot"], given["wall_clock"])
        return AcceptanceRun(settings, folders, interruption, prompts, *how).run()
