"""The command line: one command per task a person has. Nothing heavy is imported before a command needs it."""

import signal
import sys
import traceback
from collections.abc import Callable
from types import FrameType
from typing import IO, Any

import click

from localspec import __version__
from localspec.cli_options import model_options, setting_values
from localspec.engine.errors import UserError
from localspec.settings import Settings, find_folders, load_settings

EXIT_FAILED, EXIT_USAGE, EXIT_INTERRUPTED = 1, 2, 130
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(context_settings=CONTEXT, invoke_without_command=True)
@click.version_option(__version__, prog_name="localspec")
@model_options
@click.pass_context
def cli(context: click.Context, debug: bool, **given: Any) -> None:
    """Chat with open models on your own laptop, faster than plain decoding, without changing what the model says.

    Without a command it opens the chat.
    """
    context.obj = {"debug": debug, "given": given}
    if context.invoked_subcommand is None:
        _guarded(lambda: _chat(_settings({}, given)), debug)


@cli.command(context_settings=CONTEXT)
@click.argument("prompt", nargs=-1)
@model_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document with the answer and its figures.")
@click.option("--jsonl", "as_jsonl", is_flag=True, help="Print one JSON line per step as it happens.")
@click.option("--quiet", is_flag=True, help="No progress and no remarks on stderr.")
@click.pass_context
def run(
    context: click.Context,
    prompt: tuple[str, ...],
    as_json: bool,
    as_jsonl: bool,
    quiet: bool,
    debug: bool,
    **given: Any,
) -> None:
    """Answer PROMPT on stdout, as it is written. Piped stdin is attached as a document; without PROMPT it is the prompt."""
    if as_json and as_jsonl:
        raise click.UsageError("Choose one of --json and --jsonl.")
    above = context.obj or {"debug": False, "given": {}}
    form = "json" if as_json else "jsonl" if as_jsonl else "text"

    def answer() -> int:
        from localspec.run import answer_once

        settings = _settings(above["given"], given)
        interruption = Interruption()
        with interruption:
            return answer_once(" ".join(prompt), _piped(sys.stdin), settings, find_folders(), form, quiet, interruption)

    _guarded(answer, debug or above["debug"])


class Interruption:
    """Ctrl-C as a request: the first one stops what is under way and keeps what was made, the second one leaves at once."""

    def __init__(self) -> None:
        self.requested = False
        self.on_request: Callable[[], None] = lambda: None
        self._before: Any = None

    def __enter__(self) -> "Interruption":
        self._before = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *_error: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
        self.on_request()


def _settings(above: dict[str, Any], given: dict[str, Any]) -> Settings:
    """Options may stand before or behind the command; behind it they win. What cannot be understood is wrong usage."""
    values = {**setting_values(above), **setting_values(given)}
    try:
        return load_settings(values)
    except UserError as error:
        raise click.UsageError(str(error)) from error


def _piped(stdin: IO[str] | None) -> bytes | None:
    """What was piped in, None when nothing was."""
    if stdin is None or stdin.closed or stdin.isatty():
        return None
    return stdin.buffer.read()


def _chat(settings: Settings) -> int:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UserError("The chat needs a terminal; in a pipe, use: localspec run PROMPT.")
    from localspec.launch import engine_settings, options
    from localspec.tui.run import run_chat

    folders = find_folders()
    return run_chat(
        lambda progress, cancelled: engine_settings(settings, folders, progress, cancelled),
        lambda engine: options(settings, engine),
        system=settings.system,
        log_file=folders.logs / "localspec.log",
    )


def _guarded(task: Callable[[], int], debug: bool) -> None:
    """Run a command and leave with its exit code; a UserError is its sentence, and nothing else."""
    try:
        code = task()
    except UserError as error:
        if debug:
            traceback.print_exc()
        click.echo(f"localspec: {error}", err=True)
        code = EXIT_FAILED
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    sys.exit(code)


def main() -> None:
    """The `localspec` command."""
    cli()
