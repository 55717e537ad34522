"""The command lines of `localspec models` and `localspec rm`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from localspec.cli_options import CONTEXT, catalog_names, installed_names, message_options

if TYPE_CHECKING:
    from localspec.models import Models


def _names(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    words = dict.fromkeys([*installed_names(), *catalog_names()])
    return [CompletionItem(word) for word in words if word.startswith(incomplete)]


def _installed(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(word) for word in installed_names() if word.startswith(incomplete)]


@click.command(context_settings=CONTEXT)
@click.argument("name", required=False, shell_complete=_names)
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@message_options
def models(name: str | None, as_json: bool, quiet: bool) -> int:
    """List the models that are installed, and the pairs there are.

    A pair is a model and the small one that drafts for it; its NAME stands
    for both. Whether they fit is said for the memory that is free now. With
    NAME, say all about one pair or model, also one on the hub.

    \b
    Examples:
      localspec models
      localspec models qwen2.5-7b
      localspec models user/repo:Q4_K_M
      localspec models --json
    """
    opened = _opened(quiet)
    return opened.show(name, as_json) if name is not None else opened.show_list(as_json)


@click.command(context_settings=CONTEXT)
@click.argument("name", shell_complete=_installed)
@click.option("-y", "--yes", is_flag=True, help="Delete without a question.")
@message_options
def rm(name: str, yes: bool, quiet: bool) -> int:
    """Delete an installed model, or both models of a pair.

    What other programs have downloaded is never deleted, and a draft model
    that another model needs stays.

    \b
    Examples:
      localspec rm qwen2.5-7b
      localspec rm --yes SmolLM2-135M-Instruct-Q4_1
    """
    return _opened(quiet).remove(name, yes)


def _opened(quiet: bool) -> Models:
    from localspec.models import Models
    from localspec.settings import find_folders

    return Models(find_folders(), quiet)
