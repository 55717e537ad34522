"""The command line as a person uses it: inside this process where that is enough, and in one of its own where streams,
signals or imports matter."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from localspec.cli import cli

ROOT = Path(__file__).parent.parent
PATIENCE = 120
"""Seconds after which a process of a test counts as hanging."""


@dataclass(frozen=True)
class Outcome:
    """What a command leaves behind."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """stdout as one JSON document, after nothing has gone wrong."""
        assert (self.code, self.err) == (0, "")
        return read_json(self.out)

    @property
    def sentence(self) -> str:
        """The one sentence on stderr, without the name of the program."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert self.err == f"{lines[0]}\n"
        assert lines[0].isprintable()
        assert lines[0].startswith("localspec: ")
        sentence = lines[0].removeprefix("localspec: ")
        # Ends as a sentence does, and is the only one; what is quoted in parentheses may be several.
        assert sentence[-1] in ".?"
        assert ". " not in re.sub(r"\(.*\)", "", sentence)
        return sentence


def read_json(text: str) -> Any:
    """JSON as the standard has it: no NaN, no Infinity."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def call(*arguments: object, stdin: bytes = b"") -> Outcome:
    """Run a command inside this process. Stdin is a pipe with `stdin` in it."""
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments], input=stdin)
    return Outcome(result.exit_code, result.stdout, result.stderr)


def command(*arguments: object) -> list[str]:
    """The words that start a command in a process of its own."""
    return [sys.executable, "-m", "localspec", *map(str, arguments)]


def execute(*arguments: object, stdin: bytes = b"", **environment: str) -> Outcome:
    """Run a command in a process of its own."""
    done = subprocess.run(
        command(*arguments),
        input=stdin,
        capture_output=True,
        env=surroundings(**environment),
        timeout=PATIENCE,
        check=False,
    )
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


def shell(line: str, *arguments: object, **environment: str) -> Outcome:
    """Run a line of shell, in which `"$@"` is the command with these arguments."""
    done = subprocess.run(
        ["sh", "-c", line, "sh", *command(*arguments)],
        capture_output=True,
        env=surroundings(**environment),
        timeout=PATIENCE,
        check=False,
    )
    return Outcome(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode())


def control_c() -> None:
    """Press Ctrl-C."""
    os.kill(os.getpid(), signal.SIGINT)


def surroundings(**more: str) -> dict[str, str]:
    """The environment of a command: this one, in which localspec can be found from everywhere and streams have buffers."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return os.environ | {"PYTHONPATH": path, "PYTHONUNBUFFERED": ""} | more
