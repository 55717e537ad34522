"""The command line of `localspec pull`."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from localspec.cli_options import CONTEXT, catalog_names, message_options


def _names(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(word) for word in ("starter", *catalog_names()) if word.startswith(incomplete)]


@click.command(context_settings=CONTEXT)
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=_names)
@click.option("--json", "as_json", is_flag=True, help="One JSON document: what is here now.")
@message_options
def pull(names: tuple[str, ...], as_json: bool, quiet: bool) -> int:
    """Download models, going on with what has come before.

    NAME is a pair or a model that localspec models lists, also as NAME:QUANT,
    something on the hub, or starter for a small one to begin with. Without a
    quantization the best for the memory of this machine is taken. What other
    programs have downloaded is used where it is.

    \b
    Examples:
      localspec pull starter
      localspec pull user/repo:Q4_K_M
      localspec pull user/repo/file.gguf@COMMIT
    """
    from localspec.interruption import Interruption
    from localspec.pull import Pull
    from localspec.settings import find_folders

    with Interruption() as interruption:
        return Pull(find_folders(), interruption, quiet, as_json).run(names)
