"""The command line: one command per task a person has. Nothing heavy is imported before a command needs it."""

import difflib
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TextIO

import click

from localspec import __version__
from localspec.cli_options import CONTEXT, ModelCommand, model_options, setting_values
from localspec.console import abandon, say
from localspec.engine.errors import UserError
from localspec.settings import Settings, find_folders, load_settings

PROGRAM = "localspec"
EXIT_FAILED, EXIT_USAGE, EXIT_INTERRUPTED = 1, 2, 130

_MOST_STDIN = 16 << 20
"""Bytes: more than any context holds, and read before anybody wonders what is going on."""
_IN_HELP = ("--model", "--draft", "--system", "--version", "--help")
"""The options that the program's own help shows; the help of a command shows them all."""
_SHOWN_CHARACTERS = 40
_EPILOG = """Model, sampling and drafting can also be set in config.toml, as in top_k = 20,
and in the environment, as in LOCALSPEC_TOP_K=20."""


class WrongUsageError(UserError):
    """Something on the command line, in the environment or in config.toml that cannot be meant."""


@dataclass
class Before:
    """What stands before the command."""

    debug: bool = False
    given: dict[str, Any] = field(default_factory=dict)


class Program(click.Group):
    """All commands. However one fails, it says so in one sentence and leaves with the exit code of its kind."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command and leave with its exit code, or return that without `standalone_mode`."""
        before = extra.setdefault("obj", Before())
        try:
            code = super().main(args, prog_name or PROGRAM, complete_var, standalone_mode=False, **extra)
        except Exception as error:
            code = _failed(error, before.debug)
        if standalone_mode:
            sys.exit(code)
        return code

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; before there is anything to keep, Ctrl-C simply ends it."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            return EXIT_INTERRUPTED

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command. A question without one is an easy mistake to make."""
        name = args[0]
        if not ctx.resilient_parsing and not name.startswith("-") and self.get_command(ctx, name) is None:
            near = difflib.get_close_matches(name, self.commands, n=1)
            remedy = (
                f"perhaps {near[0]} is meant" if near else f"to ask something, write {PROGRAM} run and the question"
            )
            raise WrongUsageError(f"There is no command {_shortened(name)}; {remedy}.")
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands first, then the few options that most chats are started with."""
        self.format_commands(ctx, formatter)
        shown = [parameter for parameter in self.get_params(ctx) if parameter.opts[-1] in _IN_HELP]
        with formatter.section("Options"):
            formatter.write_dl([record for parameter in shown if (record := parameter.get_help_record(ctx))])
        with formatter.indentation():
            formatter.write_paragraph()
            formatter.write_text(f"The chat takes the other options of an answer, too: see {PROGRAM} run -h.")


@click.group(
    PROGRAM, cls=Program, context_settings=CONTEXT, invoke_without_command=True, subcommand_metavar="[COMMAND]"
)
@model_options
@click.version_option(__version__, prog_name=PROGRAM)
@click.pass_context
def cli(context: click.Context, /, debug: bool, **given: Any) -> int | None:
    """Chat with open models on your own laptop, faster than plain decoding,
    without changing what the model says. Without a command it opens the chat.

    \b
    Examples:
      localspec                                 open the chat
      localspec -m large.gguf -d small.gguf     with a model and its draft model
      localspec run "Why is the sky blue?"      one answer
      localspec run "Sum this up." < notes.md   about a document
    """
    before = context.find_object(Before) or Before()
    before.debug, before.given = debug, given
    return _chat(_settings({}, given)) if context.invoked_subcommand is None else None


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
    piped = _piped(sys.stdin)

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


def _piped(stdin: TextIO | None) -> bytes | None:
    """What was piped in, None when nothing was."""
    if stdin is None or stdin.isatty():
        return None
    try:
        text = stdin.buffer.read(_MOST_STDIN + 1)
    except OSError as error:
        raise UserError(f"stdin cannot be read ({error.strerror}); give the prompt as an argument.") from error
    if len(text) > _MOST_STDIN:
        raise UserError(f"The text on stdin is longer than {_MOST_STDIN >> 20} MB; give a shorter one.")
    return text


def _chat(settings: Settings) -> int:
    if not (sys.stdin and sys.stdin.isatty() and sys.stdout and sys.stdout.isatty()):
        raise UserError(f"The chat needs a terminal; without one, write {PROGRAM} run and the question.")
    from localspec.launch import engine_settings, options
    from localspec.logs import LOG_FILE
    from localspec.tui.run import run_chat

    folders = find_folders()
    return run_chat(
        lambda progress, cancelled: engine_settings(settings, folders, progress, cancelled),
        lambda engine: options(settings, engine),
        system=settings.system,
        log_file=folders.logs / LOG_FILE,
    )


def _failed(error: Exception, debug: bool) -> int:
    """Say what went wrong, and give the exit code."""
    if debug:
        traceback.print_exception(error)
    if isinstance(error, click.Abort):
        return EXIT_INTERRUPTED
    if isinstance(error, OSError):
        abandon(sys.stdout)
    say(_sentence(error))
    return EXIT_USAGE if isinstance(error, WrongUsageError | click.UsageError) else EXIT_FAILED


def _sentence(error: Exception) -> str:
    if isinstance(error, UserError):
        return str(error)
    if isinstance(error, click.ClickException):
        return _usage_sentence(error)
    if isinstance(error, OSError) and error.strerror:
        what = error.filename or "Reading or writing"
        return f"{what} failed ({error.strerror}); check where the output goes and whether there is space."
    detail = f"{type(error).__name__}: {error}".strip().rstrip(":.")
    return f"Something inside {PROGRAM} went wrong ({detail}); please report it with what --debug shows."


def _usage_sentence(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    remedy = f"see {context.command_path if context else PROGRAM} -h"
    if not isinstance(error, click.NoSuchOption):
        return f"{error.format_message().rstrip('.')}; {remedy}."
    # Compared without the dashes, which make all options alike.
    options = {name.lstrip("-"): name for name in error.possibilities or ()}
    if near := difflib.get_close_matches(error.option_name.lstrip("-"), options, n=1):
        remedy = f"perhaps {options[near[0]]} is meant"
    elif not error.option_name.startswith("--"):
        remedy = "put -- before a question that begins with a dash"
    return f"There is no option {_shortened(error.option_name)}; {remedy}."


def _shortened(word: str) -> str:
    return word if len(word) <= _SHOWN_CHARACTERS else f"{word[:_SHOWN_CHARACTERS]}…"


_PROFILES = ("cuda", "mlx", "cpu", "metal")
_BENCH_EPILOG = """Unless asked otherwise, answers are greedy and up to 128 tokens long, and the
random numbers are those of seed 0."""


def _positive(_context: click.Context, _option: click.Parameter, value: int | None) -> int | None:
    if value is not None and value < 1:
        raise click.BadParameter("give a whole number from 1 on")
    return value


@cli.command(cls=ModelCommand, context_settings=CONTEXT, epilog=_BENCH_EPILOG)
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
    per category of prompts. They are plain, auto, draft:K (always K tokens by the draft model), lookup (our own,
    without a draft model), and for comparison the rules of others:
    lookup:nNkK, longest5, suffix and first.

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


def main() -> None:
    """The `localspec` command."""
    cli()
