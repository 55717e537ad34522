"""What is left of a process that died: why, and where its last words are."""

import contextlib
import os
import signal
from pathlib import Path

from localspec.whole_file import open_private, private_folder


def cause_of(code: int | None) -> str:
    """Why it died, in words. `code` is its exit code as subprocess has it: the number of a signal is negative."""
    why = f"signal {-code}" if code and code < 0 else f"exit code {code}"
    return f"{why}, perhaps because memory ran out" if code == -signal.SIGKILL else why


def open_log(log_file: Path) -> int:
    """Its descriptor, to append to. A file that cannot be written is no reason not to go on: the output is thrown away
    then."""
    with contextlib.suppress(OSError):
        private_folder(log_file.parent)
        return open_private(log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    return os.open(os.devnull, os.O_WRONLY)
