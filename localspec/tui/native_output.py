"""Native libraries print to the process's own stdout and stderr, over the screen: those two go to a file meanwhile."""

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TextIO

from localspec.engine.deaths import open_log

_STREAMS = {1: ("stdout", "__stdout__"), 2: ("stderr", "__stderr__")}


@contextlib.contextmanager
def native_output_to(log_file: Path) -> Iterator[None]:
    """Inside, file descriptors 1 and 2 append to `log_file`, while Python's own streams still reach the terminal.

    Textual draws on `sys.__stderr__` and measures the terminal through `sys.__stdout__`, so both become streams on
    duplicates of the descriptors. Everything is put back at the end. A file that cannot be written is no reason not to
    chat: the output is thrown away then.
    """
    log = open_log(log_file)
    with contextlib.ExitStack() as undo:
        undo.callback(os.close, log)
        for descriptor, names in _STREAMS.items():
            _divert(descriptor, names, log, undo)
        yield


def _divert(descriptor: int, names: tuple[str, str], log: int, undo: contextlib.ExitStack) -> None:
    before = {name: getattr(sys, name) for name in names}
    _flush(before)
    kept = os.dup(descriptor)
    undo.callback(os.close, kept)
    stream = _stream_on(kept, before[names[1]])
    streams = dict.fromkeys(names, stream)

    def restore() -> None:
        _flush(streams)
        os.dup2(kept, descriptor)
        for name, original in before.items():
            setattr(sys, name, original)

    undo.callback(restore)
    os.dup2(log, descriptor)
    for name in names:
        # A stream that somebody else has put in place, such as a test's capture, is theirs.
        if before[name] is before[names[1]]:
            setattr(sys, name, stream)


def _stream_on(descriptor: int, like: TextIO | None) -> TextIO:
    encoding = getattr(like, "encoding", None) or "utf-8"
    return os.fdopen(descriptor, "w", encoding=encoding, errors="backslashreplace", buffering=1, closefd=False)


def _flush(streams: Mapping[str, TextIO | None]) -> None:
    for stream in streams.values():
        if stream is not None:
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
