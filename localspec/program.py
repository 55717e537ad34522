"""The program around the commands: how help looks, and how a failure is told."""

import difflib
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import click

from localspec.console import abandon, say
from localspec.engine.errors import NO_MEMORY, UserError
from localspec.literal import literal

PROGRAM = "localspec"
EXIT_FAILED, EXIT_USAGE, EXIT_INTERRUPTED = 1, 2, 130

_IN_HELP = ("--model", "--draft", "--system", "--continue", "--version", "--help")
"""The options that the program's own help shows; the help of a command shows them all."""
_SHOWN_CHARACTERS = 40


class WrongUsageError(UserError):
    """Something on the command line, in the environment or in config.toml that cannot be meant."""


@dataclass
class Before:
    """What stands before the command."""

    debug: bool = False
    given: dict[str, Any] = field(default_factory=dict)
    watched: bool = False
    """Whether what runs native code does so in a process of its own, see watched.py: not inside somebody else's."""
    goodbye: Callable[[int], None] = lambda _code: None
    """To be told the exit code when everything else is done."""


class CommandGroup(click.Group):
    """Commands about one thing, as in `localspec sessions list`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command."""
        name = args[0]
        if not ctx.resilient_parsing and not name.startswith("-") and self.get_command(ctx, name) is None:
            near = difflib.get_close_matches(name, self.commands, n=1)
            raise WrongUsageError(self.no_command(ctx, _shortened(name), near[0] if near else None))
        return super().resolve_command(ctx, args)

    def no_command(self, ctx: click.Context, name: str, near: str | None) -> str:
        """What to say of a command that there is not. `near`: one with a similar name."""
        remedy = f"perhaps {near} is meant" if near else f"see {ctx.command_path} -h"
        return f"There is no command {ctx.info_name} {name}; {remedy}."


class Program(CommandGroup):
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
            before.goodbye(code or 0)
            sys.exit(code)
        return code

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; before there is anything to keep, Ctrl-C simply ends it."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            return EXIT_INTERRUPTED

    def no_command(self, ctx: click.Context, name: str, near: str | None) -> str:
        """What to say of a command that there is not. A question without one is an easy mistake to make."""
        remedy = f"perhaps {near} is meant" if near else f"to ask something, write {PROGRAM} run and the question"
        return f"There is no command {name}; {remedy}."

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands first, then the few options that most chats are started with."""
        self.format_commands(ctx, formatter)
        shown = [parameter for parameter in self.get_params(ctx) if parameter.opts[-1] in _IN_HELP]
        with formatter.section("Options"):
            formatter.write_dl([record for parameter in shown if (record := parameter.get_help_record(ctx))])
        with formatter.indentation():
            formatter.write_paragraph()
            formatter.write_text(f"The chat takes the other options of an answer, too: see {PROGRAM} run -h.")


def _failed(error: Exception, debug: bool) -> int:
    """Say what went wrong, and give the exit code."""
    if debug:
        click.echo(literal("".join(traceback.format_exception(error))), err=True, nl=False)
    if isinstance(error, click.Abort):
        return EXIT_INTERRUPTED
    if isinstance(error, OSError):
        abandon(sys.stdout)
    say(_sentence(error))
    return EXIT_USAGE if isinstance(error, WrongUsageError | click.UsageError) else EXIT_FAILED


def _sentence(error: Exception) -> str:
    if isinstance(error, UserError):
        return str(error)
    if isinstance(error, MemoryError):
        return NO_MEMORY
    if isinstance(error, click.ClickException):
        return _usage_sentence(error)
    if isinstance(error, PermissionError) and error.filename and error.strerror:
        return f"{error.filename} cannot be used ({error.strerror}); check its permissions and those of its folder."
    if isinstance(error, OSError) and error.strerror:
        what = error.filename or "Reading or writing"
        return f"{what} failed ({error.strerror}); check where the output goes and whether there is space."
    detail = f"{type(error).__name__}: {error}".strip().rstrip(":.")
    return f"Something inside {PROGRAM} went wrong ({detail}); please report it with what --debug shows."


def _usage_sentence(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    if isinstance(error, click.exceptions.NoArgsIsHelpError) and context and isinstance(context.command, click.Group):
        commands = " or ".join(context.command.list_commands(context))
        return f"{context.command_path} needs a command ({commands}); see {context.command_path} -h."
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
