"""The options that every command which runs a model has, the same names everywhere."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

# Values are checked by the settings, which check config.toml and the environment in the same way.
_OPTIONS = (
    (("-m", "--model"), "REF", "The target: a .gguf file or the name of an installed model."),
    (("-d", "--draft"), "REF|none", "The draft model."),
    (("--drafter",), "auto|draft|lookup|none", "Who drafts.  [auto]"),
    (("--draft-max",), "N", "Longest draft."),
    (("--ctx",), "N", "Context length in tokens."),
    (("--gpu-layers",), "N|all", "Layers on the GPU.  [all]"),
    (("--threads",), "N", "Threads.  [physical performance cores]"),
    (("--kv-type",), "f16|q8_0", "Type of the target's KV cache.  [f16]"),
    (("--temp",), "T", "Temperature; 0 takes the most probable token."),
    (("--top-k",), "N", "Sample from the N most probable tokens; 0 from all."),
    (("--top-p",), "P", "Sample from the most probable tokens up to probability P."),
    (("--min-p",), "P", "Drop tokens less probable than P times the most probable one."),
    (("--repeat-penalty",), "X", "Make recent tokens less probable; 1 is off."),
    (("--frequency-penalty",), "X", "The same, by how often they occurred; 0 is off."),
    (("--presence-penalty",), "X", "The same, if they occurred at all; 0 is off."),
    (("--seed",), "N", "Same seed, same answer, whoever drafts."),
    (("--max-tokens",), "N", "Longest answer."),
    (("--verification",), "auto|match|rejection", "How drafts are judged; all are exact.  [auto]"),
    (("-s", "--system"), "TEXT", "System prompt."),
)
_NAMES = tuple(names[-1][2:].replace("-", "_") for names, _metavar, _help in _OPTIONS)


def model_options(command: Command) -> Command:
    """Add the shared options, and --debug, to a command."""
    decorated = click.option("--debug", is_flag=True, help="Show the traceback of an error.")(command)
    for names, metavar, text in reversed(_OPTIONS):
        decorated = click.option(*names, metavar=metavar, help=text)(decorated)
    return decorated


def setting_values(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were really given, by the name of their setting."""
    return {name: given[name] for name in _NAMES if given.get(name) is not None}
