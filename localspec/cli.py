"""The command line: one command per task a person has. Nothing heavy is imported before a command needs it."""

import sys
from pathlib import Path
from typing import Any, Literal

import click

from localspec import __version__
from localspec.cli_doctor import doctor
from localspec.cli_input import piped, settings_of
from localspec.cli_measure import measure
from localspec.cli_models import models, rm
from localspec.cli_options import CONTEXT, ModelCommand, model_options
from localspec.cli_pull import pull
from localspec.cli_rewrite import rewrite
from localspec.cli_sessions import sessions
from localspec.console import Progress
from localspec.engine.errors import UserError
from localspec.program import PROGRAM, Before, Program, WrongUsageError
from localspec.settings import Settings, find_folders

_EPILOG = """Model, sampling and drafting can also be set in config.toml, as in top_k = 20,
and in the environment, as in LOCALSPEC_TOP_K=20."""


@click.group(
    PROGRAM, cls=Program, context_settings=CONTEXT, invoke_without_command=True, subcommand_metavar="[COMMAND]"
)
@model_options
@click.option("-c", "--continue", "goes_on", is_flag=True, help="Go on with the last chat.")
@click.version_option(__version__, prog_name=PROGRAM)
@click.pass_context
def cli(context: click.Context, /, debug: bool, goes_on: bool, **given: Any) -> int | None:
    """Chat with open models on your own laptop, faster than plain decoding,
    without changing what the model says. Without a command it opens the chat.

    \b
    Examples:
      localspec -m large.gguf -d small.gguf     with a model and its draft model
      localspec run "Why is the sky blue?"      one answer
      localspec run "Sum this up." < notes.md   about a document
    """
    before = context.find_object(Before) or Before()
    before.debug, before.given = debug, given
    return None if context.invoked_subcommand else _chat(settings_of({}, given), goes_on, before)


@cli.command(cls=ModelCommand, context_settings=CONTEXT, epilog=_EPILOG)
@click.argument("prompt", nargs=-1)
@model_options
@click.option("--json", "as_json", is_flag=True, help="One JSON document: the answer and its figures.")
@click.option("--jsonl", "as_jsonl", is_flag=True, help="One JSON line for each step, as it happens.")
@click.option("--quiet", is_flag=True, help="No progress and no remarks on stderr.")
@click.pass_context
def run(
    context: click.Context,
    /,
    prompt: tuple[str, ...],
    as_json: bool,
    as_jsonl: bool,
    quiet: bool,
    debug: bool,
    **given: Any,
) -> int:
    """Answer PROMPT on stdout, as it is written.

    Text that is piped in becomes an attached document; without PROMPT it is
    the prompt.

    \b
    Examples:
      localspec run "Why is the sky blue?"
      git diff | localspec run --temp 0 "Write a commit message for this."
      localspec run -m large.gguf -d small.gguf --json "Name ten rivers."
    """
    before = context.find_object(Before) or Before()
    before.debug = before.debug or debug
    if as_json and as_jsonl:
        raise WrongUsageError("An answer has one form; choose one of --json and --jsonl.")
    settings = settings_of(before.given, given)
    document = piped(sys.stdin, Progress(quiet))

    from localspec.interruption import Interruption
    from localspec.output import Form
    from localspec.run import Run

    with Interruption() as interruption:
        form: Form = "json" if as_json else "jsonl" if as_jsonl else "text"
        return Run(settings, find_folders(), interruption, form, quiet).answer(" ".join(prompt), document)


def _chat(settings: Settings, goes_on: bool, before: Before) -> int:
    if not (sys.stdin and sys.stdin.isatty() and sys.stdout and sys.stdout.isatty()):
        raise UserError(f"The chat needs a terminal; without one, write {PROGRAM} run and the question.")
    from localspec.logs import LOG_FILE

    folders = find_folders()
    log_file = folders.logs / LOG_FILE
    if before.watched:
        from localspec.watched import Aftermath, go_on_watched

        remedy = "your chats are kept: localspec -c goes on with the last one"
        before.goodbye = go_on_watched(Aftermath(log_file, remedy, draws=True))
    from localspec.chat_start import wanted
    from localspec.tui.run import run_chat

    return run_chat(
        wanted(settings, folders),
        log_file=log_file,
        data=folders.data,
        goes_on=goes_on,
        start=settings,
    )


_PROFILES = ("cuda", "mlx", "cpu", "metal")
_HALVES = ("design", "held-out")
_Form = Literal["json", "markdown", "text"]
_BENCH_EPILOG = """Unless asked otherwise, answers are greedy and up to 128 tokens long, and the
random numbers are those of seed 0. docs/measure.md defines every number."""


def _positive(_context: click.Context, _option: click.Parameter, value: int | None) -> int | None:
    if value is not None and value < 1:
        raise click.BadParameter("give a whole number from 1 on")
    return value


@cli.command(cls=ModelCommand, heading="Comparison", context_settings=CONTEXT, epilog=_BENCH_EPILOG)
@model_options
@click.option("--prompts", metavar="FILE", type=click.Path(path_type=Path), help="Lines as in Spec-Bench.  [our own]")
@click.option("--arms", metavar="LIST", help="What to compare; draft:3,suffix for example.")
@click.option("--repeat", metavar="N", type=int, callback=_positive, default=1, help="Rounds over all prompts.  [1]")
@click.option("--limit", metavar="N", type=int, callback=_positive, help="Prompts of each category.  [all]")
@click.option("--simulate", metavar="PROFILE", type=click.Choice(_PROFILES), help=f"{', '.join(_PROFILES)}: its times.")
@click.option("--edits", is_flag=True, help="Edits of our own texts, on simulated devices.")
@click.option("--half", metavar="HALF", type=click.Choice(_HALVES), help="design or held-out.  [held-out]")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.option("--markdown", "as_markdown", is_flag=True, help="A table in Markdown.")
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
@click.pass_context
def bench(context: click.Context, /, **given: Any) -> int:
    """Compare drafting with plain decoding.

    All arms answer every prompt in turn on one loaded model, and are compared
    per category of prompts. They are plain, auto, draft:K (always K tokens by
    the draft model), lookup (our own, without a draft model), and for
    comparison the rules of others: lookup:nNkK, longest5, suffix and first.

    With --edits, place (our own, which knows the document that is edited) is
    compared with votes (the same without knowing it), with the rules of
    others (lookup:n3k10, longest5, suffix) and with lining the answer up with
    the document as a diff does (myers, levenshtein).

    \b
    Examples:
      localspec bench -m large.gguf -d small.gguf --limit 2
      localspec bench --arms plain,lookup,suffix --json
      localspec bench --simulate cuda --arms plain,auto,lookup:n3k10
      localspec bench --edits --markdown
    """
    before = context.find_object(Before) or Before()
    before.debug = before.debug or given.pop("debug")
    if given["as_json"] and given["as_markdown"]:
        raise WrongUsageError("A comparison has one form; choose one of --json and --markdown.")
    if before.given.get("drafter") or given.get("drafter"):
        raise WrongUsageError("A comparison chooses its drafters with --arms; leave out --drafter.")
    settings = settings_of(before.given, given)
    form: _Form = "json" if given["as_json"] else "markdown" if given["as_markdown"] else "text"
    if given["edits"]:
        return _bench_edits(settings, given, form)
    if given["half"]:
        raise WrongUsageError("Only the edits have two halves; add --edits, or leave out --half.")

    from localspec.bench import BenchRun, Comparison, chosen_arms, chosen_profile, chosen_prompts
    from localspec.interruption import Interruption

    try:
        arms = chosen_arms(given["arms"], settings)
    except UserError as error:
        raise WrongUsageError(str(error)) from error
    prompts = chosen_prompts(given["prompts"], given["limit"])
    comparison = Comparison(arms, prompts, given["repeat"], chosen_profile(given["simulate"]))
    with Interruption() as interruption:
        return BenchRun(settings, find_folders(), interruption, comparison, form, given["quiet"]).run()


def _bench_edits(settings: Settings, given: dict[str, Any], form: _Form) -> int:
    """The comparison of ways to draft an edited text."""
    if given["prompts"] or given["limit"] or given["repeat"] != 1:
        raise WrongUsageError("The edits are our own and replayed once; leave out --prompts, --limit and --repeat.")

    from localspec.bench_edits import EditBenchRun, EditComparison, chosen_arms, chosen_profiles
    from localspec.interruption import Interruption

    try:
        arms = chosen_arms(given["arms"])
    except UserError as error:
        raise WrongUsageError(str(error)) from error
    comparison = EditComparison(given["half"] or "held-out", arms, chosen_profiles(given["simulate"]))
    with Interruption() as interruption:
        return EditBenchRun(settings, find_folders(), interruption, comparison, form, given["quiet"]).run()


cli.add_command(rewrite)
cli.add_command(pull)
cli.add_command(sessions)
cli.add_command(measure)
cli.add_command(doctor)
cli.add_command(models)
cli.add_command(rm)


def main() -> None:
    """The `localspec` command."""
    cli(obj=Before(watched=True))
