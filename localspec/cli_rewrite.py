"""The command line of `localspec rewrite`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from localspec.cli_input import piped, settings_of
from localspec.cli_options import CONTEXT, ModelCommand, model_options
from localspec.console import Progress
from localspec.engine.errors import UserError
from localspec.program import Before, WrongUsageError
from localspec.settings import find_folders, load_app_settings

_EPILOG = """Unless asked otherwise, the model takes the likeliest token (--temp 0). Long
texts are rewritten in parts; a part that fails keeps its text. With -o and
--in-place an interrupted rewriting goes on where it was when the same command
is given again. Presets of your own go into config.toml, under
[rewrite.presets]: boss = "Make it fit for my boss."."""


_REMEDY = (
    "no file has changed but those that are done, and with -o or --in-place the same command goes on where it was; choose "
    "another model, a smaller --ctx or --gpu-layers 0 if it stays"
)


@click.command(cls=ModelCommand, heading="Rewriting", remedy=_REMEDY, context_settings=CONTEXT, epilog=_EPILOG)
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("-i", "--instruction", metavar="HOW", help="What is to be done to the text.")
@click.option("--preset", metavar="NAME", help="One of the instructions listed above, or your own.")
@click.option("-o", "--output", metavar="OUT", type=click.Path(path_type=Path), help="Write here, not to stdout.")
@click.option("--in-place", is_flag=True, help="Replace the files, each at once or not at all.")
@click.option("--backup", is_flag=True, help="Keep FILE.bak; with --in-place.")
@click.option("--diff", is_flag=True, help="Only show what would change.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document: the texts and their figures.")
@click.option("--quiet", is_flag=True, help="No progress and no remarks on stderr.")
@model_options
@click.pass_context
def rewrite(context: click.Context, /, **given: Any) -> int:
    """Rewrite a text by an instruction: FILE, or what is piped in.

    The result goes to stdout and has the encoding, the line ends and the
    blanks around it that the text had.

    \b
    Examples:
      localspec rewrite letter.txt -i "Make it shorter."
      localspec rewrite --preset fix-grammar --in-place --backup *.md
      git show HEAD:README.md | localspec rewrite --preset translate:French
      localspec rewrite notes.md -i "Use the present tense." --diff

    \b
    Presets: fix-grammar, shorten, simplify, formal, translate:LANG,
    comment-code, plain-language.
    """
    before = context.find_object(Before) or Before()
    before.debug = before.debug or given.pop("debug")
    _check(given)
    settings = settings_of(before.given, given)
    folders = find_folders()
    instruction = _instruction(given["instruction"], given["preset"])
    quiet = given["quiet"]
    files = tuple(path for path in given["files"] if str(path) != "-")
    text = None if files else piped(sys.stdin, Progress(quiet), "name a file")
    if not files and text is None:
        raise WrongUsageError("There is no text to rewrite; name a file, or pipe one in.")

    from localspec.interruption import Interruption
    from localspec.rewrite import Job, Rewrite

    job = Job(
        instruction=instruction,
        files=files,
        piped=text,
        output=given["output"],
        in_place=given["in_place"],
        backup=given["backup"],
        diff=given["diff"],
        as_json=given["as_json"],
    )
    with Interruption() as interruption:
        return Rewrite(settings, folders, interruption, job, quiet).run()


def _check(given: dict[str, Any]) -> None:
    """Raises WrongUsageError for what cannot be meant together."""
    files = given["files"]
    if (given["output"] is not None) + given["in_place"] + given["diff"] > 1:
        raise WrongUsageError("The result goes to one place; choose one of -o, --in-place and --diff.")
    if given["backup"] and not given["in_place"]:
        raise WrongUsageError("Only what is replaced needs a copy; give --backup together with --in-place.")
    if len(files) > 1 and (given["output"] is not None or not (given["in_place"] or given["diff"] or given["as_json"])):
        raise WrongUsageError(
            "Several files need a place each; give --in-place, --diff or --json, or one file at a time."
        )
    if len(files) > 1 and any(str(path) == "-" for path in files):
        raise WrongUsageError("Stdin is rewritten alone; leave out - or the files.")
    if given["in_place"] and (not files or str(files[0]) == "-"):
        raise WrongUsageError("What is piped in has no place; name a file, or leave out --in-place.")
    if given["instruction"] is None and given["preset"] is None:
        raise WrongUsageError('What is to be done is missing; say it with -i "Fix the spelling.", or use --preset.')
    if given["instruction"] is not None and not given["instruction"].strip():
        raise WrongUsageError('The instruction is empty; say what is to be done, as in -i "Fix the spelling.".')


def _instruction(words: str | None, preset: str | None) -> str:
    """What is to be done: the preset, the person's words, or the words behind the preset."""
    from localspec.chat.presets import find_preset, own_presets, presets

    if preset is None:
        return words or ""
    known = presets(own_presets(load_app_settings().get("rewrite", {})))
    try:
        instruction = find_preset(preset, known)
    except UserError as error:
        raise WrongUsageError(str(error)) from error
    return f"{instruction} {words}" if words else instruction
