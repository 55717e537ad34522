"""The command line of `localspec sessions`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from localspec.cli_options import CONTEXT, message_options
from localspec.program import CommandGroup, WrongUsageError

if TYPE_CHECKING:
    from localspec.sessions import Sessions

_MOST_DIGITS = 18
"""SQLite counts up to 63 bits."""


def _number(_context: click.Context, _argument: click.Parameter, value: str) -> int:
    text = value.strip()
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS and int(text)):
        raise click.BadParameter("give the number of a chat, as localspec sessions list shows it")
    return int(text)


_chat = click.argument("chat", metavar="ID", callback=_number)
_as_json = click.option("--json", "as_json", is_flag=True, help="One JSON document.")


@click.group(cls=CommandGroup, context_settings=CONTEXT, invoke_without_command=True, subcommand_metavar="[COMMAND]")
@click.pass_context
def sessions(context: click.Context) -> int | None:
    """List, search, show, export and delete saved chats.

    Without a command it lists them.

    \b
    Examples:
      localspec sessions list
      localspec sessions search "rain in Bergen"
      localspec sessions export 12 -o bergen.md
    """
    return _opened(False).show_list(False) if context.invoked_subcommand is None else None


@sessions.command("list", context_settings=CONTEXT)
@_as_json
@message_options
def list_(as_json: bool, quiet: bool) -> int:
    """List the chats, newest first."""
    return _opened(quiet).show_list(as_json)


@sessions.command(context_settings=CONTEXT)
@_chat
@message_options
def show(chat: int, quiet: bool) -> int:
    """Show what was said in a chat."""
    return _opened(quiet).show(chat)


@sessions.command(context_settings=CONTEXT)
@_chat
@click.option("--json", "as_json", is_flag=True, help="JSON, with all branches, instead of Markdown.")
@click.option("-o", "--output", metavar="FILE", type=click.Path(path_type=Path), help="Where to.  [stdout]")
@message_options
def export(chat: int, as_json: bool, output: Path | None, quiet: bool) -> int:
    """Write a chat as Markdown or JSON.

    Markdown has the branch that the chat shows, JSON has all of them.
    """
    return _opened(quiet).export(chat, as_json, None if output == Path("-") else output)


@sessions.command(context_settings=CONTEXT)
@click.argument("text", nargs=-1, required=True)
@_as_json
@message_options
def search(text: tuple[str, ...], as_json: bool, quiet: bool) -> int:
    """Find chats by what was said in them.

    Each word of TEXT has to occur in a message or in the title.
    """
    words = " ".join(text)
    if not words.strip():
        raise WrongUsageError("There is nothing to search for; write a word that was said in the chat.")
    return _opened(quiet).search(words, as_json)


@sessions.command(context_settings=CONTEXT)
@_chat
@message_options
def rm(chat: int, quiet: bool) -> int:
    """Delete a chat; for 30 days it can be restored."""
    return _opened(quiet).remove(chat)


@sessions.command(context_settings=CONTEXT)
@_chat
@message_options
def restore(chat: int, quiet: bool) -> int:
    """Bring back a deleted chat."""
    return _opened(quiet).restore(chat)


def _opened(quiet: bool) -> Sessions:
    from localspec.sessions import Sessions
    from localspec.settings import find_folders

    return Sessions(find_folders(), quiet)
