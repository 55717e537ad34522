"""The options that every command which runs a model has, the same names everywhere, and how help shows them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from localspec.program import Before

Command = TypeVar("Command", bound=Callable[..., Any])

CONTEXT = {"help_option_names": ["-h", "--help"]}
MODEL, ANSWER, DRAFTING, OTHER = "Model", "Answer", "Drafting", "Other"
SAMPLING = "Sampling  [unless the model recommends something else]"
"""Headings of a command's help."""
_REMEDY = "try again, and choose another model, a smaller --ctx or --gpu-layers 0 if it stays"


@dataclass(frozen=True)
class _Shared:
    """One option. Its value is checked by the settings, as config.toml and the environment are."""

    section: str
    names: tuple[str, ...]
    metavar: str
    help: str
    choices: tuple[str, ...] = ()
    """What a shell may complete."""
    is_model: bool = False

    @property
    def setting(self) -> str:
        """The name of the setting."""
        return self.names[-1][2:].replace("-", "_")


_OPTIONS = (
    _Shared(MODEL, ("-m", "--model"), "REF", "A .gguf file, or the name of an installed model.", is_model=True),
    _Shared(MODEL, ("-d", "--draft"), "REF|none", "A small model of the same family that drafts.", ("none",), True),
    _Shared(MODEL, ("--ctx",), "N", "Tokens of a conversation.  [what fits, up to 8192]"),
    _Shared(MODEL, ("--gpu-layers",), "N|all", "Layers on the GPU.  [as many as fit]", ("all",)),
    _Shared(MODEL, ("--threads",), "N", "CPU threads.  [one per fast core]"),
    _Shared(MODEL, ("--kv-type",), "TYPE", "KV cache in f16, or in q8_0: half the size.  [f16]", ("f16", "q8_0")),
    _Shared(
        DRAFTING,
        ("--drafter",),
        "WHO",
        "auto, draft (model), lookup (text) or none.  [auto]",
        ("auto", "draft", "lookup", "none"),
    ),
    _Shared(DRAFTING, ("--draft-max",), "N", "Longest draft, 1-32.  [auto 32, draft 4, lookup 10]"),
    _Shared(
        DRAFTING,
        ("--verification",),
        "RULE",
        "auto, match or rejection; all are exact.  [auto]",
        ("auto", "match", "rejection"),
    ),
    _Shared(SAMPLING, ("--temp",), "T", "Temperature; 0 takes the likeliest token.  [0.7]"),
    _Shared(SAMPLING, ("--top-k",), "N", "Only the N likeliest tokens; 0 for all.  [40]"),
    _Shared(SAMPLING, ("--top-p",), "P", "Only the likeliest, up to probability P.  [0.95]"),
    _Shared(SAMPLING, ("--min-p",), "P", "None below P times the likeliest one.  [0]"),
    _Shared(SAMPLING, ("--repeat-penalty",), "X", "Make recent tokens less likely; 1 is off.  [1]"),
    _Shared(SAMPLING, ("--frequency-penalty",), "X", "The same, by how often they came; 0 is off.  [0]"),
    _Shared(SAMPLING, ("--presence-penalty",), "X", "The same, if they came at all; 0 is off.  [0]"),
    _Shared(SAMPLING, ("--seed",), "N", "Same seed, same answer, whoever drafts.  [random]"),
    _Shared(ANSWER, ("-s", "--system"), "TEXT", "System prompt: how the model should answer."),
    _Shared(ANSWER, ("--max-tokens",), "N", "Longest answer, in tokens.  [until the model ends]"),
)


class _SharedOption(click.Option):
    """An option that help shows under the heading `section`."""

    def __init__(self, *names: Any, section: str, **attributes: Any) -> None:
        super().__init__(*names, **attributes)
        self.section = section


class ModelCommand(click.Command):
    """A command that runs a model, in a process of its own: help shows its options under headings, one line each, its own
    ones under `heading`. `remedy` is what to do when native code ends that process."""

    def __init__(self, *arguments: Any, heading: str = ANSWER, remedy: str = _REMEDY, **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.heading, self.remedy = heading, remedy

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        before = ctx.find_object(Before)
        if before and before.watched:
            from localspec.logs import LOG_FILE
            from localspec.settings import find_folders
            from localspec.watched import Aftermath, go_on_watched

            before.goodbye = go_on_watched(Aftermath(find_folders().logs / LOG_FILE, self.remedy))
        return super().invoke(ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line. Where an error does not know which command it is about, it is told."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, all in the same two columns."""
        shown = [
            (self._section(parameter), record)
            for parameter in self.get_params(ctx)
            if isinstance(parameter, click.Option) and (record := parameter.get_help_record(ctx))
        ]
        width = max(len(names) for _section, (names, _text) in shown)
        order = [MODEL, self.heading, ANSWER, SAMPLING, DRAFTING, OTHER]
        shown.sort(key=lambda item: order.index(item[0]))
        for section, items in groupby(shown, key=lambda item: item[0]):
            with formatter.section(section):
                formatter.write_dl([(names.ljust(width), text) for _section, (names, text) in items])

    def _section(self, parameter: click.Parameter) -> str:
        if isinstance(parameter, _SharedOption):
            return parameter.section
        return OTHER if "--help" in parameter.opts else self.heading


def model_options(command: Command) -> Command:
    """Add the shared options, and --debug, to a command."""
    decorated = click.option(
        "--debug", cls=_SharedOption, section=OTHER, is_flag=True, help="Show the traceback of an error."
    )(command)
    for option in reversed(_OPTIONS):
        decorated = click.option(
            *option.names,
            cls=_SharedOption,
            section=option.section,
            metavar=option.metavar,
            help=option.help,
            shell_complete=_completion(option),
        )(decorated)
    return decorated


def message_options(command: Command) -> Command:
    """Add --quiet, and --debug, to a command that runs no model."""
    quiet = click.option("--quiet", is_flag=True, help="No remarks on stderr.")
    debug = click.option(
        "--debug",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_debug,
        help="Show the traceback of an error.",
    )
    return quiet(debug(command))


def _debug(context: click.Context, _option: click.Parameter, value: bool) -> None:
    before = context.find_object(Before)
    if value and before:
        before.debug = True


def setting_values(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were really given, by the name of their setting."""
    names = (option.setting for option in _OPTIONS)
    return {name: given[name] for name in names if given.get(name) is not None}


def _completion(option: _Shared) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    def complete(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        # Bash looks for files only where no name fits.
        files = [CompletionItem(incomplete, type="file")] if option.is_model else []
        words = [*option.choices, *(installed_names() if option.is_model else ())]
        return files + [CompletionItem(word) for word in words if word.startswith(incomplete)]

    return complete


def installed_names() -> Iterator[str]:
    """What a shell may complete to the name of an installed model."""
    from localspec.hub.resolve import installed
    from localspec.settings import find_folders

    return (model.name for model in installed(find_folders().models))


def catalog_names() -> Iterator[str]:
    """What a shell may complete to the name of a model or pair of the catalog."""
    from localspec.engine.errors import UserError
    from localspec.hub.catalog import load_catalog
    from localspec.hub.catalog_file import USER_CATALOG
    from localspec.settings import find_folders

    try:
        catalog = load_catalog(find_folders().config / USER_CATALOG)
    except UserError:
        return iter(())
    names = [*(pair.name for pair in catalog.pairs), *(model.name for model in catalog.models)]
    return iter(dict.fromkeys(names))
