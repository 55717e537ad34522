"""The `localspec` command as `native_faults` has it: with the fault of the environment in it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from command import PATIENCE, Outcome, surroundings

FOLDER = Path(__file__).parent
WAYS = ["forked", "begun anew"]
"""How a command gets a process of its own: as on Linux, and as on macOS."""


def faulty_command(*arguments: object) -> list[str]:
    """The words that start it."""
    return [sys.executable, str(FOLDER / "native_faults.py"), *map(str, arguments)]


def faulty_surroundings(way: str = "forked", **environment: str) -> dict[str, str]:
    """Its environment."""
    found = surroundings(**environment, **({"BEGIN_ANEW": "1"} if way == "begun anew" else {}))
    found["PYTHONPATH"] = os.pathsep.join([str(FOLDER), str(FOLDER.parent), found["PYTHONPATH"]])
    return found


def execute(*arguments: object, way: str = "forked", line: str = 'exec "$@"') -> Outcome:
    """Run it in a process of its own, by a line of shell in which it is `"$@"`. Stdin is empty."""
    done = subprocess.run(
        ["sh", "-c", line, "sh", *faulty_command(*arguments)],
        env=faulty_surroundings(way),
        input=b"",
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    return Outcome(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode())
