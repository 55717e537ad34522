"""The command line: one command per task a person has. Nothing heavy is imported before a command needs it."""

import sys
from pathlib import Path
from typing import Any, Literal, TextIO

import click

from localspec import __version__
from localspec.cli_options import CONTEXT, ModelCommand, model_options, setting_values
from localspec.cli_sessions import sessions
from localspec.console import Progress
from localspec.engine.errors import UserError
from localspec.program import PROGRAM, Before, Program, WrongUsageError
from localspec.settings import Settings, find_folders, load_settings

_MOST_STDIN = 16 << 20
"""Bytes: more than any context holds, and read before anybody wonders what is going on."""
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
    return _chat(_settings({}, given), goes_on) if context.invoked_subcommand is None else None


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
    settings = _settings(before.given, given)
    piped = _piped(sys.stdin, Progress(quiet))

    from localspec.interruption import Interruption
    from localspec.output import Form
    from localspec.run import Run

    with Interruption() as interruption:
        form: Form = "json" if as_json else "jsonl" if as_jsonl else "text"
        return Run(settings, find_folders(), interruption, form, quiet).answer(" ".join(prompt), piped)


def _settings(above: dict[str, Any], given: dict[str, Any]) -> Settings:
    """Options may stand before or behind the command; behind it they win."""
    try:
        return load_settings({**setting_values(above), **setting_values(given)})
    except UserError as error:
        raise WrongUsageError(str(error)) from error


def _piped(stdin: TextIO | None, progress: Progress) -> bytes | None:
    """What was piped in, None when nothing was."""
    if stdin is None or stdin.isatty():
        return None
    progress.show("reading stdin")
    try:
        text = stdin.buffer.read(_MOST_STDIN + 1)
    except OSError as error:
        raise UserError(f"stdin cannot be read ({error.strerror}); give the prompt as an argument.") from error
    finally:
        progress.clear()
    if len(text) > _MOST_STDIN:
        raise UserError(f"The text on stdin is longer than {_MOST_STDIN >> 20} MB; give a shorter one.")
    return text


def _chat(settings: Settings, goes_on: bool) -> int:
    if not (sys.stdin and sys.stdin.isatty() and sys.stdout and sys.stdout.isatty()):
        raise UserError(f"The chat needs a terminal; without one, write {PROGRAM} run and the question.")
    from localspec.chat_start import wanted
    from localspec.logs import LOG_FILE
    from localspec.tui.run import run_chat

    folders = find_folders()
    return run_chat(
        wanted(settings, folders),
        log_file=folders.logs / LOG_FILE,
        data=folders.data,
        goes_on=goes_on,
        start=settings,
    )


_PROFILES = ("cuda", "mlx", "cpu", "metal")
_BENCH_EPILOG = """Unless asked otherwise, answers are greedy and up to 128 tokens long, and the
random numbers are those of seed 0."""


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

    \b
    Examples:
      localspec bench -m large.gguf -d small.gguf --limit 2
      localspec bench --arms plain,lookup,suffix --json
      localspec bench --simulate cuda --arms plain,auto,lookup:n3k10
    """
    before = context.find_object(Before) or Before()
    before.debug = before.debug or given.pop("debug")
    if given["as_json"] and given["as_markdown"]:
        raise WrongUsageError("A comparison has one form; choose one of --json and --markdown.")
    if before.given.get("drafter") or given.get("drafter"):
        raise WrongUsageError("A comparison chooses its drafters with --arms; leave out --drafter.")
    settings = _settings(before.given, given)

    from localspec.bench import BenchRun, Comparison, chosen_arms, chosen_profile, chosen_prompts
    from localspec.interruption import Interruption

    try:
        arms = chosen_arms(given["arms"], settings)
    except UserError as error:
        raise WrongUsageError(str(error)) from error
    prompts = chosen_prompts(given["prompts"], given["limit"])
    comparison = Comparison(arms, prompts, given["repeat"], chosen_profile(given["simulate"]))
    form: Literal["json", "markdown", "text"] = (
        "json" if given["as_json"] else "markdown" if given["as_markdown"] else "text"
    )
    with Interruption() as interruption:
        return BenchRun(settings, find_folders(), interruption, comparison, form, given["quiet"]).run()


cli.add_command(sessions)


def main() -> None:
    """The `localspec` command."""
    cli()
