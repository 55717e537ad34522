"""Help and shell completion: quick, complete, and inside 80 columns."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import fields

import pytest
from click.shell_completion import CompletionItem, ShellComplete

from command import PATIENCE, call, execute, surroundings
from localspec import __version__
from localspec.cli import cli
from localspec.cli_options import ModelCommand
from localspec.settings import Settings, load_settings

HEAVY = ("huggingface_hub", "jinja2", "llama_cpp", "localspec.engine.llama", "localspec.run", "numpy", "textual")
SHELLS = ("bash", "zsh", "fish")


def test_the_help_of_the_program_fits_a_terminal():
    outcome = call("-h")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == call("--help").out
    lines = outcome.out.splitlines()
    assert lines[0] == "Usage: localspec [OPTIONS] [COMMAND]"
    assert len(lines) - len(cli.commands) <= 21
    assert max(map(len, lines)) <= 80
    for command in cli.commands:
        assert re.search(rf"^  {command}  +[A-Z].*\.$", outcome.out, re.MULTILINE)


OPTION = re.compile(r"^  (?:-\w, )?(--[\w-]+)(?: [\w|]+)? {2,}\S.*[.\]]$")
MODEL_COMMANDS = [name for name, command in cli.commands.items() if isinstance(command, ModelCommand)]


@pytest.mark.parametrize("command", MODEL_COMMANDS)
def test_the_help_of_a_command_has_every_option_on_a_line_of_its_own(command):
    outcome = call(command, "-h")
    assert (outcome.code, outcome.err) == (0, "")
    assert max(map(len, outcome.out.splitlines())) <= 80
    # From the first heading to the closing words there is nothing but headings, options and empty lines.
    body = outcome.out.split("\nModel:\n")[1].split("  Show this message and exit.\n")[0].splitlines()
    matches = [OPTION.match(line) for line in body[:-1] if line.startswith(" ")]
    assert all(matches)
    listed = [match[1] for match in matches if match]
    assert len(listed) == len(set(listed))
    shared = {f"--{field.name.replace('_', '-')}" for field in fields(Settings)}
    assert shared | {"--debug", "--quiet"} <= set(listed)
    headings = [line.split("  ")[0].rstrip(":") for line in body if line and line[0] != " "]
    own = cli.commands[command].heading
    assert headings == list(dict.fromkeys([own, "Answer", "Sampling", "Drafting", "Other"]))


def test_the_examples_of_the_help_are_understood():
    texts = "\n".join(call(*words, "-h").out for words in ((), *([name] for name in cli.commands)))
    examples = re.findall(r"^    (?:.* \| )?localspec(.*?)(?:   .*)?$", texts, re.MULTILINE)
    assert len(examples) >= 4 + 3 * len(MODEL_COMMANDS)
    for example in examples:
        words = [word.strip('"') for word in re.findall(r'"[^"]*"|\S+', example.split(" < ")[0])]
        context = cli.make_context("localspec", words.copy())
        if context.invoked_subcommand is None and words and words[0] in cli.commands:
            cli.commands[words[0]].make_context(words[0], words[1:], parent=context)


def test_a_group_without_a_command_says_which_there_are():
    outcome = call("measure")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.sentence == "localspec measure needs a command (acceptance or theory); see localspec measure -h."


def test_the_version_is_said():
    assert call("--version").out == f"localspec, version {__version__}\n"


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["run", "--help"], ["complete"], ["--wings"]])
def test_nothing_heavy_is_imported_to_say_something(words):
    program = (
        "import sys\nfrom localspec.cli import cli\n"
        "try:\n    cli.main(sys.argv[1:])\n"
        f"finally:\n    print('heavy:', *(name for name in {HEAVY} if name in sys.modules), file=sys.stderr)"
    )
    completion = {
        "_LOCALSPEC_COMPLETE": "bash_complete", "COMP_WORDS": "localspec run --drafter l", "COMP_CWORD": "3"
    }  # fmt: skip
    environment = surroundings(**(completion if words == ["complete"] else {}))
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, env=environment, timeout=PATIENCE, check=False
    )
    assert done.stdout or words == ["--wings"]
    assert done.stderr.decode().splitlines()[-1] == "heavy:"


def completed(*words: str) -> list[str]:
    """What a shell is offered for the last word."""
    return [item.value for item in offers(*words) if item.type == "plain"]


def offers(*words: str) -> list[CompletionItem]:
    return ShellComplete(cli, {}, "localspec", "_LOCALSPEC_COMPLETE").get_completions(list(words[:-1]), words[-1])


def test_choices_are_completed_and_are_those_of_the_settings():
    for option, choices in {
        "--drafter": ["auto", "draft", "lookup", "none"],
        "--verification": ["auto", "match", "rejection"],
        "--kv-type": ["f16", "q8_0"],
        "--gpu-layers": ["all"],
    }.items():
        for before in ([], ["run"], ["run", "--seed", "1"]):
            assert completed(*before, option, "") == choices
        for choice in choices:
            assert completed("run", option, choice[:2]) == [choice]
            load_settings({option[2:].replace("-", "_"): choice})
    assert completed("run", "--temp", "") == []


def test_names_of_models_are_completed(own_folders):
    (own_folders / "data/models").mkdir(parents=True)
    (own_folders / "data/models/qwen3-mine.gguf").write_bytes(b"")
    assert completed("rm", "qw") == ["qwen3-mine"]
    assert completed("models", "qwen3-") == ["qwen3-mine", "qwen3-8b", "qwen3-14b", "qwen3-32b", "qwen3-0.6b"]


def test_commands_and_options_are_completed():
    assert completed("ru") == ["run"]
    assert completed("run", "--dr") == ["--draft", "--drafter", "--draft-max"]
    assert "--json" in completed("run", "--")
    assert "--json" not in completed("--")
    assert "--top-k" in completed("--")


def test_models_are_completed_by_name_and_by_file(own_folders):
    folder = own_folders / "data" / "models"
    folder.mkdir(parents=True)
    for name in ("alpha", "beta"):
        (folder / f"{name}.gguf").touch()
    assert completed("run", "-m", "") == ["alpha", "beta"]
    assert completed("run", "--draft", "") == ["none", "alpha", "beta"]
    assert completed("run", "-m", "b") == ["beta"]
    assert [item.value for item in offers("run", "-m", "./b") if item.type == "file"] == ["./b"]


@pytest.mark.parametrize("shell", SHELLS)
def test_there_is_a_script_for_every_shell(shell):
    outcome = execute(_LOCALSPEC_COMPLETE=f"{shell}_source")
    assert (outcome.code, outcome.err) == (0, "")
    assert "_LOCALSPEC_COMPLETE" in outcome.out
    assert f"{shell}_complete" in outcome.out


ASK = {
    "bash": (
        'eval "$(_LOCALSPEC_COMPLETE=bash_source localspec)"; COMP_WORDS=(localspec run --drafter l); COMP_CWORD=3; '
        '_localspec_completion localspec; echo "${COMPREPLY[@]}"'
    ),
    "fish": "_LOCALSPEC_COMPLETE=fish_source localspec | source; complete -C 'localspec run --drafter l'",
}


@pytest.mark.parametrize("shell", ASK)
def test_a_real_shell_completes(shell, tmp_path):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    program = tmp_path / "localspec"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m localspec "$@"\n')
    program.chmod(0o755)
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    done = subprocess.run(
        [shell, "-c", ASK[shell]], capture_output=True, text=True, env=surroundings(PATH=path, HOME=str(tmp_path)),
        timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["lookup"], done.stderr
