"""The memory of this machine, asked for by a process of its own: llama.cpp's library stays out of the app's."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from localspec.hub.machine import Machine

_PROGRAM = """
import sys
sys.path[:] = sys.argv[1:]
import json
from dataclasses import asdict
from localspec.hub.machine import this_machine
print(json.dumps(asdict(this_machine())))
"""
_PATIENCE_SECONDS = 60
_USUAL_GIGABYTES = 16
_log = logging.getLogger("localspec.tui")


def known_machine() -> Machine:
    """What is free now; where that cannot be found out, a machine as many people have it."""
    from localspec.hub.machine import laptop

    return ask_machine() or laptop(_USUAL_GIGABYTES)


def ask_machine() -> Machine | None:
    """What is free now; None where that cannot be found out. Takes a second or two."""
    from localspec.hub.machine import Machine

    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM, *sys.path],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE_SECONDS,
            check=True,
            # Ctrl+c in a terminal reaches all of a group.
            process_group=0,
        )
        return Machine(**json.loads(done.stdout))
    except (OSError, ValueError, TypeError, subprocess.SubprocessError) as error:
        _log.warning("the memory of this machine is not known: %s", error)
        return None
